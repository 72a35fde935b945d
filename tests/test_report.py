"""The report page: its figures are those of the run folders, whoever named what is in them."""

import json
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import assert_one_sentence, strictly, typed, words
from fedstruct.experiments.report.charts import apart, thinned
from fedstruct.experiments.report.page import MOST_BYTES, page
from fedstruct.experiments.report.scale import Scale
from fedstruct.experiments.show import percent, size, spread
from fedstruct.graph import npz
from fedstruct.graph.generate import planted

pytestmark = pytest.mark.usefixtures("here")

QUICK = ("--parties", "3", "--seeds", "2", "--set", "rounds=4", "--set", "layers_structure=3")
METHODS = "fedstruct,fedsgd-mlp,local-mlp"
VOID = {"meta", "link"}


class Page(HTMLParser):
    """What a page says: its text, its elements, and its tables by their ids or labels."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open, self.tables, self.texts = [], [], {}, []
        self.table = self.cell = self.region = None
        self.feed(html)
        self.close()
        assert self.open == [], "every element that is opened is closed"
        self.text = words(" ".join(self.texts))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if "aria-label" in attributes:
            self.region = attributes["aria-label"]
        if tag == "table":
            self.table = self.tables.setdefault(attributes.get("id") or self.region, [])
        elif tag == "tr":
            self.table.append([])
        elif tag in ("td", "th"):
            self.cell = {"text": "", "value": None}
            self.table[-1].append(self.cell)
        elif tag == "data" and self.cell is not None:
            self.cell["value"] = attributes["value"]

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)
            if self.cell is not None:
                self.cell["text"] += data

    def column(self, table, heading):
        head, *rows = self.tables[table]
        at = [cell["text"] for cell in head].index(heading)
        return [row[at] for row in rows]


def reported(*typing):
    """The page that the command writes."""
    said = typed("report", *typing, "--out", "page.html", "--force")
    assert (said.code, said.err) == (0, ""), said
    with open("page.html", encoding="utf-8") as file:
        return Page(file.read())


def result_of(folder):
    return strictly((folder / "result.json").read_text())


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A small graph of two classes."""
    path = tmp_path_factory.mktemp("graph") / "small.npz"
    npz.write(planted(nodes=120, classes=2), path)
    return path


@pytest.fixture(scope="module")
def left(graph, tmp_path_factory):
    """What a run, a comparison and a sweep leave, in one folder."""
    folder = tmp_path_factory.mktemp("left")
    for typing in (
        ("run", graph, *QUICK, "--out", folder / "run"),
        ("compare", graph, "--methods", METHODS, *QUICK, "--jobs", 1, "--out", folder / "compare"),
        ("sweep", graph, "--over", "train=0.2,0.1", "--methods", "fedsgd-mlp,local-mlp", "--parties", 3, "--seeds", 2,
         "--set", "rounds=4", "--jobs", 1, "--out", folder / "sweep"),
    ):  # fmt: skip
        said = typed(*typing, "--json")
        assert (said.code, said.err) == (0, "")
    return folder


@pytest.fixture
def mine(left, here):
    """A copy of the run, to be damaged."""
    shutil.copytree(left / "run", here / "mine")
    return here / "mine"


# The figures.


def test_the_figures_are_those_of_the_result(left):
    result, shown = result_of(left / "run"), reported(left / "run")
    for heading, measure in (("test accuracy", "test_accuracy"), ("macro F1", "macro_f1"), ("AUPRC", "auprc"),
                             ("recall", "recall")):  # fmt: skip
        (cell,) = shown.column("figures", heading)
        assert float(cell["value"]) == result[measure]["mean"]
        assert cell["text"] == spread(result[measure])
        each = [run[measure] for run in result["runs"]]
        assert [c["text"] for c in shown.column("seeds", heading)] == [percent(value) for value in each]
    assert [c["text"] for c in shown.column("seeds", "seed")] == ["0", "1"]
    (sent,) = shown.column("figures", "sent")
    assert float(sent["value"]) == np.mean([sum(run["bytes"].values()) for run in result["runs"]])
    (cpu,) = shown.column("figures", "CPU s")
    assert float(cpu["value"]) == pytest.approx(np.mean([sum(run["cpu_seconds"].values()) for run in result["runs"]]))
    assert f"Recall among {result['recall_at']} alerts" in shown.text


