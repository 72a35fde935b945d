"""The command line as tests type it."""

import io
import json
import subprocess
import sys
from collections import namedtuple
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

import pytest

from fedstruct import cli

Said = namedtuple("Said", "code out err")


def typed(*arguments):
    """What a command says, run in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["fedstruct", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as stopped,
    ):
        cli.main()
    return Said(stopped.value.code or 0, out.getvalue(), err.getvalue())


def started(*arguments, **how):
    """What a command says, run in a process of its own, its output piped."""
    command = [sys.executable, "-m", "fedstruct", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, **how)
    return Said(done.returncode, done.stdout, done.stderr)


def strictly(text):
    """JSON as the standard has it: one value, and neither NaN nor infinity."""

    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def words(text):
    """Text without its line breaks, wherever the terminal's width puts them."""
    return " ".join(text.split())


def assert_one_sentence(said, expected):
    assert said.code == 2, said
    assert said.out == ""
    assert said.err.startswith("fedstruct: ")
    assert said.err.count("\n") == 1
    assert said.err.endswith("\n")
    assert expected in said.err
    assert "Traceback" not in said.err
