"""The report of a matrix as a file; what it does in a browser is in ``test_browser.py``."""

import html.parser
import json
import os
import re
import sys

import numpy as np
import pytest

import sotdd
from sotdd.compute.matrix import clearly_farther

HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture
def datasets(rng):
    return {
        "near": (rng.normal(size=(80, 5)), rng.integers(0, 3, size=80)),
        HOSTILE: (rng.normal(size=(120, 5)), rng.integers(0, 3, size=120)),
        "far": (rng.normal(6, 1, size=(60, 5)), ["a", "b & c"] * 30),
    }


@pytest.fixture
def matrix(datasets):
    return sotdd.pairwise(datasets, n_projections=128)


class Page(html.parser.HTMLParser):
    """The texts of a page by element, and what it refers to."""

    def __init__(self, path):
        super().__init__()
        self.scripts, self.texts, self.links, self._in = [], [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self._in.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        if tag in self._in:
            del self._in[len(self._in) - 1 - self._in[::-1].index(tag) :]

    def handle_data(self, data):
        if "script" in self._in:
            self.scripts[-1] += data
        elif "style" not in self._in:
            self.texts.append(data)


def read(path):
    page = Page(path)
    return page, json.loads(page.scripts[0])


def test_one_file_with_everything_in_it(matrix, datasets, tmp_path):
    path = sotdd.report(matrix, tmp_path / "r.html", datasets=datasets, title="<b>All</b> & sundry")
    assert os.listdir(tmp_path) == ["r.html"]
    page, data = read(path)
    assert len(page.scripts) == 1  # the data: no name has become one, and nothing runs
    assert path.stat().st_size < 100_000
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert "<b>All</b> & sundry" in page.texts
    assert data["names"] == list(matrix.names)
    assert data["values"] == matrix.values.tolist()
    assert set(data["explanations"]) == {"0,1", "0,2", "1,2"}
    told = " ".join(page.texts)
    low, high = matrix["near", "far"].interval(0.95)
    assert f"{low:.3g} to {high:.3g}" in told
    for setting in (matrix["near", "far"].fingerprint, "sphere", "zero-truncated Poisson", sotdd.__version__):
        assert setting in told


def test_the_summary_is_about_these_numbers(matrix, datasets, tmp_path):
    page, _ = read(sotdd.report(matrix, tmp_path / "r.html", datasets=datasets))
    nearest = min(matrix.distances.values(), key=float)
    said = " ".join(" ".join(page.texts).split())
    for part in (f"“near” and “{HOSTILE}” are {repr(nearest).split(' (')[0]} apart", "Farthest: ", "128 projections"):
        assert part in said
    rng = np.random.default_rng(1)
    sets = {name: (rng.normal(size=(60, 3)), rng.integers(0, 2, 60)) for name in "abc"}
    page, _ = read(sotdd.report(sotdd.pairwise(sets, n_projections=128, noise_floor=True), tmp_path / "r.html"))
    assert any("No two are clearly apart" in text for text in page.texts)
    assert not any("Farthest" in text for text in page.texts)


def test_progress_is_by_pair_and_the_page_is_always_the_same(matrix, datasets, tmp_path):
    told = []
    one = sotdd.report(matrix, tmp_path / "a.html", datasets=datasets, progress=lambda *done: told.append(done))
    assert told == [(1, 3), (2, 3), (3, 3)]
    other = sotdd.report(matrix, tmp_path / "b.html", datasets=datasets)
    without_date = [re.sub(r"<time.*</time>", "", path.read_text(encoding="utf-8")) for path in (one, other)]
    assert without_date[0] == without_date[1]


def test_of_many_pairs_the_nearest_and_the_farthest_are_explained(rng, tmp_path):
    sets = {name: (rng.normal(shift, 1, size=(40, 3)), rng.integers(2, size=40)) for shift, name in enumerate("abcd")}
    matrix, told = sotdd.pairwise(sets, n_projections=64), []
    path = sotdd.report(matrix, tmp_path / "r.html", datasets=sets, progress=lambda *done: told.append(done))
    page, data = read(path)
    order = sorted(matrix.distances, key=lambda pair: matrix.distances[pair].value)
    assert set(data["explanations"]) == {f"{i},{j}" for i, j in (*order[:2], order[-1])}
    assert told[-1] == (3, 3)
    assert sum("sotdd.explain says the same" in text for text in page.texts) == 3


def test_bad_input(matrix, datasets, tmp_path):
    path = tmp_path / "r.html"
    for settings, said in [
        ({"datasets": {"near": datasets["near"]}}, "the datasets are near but the matrix has"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.report(matrix, path, **settings)
    peer = sotdd.pairwise(datasets, method="mmd")
    for result, place, settings, said in [
        ({}, path, {}, "result is a dict"),
        (peer, path, {"datasets": datasets}, "s-OTDD"),
        (matrix, tmp_path / "nowhere" / "r.html", {}, "cannot write"),
        (matrix, tmp_path / "r.pdf", {}, "call it 'r.html'"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.report(result, place, **settings)
    assert os.listdir(tmp_path) == []


def test_without_jinja_the_error_says_what_to_install(matrix, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(sotdd.SotddError, match=r"pip install 'sotdd\[report\]'"):
        sotdd.report(matrix, tmp_path / "r.html")


def code_on(page):
    """The code block, as a reader would copy it."""
    return next(text for text in page.texts if text.startswith("import sotdd"))


def executed(code, datasets=None, **filled):
    """Run the block once its blanks are filled in; returns what it measured."""
    filled = {**filled, **({} if datasets is None else {"datasets": datasets})}
    for name in filled:
        before = code
        code = re.sub(
            rf"^{name} = (.*\.\.\..*|\{{  # fill in[^}}]*\}})$", f"{name} = given[{name!r}]", code, flags=re.M
        )
        assert code != before, f"{name} is not there to fill in"
    assert "..." not in code
    room = {"given": filled}
    exec(code, room)  # the very thing to test
    return room["matrix"]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"label_law": sotdd.projections.ClassQuantiles(8, 0.5), "seed": 5},
        {"moments": [0.5, 1.5, 2.5]},
        {"moments": sotdd.projections.UniformOrders(3), "n_moments": 4},
        {"label_law": sotdd.projections.Moments(3, sotdd.projections.ZeroTruncatedPoisson(max_order=4))},
        {"seed": np.random.default_rng(4)},
        {"p": 1.5, "scale": None},
        {"n_projections": 200, "estimator": "plain", "noise_floor": True},
        {"directions": sotdd.projections.Orthogonal()},
        {"directions": sotdd.projections.Convolution((5, 1), "stride", clamp=None)},
    ],
    ids=lambda settings: " ".join(settings) or "default",
)
def test_the_python_on_the_page_measures_the_same(datasets, tmp_path, settings):
    matrix = sotdd.pairwise(datasets, **settings)
    page, _ = read(sotdd.report(matrix, tmp_path / "r.html"))
    again = executed(code_on(page), datasets)
    np.testing.assert_array_equal(again.values, matrix.values)
    np.testing.assert_array_equal(again.stderr, matrix.stderr)
    np.testing.assert_array_equal(again.noise_floors, matrix.noise_floors)
    with pytest.raises(AssertionError):  # other data are told from these
        executed(code_on(page), {name: (2 * np.asarray(x) + x[0], y) for name, (x, y) in datasets.items()})


def test_the_python_on_the_page_of_given_projections_and_peers(datasets, tmp_path):
    matrix = sotdd.pairwise(datasets, method="mmd", max_points=10)
    page, _ = read(sotdd.report(matrix, tmp_path / "r.html"))
    np.testing.assert_array_equal(executed(code_on(page), datasets).values, matrix.values)
    projections = sotdd.Projections.fit([datasets["far"]], n_projections=100)
    matrix = sotdd.pairwise(datasets, projections=projections, p=1)
    page, _ = read(sotdd.report(matrix, tmp_path / "r.html"))
    again = executed(code_on(page), datasets, projections=projections)
    np.testing.assert_array_equal(again.values, matrix.values)


def test_the_python_on_the_page_opens_files(rng, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    for name, size in (("a.csv", 40), ("b.csv", 50)):
        rows = np.column_stack([rng.normal(size=(size, 3)), rng.integers(2, size=size)])
        np.savetxt(name, rows, delimiter=",", header="u,v,w,kind", comments="")
    sources = {"one": "a.csv::label=kind,features=u+v", "two": "b.csv::label=,features=u+v"}
    matrix = sotdd.pairwise(sources, n_projections=64)
    page, _ = read(sotdd.report(matrix, tmp_path / "r.html"))
    np.testing.assert_array_equal(executed(code_on(page)).values, matrix.values)
    code, out, said = run(
        "matrix", "a.csv", "b.csv::max_points=30", "--label", "kind", "--features", "u+v", "--p", 1.5, "--seed", 4,
        "--report", "r.html", "--json",
    )  # fmt: skip
    assert code == 0, said
    page, _ = read(tmp_path / "r.html")
    assert executed(code_on(page)).values.tolist() == json.loads(out)["values"]


def test_pairs_of_projections_tell_more_than_errors_do(rng):
    """A little farther in every projection is clear, however much projections differ."""
    x = rng.normal(size=(100, 4))
    projections = sotdd.Projections.fit([x], n_projections=64)
    one, other = (sotdd.distance(x, x * (1 + by), projections=projections) for by in (0.10, 0.101))
    assert abs(one.value - other.value) < one.stderr + other.stderr
    assert clearly_farther(other, one)
    assert not clearly_farther(one, other)


def test_pairs_with_too_many_classes_are_left_out_and_named(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("one", "two"):
        np.savez(f"{name}.npz", X=rng.normal(size=(6000, 2)), y=np.repeat(np.arange(3000), 2))
    code, _, errors = run("matrix", "one.npz", "two.npz", "--report", "page.html", "--n-projections", "16")
    assert (code, errors) == (0, "")
    assert "comparison class by class: “one.npz” and “two.npz”" in (tmp_path / "page.html").read_text(encoding="utf-8")