def test_the_traffic_is_that_of_the_ledger(left):
    result, shown = result_of(left / "run"), reported(left / "run")
    book = polars.read_parquet(left / "run" / "ledger.parquet")
    sent = book.filter((polars.col("entry") == "sent") & (polars.col("run") == "fedstruct-0"))
    whole = sum(result["runs"][0]["bytes"].values())
    kinds = shown.column("Traffic by kind of message", "size")
    assert sum(int(cell["value"]) for cell in kinds) == whole == sent["bytes"].sum()
    for name, out, into in zip(
        *(shown.column("Traffic by party", heading) for heading in ("party", "sent", "received")), strict=True
    ):
        assert int(out["value"]) == sent.filter(polars.col("sender") == name["text"])["bytes"].sum()
        assert int(into["value"]) == sent.filter(polars.col("receiver") == name["text"])["bytes"].sum()
    for phase, count in result["runs"][0]["bytes"].items():
        assert f"{size(count)} {phase}" in shown.text
    assert "Each party learned from the other parties weighted walks" in shown.text


def test_the_exposure_is_that_of_the_result(left):
    result, shown = result_of(left / "run"), reported(left / "run")
    exposure = result["runs"][0]["exposure"]
    head, *rows = shown.tables["Exposure of each party to each peer"]
    names = [party["party"] for party in exposure["parties"]]
    assert [cell["text"] for cell in head] == ["of ↓ by →", "anybody", "1", "2", "3"]
    for number, (row, party) in enumerate(zip(rows, exposure["parties"], strict=True), start=1):
        assert row[0]["text"] == f"{number} {party['party']}"
        assert float(row[1]["value"]) == party["inner_by_any"] / party["inner_edges"]
        for peer, cell in zip(names, row[2:], strict=True):
            share = party["towards"].get(peer)
            assert cell["text"] == (f"{100 * share['inner_share']:.0f}" if share else "")
    assert f"{percent(exposure['inner_share'])} % of the {exposure['inner_edges']:,} inner edges" in shown.text


def test_the_card_is_that_of_the_partition(left, graph):
    card = strictly(typed("partition", graph, "--parties", 3, "--json").out)
    shown = reported(left / "run")
    head, *rows = shown.tables["The parts"]
    assert [cell["text"] for cell in head][5:] == ["class 0", "class 1"]
    for row, part in zip(rows, card["parties"], strict=True):
        counts = [part[key] for key in ("nodes", "inner_edges", "border_edges", "neighbours")]
        assert [cell["text"] for cell in row] == [part["party"], *map(str, [*counts, *part["classes"]])]
    assert f"Across borders {percent(card['border_share'])} %" in shown.text
    kept = strictly((left / "run" / "about.json").read_text())
    unmeasured = [part | {"read_off": None} for part in card["parties"]]
    given = {key: value for key, value in card.items() if key not in ("seed", "out")}
    assert kept["card"] == given | {"parties": unmeasured, "read_off": None, "prune": None}
    assert kept["versions"]["polars"] == polars.__version__


def test_the_curve_is_the_history(left):
    lines = [strictly(line) for line in (left / "run" / "history.jsonl").read_text().splitlines()]
    told = strictly(typed("report", left / "run", "--json").out)["runs"][0]
    for point in told["curve"]:
        losses = [line["loss"] for line in lines if line["round"] == point["round"]]
        assert point["mean"] == pytest.approx(np.mean(losses), rel=1e-15)
        assert (point["low"], point["high"]) == (min(losses), max(losses))
    shown = reported(left / "run").tables["Loss by round"]
    assert [row[0]["text"] for row in shown[1:]] == ["1", "2", "3", "4"]
    assert [float(row[1]["text"]) for row in shown[1:]] == [float(f"{point['mean']:.3g}") for point in told["curve"]]


