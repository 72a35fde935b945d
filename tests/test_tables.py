"""Graphs from tables: what is in them is in the graph, and a table that is not right is refused in one sentence."""

from datetime import datetime

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedstruct as fs
from command import assert_one_sentence, strictly, typed, words
from fedstruct.errors import FedstructError
from fedstruct.graph import npz
from fedstruct.graph.columns import MOST_TEXTS
from fedstruct.graph.table import Table
from fedstruct.graph.tables import Tables

ACCOUNTS = polars.DataFrame(
    {
        "id": ["007", "7", "c", "d"],
        "bank": ["north", "south", "south", "north"],
        "age": [20.0, 40.0, None, 60.0],
        "kind": ["shop", None, "person", "person"],
        "fraud": ["no", "yes", None, "no"],
    }
)
PAYMENTS = polars.DataFrame(
    {
        "source": ["007", "7", "007", "c"],
        "target": ["7", "c", "7", "c"],
        "amount": [1.5, 2.0, 3.0, 1.0],
        "day": [9, 4, 5, 7],
    }
)
ROLES = {"id": "id", "label": "fraud", "owner": "bank", "weight": "amount", "time": "day"}


def both(accounts=ACCOUNTS, payments=PAYMENTS, **roles):
    return fs.tables.read(accounts, payments, **{**ROLES, **roles})


# What becomes of columns.


def test_every_column_has_its_place():
    graph = both()
    assert graph.ids.tolist() == ["007", "7", "c", "d"]
    assert graph.adjacency.toarray()[0, 1] == 4.5, "repeated payments add up"
    assert (graph.directed, graph.edges, graph.classes) == (True, 3, 2)
    assert graph.labels.tolist() == [0, 1, -1, 0]
    assert graph.owner_attribute == "bank"
    assert graph.attributes["bank"].tolist() == ["north", "south", "south", "north"]
    assert graph.time_attribute == "first_day"
    assert graph.attributes["first_day"].tolist() == [5, 4, 4, pytest.approx(np.nan, nan_ok=True)]
    # Age, of which a missing one is the mean, then the kinds in order: person, shop.
    assert graph.features[:, 0] == pytest.approx([-np.sqrt(2), 0, 0, np.sqrt(2)])
    assert graph.features[:, 1:].tolist() == [[0, 1], [0, 0], [1, 0], [1, 0]]


def test_numbers_may_stay_as_they_are_and_features_be_named():
    graph = both(ACCOUNTS.with_columns(polars.col("age").fill_null(33)), features=["age"], standardise=False)
    assert graph.features.tolist() == [[20], [40], [33], [60]]
    assert both(features=[]).features.tolist() == [[1]] * 4
    graph = both(features=["kind"], attributes=["age"])
    assert graph.features.shape == (4, 2)
    assert graph.attributes["age"][[0, 1, 3]].tolist() == [20, 40, 60]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1, None, 2], [0, 1, -1, 2]),
        ([0.0, -1.0, 1.0, None], [0, -1, 1, -1]),
        ([True, False, None, True], [1, 0, -1, 1]),
        (["1", " 0", "", "2"], [1, 0, -1, 2]),
        (["TRUE", "false", "", "True"], [1, 0, -1, 1]),
        (["yes", "no", None, "yes"], [1, 0, -1, 1]),
        (["no", "no", None, "no"], [0, 0, -1, 0]),
        (["b", "a", None, "c"], [1, 0, -1, 2]),
    ],
)
def test_labels_may_be_numbers_truth_values_or_words(values, expected):
    accounts = ACCOUNTS.with_columns(polars.Series("fraud", values))
    assert both(accounts).labels.tolist() == expected


@pytest.mark.parametrize(
    "days",
    [
        ["2026-01-02", "2026-01-01", "2026-01-04", "2026-01-03"],
        ["2026-01-02 00:00:00", "2026-01-01 00:00:00", "2026-01-04 00:00:00", "2026-01-03 00:00:00"],
        [datetime(2026, 1, day) for day in (2, 1, 4, 3)],
    ],
)
def test_times_may_be_dates(days):
    graph = both(payments=PAYMENTS.with_columns(polars.Series("day", days)))
    first = datetime(2026, 1, 1)
    epoch = (first - datetime(1970, 1, 1)).total_seconds()
    assert ((graph.attributes["first_day"][:3] - epoch) / 86_400).tolist() == [1, 0, 0]


