"""The report as a file; what it does in a browser is in ``test_report_browser.py``."""

import html.parser
import json
import os
import re
import sys

import numpy as np
import pytest

import sotdd
from sotdd.pictures.page import as_script
from sotdd.pictures.page_data import page_data
from sotdd.results.ranking import clearly_farther

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
    assert len(page.scripts) == 4  # data, Plotly, charts, page: no name has become one
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert "<b>All</b> & sundry" in page.texts
    assert data["names"] == list(matrix.names)
    assert data["pairs"]["0,2"]["value"] == pytest.approx(matrix["near", "far"].value, rel=1e-4)
    low, high = matrix["near", "far"].interval(0.95)
    assert data["pairs"]["0,2"]["low"] == pytest.approx(low, rel=1e-4)
    assert data["pairs"]["0,2"]["high"] == pytest.approx(high, rel=1e-4)
    assert set(data["explanations"]) == {"0,1", "0,2", "1,2"}
    told = " ".join(page.texts)
    for setting in (matrix["near", "far"].fingerprint, "sphere", "zero-truncated Poisson", sotdd.__version__):
        assert setting in told


def test_the_words_are_about_these_numbers(matrix, datasets):
    explanations = {(0, 2): sotdd.explain(datasets["near"], datasets["far"], projections=matrix.projections)}
    said = page_data(matrix, explanations, "")["summary"]
    nearest = min(matrix.distances.values(), key=float)
    assert said[0] == f"Nearest: “near” and “{HOSTILE}” are {repr(nearest).split(' (')[0]} apart."
    assert said[1].startswith("Farthest: ")
    assert any(sentence.startswith("“far” stands apart") for sentence in said)
    why = explanations[0, 2]
    of_labels = f"{100 * why.labels:.0f} % is due to labels and the rest to features"
    assert f"Of the difference beyond noise between “near” and “far”, {of_labels}." in said
    assert "128 projections" in said[-1]


def test_samples_of_one_source_are_not_called_far():
    rng = np.random.default_rng(1)
    sets = {name: (rng.normal(size=(60, 3)), rng.integers(0, 2, 60)) for name in "abc"}
    matrix = sotdd.pairwise(sets, n_projections=128, noise_floor=True)
    said = page_data(matrix, {}, "")["summary"]
    assert said[0].startswith("No two are clearly apart: the largest distance, ")
    assert not any(sentence.startswith("Farthest") for sentence in said)


def test_explanations_can_be_chosen_or_given(matrix, datasets, tmp_path):
    _, data = read(sotdd.report(matrix, tmp_path / "r.html"))
    assert data["explanations"] == {}
    _, data = read(sotdd.report(matrix, tmp_path / "r.html", datasets=datasets, explanations=[("near", "far")]))
    assert set(data["explanations"]) == {"0,2"}
    same = {"projections": matrix.projections, "estimator": "controlled"}
    made = sotdd.explain(datasets["near"], datasets["far"], **same)
    _, given = read(sotdd.report(matrix, tmp_path / "r.html", explanations={("near", "far"): made}))
    assert given["explanations"] == data["explanations"]
    np.testing.assert_allclose(given["explanations"]["0,2"]["distances"], made.class_distances, rtol=1e-4)


def test_many_classes_are_cut_to_those_that_matter(rng, tmp_path):
    data = {name: (rng.normal(size=(400, 3)), rng.integers(0, 90, size=400)) for name in "ab"}
    _, told = read(sotdd.report(sotdd.pairwise(data, n_projections=64), tmp_path / "r.html", datasets=data))
    why = told["explanations"]["0,1"]
    assert np.shape(why["distances"]) == (60, 60)
    assert why["n_classes"] == [90, 90]
    assert len(why["lines"][0]) == 60


def test_progress_is_by_pair(matrix, datasets, tmp_path):
    told = []
    sotdd.report(matrix, tmp_path / "r.html", datasets=datasets, progress=lambda *done: told.append(done))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_the_same_matrix_makes_the_same_page(matrix, datasets, tmp_path):
    one, other = (sotdd.report(matrix, tmp_path / name, datasets=datasets).read_bytes() for name in "ab")
    assert one == other


