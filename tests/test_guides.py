"""The guides are true: what they say to type works, in their order, and prints what they show."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from command import typed
from fedstruct.federation.message import Source
from fedstruct.methods import METHODS, made

DOCS = Path(__file__).parents[1] / "docs"


def blocks(guide, kind=""):
    """The fenced blocks of one kind, as text."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", (DOCS / guide).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [text for of, text in fenced if of == kind]


def type_all(guide):
    """Type every command of a guide; what begins with $ shows its output below it."""
    for block in blocks(guide):
        if block.startswith("$ "):
            command, shown = block[2:].split("\n", 1)
            done = subprocess.run(command.split(), capture_output=True, text=True, check=True)
            assert done.stdout == shown
            continue
        for line in block.splitlines():
            program, *arguments = line.split()
            assert program == "fedstruct"
            said = typed(*arguments)
            assert (said.code, said.err) == (0, ""), line


@pytest.fixture
def away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_your_own_graph(away, capsys):
    type_all("your-own-graph.md")
    assert (away / "banks.html").stat().st_size > 10_000
    (python,) = blocks("your-own-graph.md", "python")
    exec(compile(python, "your-own-graph.md", "exec"), {})
    assert "training" in capsys.readouterr().out


def test_add_a_method(away, monkeypatch):
    (code,) = blocks("add-a-method.md", "python")
    lines = [line for line in code.splitlines() if line.strip() and not line.strip().startswith(("#", '"""'))]
    assert len(lines) <= 60
    (away / "nearest_mean.py").write_text(code)
    monkeypatch.setattr(sys, "path", list(sys.path))
    type_all("add-a-method.md")
    sys.modules.pop("nearest_mean")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nowhere.Method", "the module nowhere of 'nowhere.Method' cannot be imported: No module named 'nowhere'"),
        ("fedstruct.methods.Nothing", "there is no 'Nothing' in fedstruct.methods"),
        ("fedstruct.methods.Trained", "'fedstruct.methods.Trained' is not a method"),
        ("a b.c", "unknown method 'a b.c'"),
        ("..", "unknown method '..'"),
    ],
)
def test_a_path_that_leads_to_no_method(away, name, expected):
    said = typed("run", "consortium:accounts=200", "--method", name)
    assert (said.code, said.out) == (2, "")
    assert expected in said.err
    assert list(away.iterdir()) == []


def test_a_method_of_the_library_by_its_path():
    assert made("fedstruct.methods.FedStruct", rounds=3).options.rounds == 3


def test_the_page_on_privacy_names_every_message_that_tells_something():
    """Every kind that some method sends; a new one must be said there, one that is gone must not."""
    page = (DOCS / "privacy.md").read_text(encoding="utf-8")
    table = page.partition("## Who sees what")[2].partition("\n## ")[0]
    kinds = {kind for name in METHODS for kind in made(name, class_weight="balanced").sends}
    telling = {kind.__name__ for kind in kinds if kind.sources is not Source.NOTHING}
    assert {"ClassCounts", "Balance", "Wanted", "StructureRows"} <= telling
    assert set(re.findall(r"`([A-Z][A-Za-z]+)`", table)) == telling