def test_owners_beyond_the_largest_are_the_others():
    accounts = polars.DataFrame({"id": list("abcdefg"), "bank": list("xxxyyzw"), "fraud": [0] * 7})
    graph = both(accounts, PAYMENTS.clear(), largest=2, weight=None, time=None)
    assert graph.attributes["bank"].tolist() == ["x", "x", "x", "y", "y", "others", "others"]


@st.composite
def drawn(draw):
    """Two tables, and the arrays that they were made of."""
    nodes = draw(st.integers(1, 12))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node, st.floats(0.01, 1e4), st.integers(-50, 50)), min_size=1, max_size=30))
    ids = draw(st.lists(st.text("ab01é ", min_size=1, max_size=4).filter(lambda t: t == t.strip()),
                        min_size=nodes, max_size=nodes, unique=True))  # fmt: skip
    labels = draw(st.lists(st.none() | st.integers(0, 3), min_size=nodes, max_size=nodes))
    values = draw(st.lists(st.floats(-1e3, 1e3), min_size=nodes, max_size=nodes))
    owners = draw(st.lists(st.sampled_from(["a", "b,c", 'd "e"']), min_size=nodes, max_size=nodes))
    return ids, labels, values, owners, edges


@settings(max_examples=50)
@given(drawn(), st.booleans())
def test_tables_make_the_graph_of_their_arrays_from_memory_and_from_files(tmp_path_factory, parts, directed):
    ids, labels, values, owners, edges = parts
    source, target, weight, day = (list(column) for column in zip(*edges, strict=True))
    nodes_frame = polars.DataFrame(
        {"id": ids, "bank": owners, "value": values, "label": polars.Series(labels, dtype=polars.Int64)}
    )
    edges_frame = polars.DataFrame(
        {"source": [ids[u] for u in source], "target": [ids[v] for v in target], "amount": weight, "day": day}
    )
    roles = {"id": "id", "label": "label", "owner": "bank", "weight": "amount", "time": "day"}
    roles |= {"standardise": False, "directed": directed}
    graph = fs.tables.read(nodes_frame, edges_frame, **roles)
    expected = fs.Graph.from_edges(
        [source, target], features=np.array(values)[:, None], weights=weight, directed=directed,
        labels=[-1 if label is None else label for label in labels],
    )  # fmt: skip
    first = [min((d for u, v, _, d in edges if n in (u, v)), default=np.nan) for n in range(len(ids))]
    folder = tmp_path_factory.mktemp("tables")
    paths = Tables(Table(nodes_frame, "nodes"), Table(edges_frame, "edges"), **roles).write(folder)
    nodes_frame.write_parquet(folder / "nodes.parquet")
    for found in (graph, fs.tables.read(*paths, **roles), fs.tables.read(folder / "nodes.parquet", paths[1], **roles)):
        assert found.adjacency.toarray() == pytest.approx(expected.adjacency.toarray())
        assert np.array_equal(found.features, expected.features)
        assert found.labels.tolist() == expected.labels.tolist()
        assert found.ids.tolist() == ids
        assert found.attributes["bank"].tolist() == owners
        assert np.array_equal(found.attributes["first_day"], first, equal_nan=True)


@given(st.lists(st.floats(-1e4, 1e4) | st.none(), min_size=2, max_size=20), st.sampled_from([1.0, 1e-200, 1e300]))
def test_standardised_numbers_have_mean_0_and_deviation_1_or_0(values, unit):
    values = [None if value is None else value * unit for value in values]
    accounts = polars.DataFrame({"id": [str(i) for i in range(len(values))],
                                 "value": polars.Series(values, dtype=polars.Float64), "fraud": 0})  # fmt: skip
    edges = polars.DataFrame({"source": ["0"], "target": ["1"]})
    column = fs.tables.read(accounts, edges, id="id", label="fraud").features[:, 0].astype(float)
    assert abs(column.mean()) < 1e-4
    known = [v for v in values if v is not None]
    if known and np.ptp(known) / unit > 1e-3:
        assert column.std() == pytest.approx(1, abs=1e-4)
    else:
        assert column.std() < 1.001


