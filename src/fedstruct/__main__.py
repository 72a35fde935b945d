"""`python -m fedstruct`."""

from fedstruct.cli import main

main()
