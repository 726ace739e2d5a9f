"""The pages of a gate, a test and an explanation as files; in a browser they are in ``test_browser.py``."""

import contextlib
import io
import json
import re

import numpy as np
import pytest

import sotdd
from reports.test_report import HOSTILE, Page
from sotdd.drift.gate import BatchVerdict, Outcome
from sotdd.reports.gate import GateRun, write_gate_page
from sotdd.reports.page import shorten_names


@pytest.fixture
def tables(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, size, shift in [("train", 200, 0), ("same", 60, 0), ("gone", 70, 3), ("near", 60, 0.5)]:
        x = rng.normal(size=(size, 3))
        rows = np.column_stack([x + np.array([shift, 0, 0]), x[:, 0] > 0])
        np.savetxt(f"{name}.csv", rows, delimiter=",", header="u,v,w,kind", comments="")
    return tmp_path


def read(path):
    """The texts of a page, its numbers, and its code, as a reader would copy it."""
    page = Page(path)
    assert len(page.scripts) == 1  # of numbers: the page runs nothing
    assert all(link.startswith(("#", "data:")) for link in page.links)
    code = [text for text in page.texts if text.startswith("import sotdd")]
    return " ".join(" ".join(page.texts).split()), json.loads(page.scripts[0]), code[0] if code else None


def executed(code):
    assert "..." not in code
    room = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, room)  # the very thing to test
    return room


FEW = ("--n-permutations", 39)


@pytest.mark.parametrize(
    "settings",
    [["--seed", 4, "--p", 1, "--scale", "none"], ["--label-law", "quantiles", "--max-points", 50, "--features", "u+w"]],
)
def test_the_page_of_a_gate_and_the_python_on_it(tables, run, settings):
    arguments = ["train.csv", "same.csv", "gone.csv", "--label", "kind", *FEW, "--n-projections", 64, *settings]
    code, out, said = run("check", *arguments, "--report", "page.html", "--json")
    assert code == 1, said
    told = json.loads(out)
    text, data, python = read(tables / "page.html")
    u = np.loadtxt("gone.csv", delimiter=",", skiprows=1)[:, 0]
    for part in (
        "1 of 2 batches", "What changed in gone.csv", sotdd.__version__, "fingerprint", "by chance", "200", "70",
        f"{u.min():.4g} to {u.max():.4g}",
    ):  # fmt: skip
        assert part in text, part
    found = executed(python)["results"]
    for batch, numbers in zip(told["batches"], found.values(), strict=True):
        assert numbers == (batch["test"]["p_value"], batch["distance"]["value"])
    assert [(one["test"]["p_value"], one["distance"]["value"]) for one in data["batches"]] == list(found.values())


def test_one_batch_of_which_several_things_are_to_be_said_has_a_page(tables, run):
    enough = ("--n-permutations", 199, "--report", "page.html")
    code, out, said = run("check", "train.csv", "train.csv", "--label", "kind", *enough, "--json")
    assert code == 0, said
    schema = json.loads(out)["schema"]
    assert len(schema) > 1
    text = read(tables / "page.html")[0]
    assert all(line["text"] in text for line in schema)


def test_the_python_on_the_pages_of_saved_references_and_sketches(tables, run):
    run("reference", "train.csv", "-o", "train.ref", "--label", "kind", "--n-projections", 32)
    run("sketch", "train.csv", "-o", "train.sotdd", "--label", "kind", "--n-projections", 64)
    for batch, count in (("gone", 39), ("near", 999)):
        line = ["check", "train.ref", f"{batch}.csv", "--n-permutations", count, "--report", "page.html", "--json"]
        told = json.loads(run(*line)[1])
        text, _, python = read(tables / "page.html")
        assert executed(python)["results"] == {f"{batch}.csv": (told["test"]["p_value"], told["distance"]["value"])}
        assert (f"{batch}.csv has drifted" in text) == (batch == "gone")
    assert told["test"]["n_null"] == 999  # no earlier look ended it
    line = ["check", "train.sotdd", "same.csv", "gone.csv", "--label", "kind", "--report", "page.html", "--json"]
    told = json.loads(run(*line)[1])
    text, _, python = read(tables / "page.html")
    assert list(executed(python)["results"].values()) == [one["distance"]["value"] for one in told["batches"]]
    assert "by itself beyond its noise (95 % limit " in text


