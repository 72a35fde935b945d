"""IBM's tables of payments: banks become parties, and what the features show does not depend on the labels."""

import numpy as np
import polars
import pytest

import fedstruct as fs
from command import assert_one_sentence, strictly, typed
from fedstruct.errors import FedstructError
from fedstruct.graph import ibm, npz

LINES = [
    "2022/09/01 00:20,010,A1,010,A1,3697.34,US Dollar,3697.34,US Dollar,Reinvestment,0",
    "2022/09/01 00:25,03208,B7,001,A1,0.01,US Dollar,0.01,US Dollar,Cheque,0",
    "2022/09/01 00:00,03208,B7,010,C3,14675.57,Euro,14675.57,Euro,Wire,0",
    "2022/09/02 10:00,001,A1,010,C3,100,US Dollar,90,Euro,ACH,1",
    "2022/09/02 11:00,001,A1,010,C3,100,US Dollar,100,US Dollar,ACH,0",
    "2022/09/03 09:30,010,C3,070,D9,50,Euro,50,Euro,Wire,0",
]
"""Account A1 is one account at bank 010 and another at bank 001."""


def written(folder, lines=LINES, heading=ibm.HEADING):
    path = folder / "Small_Trans.csv"
    path.write_text("\n".join([heading, *lines]) + "\n")
    return path


def test_banks_are_parties_and_accounts_are_told_apart_by_bank(tmp_path):
    graph = ibm.tables(written(tmp_path)).graph("ibm")
    assert graph.ids.tolist() == ["001/A1", "010/A1", "010/C3", "03208/B7", "070/D9"]
    assert graph.labels.tolist() == [1, 0, 1, 0, 0]
    assert (graph.owner_attribute, graph.directed) == ("bank", True)
    parts = fs.partition.by_attribute(graph, "bank")
    # In the order of names, in which people count.
    assert [p.name for p in parts.parties] == ["001", "010", "070", "03208"]
    edges = {(0, 2): 2, (1, 1): 1, (2, 4): 1, (3, 0): 1, (3, 2): 1}
    assert {(u, v): w for u, v, w in zip(*graph.adjacency.tocoo().coords, graph.adjacency.data, strict=True)} == edges
    first = graph.attributes[graph.time_attribute]
    assert ((first - first.min()) / 60).tolist() == [25, 20, 0, 0, 2 * 24 * 60 + 9.5 * 60]


def test_labels_do_not_leak_into_features(tmp_path):
    lines = [line[:-1] + str(1 - int(line[-1])) for line in LINES]
    (tmp_path / "turned").mkdir()
    graph, turned = (ibm.tables(path).graph() for path in (written(tmp_path), written(tmp_path / "turned", lines)))
    assert graph.labels.tolist() != turned.labels.tolist()
    assert np.array_equal(graph.features, turned.features)
    assert (graph.adjacency != turned.adjacency).nnz == 0


def test_an_account_s_features_are_what_its_own_bank_sees(tmp_path):
    """Other banks' payments may be anything: the features of an account, before they are standardised, stay."""
    (tmp_path / "other").mkdir()
    other = [*LINES[:5], "2022/09/07 09:30,03208,B7,070,D9,7777,Yen,7777,Yen,Cash,1"]
    frames = [
        ibm.tables(path).nodes.frame for path in (written(tmp_path, LINES[:5]), written(tmp_path / "other", other))
    ]
    columns = [c for c in frames[0].columns if c not in ("illicit", "by Cash")]
    for bank in ("001", "010"):
        one, two = (frame.filter(frame["bank"] == bank).select(columns) for frame in frames)
        assert one.equals(two)
    assert not frames[0].filter(frames[0]["bank"] == "03208").equals(frames[1].filter(frames[1]["bank"] == "03208"))


def test_features_count_what_is_there(tmp_path):
    nodes = ibm.tables(written(tmp_path)).nodes.frame
    payer = nodes.row(by_predicate=polars.col("account") == "001/A1", named=True)
    assert np.expm1([payer["sent"], payer["received"], payer["sent_peers"]]) == pytest.approx([2, 1, 1])
    assert payer["by ACH"] == pytest.approx(2 / 3)
    assert (payer["within_bank"], payer["to_itself"], payer["currencies"]) == (0, 0, 2)
    # Its bank saw 0.01 and 100 US dollars and 90 euros: the medians are 50.005 and 90.
    assert np.expm1(payer["sent_amount"]) == pytest.approx(1 + 100 / 50.005)
    alone = nodes.row(by_predicate=polars.col("account") == "010/A1", named=True)
    assert (alone["within_bank"], alone["to_itself"], alone["by Reinvestment"]) == (1, 1, 1)


@pytest.mark.usefixtures("here")
def test_it_is_imported_and_trains(tmp_path):
    said = typed("import", written(tmp_path), "--largest", 2, "--out", "aml.npz", "--json")
    assert (said.code, said.err) == (0, "")
    assert strictly(said.out)["owners"] == {"001": 1, "010": 2, "others": 2}
    assert npz.read(tmp_path / "here" / "aml.npz").owner_attribute == "bank"
    said = typed("run", "aml.npz", "--set", "rounds=2", "--json")
    assert strictly(said.out)["partition"] == "attribute:bank"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("100,US Dollar,90", "100,US Dollar,ninety"), "row 4: column 'Amount Paid' is 'ninety'"),
        (("2022/09/02 10:00", "yesterday"), "row 4: column 'Timestamp' is 'yesterday'"),
        (("001,A1,010,C3,100,US Dollar,90", "001,,010,C3,100,US Dollar,90"), "row 4: column 'From Account' is empty"),
        ((",ACH,1", ",ACH,maybe"), "row 4: column 'Is Laundering' is 'maybe'"),
        ((",0.01,US", ",0,US"), "row 2: column 'Amount Paid' is 0, but it must be a positive number"),
    ],
)
def test_a_payment_that_is_not_right_is_named(tmp_path, change, expected):
    with pytest.raises(FedstructError, match=r"Small_Trans\.csv") as caught:
        ibm.tables(written(tmp_path, [line.replace(*change) for line in LINES])).graph()
    assert expected in str(caught.value)


@pytest.mark.usefixtures("here")
def test_a_file_of_no_payments_and_one_of_another_form(tmp_path):
    assert_one_sentence(typed("import", written(tmp_path, [])), "has a heading but no payments")
    assert_one_sentence(typed("import", written(tmp_path, heading="From,To")), "is no table of IBM's payments")
    with pytest.raises(FedstructError, match="does not begin as IBM's tables do"):
        ibm.tables(written(tmp_path, heading="From,To"))