def test_a_comparison_has_a_row_for_each_method_in_its_order(left):
    result, shown = result_of(left / "compare"), reported(left / "compare")
    assert [row[0]["text"] for row in shown.tables["figures"][1:]] == METHODS.split(",")
    means = [float(cell["value"]) for cell in shown.column("figures", "test accuracy")]
    assert means == [row["test_accuracy"]["mean"] for row in result["methods"]]
    assert "No curve: local-mlp." in shown.text
    assert "There was no structure exchange between parties" in shown.text
    assert f"--methods {METHODS} --parties 3 --seeds 2 --set rounds=4 --set layers_structure=3" in shown.text


def test_a_sweep_has_a_row_for_each_value_in_its_order(left):
    result, shown = result_of(left / "sweep"), reported(left / "sweep")
    names = [f"{cell['method']}, train {cell['at']['train']}" for cell in result["cells"]]
    assert [row[0]["text"] for row in shown.tables["figures"][1:]] == names
    means = [float(cell["value"]) for cell in shown.column("figures", "test accuracy")]
    assert means == [cell["test_accuracy"]["mean"] for cell in result["cells"]]
    assert "--over train=0.2,0.1 --methods fedsgd-mlp,local-mlp" in shown.text


def test_the_command_does_it_again(left, here):
    told = strictly(typed("report", left / "run", "--json").out)
    program, *typing = told["folders"][0]["command"].split()
    assert program == "fedstruct"
    again = strictly(typed(*typing, "--json").out)
    assert again["test_accuracy"] == result_of(left / "run")["test_accuracy"]


def test_several_folders_have_names_of_their_own(left, mine, here):
    shown = reported(left / "run", "mine", "mine")
    assert [row[0]["text"] for row in shown.tables["figures"][1:]] == [f"fedstruct ({left}/run)", "fedstruct (mine)"]
    said = typed("run", "--config", "mine/config.toml", "--set", "prune=7", "--seeds", 1, "--out", "other")
    assert said.code == 0
    shown = reported("mine", "other")
    assert [row[0]["text"] for row in shown.tables["figures"][1:]] == ["fedstruct, prune 30", "fedstruct, prune 7"]
    assert shown.column("figures", "seeds")[1]["text"] == "1"


def test_json_is_what_the_page_shows_and_writes_nothing(left, here):
    told = strictly(typed("report", left / "run", "--json").out)
    assert list(here.iterdir()) == []
    assert page(told) == page(json.loads(json.dumps(told)))
    assert told["runs"][0]["test_accuracy"] == result_of(left / "run")["test_accuracy"]


# What the page is.