@pytest.mark.parametrize("settings", [[], ["--seed", 4, "--p", 1, "--max-points", 40]])
def test_the_python_on_the_page_of_a_test_gives_its_numbers(tables, run, settings):
    code, out, said = run(
        "test", "train.csv", "gone.csv", "--label", "kind", *FEW, *settings, "--report", "p.html", "--json"
    )
    assert code == 0, said
    told = json.loads(out)
    text, data, python = read(tables / "p.html")
    result = executed(python)["result"]
    assert (result.p_value, result.distance) == (told["p_value"], told["distance"])
    assert data["p_value"] == told["p_value"]
    assert "train.csv and gone.csv differ: p = " in text
    assert f"p = {result.p_value:.3g}" in text


def test_the_python_on_the_page_of_an_explanation_gives_its_numbers(tables, run):
    settings = ["--label", "kind", "--n-projections", 64, "--seed", 2, "--p", 1]
    line = ["explain", "train.csv", "gone.csv", *settings]
    told = json.loads(run(*line, "--report", "p.html", "--title", "A <b>title</b>", "--json")[1])
    text, data, python = read(tables / "p.html")
    why = executed(python)["result"]
    assert data["distance"] == why.distance.value == told["distance"]["value"]
    assert "A <b>title</b>" in text
    assert f"train.csv and gone.csv differ: p = {why.test.p_value:.3g}" in text
    assert f"95 % limit {why.distance.noise.limit(0.95):.3g}" in text
    for line in why.lines(1):
        assert f"{line.share:.0%}" in text


def test_python_writes_the_pages_too(rng, tmp_path):
    x, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    data = {"mine": (x, y), HOSTILE: (x + 3, y)}
    test = sotdd.test(*data.values(), n_permutations=19)
    text, _, code = read(sotdd.report(test, tmp_path / "t.html", datasets=data, title=HOSTILE))
    assert HOSTILE in text
    assert code is None  # the settings of the call are not known
    text, told, _ = read(sotdd.report(sotdd.explain(*data.values(), n_projections=32), tmp_path / "e.html"))
    assert told["within_noise"] is False
    assert "a and b differ: p = " in text
    for settings, said in [({"datasets": [x]}, "1 dataset: expected the two")]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.report(test, tmp_path / "x.html", **settings)


def test_a_ranking_says_what_is_tied_and_what_is_beyond_chance(rng, tmp_path):
    y = rng.integers(2, size=80)
    data = {
        name: (rng.normal(shift, 1, size=(80, 3)), y)
        for name, shift in [("mine", 0), ("x", 0), (HOSTILE, 0), ("far", 2)]
    }
    others = {name: source for name, source in data.items() if name != "mine"}
    order = sotdd.pairwise(data, n_projections=64, noise_floor=True).ranking("mine")
    text, told, code = read(sotdd.report(order, tmp_path / "r.html", datasets=data))
    assert told["target"] == "mine"
    assert code is None
    for part in (
        "Nearest to mine",
        "weak hint",
        "within noise",
        "far",
        HOSTILE,
        f"Why {order.nearest} is that far from mine",
    ):
        assert part in text, part
    assert ("noise cannot tell apart" in text) == (len(order.best) > 1)
    text, _, _ = read(sotdd.report(sotdd.rank(data["mine"], others, n_projections=64), tmp_path / "p.html"))
    assert "Whether a distance is beyond chance was not measured" in text
    with pytest.raises(sotdd.SotddError, match="datasets are x: expected at least 'mine'"):
        sotdd.report(order, tmp_path / "x.html", datasets={"x": data["x"]})


def test_the_changes_of_a_test_have_a_page(rng, tmp_path):
    a, b = rng.normal(size=(2, 200, 3))
    for shift, said in ((2, "1 column of 3 changed beyond chance: feature 1"), (0, "No single column, pair or class")):
        found = sotdd.test(a, b + np.array([0, shift, 0]), n_permutations=99).changes
        text, told, _ = read(sotdd.report(found, tmp_path / "c.html", datasets={"one": a, "two": b}))
        assert said in text
        assert told["n_columns"] == 3
        assert "What changed from one to two?" in text


