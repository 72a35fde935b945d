"""The paper's worked example, nine nodes over three parties, number by number.

Source: Aliakbari, Östman and Graell i Amat, "Decoupled Subgraph Federated Learning", appendix "Scheme to obtain the
local partition of the L-hop combined adjacency matrix", section "Example". Misprints that are corrected here:

- the third rows of B_211 and of B_233 are 1 1 1; they are printed transposed, as third columns;
- the matrix of entries known to client 2 shows edges 4-2 and 4-9, which A lacks: the border edges of client 2 are
  6-3 (to client 1) and 6-9 (to client 3), and A has them both ways;
- the first Ã_2^[3] shows an edge from node 9 to node 4; the one border edge between clients 2 and 3 is 6-9. The text's
  "node 4 is connected to node 2 in Client 1 and node 9 in Client 3" and "between node 4 and node 9" err likewise;
- Algorithm 3 says Â^[K] where it means Â^[k].

The paper takes Ã for Â throughout the example. What the parties really send is normalised: a row of B that passes
through one border node alone is the paper's row divided by that node's degree, 4 for nodes 3 and 9, 5 for node 6.

The paper also says that client 2 cannot reconstruct Ã_1^[1] from what client 1 sends; it reads node 3's row off it.
"""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from scipy.sparse import issparse

import fedstruct as fs
from strategies import dense, exchange

A = np.array(
    [
        [0, 1, 1, 0, 0, 0, 0, 0, 0],
        [1, 0, 1, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 1, 0, 0, 0],
        [0, 0, 1, 1, 1, 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 1, 1],
        [0, 0, 0, 0, 0, 0, 1, 0, 1],
        [0, 0, 0, 0, 0, 1, 1, 1, 0],
    ]
)
DEGREES = np.array([3, 3, 4, 3, 3, 5, 3, 3, 4])
"""D̃: neighbours and the node itself."""

OWNERS = [1, 1, 1, 2, 2, 2, 3, 3, 3]
SIX_ROWS = (3, 4, 5)

U = -1
"""The paper's question mark."""
KNOWN_TO_2 = np.array(
    [
        [U, U, U, 0, 0, 0, U, U, U],
        [U, U, U, 0, 0, 0, U, U, U],
        [U, U, U, 0, 0, 1, U, U, U],
        [0, 0, 0, 0, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 1, 0, 0, 0],
        [0, 0, 1, 1, 1, 0, 0, 0, 1],
        [U, U, U, 0, 0, 0, U, U, U],
        [U, U, U, 0, 0, 0, U, U, U],
        [U, U, U, 0, 0, 1, U, U, U],
    ]
)