def test_nothing_is_asked_of_anybody(left):
    for folder in ("run", "compare", "sweep"):
        shown = reported(left / folder)
        for tag, attributes in shown.elements:
            for key in ("src", "href", "action", "srcset", "poster", "xlink:href"):
                assert attributes.get(key, "#").startswith(("#", "data:,")), (tag, attributes)
        with open("page.html", encoding="utf-8") as file:
            html = file.read()
        assert not any(word in html for word in ("http:", "https:", "//cdn", "url(", "@import", "fetch("))
        ids = [attributes["id"] for _, attributes in shown.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        linked = {a["href"][1:] for t, a in shown.elements if t == "a"}
        assert linked <= set(ids)


HOSTILE = "<script>alert(1)</script>", "\"><img src=x onerror='alert(1)'>", "&lt;b&gt; {{ 7 * 7 }} {% raw %}"


def test_names_are_text_whatever_they_are(here):
    made = planted(nodes=60)
    dataset = "<b onclick=alert(2)>.npz"
    npz.write(made, here / dataset)
    (here / "owners.txt").write_text("\n".join([*HOSTILE] * 20))
    said = typed("run", dataset, "--partition", "owners.txt", "--set", "rounds=2", "--out", "<i>run")
    assert said.code == 0, said
    shown = reported("<i>run")
    tags = [tag for tag, _ in shown.elements]
    assert tags.count("script") == 1
    assert not {"img", "i"} & {tag for tag, attributes in shown.elements if "style" not in attributes} - {"i"}
    assert not any(key.startswith("on") for _, attributes in shown.elements for key in attributes)
    for name in (*HOSTILE, dataset, "<i>run"):
        assert words(name) in shown.text
    (here / "<i>run" / "ledger.parquet").unlink()
    assert_one_sentence(typed("report", "<i>run", "--out", "none.html"), "is not a run folder")


def test_a_large_run_fits(left, here):
    """50 parties, 10 seeds, 500 rounds: more than anybody will look at."""
    shutil.copytree(left / "run", here / "large")
    names = [f"party-{i}" for i in range(1, 51)]
    result = result_of(left / "run")
    random = np.random.default_rng(0)
    towards = {name: {"inner_share": 0.123456789, "border_share": 0.987654321} for name in names}
    party = {"inner_edges": 100, "border_edges": 7, "inner_by_any": 61, "border_by_any": 5}
    exposure = result["runs"][0]["exposure"] | {
        "parties": [
            party | {"party": name, "towards": {k: v for k, v in towards.items() if k != name}} for name in names
        ]
    }
    runs = [result["runs"][0] | {"seed": s, "test_accuracy": random.random(), "exposure": exposure} for s in range(10)]
    (here / "large" / "result.json").write_text(json.dumps(result | {"runs": runs, "parties": 50}))
    history = [{"seed": s, "round": t, "loss": random.random()} for s in range(10) for t in range(1, 501)]
    (here / "large" / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in history))
    row = polars.read_parquet(left / "run" / "ledger.parquet").filter(polars.col("entry") == "sent")[:1]
    to_all = polars.DataFrame({"receiver": names})
    steps = polars.DataFrame({"step": range(500)})
    book = row.drop("receiver", "step").join(to_all, how="cross").join(steps, how="cross").select(row.columns)
    book.write_parquet(here / "large" / "ledger.parquet")
    about = strictly((here / "large" / "about.json").read_text())
    part = about["card"]["parties"][0]
    about["card"]["parties"] = [part | {"party": name} for name in names]
    (here / "large" / "about.json").write_text(json.dumps(about))

    shown = reported("large")
    assert len(shown.tables["Exposure of each party to each peer"]) == 51
    alone = (here / "page.html").stat().st_size
    assert alone < MOST_BYTES / 2
    told = strictly(typed("report", "large", "--json").out)
    many = told | {"runs": [told["runs"][0] | {"name": f"run {i}"} for i in range(60)]}
    html = page(many)
    assert len(html.encode()) < MOST_BYTES
    assert "There is no room for" in Page(html).text


def test_an_older_folder_says_what_it_lacks(mine):
    (mine / "about.json").unlink()
    (mine / "history.jsonl").unlink()
    shown = reported("mine")
    assert "written by an older version and does not hold the card of its partition" in shown.text
    assert "The versions were not kept" in shown.text
    assert "No curve: fedstruct." in shown.text
    assert shown.column("figures", "test accuracy")[0]["value"]


def test_half_a_line_at_the_end_of_a_history_is_left_out(mine):
    whole = typed("report", "mine", "--json").out
    with (mine / "history.jsonl").open("a") as file:
        file.write('{"seed": 1, "round": 5, "lo')
    assert typed("report", "mine", "--json").out == whole


