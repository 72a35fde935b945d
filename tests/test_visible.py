"""Names from outside are shown, and never obeyed: by no terminal and by no page, and long ones in a little room."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import assert_one_sentence, typed, words
from fedstruct.experiments.visible import LONGEST, brief, visible
from fedstruct.graph import npz
from fedstruct.graph.graph import Graph

pytestmark = pytest.mark.usefixtures("here")

HOSTILE = "north\x1b[2J\x1b]0;owned\x07 \u202egnp\u2066 \x9b1m"
LONG = "l" * 150 + "\x1b[31m" + "g" * 150


def obeyed(text):
    """What a terminal or a browser would do something with."""
    return [c for c in text if c not in "\n\t" and (unicodedata.category(c) == "Cc" or c in "\u202e\u2066\u200f\u061c")]


@given(st.text(), st.integers(3, 50))
def test_nothing_is_left_to_obey_and_a_name_is_one_line_of_its_length(text, longest):
    assert obeyed(visible(text)) == []
    assert visible(visible(text)) == visible(text)
    shown = brief(text, longest)
    assert obeyed(shown) == []
    assert "\n" not in shown
    assert len(shown) <= longest


@given(st.text("abc éß-_[]/()", max_size=LONGEST))
def test_ordinary_names_are_as_they_are(text):
    assert brief(text) == visible(text) == text


@pytest.fixture
def tables(here):
    """Two tables of two owners, whose names and columns are meant to do harm."""
    rows = [f'{i},"{(HOSTILE, LONG)[i % 2]}",{i % 2},{i}' for i in range(40)]
    (here / "nodes.csv").write_text("id,bank,label,age\x1b[7m\n" + "\n".join(rows) + "\n")
    edges = [f"{i},{(i * step) % 40}" for i in range(40) for step in (3, 7, 11)]
    (here / "edges.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    return ["nodes.csv", "edges.csv", "--owner", "bank", "--out", "mine.npz"]


def test_what_commands_print_of_hostile_names_is_only_seen(tables, here):
    quick = ("--set", "rounds=2", "--set", "layers_structure=2", "--train", "0.3", "--out", "run")
    for arguments in (
        ("import", *tables),
        ("partition", "mine.npz"),
        ("run", "mine.npz", *quick),
        ("ledger", "run", "--party", HOSTILE),
    ):
        said = typed(*arguments)
        assert (said.code, said.err) == (0, "")
        assert obeyed(said.out) == []
        assert r"north\x1b[2J" in words(said.out) or arguments[0] == "run"
    assert_one_sentence(typed("ledger", "run", "--party", "\x1b[2Jx"), r"unknown party '\x1b[2Jx'")
    assert typed("report", "run").code == 0
    page = (here / "report.html").read_text(encoding="utf-8")
    assert obeyed(page) == []
    assert r"north\x1b[2J" in page


def test_a_long_name_takes_little_room_and_is_there_to_point_at(here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    name = "b" * 150 + "x" * 150
    graph = Graph.from_edges(
        np.random.default_rng(0).integers(30, size=(2, 90)),
        features=np.eye(30),
        labels=np.arange(30) % 2,
        attributes={"bank": np.array([name, "south"] * 15)},
        owner_attribute="bank",
    )
    npz.write(graph, here / "long.npz")
    shown = typed("partition", "long.npz").out
    assert max(map(len, shown.splitlines())) <= 100
    assert brief(name) in shown
    assert typed("run", "long.npz", "--set", "rounds=1", "--set", "layers_structure=2", "--out", "run").code == 0
    assert typed("report", "run").code == 0
    page = (here / "report.html").read_text(encoding="utf-8")
    assert page.count(f'<span title="{name}">{brief(name)}</span>') >= 2
    assert f">{name}" not in page