def test_pages_of_rankings_and_series_from_the_command_line(tables, run):
    line = ["rank", "train.csv", "gone.csv", "same.csv", "--label", "kind", "--n-projections", 32, "--report", "r.html"]
    told = json.loads(run(*line, "--json")[1])
    text, _, python = read(tables / "r.html")
    assert "Nearest to train.csv: same.csv" in text
    assert [one.distance.value for one in executed(python)["result"]] == [one["value"] for one in told["ranking"]]
    run("reference", "train.csv", "-o", "train.ref", "--label", "kind", "--n-projections", 32)
    for name, source in (("few", "same"), ("away", "gone")):
        rows = (tables / f"{source}.csv").read_text(encoding="utf-8").splitlines()[:31]
        (tables / f"{name}.csv").write_text("\n".join(rows), encoding="utf-8")
        code = run("monitor", "train.ref", f"{name}.csv", "--log", "m.log", "--report", "m.html", "-q")[0]
        assert code == (name == "away")
    page = (tables / "m.html").read_text(encoding="utf-8")
    assert re.findall(r'class="step"[^>]*>([^<]*)<', page) == ["few.csv", "away.csv"]
    assert "away.csv has drifted" in page
    assert "Evidence after each batch" in page
    entries = [json.loads(one)["monitor"] for one in (tables / "m.log").read_text().splitlines()]
    assert f"limit {entries[0]['limit']:.3g}" in page
    assert f'title="away.csv: {entries[1]["total"]:.4g}, drift"' in page


def test_failures_come_first_and_every_column_can_be_looked_at(tables, run):
    line = ["check", "train.csv", "same.csv", "gone.csv", "--label", "kind", *FEW, "--report", "p.html"]
    run(*line)
    page = (tables / "p.html").read_text(encoding="utf-8")
    assert "drifted from train.csv: gone.csv (u" in page.split("</h2>")[0]
    cards = re.findall(r'<details class="batch (\w+)"( open)?><summary><h2>([^<]*)', page)
    assert [(verdict, opened) for verdict, opened, _ in cards] == [("drift", " open"), ("passed", "")]
    assert cards[0][2].startswith("What changed in gone.csv: u")
    assert cards[1][2].startswith("same.csv: passed, p = ")
    assert page.index("gone.csv: u") < page.index(">Batches<") < page.index("same.csv: passed")
    for card in page.split('<details class="batch')[1:]:
        assert [re.sub(r" .*", "", name) for name in re.findall(r"<option[^>]*>([^<]*)", card)[1:]] == [
            "label",
            "u",
            "v",
            "w",
        ]
    u = np.loadtxt("gone.csv", delimiter=",", skiprows=1)[:, 0]
    shown = card_of(page, "gone.csv").split('class="column c2"')[1].split("</table>")[0]
    cells = dict(re.findall(r'<th scope="row">([^<]*)</th><td[^>]*>[^<]*</td><td[^>]*>([^<]*)<', shown))
    assert (cells["values"], cells["missing"]) == ("70", "0 %")
    assert float(cells["mean"]) == pytest.approx(u.mean(), abs=0.01)
    assert float(cells["median"]) == pytest.approx(np.median(u), abs=0.01)
    assert float(cells["largest"]) == pytest.approx(u.max(), abs=0.01)


def card_of(page, batch):
    return next(card for card in page.split('<details class="batch')[1:] if f"in {batch}" in card[:200])


def test_no_class_is_shown_where_there_are_no_labels(rng, tmp_path):
    x = rng.normal(size=(2, 60, 3))
    why = sotdd.explain(*x, n_projections=32)
    assert "class" not in why.table()
    text, _, _ = read(sotdd.report(why, tmp_path / "e.html", datasets={"one": x[0], "two": x[1]}))
    assert "Classes of" not in text
    assert " all " not in text
    assert "classes" not in text
    assert "No difference was found between one and two" in text  # the title too


def verdict(name, failed):
    """A batch that drifted, passed or, for None, could not be opened."""
    if failed is None:
        return BatchVerdict(name, error="there is no file.")
    return BatchVerdict(name, (Outcome("p_value", 0.01 if failed else 0.5, 0.05, failed, "said"),), n_points=9)


