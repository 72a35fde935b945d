"""What is printed to be copied can be: commands and paths stand on one line, quoted as a shell needs them."""

import shlex

import pytest

from command import typed, words
from fedstruct.graph import npz
from fedstruct.graph.generate import planted

pytestmark = pytest.mark.usefixtures("here")

FAR = "a folder [bold] of many words that nobody would call short, for more columns than a pipe has"
QUICK = ("--parties", 2, "--set", "rounds=1")


def copied(said, begin):
    """The words, as a shell takes them, of the command that begins so."""
    assert (said.code, said.err) == (0, "")
    line = next(line for line in said.out.splitlines() if begin in line)
    return shlex.split(line[line.index(begin) :])


def test_commands_that_are_printed_can_be_typed(here):
    generated = copied(typed("generate", "consortium:banks=2,accounts=200,illicit=0.1", "--out", FAR), "fedstruct")
    said = typed(*generated[1:], "--out", "it's mine.npz")
    assert copied(said, "fedstruct run")[1:] == ["run", "it's mine.npz"]
    assert copied(said, "fedstruct partition")[2].startswith("it's mine.npz")
    said = typed("partition", "it's mine.npz", "--out", f"{FAR}.txt")
    owners = copied(said, "--partition")[1].removesuffix(".")
    assert owners == f"{FAR}.txt"
    assert len((here / owners).read_text().split()) == 200


def test_the_folders_of_runs_can_be_copied(here):
    npz.write(planted(nodes=60), here / "small.npz")
    runs = f"{FAR}/runs"
    ledger = copied(typed("run", "small.npz", *QUICK, "--set", "layers_structure=2", "--out", runs), "fedstruct ledger")
    assert typed(*ledger[1:]).code == 0
    said = typed("compare", "small.npz", "--methods", "local-mlp", *QUICK, "--jobs", 1, "--out", f"{FAR}/both")
    ledger = copied(said, "fedstruct ledger")
    assert typed(*ledger[1:]).code == 0
    assert shlex.quote(runs) in typed("report", runs, "--out", f"{runs}/page.html").out.replace("/page.html", "")
    said = typed(
        "tune",
        "small.npz",
        "--method",
        "local-mlp",
        *QUICK,
        "--budget",
        3,
        "--seeds",
        1,
        "--jobs",
        1,
        "--out",
        f"{FAR}/t",
    )
    found = copied(said, "fedstruct run")
    assert found[3].endswith("best.toml")
    assert typed(*found[1:], "--seeds", 1).code == 0


def test_help_names_the_extra(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for command in ("run", "compare", "sweep"):
        assert "needs fedstruct[track]" in words(typed(command, "--help").out)