def test_owners_without_labels_and_a_single_party(here):
    made = planted(nodes=60)
    npz.write(replace(made, labels=np.where(np.arange(60) < 30, -1, made.labels)), here / "some.npz")
    (here / "owners.txt").write_text("\n".join(["nord"] * 30 + ["sued"] * 30))
    for more in (("--partition", "owners.txt"), ("--parties", 1)):
        out = more[-1] if isinstance(more[-1], str) else "alone"
        typing = ("run", "some.npz", *more, "--set", "rounds=2", "--out", f"run-{out}")
        assert typed(*typing).code == 0
        assert reported(f"run-{out}").column("figures", "seeds")[0]["text"] == "1"


# Mistakes.


def test_a_page_that_is_there_is_kept_unless_forced(left, here):
    (here / "report.html").write_text("mine")
    assert_one_sentence(typed("report", left / "run"), "report.html exists and is not overwritten")
    assert (here / "report.html").read_text() == "mine"
    assert typed("report", left / "run", "--force").code == 0
    assert (here / "report.html").read_text().startswith("<!doctype html>")
    assert_one_sentence(typed("report", left / "run", "--out", here), "is a folder; name a file")
    assert_one_sentence(typed("report", left / "run", "--out", "none/page.html"), "none/page.html cannot be written")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("result.json", b"", "result.json cannot be read"),
        ("result.json", b"\xff", "result.json cannot be read"),
        ("result.json", b"[]", "result.json cannot be read: the whole is not what a run folder holds there"),
        ("result.json", b"{}", "result.json cannot be read: dataset is not what a run folder holds there"),
        ("result.json", None, "mine is not a run folder: it has no result.json"),
        ("ledger.parquet", b"", "ledger.parquet cannot be read"),
        ("ledger.parquet", None, "mine is not a run folder: it has no ledger.parquet, and no run folders are in it"),
        ("history.jsonl", b"\xff", "history.jsonl cannot be read"),
        ("history.jsonl", b"[]\n", "history.jsonl cannot be read: it holds something else than a history"),
        ("history.jsonl", b'{"seed": 0, "round": 1, "loss": NaN}\n', "history.jsonl cannot be read"),
        ("about.json", b"{", "about.json cannot be read"),
        ("about.json", b'{"card": 3}', "about.json cannot be read: card is not what a run folder holds there"),
        ("config.toml", b"\xff", "config.toml cannot be read"),
        ("config.toml", None, "there is no configuration file"),
    ],
)
def test_a_damaged_folder_is_one_sentence(name, content, expected, mine):
    if content is None:
        (mine / name).unlink()
    else:
        (mine / name).write_bytes(content)
    assert_one_sentence(typed("report", "mine"), expected)


@pytest.mark.parametrize("key", ["runs", "options", "test_accuracy", "method", "parties"])
@pytest.mark.parametrize("value", [None, "x", [], {"a": 1}])
def test_a_result_of_something_else_is_one_sentence(key, value, mine):
    result = result_of(mine) | {key: value}
    (mine / "result.json").write_text(json.dumps(result))
    said = typed("report", "mine", "--force")
    if said.code:
        assert_one_sentence(said, "result.json cannot be read: ")


@pytest.mark.parametrize("figure", [{}, 4, {"parties": []}])
@pytest.mark.parametrize("key", ["exposure", "sums"])
def test_a_run_with_something_else_for_figures_is_one_sentence(key, figure, mine):
    result = result_of(mine)
    result["runs"][0][key] = figure
    (mine / "result.json").write_text(json.dumps(result))
    for command in ("report", "ledger"):
        assert_one_sentence(typed(command, "mine"), f"result.json cannot be read: runs.0.{key}")


def test_figures_without_a_party_of_the_ledger_are_one_sentence(mine):
    result = result_of(mine)
    del result["runs"][0]["exposure"]["parties"][0]
    (mine / "result.json").write_text(json.dumps(result))
    assert typed("ledger", "mine", "--party", "party-2").code == 0
    assert_one_sentence(typed("ledger", "mine", "--party", "party-1"), "it has no figures of party-1")


