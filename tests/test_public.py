"""What the package offers: these names and no others, and none of the heavy imports until they are needed."""

import json
import subprocess
import sys

import pytest

import fedstruct

PUBLIC = [
    "FedstructError",
    "Graph",
    "PartyGraph",
    "RunResult",
    "datasets",
    "generate",
    "methods",
    "partition",
    "prepared",
    "run",
    "split",
    "tables",
]

HEAVY = ("torch", "torch_geometric", "polars", "scipy", "sklearn", "networkx", "pydantic", "cryptography")


def test_these_are_the_public_names():
    assert fedstruct.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC
    assert dir(fedstruct) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name):
    thing = getattr(fedstruct, name)
    assert thing is getattr(fedstruct, name)
    assert ">>> " in thing.__doc__, f"{name} shows no example of its use"
    module = getattr(thing, "__module__", thing.__name__)
    assert module.startswith("fedstruct.")


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="module 'fedstruct' has no attribute 'grpah'"):
        _ = fedstruct.grpah
    with pytest.raises(ImportError):
        exec("from fedstruct import nothing")


def test_a_star_import_brings_the_public_names():
    names = {}
    exec("from fedstruct import *", names)
    assert set(PUBLIC) <= set(names)


def test_the_version_is_the_packages():
    from importlib.metadata import version

    assert fedstruct.__version__ == version("fedstruct")


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import fedstruct", ()),
        ("import fedstruct.cli", ()),
        ("import fedstruct; fedstruct.FedstructError", ()),
        ("import fedstruct; fedstruct.Graph, fedstruct.partition, fedstruct.generate, fedstruct.tables", ("scipy",)),
    ],
)
def test_what_is_not_needed_is_not_imported(statement, allowed):
    """Torch takes seconds to import; who asks for help, or mistypes a word, does not wait for it."""
    code = f"{statement}; import json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert (set(HEAVY) - set(allowed)) & set(json.loads(done.stdout)) == set()