ONES = [[1, 1, 1], [1, 1, 1], [1, 1, 1]]
NONE = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]
CORNER = [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
THIRD_ROW = [[0, 0, 0], [0, 0, 0], [1, 1, 1]]
THIRD_COLUMN = [[0, 0, 1], [0, 0, 1], [0, 0, 1]]

TILDE = {
    (1, 1): ONES, (1, 2): CORNER, (1, 3): NONE,
    (2, 1): CORNER, (2, 2): ONES, (2, 3): CORNER,
    (3, 1): NONE, (3, 2): CORNER, (3, 3): ONES,
}  # fmt: skip
"""Ã_j^[i] at (i, j)."""

B = {
    # What clients 1 and 3 compute for client 2 (printed), and what client 2 computes for itself.
    (2, 1, 1): THIRD_ROW, (2, 2, 1): CORNER, (2, 3, 1): NONE,
    (2, 1, 3): NONE, (2, 2, 3): CORNER, (2, 3, 3): THIRD_ROW,
    (2, 1, 2): THIRD_COLUMN, (2, 2, 2): [[3, 3, 3], [3, 3, 3], [3, 3, 3]], (2, 3, 2): THIRD_COLUMN,
    # The other combinations, "a similar procedure".
    (1, 1, 2): CORNER, (1, 2, 2): THIRD_ROW, (1, 3, 2): CORNER,
    (1, 1, 3): NONE, (1, 2, 3): NONE, (1, 3, 3): NONE,
    (3, 1, 2): CORNER, (3, 2, 2): THIRD_ROW, (3, 3, 2): CORNER,
    (3, 1, 1): NONE, (3, 2, 1): NONE, (3, 3, 1): NONE,
}  # fmt: skip
"""B_ijk at (i, j, k), as the paper computes it: with Ã for Â."""

GATE = {1: 3, 2: 6, 3: 9}
"""Each client's one border node: what it sends to another passes through this node alone."""


def example(adjacency=A, seed=0):
    """The example's parts; features and labels tell the nodes apart."""
    graph = fs.Graph.from_edges(
        np.stack(np.nonzero(adjacency)), features=np.arange(27).reshape(9, 3), labels=np.arange(9) % 3,
        ids=np.array([f"node {v}" for v in range(1, 10)]),
    )  # fmt: skip
    return fs.partition.by_vector(graph, OWNERS, seed)


def in_paper_order(rows, parts, party):
    """One party's rows over everybody's nodes, both sides back in the paper's numbering."""
    return rows[np.ix_(np.argsort(parts.nodes[party - 1]), np.argsort(np.concatenate(parts.nodes)))]


def block(rows, client):
    return rows[:, 3 * client - 3 : 3 * client]


@pytest.fixture(params=[0, 1, 2], ids="numbering {}".format)
def parts(request):
    """The same example under several numberings of each party's nodes."""
    return example(seed=request.param)


def test_the_numberings_differ_so_that_mapping_back_is_tested():
    assert len({tuple(np.concatenate(example(seed=s).nodes)) for s in (0, 1, 2)}) == 3


def test_what_party_2_knows_of_the_edges_is_the_corrected_matrix(parts):
    own, mine = parts.parties[1], parts.nodes[1]
    known = np.full((9, 9), U)
    known[mine, :] = known[:, mine] = 0
    rows, columns = own.inner.tocoo().coords
    known[mine[rows], mine[columns]] = 1
    for border, outward in ((own.outgoing, True), (own.incoming, False)):
        for here, peer, node in zip(border.own, border.peer, border.node, strict=True):
            there = parts.nodes[[p.name for p in parts.parties].index(own.peers[peer])][node]
            known[(mine[here], there) if outward else (there, mine[here])] = 1
    np.testing.assert_array_equal(known, KNOWN_TO_2)


def test_the_corrected_matrix_agrees_with_a_and_hides_exactly_what_touches_no_node_of_party_2():
    np.testing.assert_array_equal(KNOWN_TO_2[KNOWN_TO_2 != U], A[KNOWN_TO_2 != U])
    touches = np.isin(np.arange(9), SIX_ROWS)
    np.testing.assert_array_equal(KNOWN_TO_2 != U, touches[:, None] | touches[None, :])


def held(thing, path="own"):
    """Every value that an object holds, however deep: path to value."""
    if is_dataclass(thing):
        return {k: v for f in fields(thing) for k, v in held(getattr(thing, f.name), f"{path}.{f.name}").items()}
    if issparse(thing):
        return {f"{path}.{part}": getattr(thing, part) for part in ("data", "indices", "indptr", "shape")}
    return {path: thing}


def test_a_party_graph_holds_nothing_else(parts):
    """Each field is accounted for: own nodes, own inner edges, own border edges; there is no other."""
    own, mine = parts.parties[1], parts.nodes[1]
    everything = held(own)
    assert set(vars(own)) == {f.name for f in fields(own)}, "nothing hangs on the object beside its fields"
    expected = {
        "own.name": "party-2",
        "own.peers": ("party-1", "party-3"),
        "own.features": parts.graph.features[mine],
        "own.labels": parts.graph.labels[mine],
        "own.classes": 3,
        "own.directed": False,
        "own.ids": parts.graph.ids[mine],
        "own.split": None,
        "own.inner.data": np.ones(6),
        "own.inner.shape": (3, 3),
        "own.inner.indptr": [0, 2, 4, 6],
        "own.inner.indices": [1, 2, 0, 2, 0, 1],
    }
    six = int(np.flatnonzero(mine == 5)[0])
    three, nine = (int(np.flatnonzero(parts.nodes[i] == v)[0]) for i, v in ((0, 2), (2, 8)))
    for way in ("outgoing", "incoming"):
        expected |= {
            f"own.{way}.own": [six, six],
            f"own.{way}.peer": [0, 1],
            f"own.{way}.node": [three, nine],
            f"own.{way}.weight": [1, 1],
        }
    assert everything.keys() == expected.keys()
    for path, value in expected.items():
        np.testing.assert_array_equal(everything[path], value, err_msg=path)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_party_2_is_the_same_whatever_the_unknown_entries_are(seed):
    """Turn every '?' of the matrix around, and every foreign feature and label: nothing that party 2 holds changes."""
    parts = example(seed=seed)
    other = np.where(KNOWN_TO_2 == U, 1 - A, A)
    np.fill_diagonal(other, 0)
    assert (other != A).sum() == 6 * 6 - 6
    foreign = ~np.isin(np.arange(9), SIX_ROWS)
    graph = fs.Graph.from_edges(
        np.stack(np.nonzero(other)),
        features=np.where(foreign[:, None], -1, parts.graph.features),
        labels=np.where(foreign, 0, parts.graph.labels),
        ids=np.where(foreign, "somebody", parts.graph.ids),
        classes=3,
    )
    before = held(parts.parties[1])
    after = held(fs.partition.by_vector(graph, OWNERS, seed).parties[1])
    assert before.keys() == after.keys()
    for path, value in before.items():
        np.testing.assert_array_equal(after[path], value, err_msg=path)


@pytest.mark.parametrize("party", [1, 2, 3])
def test_the_blocks_that_each_party_knows_at_the_start(parts, party):
    """Ã_j^[i], outgoing; Ã_i^[j], incoming; D̃^[i]; and Â_j^[i] = Ã_j^[i] / D̃^[i]."""
    at_start = exchange(parts, layers_structure=1)[party - 1]
    outgoing = in_paper_order(at_start.rows.toarray(), parts, party)
    incoming = in_paper_order(at_start.columns.toarray().T, parts, party).T
    normalised = in_paper_order(at_start.power.toarray(), parts, party)
    degrees = DEGREES[3 * party - 3 : 3 * party]
    np.testing.assert_array_equal(at_start.degrees[np.argsort(parts.nodes[party - 1])], degrees)
    for j in (1, 2, 3):
        np.testing.assert_array_equal(block(outgoing, j), TILDE[party, j])
        np.testing.assert_array_equal(incoming[3 * j - 3 : 3 * j], TILDE[j, party])
        np.testing.assert_array_equal(block(normalised, j), np.array(TILDE[party, j]) / degrees[:, None])


def test_b_is_the_product_that_the_paper_defines():
    """B_ijk = Ã_k^[i] Ã_j^[k] with the blocks above: the corrected numbers belong together."""
    for (i, j, k), numbers in B.items():
        np.testing.assert_array_equal(np.array(TILDE[i, k]) @ np.array(TILDE[k, j]), numbers, err_msg=f"B_{i}{j}{k}")


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize(("i", "k"), [(2, 1), (2, 3), (1, 2), (1, 3), (3, 1), (3, 2)])
def test_what_k_really_posts_to_i_is_the_papers_b_over_the_degree_of_the_node_between(parts, i, k, separate):
    parties = exchange(parts, separate, layers_structure=2)
    sent = parties[i - 1].received[2][f"party-{k}"]
    posted = in_paper_order(dense(sent, (3, 9)), parts, i)
    for j in (1, 2, 3):
        expected = np.array(B[i, j, k]) / DEGREES[GATE[k] - 1]
        np.testing.assert_array_equal(block(posted, j), expected, err_msg=f"B_{i}{j}{k}")
    assert len(sent.columns) == sum(np.count_nonzero(B[i, j, k]) for j in (1, 2, 3)), "and no entry besides"


def test_what_party_2_adds_of_its_own(parts):
    """B_212, B_222 and B_232, normalised: each row of 2 sums the rows of Â of nodes 4, 5 and 6."""
    sent = exchange(parts, layers_structure=2)[1].received[2]["party-2"]
    posted = in_paper_order(dense(sent, (3, 9)), parts, 2)
    row = [0, 0, 1 / 5, 13 / 15, 13 / 15, 13 / 15, 0, 0, 1 / 5]
    np.testing.assert_allclose(posted, [row] * 3, rtol=1e-15)


def test_the_second_hop_of_party_2_as_the_paper_sums_it():
    """The sums of B with Ã for Â, before they are divided: the rows of Ã² that belong to nodes 4, 5 and 6."""
    total = {j: sum(np.array(B[2, j, k]) for k in (1, 2, 3)) for j in (1, 2, 3)}
    np.testing.assert_array_equal(total[1], [[0, 0, 1], [0, 0, 1], [1, 1, 2]])
    np.testing.assert_array_equal(total[2], [[3, 3, 3], [3, 3, 3], [3, 3, 5]])
    np.testing.assert_array_equal(total[3], [[0, 0, 1], [0, 0, 1], [1, 1, 2]])
    looped = A + np.eye(9, dtype=int)
    np.testing.assert_array_equal(np.hstack([total[j] for j in (1, 2, 3)]), (looped @ looped)[3:6])


@pytest.mark.parametrize("options", [{"prune_rule": "none"}, {"prune": 9}], ids=["unpruned", "p = n"])
def test_the_second_hop_of_party_2_as_it_is_computed(parts, options):
    """[Â²]^[2] with Â normalised, worked out by hand; ⌈9/3⌉ entries per row of a block prune nothing here."""
    party = exchange(parts, layers_structure=2, **options)[1]
    expected = [
        [0, 0, 1 / 15, 13 / 45, 13 / 45, 13 / 45, 0, 0, 1 / 15],
        [0, 0, 1 / 15, 13 / 45, 13 / 45, 13 / 45, 0, 0, 1 / 15],
        [1 / 20, 1 / 20, 9 / 100, 13 / 75, 13 / 75, 41 / 150, 1 / 20, 1 / 20, 9 / 100],
    ]
    np.testing.assert_allclose(in_paper_order(party.power.toarray(), parts, 2), expected, rtol=1e-15)
    np.testing.assert_array_equal(party.reach.toarray(), party.power.toarray())


@pytest.mark.parametrize("party", [1, 2, 3])
def test_the_two_hop_combined_adjacency_with_both_betas(parts, party):
    """Ā^[i] = β_1 Â^[i] + β_2 [Â²]^[i], by dense arithmetic over the whole of A."""
    normalised = (A + np.eye(9)) / DEGREES[:, None]
    combined = 0.5 * normalised + 0.25 * normalised @ normalised
    made = exchange(parts, layers_structure=2, betas=(0.5, 0.25))[party - 1]
    rows = in_paper_order(made.reach.toarray(), parts, party)
    np.testing.assert_allclose(rows, combined[3 * party - 3 : 3 * party], rtol=0, atol=1e-16)


def test_client_2_does_reconstruct_what_the_paper_says_it_cannot(parts):
    """Its one edge to client 1 hands it edges 3-1 and 3-2, of client 1's three; likewise 9-7 and 9-8 of client 3's."""
    one, two, three = (p.exposure for p in exchange(parts, layers_structure=2))
    assert (one.inner_edges, one.inner, one.border_edges) == (3, {"party-2": 2, "party-3": 0}, 1)
    assert (three.inner_edges, three.inner, three.border_edges) == (3, {"party-1": 0, "party-2": 2}, 1)
    assert (two.inner_edges, two.inner) == (3, {"party-1": 2, "party-3": 2})
    assert (two.border_edges, two.third) == (2, {"party-1": 1, "party-3": 1})
    assert two.border == {"party-1": 1, "party-3": 1}, "client 1 learns of edge 6-9, client 3 of 3-6"
    assert (two.inner_by_any, two.border_by_any) == (2, 2)