passed, failed, unknown = (lambda name, failed=failed: verdict(name, failed) for failed in (False, True, None))


@pytest.mark.parametrize(
    ("verdicts", "tone", "said"),
    [
        ([passed("a/x.csv")], "good", ("No drift", "x.csv", "r.ref")),
        ([failed("a/x.csv")], "bad", ("x.csv has drifted", "r.ref")),
        ([unknown("a/x.csv")], "unsure", ("x.csv", "r.ref")),
        ([passed("x.csv"), passed("y.csv")], "good", ("No drift", "all 2 batches")),
        ([passed("x.csv"), failed("y.csv"), failed("z.csv")], "bad", ("2 of 3 batches", "y.csv, z.csv")),
        ([passed("x.csv"), unknown("y.csv")], "unsure", ("1 of 2 batches",)),
    ],
)
def test_the_verdict_comes_first(tmp_path, verdicts, tone, said):
    page = write_gate_page(tmp_path / "r.html", GateRun("data/r.ref", verdicts)).read_text(encoding="utf-8")
    first = page.split('<section id="verdict"')[1].split("</h2>")[0]
    assert first.startswith(f' class="verdict {tone}"')
    assert all(part in first for part in said)


def test_names_are_short_and_unique(tmp_path):
    long = "/very/long/" + "x" * 90 + ".csv"
    names = shorten_names(["/data/2024/train.csv", "/data/2025/train.csv::label=kind", long, long, "a.csv::name=mine"])
    assert names[-1] == "mine"
    assert len(set(names)) == 5
    assert max(map(len, names)) <= 44
    page = write_gate_page(tmp_path / "r.html", GateRun(long, [failed(long), failed(HOSTILE)]))
    assert HOSTILE not in page.read_text(encoding="utf-8")


def test_the_history_of_a_log_comes_first(tmp_path):
    earlier = [
        {"date": "2026-02-28T09:00:00Z", "batch": "b/old.csv", "verdict": "passed", "distance": "0.25", "p": "0.7"},
        {"date": "2026-02-28T10:00:00Z", "batch": "b/odd.csv", "verdict": "drift", "distance": "nonsense"},
    ]
    run = GateRun("r.ref", [passed("new.csv")], history=earlier)
    page = write_gate_page(tmp_path / "r.html", run).read_text(encoding="utf-8")
    assert 'title="old.csv: 0.25, passed"' in page
    assert 'title="odd.csv: not measured"' in page  # which is no distance of 0
    assert re.findall(r'class="step"[^>]*>([^<]*)<', page) == ["old.csv", "odd.csv", "new.csv"]
    alone = write_gate_page(tmp_path / "r.html", GateRun("r.ref", [passed("new.csv")])).read_text(encoding="utf-8")
    assert "Over time" not in alone


def test_the_columns_that_make_a_distance_come_first(tmp_path, rng):
    pandas = pytest.importorskip("pandas")
    frames = [
        pandas.DataFrame(
            {"age": rng.normal(40, 9, 300), "income": rng.lognormal(10, 1, 300) + moved, "label": [0, 1] * 150}
        )
        for moved in (0, 30_000)
    ]
    text = sotdd.report(sotdd.explain(*frames), tmp_path / "why.html").read_text(encoding="utf-8")
    cards = re.findall(r"<h2[^>]*>(.*?)</h2>", text)
    assert cards.index("What changed in b") < cards.index("Which classes it comes from")
    card = text.split(">What changed in b<")[1].split("</section>")[0]
    changed, same = card.split("<details>")
    assert ">income<" in changed
    assert ">age<" not in changed
    assert ">age<" in same


def test_pixels_are_a_picture(tmp_path, rng):
    images = rng.random((2, 200, 6, 6))
    images[1, :, 2, 3] += 3
    text = sotdd.report(sotdd.explain(*images), tmp_path / "why.html").read_text(encoding="utf-8")
    drawn = re.findall(r'<rect class="more" x="(\d+)" y="(\d+)"[^>]*fill-opacity="([0-9.]+)"', text)
    assert max(drawn, key=lambda square: float(square[2]))[:2] == ("3", "2")