def test_a_file_is_replaced_whole_or_not_at_all(matrix, tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("before")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(sotdd.SotddError, match="no space left"):
            sotdd.report(matrix, path)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["r.html"]
    sotdd.report(matrix, path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert path.stat().st_mode & 0o777 == 0o644


def test_bad_input(matrix, datasets, rng, tmp_path):
    path = tmp_path / "r.html"
    other = sotdd.explain(datasets["near"], datasets["far"], n_projections=64)
    plain = sotdd.explain(datasets["near"], datasets["far"], projections=matrix.projections, estimator="plain")
    for settings, said in [
        ({"explanations": "all"}, "without datasets"),
        ({"explanations": "some", "datasets": datasets}, "explanations is 'some'"),
        ({"explanations": 5, "datasets": datasets}, "explanations is 5: expected 'all', pairs of names"),
        ({"explanations": np.ones(3), "datasets": datasets}, "explanations is a ndarray"),
        ({"explanations": [("near", "mars")], "datasets": datasets}, "'near' and 'mars'"),
        ({"explanations": [("far", "near")], "datasets": datasets}, "in the other order"),
        ({"explanations": ["near"], "datasets": datasets}, "by pairs of names"),
        ({"explanations": {("near", "far"): 3}}, "expected an Explanation"),
        ({"explanations": {("near", "far"): other}}, "other projections"),
        ({"explanations": {("near", "far"): plain}}, "pass estimator='controlled'"),
        ({"datasets": {"near": datasets["near"]}}, "the datasets are near but the matrix has"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.report(matrix, path, **settings)
    with pytest.raises(sotdd.SotddError, match="result is a dict: expected what"):
        sotdd.report({}, path)
    peer = sotdd.pairwise(datasets, method="mmd")
    with pytest.raises(sotdd.SotddError, match="measured by s-OTDD"):
        sotdd.report(peer, path, datasets=datasets)
    for place in (tmp_path / "nowhere" / "r.html", tmp_path):
        with pytest.raises(sotdd.SotddError, match="cannot write"):
            sotdd.report(matrix, place)
    assert os.listdir(tmp_path) == []


def test_without_plotly_the_error_says_what_to_install(matrix, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(sotdd.SotddError, match=r"pip install 'sotdd\[report\]'"):
        sotdd.report(matrix, tmp_path / "r.html")


# --------------------------------------------------------------------------- the Python on the page


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
        {"label_law": "quantiles"},
        {"label_law": sotdd.ClassQuantiles(8, 0.5), "seed": 5},
        {"n_moments": 2},
        {"moments": [0.5, 1.5, 2.5]},
        {"moments": sotdd.UniformOrders(3), "n_moments": 4},
        {"label_law": sotdd.Moments(3, sotdd.ZeroTruncatedPoisson(max_order=4))},
        {"seed": np.int64(11)},
        {"seed": np.random.default_rng(4)},
        {"p": 1.5, "scale": None},
        {"n_projections": 200, "estimator": "plain", "noise_floor": 3},
        {"directions": sotdd.Orthogonal(), "shared_directions": False},
        {"directions": sotdd.Hadamard()},
        {"directions": sotdd.Convolution((5, 1), [((5, 1), 1)], clamp=None)},
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


@pytest.mark.parametrize(
    "drawing",
    [
        {},
        {"tilt": True},
        {"tilt": True, "directions": sotdd.Hadamard()},
        {"label_law": "quantiles", "scale": None},
        {"shared_directions": False, "seed": 3},
    ],
)
@pytest.mark.parametrize("settings", [{}, {"p": 1, "estimator": "controlled"}])
def test_the_python_on_the_page_fits_given_projections_again(datasets, tmp_path, drawing, settings):
    reference = datasets["far"]
    projections = sotdd.Projections.fit([reference], n_projections=100, **drawing)
    matrix = sotdd.pairwise(datasets, projections=projections, **settings)
    page, _ = read(sotdd.report(matrix, tmp_path / "r.html"))
    again = executed(code_on(page), datasets, reference=[reference])
    np.testing.assert_array_equal(again.values, matrix.values)


def test_the_python_on_the_page_opens_files_by_their_paths(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, size in (("a.csv", 40), ("b.csv", 50)):
        rows = np.column_stack([rng.normal(size=(size, 3)), rng.integers(2, size=size)])
        np.savetxt(name, rows, delimiter=",", header="u,v,w,kind", comments="")
    for sources in (
        ["a.csv::label=kind", "b.csv::label=kind"],
        {"one": "a.csv::label=kind,features=u+v", "two": "b.csv::label=,features=u+v"},
    ):
        matrix = sotdd.pairwise(sources, n_projections=64)
        page, _ = read(sotdd.report(matrix, tmp_path / "r.html"))
        np.testing.assert_array_equal(executed(code_on(page)).values, matrix.values)


def test_the_python_on_the_page_of_a_command_opens_files_as_it_did(rng, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    for name, size in (("a.csv", 40), ("b.csv", 50)):
        rows = np.column_stack([rng.normal(size=(size, 3)), rng.integers(2, size=size)])
        np.savetxt(name, rows, delimiter=",", header="u,v,w,kind", comments="")
    code, out, said = run(
        "matrix", "a.csv", "b.csv::max_points=30", "--label", "kind", "--features", "u+v", "--p", 1.5, "--seed", 4,
        "--report", "r.html", "--json",
    )  # fmt: skip
    assert code == 0, said
    page, _ = read(tmp_path / "r.html")
    assert executed(code_on(page)).values.tolist() == json.loads(out)["values"]


def test_the_python_on_the_page_of_sketches_and_peers_and_many(datasets, rng, tmp_path):
    many = {str(place): rng.normal(size=(20, 2)) for place in range(6)}
    matrix = sotdd.pairwise(many, method="mmd", max_points=10)
    page, _ = read(sotdd.report(matrix, tmp_path / "r.html"))
    np.testing.assert_array_equal(executed(code_on(page), many).values, matrix.values)
    projections = sotdd.Projections.fit(datasets, n_projections=64)
    sketches = {name: sotdd.sketch(data, projections) for name, data in datasets.items()}
    matrix = sotdd.pairwise(sketches, p=1)
    page, _ = read(sotdd.report(matrix, tmp_path / "r.html"))
    np.testing.assert_array_equal(executed(code_on(page), sketches).values, matrix.values)


def test_data_in_a_script_stay_data():
    hostile = {"</script>": "<!--", "&": "\u2028", "€": '"'}
    text = as_script(hostile)
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text) == hostile


# --------------------------------------------------------------------------- ranking


def test_a_ranking_is_in_order_and_ties_share_a_rank(rng):
    x = rng.normal(size=(100, 4))
    x = np.concatenate([x, x[:, [1, 0, 2, 3]]])  # the first two features may be exchanged: "a" is as far as "b"
    shifts = {"b": [2, 0, 0, 0], "a": [0, 2, 0, 0], "far": [8, 8, 0, 0], "near": [0.5, 0.5, 0, 0]}
    matrix = sotdd.pairwise({"here": x, **{name: x + np.array(by) for name, by in shifts.items()}})
    lines = matrix.ranking("here")
    assert [line.rank for line in lines] == [1, 2, 2, 4]
    assert [line.name for line in lines][::3] == ["near", "far"]
    assert [line.tied for line in lines] == [False, True, True, False]
    values = [line.distance.value for line in lines]
    assert values == sorted(values)


def test_pairs_of_projections_tell_more_than_errors_do(rng):
    """A little farther in every projection is clear, however much projections differ."""
    x = rng.normal(size=(100, 4))
    projections = sotdd.Projections.fit([x], n_projections=64)
    one, other = (sotdd.distance(x, x * (1 + by), projections=projections) for by in (0.10, 0.101))
    assert abs(one.value - other.value) < one.stderr + other.stderr
    assert clearly_farther(other, one)
    assert not clearly_farther(one, other)


@pytest.fixture(scope="module")
def many():
    """Two datasets of thousands of classes, and one of two."""
    rng = np.random.default_rng(0)
    crowd = {name: (rng.normal(size=(6000, 2)), np.repeat(np.arange(3000), 2)) for name in ("one", "two")}
    return {**crowd, "few": (rng.normal(size=(50, 2)), np.arange(50) % 2)}


def test_pairs_with_too_many_classes_are_left_out_and_named(many, tmp_path):
    matrix = sotdd.pairwise(many, n_projections=16)
    text = sotdd.report(matrix, tmp_path / "page.html", datasets=many).read_text(encoding="utf-8")
    assert "left out of the comparison class by class: one and two" in text
    kept = sotdd.report(matrix, tmp_path / "few.html", datasets=many, explanations=[]).read_text(encoding="utf-8")
    assert "left out of the comparison" not in kept


def test_pairs_with_too_many_classes_are_refused_where_they_are_asked_for(many, tmp_path):
    matrix = sotdd.pairwise(many, n_projections=16)
    with pytest.raises(sotdd.SotddError, match="'one' and 'two' have too many classes"):
        sotdd.report(matrix, tmp_path / "page.html", datasets=many, explanations=[("one", "two")])
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_report_of_many_classes(many, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        np.savez(f"{name}.npz", X=many[name][0], y=many[name][1])
    code, out, errors = run("matrix", "one.npz", "two.npz", "--report", "page.html", "--n-projections", "16")
    assert (code, errors) == (0, "")
    assert "wrote page.html" in out
    assert "left out of the comparison class by class: one.npz and two.npz" in (tmp_path / "page.html").read_text()