@pytest.mark.parametrize(
    ("column", "values"),
    [("bytes", polars.lit("many")), ("sender", polars.lit(3)), ("tells", polars.lit(None, polars.String))],
)
def test_a_ledger_of_another_form_is_one_sentence(column, values, mine):
    book = polars.read_parquet(mine / "ledger.parquet")
    book.with_columns(values.alias(column)).write_parquet(mine / "ledger.parquet")
    for command in ("report", "ledger"):
        assert_one_sentence(typed(command, "mine"), f"its column '{column}' is not that of a ledger")


def test_a_folder_of_nothing_is_one_sentence(here):
    (here / "empty").mkdir()
    for folder in ("empty", "none"):
        assert_one_sentence(typed("report", folder), f"{folder} is not a run folder: it has no result.json")


# Where marks stand.


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_an_axis_holds_its_values_between_few_round_numbers(values):
    scale = Scale.over(values)
    assert 2 <= len(scale.ticks) <= 6
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert all(-0.1 <= scale.at(value) <= 100.1 for value in values)


@given(st.lists(st.floats(0, 100), max_size=8))
def test_labels_keep_apart_and_in_order(places):
    moved = apart(places)
    assert all(b - a > 7 - 1e-9 for a, b in pairwise(sorted(moved)))
    assert sorted(range(len(places)), key=lambda i: moved[i]) == sorted(range(len(places)), key=lambda i: places[i])
    assert max(moved, default=0) <= 100


@given(st.lists(st.integers(), max_size=50, unique=True), st.integers(2, 20))
def test_thinning_keeps_both_ends(values, most):
    kept = thinned(values, most)
    assert len(kept) == min(len(values), most)
    assert [v for v in values if v in kept] == kept
    assert kept[:1] + kept[-1:] == values[:1] + values[-1:]


# In a browser.

SEEN = """<script>
parent.postMessage([performance.getEntriesByType("resource").length, document.documentElement.scrollWidth, innerWidth,
  document.querySelectorAll("[data-tip]").length].join(" "), "*");
</script></body>"""

PHONE = """<!doctype html><title>phone</title><body><script>
addEventListener("message", ({ data }) => { document.body.dataset.seen = data; });
</script><iframe src="page.html" width="360" height="800" frameborder="0"></iframe></body>"""


def test_a_browser_shows_it_without_an_error_or_a_request(left, here):
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("there is no Chromium here to open the page with")
    reported(left / "compare")
    html = (here / "page.html").read_text(encoding="utf-8")
    (here / "page.html").write_text(html.replace("</body>", SEEN), encoding="utf-8")
    (here / "phone.html").write_text(PHONE, encoding="utf-8")
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
             "--no-first-run", "--no-sandbox", "--disable-gpu"]  # fmt: skip
    done = subprocess.run(
        [browser, "--headless", *quiet, f"--user-data-dir={here / 'profile'}", "--enable-logging=stderr",
         "--virtual-time-budget=2000", "--dump-dom", (here / "phone.html").as_uri()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    body = next(attributes for tag, attributes in Page(done.stdout).elements if tag == "body")
    requests, wide, window, tips = map(int, body["data-seen"].split())
    assert requests == 0
    assert window == 360
    assert wide <= window, "nothing sticks out at the side of a phone"
    assert tips > 0


def test_a_share_of_alerts_and_a_split_by_time_are_on_the_page(here):
    name = "consortium:banks=2,accounts=150,illicit=0.1,cross=0.25"
    flags = ["--recall-at", "1%", "--split", "time", "--out", "r"]
    assert typed("run", name, "--set", "rounds=2", "--set", "layers_structure=2", *flags).code == 0
    assert typed("report", "r", "--out", "page.html").code == 0
    page = (here / "page.html").read_text()
    for told in ("1% alerts", "time-split", "--split time", "--recall-at 1%", "consortium-banks2-accounts150"):
        assert told in page