# Tables that are not right.


def changed(table, column, row, value):
    values = table[column].to_list()
    values[row] = value
    return table.with_columns(polars.Series(column, values, strict=False))


MISTAKES = {
    "a node twice": ({"accounts": changed(ACCOUNTS, "id", 3, "7")}, "nodes, row 4: column 'id' is '7' as in row 2"),
    "a node without a name": ({"accounts": changed(ACCOUNTS, "id", 2, " ")}, "nodes, row 3: column 'id' is empty"),
    "an owner that is missing": ({"accounts": changed(ACCOUNTS, "bank", 1, None)}, "nodes, row 2: column 'bank' is"),
    "an edge to nowhere": (
        {"payments": changed(PAYMENTS, "target", 1, "x")},
        "edges, row 2: column 'target' is 'x', which column 'id' of nodes does not have",
    ),
    "an edge from nobody": (
        {"payments": changed(PAYMENTS, "source", 3, None)},
        "edges, row 4: column 'source' is empty",
    ),
    "a negative weight": (
        {"payments": changed(PAYMENTS, "amount", 2, -3.0)},
        "edges, row 3: column 'amount' is -3, but it must be a positive number",
    ),
    "a missing weight": ({"payments": changed(PAYMENTS, "amount", 0, None)}, "row 1: column 'amount' is empty"),
    "a weight in words": (
        {"payments": PAYMENTS.with_columns(amount=polars.Series(["1", "2", "3,5", "1"]))},
        "edges, row 3: column 'amount' is '3,5', but it must be a finite number",
    ),
    "a missing time": ({"payments": changed(PAYMENTS, "day", 1, None)}, "edges, row 2: column 'day' is empty"),
    "a time that is none": (
        {"payments": PAYMENTS.with_columns(day=polars.Series(["2026-01-01", "soon", "2026-01-03", "2026-01-04"]))},
        "edges, row 2: column 'day' is 'soon', but it must be a number or a date",
    ),
    "times that are none": (
        {"payments": PAYMENTS.with_columns(day=polars.Series(["soon"] * 4))},
        "edges, row 1: column 'day' is 'soon', but it must be a number or a date",
    ),
    "a label in between": (
        {"accounts": ACCOUNTS.with_columns(fraud=polars.Series([0.0, 1.5, 0.0, 0.0]))},
        "nodes, row 2: column 'fraud' is 1.5, but a label is a whole number",
    ),
    "an endless number": ({"accounts": changed(ACCOUNTS, "age", 3, np.inf)}, "row 4: column 'age' is 'inf'"),
    "no number where numbers stay": ({"standardise": False}, "nodes, row 3: column 'age' has no number; fill it"),
    "an unknown column": ({"owner": "bnk"}, "unknown column of nodes 'bnk': did you mean 'bank'?"),
    "an unknown column of edges": ({"time": "dy"}, "unknown column of edges 'dy': did you mean 'day'?"),
    "a label as a feature": ({"features": ["age", "fraud"]}, "column 'fraud' of nodes is the label"),
    "no nodes": ({"accounts": ACCOUNTS.clear()}, "nodes has no rows"),
    "no owner by itself": ({"largest": 0}, "largest is 0"),
    "an owner of the name": ({"accounts": changed(ACCOUNTS, "bank", 1, "others"), "largest": 5}, "is called 'others'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_table_that_is_not_right_is_refused_by_column_and_row(mistake):
    given, expected = MISTAKES[mistake]
    with pytest.raises(FedstructError) as caught:
        both(**given)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_many_texts_are_no_features_and_a_slip_in_a_number_is_found():
    many = polars.DataFrame({"id": [str(i) for i in range(MOST_TEXTS + 1)], "fraud": 0})
    none = PAYMENTS.clear()
    named = many.with_columns(name=polars.col("id") + " Ltd")
    with pytest.raises(FedstructError, match=r"column 'name' holds 51 different texts, too many .* leave it out"):
        both(named, none, owner=None, weight=None, time=None)
    slipped = many.with_columns(income=polars.Series([f"{i}.5" for i in range(MOST_TEXTS)] + ["12,5"]))
    with pytest.raises(FedstructError, match="if it should hold numbers, correct '12,5' in row 51"):
        both(slipped, none, owner=None, weight=None, time=None)
    with pytest.raises(FedstructError, match="too many for classes; is it the label"):
        both(named, none, label="name", owner=None, weight=None, time=None)


# From the command line.


@pytest.fixture
def files(here):
    ACCOUNTS.write_csv(here / "accounts.csv")
    PAYMENTS.write_csv(here / "payments.csv")
    return [
        "accounts.csv",
        "payments.csv",
        "--owner",
        "bank",
        "--label",
        "fraud",
        "--weight",
        "amount",
        "--time",
        "day",
    ]


@pytest.mark.usefixtures("files")
def test_what_is_imported_is_what_python_reads(files, here):
    said = typed("import", *files, "--out", "mine.npz", "--json")
    assert (said.code, said.err) == (0, "")
    told = strictly(said.out)
    assert told["classes"] == {"no": 2, "yes": 1}
    assert told["owners"] == {"north": 2, "south": 2}
    assert (told["nodes"], told["edges"], told["features"], told["unknown"]) == (4, 3, 3, 1)
    assert told["out"] == "mine.npz"
    left, right = npz.read(here / "mine.npz"), fs.tables.read("accounts.csv", "payments.csv", **ROLES)
    assert np.array_equal(left.adjacency.toarray(), right.adjacency.toarray())
    assert np.array_equal(left.features, right.features)
    assert (left.owner_attribute, left.time_attribute) == ("bank", "first_day")


def test_an_import_says_what_it_made_of_the_columns(files):
    said = typed("import", *files)
    assert (said.code, said.err) == (0, "")
    shown = words(said.out)
    assert "no (2), yes (1); 1 unknown" in shown
    assert "north (2), south (2)" in shown
    assert "3, from age, kind" in shown
    assert "fedstruct run accounts.npz" in shown


def test_separators_and_marks_of_other_programs_are_understood(files, here):
    (here / "accounts.csv").write_bytes(
        "\ufeffid;bank;age;kind;fraud\r\n007;a;1.5;x;0\r\n7;b;NA;y;\r\nc;a;2;;1\r\n".encode()
    )
    graph = fs.tables.read("accounts.csv", "payments.csv", **ROLES)
    assert graph.ids.tolist() == ["007", "7", "c"]
    assert graph.labels.tolist() == [0, -1, 1]


TEXTS = {
    "a heading twice": (b"id,fraud,fraud\na,0,1\n", "has two columns called 'fraud'; rename one of them"),
    "a row that is too short": (
        b"id,fraud,age\na,0,1\nb,1\n",
        "row 2: it has 2 fields, but the heading names 3 columns",
    ),
    "a row that is too long": (b"id,fraud\na,0\nb,1,2\n", "row 2: it has 3 fields, but the heading names 2 columns"),
    "an empty row": (b"id,fraud\n\na,0\n", "row 1: it is empty, but the heading names 2 columns"),
    "rows after a field of two lines": (b'id,fraud\na,"x\ny"\nb\n', "row 2: it has 1 field, but"),
    "a quotation mark left open": (b'id,fraud\na,0\nb,"1\nc,0\n', "row 2: it has a quotation mark that is not closed"),
    "a quotation mark amid a field": (b'id,fraud\na,0\nb,1"\nc,0\n', "row 2: it has a quotation mark that is"),
    "a heading left open": (b'id,"fraud\na,0\n', "the heading of the table nodes.csv has a quotation mark"),
    "Latin-1 below": (b"id,fraud\na,no\nb,caf\xe9\n", "row 2: it is not UTF-8 text; save the table as UTF-8"),
    "Latin-1 above": (b"id,fr\xe4ud\na,no\n", "the heading of the table nodes.csv is not UTF-8 text"),
    "another separator": (b"id|fraud\na|0\n", "the heading of the table nodes.csv looks separated by '|'; put one of"),
    "two separators": (b"id;fraud,age\na;0,1\n", "looks separated by ';' and by ','"),
    "another one below": (
        b"id,fraud\na;0\n",
        "row 1: it has 1 field, but the heading names 2 columns; it looks separated by ';'",
    ),
}


@pytest.mark.parametrize("mistake", TEXTS)
def test_a_text_that_is_no_table_is_refused_by_its_row(mistake, files, here):
    content, expected = TEXTS[mistake]
    (here / "nodes.csv").write_bytes(content)
    said = typed("import", "nodes.csv", "payments.csv", "--label", "fraud")
    assert_one_sentence(said, expected)
    assert "nodes.csv" in said.err


def test_a_separator_within_quotes_is_a_letter(files, here):
    (here / "accounts.csv").write_bytes(b'"id";"income, EUR";"kind, again";fraud\n007;1;"a;b";0\n7;2;;1\nc;3;"a;b";\n')
    frame = Table.of("accounts.csv", "accounts").frame
    assert frame.columns == ["id", "income, EUR", "kind, again", "fraud"]
    assert frame["kind, again"].to_list() == ["a;b", None, "a;b"]
    assert frame["fraud"].to_list() == ["0", "1", None]


def test_a_graph_without_a_label_says_so_when_it_is_imported(files, here):
    ACCOUNTS.with_columns(fraud=polars.lit(None, polars.String)).write_csv(here / "accounts.csv")
    said = typed("import", *files)
    assert (said.code, said.err) == (0, "")
    assert "none: no node has a label, so nothing can be trained" in words(said.out)
    assert "fedstruct run" not in said.out


def test_generated_tables_import_as_the_graph_of_their_name(here):
    name = "consortium:banks=2,accounts=200,illicit=0.05,seed=4"
    said = typed("generate", name, "--out", "banks", "--json")
    assert (said.code, said.err) == (0, "")
    command = strictly(said.out)["import"]
    assert typed(*command.split()[1:], "--out", "mine.npz").code == 0
    left, right = npz.read(here / "mine.npz"), fs.datasets.load(name)
    assert left.adjacency.toarray() == pytest.approx(right.adjacency.toarray())
    assert left.features == pytest.approx(right.features)
    assert left.labels.tolist() == right.labels.tolist()
    assert_one_sentence(typed("generate", name, "--out", "banks"), "exists and is not overwritten")
    assert_one_sentence(typed("generate", "planted", "--out", "p"), "planted makes a graph and no tables")
    assert_one_sentence(typed("generate", "consortum", "--out", "p"), "did you mean 'consortium'?")


def test_mistakes_of_an_import_are_one_sentence_and_leave_nothing(files, here):
    (here / "empty.csv").write_text("")
    (here / "image.csv").write_bytes(b"\x89PNG\xff\x00")
    (here / "ragged.csv").write_text("id,label\na,0\nb,1,2,3\n")
    (here / "broken.parquet").write_bytes(b"PAR1")
    (here / "taken.npz").write_bytes(b"")
    (here / "folder").mkdir()
    before = sorted(here.iterdir())
    for arguments, expected in [
        (["none.csv", "payments.csv"], "there is no table none.csv"),
        (["empty.csv", "payments.csv"], "empty.csv has no heading"),
        (["image.csv", "payments.csv"], "the heading of the table image.csv is not UTF-8 text"),
        (["ragged.csv", "payments.csv"], "ragged.csv, row 2: it has 4 fields, but the heading names 2 columns"),
        (["broken.parquet", "payments.csv"], "broken.parquet cannot be read"),
        (["folder", "payments.csv"], "the table folder cannot be read"),
        (["accounts.csv"], "accounts.csv is no table of IBM's payments, so a second table must say what the edges are"),
        (["accounts.csv", "payments.csv"], "unknown column of accounts.csv 'label'"),
        ([*files, "--out", "taken.npz"], "taken.npz exists and is not overwritten"),
        ([*files, "--out", "mine.csv"], "a graph is written to an .npz file"),
        ([*files, "--out", "no/mine.npz"], "there is no folder no"),
        ([*files, "--attributes", "kind,bnk"], "unknown column of accounts.csv 'bnk'"),
    ]:
        assert_one_sentence(typed("import", *arguments), expected)
        assert sorted(here.iterdir()) == before


def test_a_column_with_a_name_that_the_file_needs_is_refused(here):
    frame = ACCOUNTS.rename({"bank": "split"})
    graph = fs.tables.read(frame, PAYMENTS, **{**ROLES, "owner": "split"})
    with pytest.raises(FedstructError, match="an attribute cannot be called 'split'"):
        npz.write(graph, here / "mine.npz")
