"""Files: what comes back, what is refused, and what anyone may have written with a checksum that matches."""

import json
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load, save_file

import sotdd
from sotdd.sketches.codec import header_of, packed

# ------------------------------------------------------------------ sketches


def test_a_file_brings_everything_back(tmp_path, pair, projections):
    made = sotdd.sketch(pair[0], projections, name="stored")
    made.save(tmp_path / "a.sotdd")
    found = sotdd.Sketch.load(tmp_path / "a.sotdd")
    np.testing.assert_array_equal(found.quantiles, made.quantiles)
    np.testing.assert_array_equal(found.class_terms, made.class_terms)
    assert (found.name, found.classes, found.counts.tolist()) == ("stored", made.classes, made.counts.tolist())
    assert found.fingerprint == made.fingerprint == found.projections.fingerprint
    assert found.distance(made).value == 0
    assert sotdd.distance(found, pair[1]).value == sotdd.distance(made, pair[1]).value
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.sotdd"]
    with safe_open(tmp_path / "a.sotdd", framework="np") as opened:  # as others read it
        np.testing.assert_array_equal(opened.get_tensor("quantiles"), made.quantiles)
        assert json.loads(opened.metadata()["sotdd"])["recipe"]["seed"] == 3


def test_half_a_file_is_half_as_large_and_within_its_bound(tmp_path, pair, projections):
    made, other = (sotdd.sketch(data, projections) for data in pair)
    made.save(tmp_path / "whole")
    made.save(tmp_path / "half", half=True)
    found = sotdd.Sketch.load(tmp_path / "half")
    reach = made.quantiles[:, -1:] - made.quantiles[:, :1]
    assert (np.abs(found.quantiles - made.quantiles) <= reach / 65535 * 0.51 + 1e-6).all()
    assert os.path.getsize(tmp_path / "half") < 0.56 * os.path.getsize(tmp_path / "whole")
    assert found.distance(other).value == pytest.approx(made.distance(other).value, rel=1e-3)


def test_labels_that_json_cannot_hold_become_text(tmp_path, rng):
    x = rng.normal(size=(4, 2))
    y = [("a", 1), ("a", 1), ("b", 2), ("b", 2)]
    sotdd.sketch((x, y), sotdd.Projections.fit([x], n_projections=64)).save(tmp_path / "a")
    assert sotdd.Sketch.load(tmp_path / "a").classes == ("('a', 1)", "('b', 2)")


class Coordinates:
    """A law of the user's own."""

    def describe(self):
        return {"law": "coordinates"}

    def draw(self, rng, n_projections, n_features):
        return sotdd.projections.Directions(np.eye(n_features)[rng.integers(n_features, size=n_projections)])


def test_own_laws_come_back_without_projections_to_draw_from(tmp_path, pair):
    own = sotdd.Projections.fit(list(pair), n_projections=64, directions=Coordinates())
    a, b = (sotdd.sketch(data, own) for data in pair)
    a.save(tmp_path / "a")
    found = sotdd.Sketch.load(tmp_path / "a")
    assert found.projections is None
    assert found.distance(b).value == a.distance(b).value
    with pytest.raises(sotdd.SotddError, match="cannot be drawn again"):
        sotdd.distance(found, pair[1])
    sotdd.ClassStatistics(own).save(tmp_path / "b")
    with pytest.raises(sotdd.SotddError, match="projections="):
        sotdd.ClassStatistics.load(tmp_path / "b")
    assert sotdd.ClassStatistics.load(tmp_path / "b", own).n_points == 0


def test_damage_is_found(tmp_path, pair, projections, rng):
    path = tmp_path / "a"
    sotdd.sketch(pair[0], projections, n_quantiles=4).save(path)
    whole = path.read_bytes()
    for cut in [0, 1, 7, 8, 100, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:cut])
        with pytest.raises(sotdd.SotddError, match="not a whole sketch"):
            sotdd.Sketch.load(path)
    for place in rng.integers(len(whole), size=200):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(sotdd.SotddError, match=r"not a whole sketch|checksum|version"):
            sotdd.Sketch.load(path)


def test_a_full_disk_leaves_the_old_file(tmp_path, pair, projections, monkeypatch):
    made = sotdd.sketch(pair[0], projections)
    made.save(tmp_path / "a")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sotdd.basics.files.os.fsync", full)
    with pytest.raises(sotdd.SotddError, match="no space left"):
        sotdd.sketch(pair[1], projections).save(tmp_path / "a")
    assert sotdd.Sketch.load(tmp_path / "a").distance(made).value == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_other_files_and_paths_that_cannot_be_are_refused(tmp_path, pair, projections, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_file({"x": np.zeros(3)}, tmp_path / "other")
    with pytest.raises(sotdd.SotddError, match="not a whole sketch"):
        sotdd.Sketch.load("other")
    kept = sotdd.sketch(pair[0], projections, n_quantiles=8), sotdd.ClassStatistics(projections)
    for path in ["", "/", "a\0b", "\ud800", "x" * 5000, "/".join(["y" * 100] * 50), "no/such/x", 5, b"x.sotdd"]:
        for call in (call for one in kept for call in (one.save, type(one).load)):
            with pytest.raises(sotdd.SotddError, match=r"^(path is|cannot (read|write)) ") as caught:
                call(path)
            assert len(str(caught.value)) < 400
            assert len(str(caught.value).splitlines()) == 1
    assert os.listdir(tmp_path) == ["other"]


# ------------------------------------------------------------------ crafted files

KINDS = (
    "sketch", "half sketch", "all values", "class statistics", "sketch builder", "second pass", "quantile builder",
    "sketch window", "drift reference", "drift reference with a sketch",
)  # fmt: skip


def written(kind):
    """What is written to a file of each kind."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(90, 3)), rng.integers(3, size=90)
    own = {"label_law": "quantiles", "scale": None} if kind == "quantile builder" else {}
    projections = sotdd.Projections.fit([(x, y)], n_projections=5, **own)
    if kind in ("sketch", "half sketch", "all values"):
        return sotdd.sketch((x, y), projections, n_quantiles=None if kind == "all values" else 8)
    if kind.startswith("drift reference"):
        own = {"shared_directions": False} if kind == "drift reference" else {"with_sketch": True}
        return sotdd.DriftReference.fit((x, y), n_projections=5, **own)
    if kind == "sketch window":
        return sotdd.SketchWindow(projections).add("a", x[:40], y[:40]).add("b", x[40:], y[40:])
    statistics = sotdd.ClassStatistics(projections).add(x, y)
    if kind == "class statistics":
        return statistics
    return sotdd.SketchBuilder(projections, statistics if kind == "second pass" else None).add(x, y)


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Of each kind: its name in the header, the header and the arrays."""
    path, found = tmp_path_factory.mktemp("crafted") / "file", {}
    for kind in KINDS:
        written(kind).save(path, **({"half": True} if kind == "half sketch" else {}))
        header = header_of(path.read_bytes())
        header.pop("checksum"), header.pop("format")
        found[kind] = header.pop("kind"), header, load(path.read_bytes())
    return found


def used(name, path):
    """Do with a file what parties do: open it, look at it, merge it, compare it."""
    if name == "drift reference":
        one = sotdd.DriftReference.load(path)
        repr(one)
        batch = np.zeros((5, 3)), [0, 1, 2, 1, 0]
        one.test(batch, n_permutations=3)
        one.distance(batch)
        return one
    if name in ("sketch", "sketch window"):
        one = sotdd.Sketch.load(path)
        repr(one)
        one.distance(one)
        one.vector(8)
        return one
    kind = sotdd.ClassStatistics if name == "class statistics" else sotdd.SketchBuilder
    one = kind.load(path)
    repr(one)
    if name == "class statistics" or one.passes == 1:  # two copies of a second pass are more than the first saw
        one.merge(kind.load(path))
    if name == "sketch builder":
        return one.finish()
    one.terms()
    return one


numbers = st.sampled_from([0, -1, 1, 2, 7, 2**31, 2**63 - 1, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308, 1e-308])
odd = st.one_of(
    numbers, st.none(), st.booleans(), st.just(""), st.just("x"), st.just([]), st.just({}), st.just([[1, 2]])
)
changes = st.tuples(
    st.sampled_from(["drop", "odd", "inner", "dtype", "cut", "grow", "flat", "value", "swap"]),
    st.integers(0, 50),
    st.integers(0, 10**6),
    odd,
    st.sampled_from([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 255.0]),
)


def changed(header, arrays, change):
    """A change to a header or to an array, by where it is made."""
    what, which, where, value, number = change
    header, arrays = json.loads(json.dumps(header)), {name: array.copy() for name, array in arrays.items()}
    if what in ("drop", "odd", "inner"):
        target = header
        if what == "inner":
            inner = [part for part in header.values() if isinstance(part, dict) and part] or [header]
            target = inner[which % len(inner)]
        key = sorted(target)[which % len(target)]
        if what == "drop":
            del target[key]
        else:
            target[key] = value
        return header, arrays
    name = sorted(arrays)[which % len(arrays)]
    array = arrays[name]
    if what == "dtype":
        arrays[name] = array.astype([np.float32, np.float64, np.int64, np.uint16, np.int32, np.uint8][where % 6])
    elif what == "cut":
        arrays[name] = array[: where % (len(array) + 1)]
    elif what == "grow":
        arrays[name] = np.concatenate([array, array])
    elif what == "flat":
        arrays[name] = array.reshape(-1)
    elif what == "swap":
        other = sorted(arrays)[where % len(arrays)]
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif array.size:
        array.reshape(-1)[where % array.size] = np.array(number).astype(array.dtype)
    return header, arrays


@settings(
    max_examples=int(os.environ.get("SOTDD_FUZZ", "150")),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(kind=st.sampled_from(KINDS), several=st.lists(changes, min_size=1, max_size=3))
def test_a_crafted_file_gives_a_result_or_one_line(contents, tmp_path, kind, several):
    name, header, arrays = contents[kind]
    for change in several:
        if arrays and header:
            with np.errstate(all="ignore"):
                header, arrays = changed(header, arrays, change)
    try:
        content = packed(name, header, arrays)
    except (TypeError, ValueError, OverflowError):  # JSON has no such value: nothing was written
        return
    path = tmp_path / "crafted.sotdd"
    path.write_bytes(content)
    try:
        with np.errstate(all="ignore"):
            used(name, path)
    except sotdd.SotddError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017  # a result is as good


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_not_changed_can_be_used(contents, tmp_path, kind):
    name, header, arrays = contents[kind]
    (tmp_path / "whole.sotdd").write_bytes(packed(name, header, arrays))
    twice = 2 if kind in ("class statistics", "sketch builder", "quantile builder") else 1  # merged with itself
    assert used(name, tmp_path / "whole.sotdd").n_points == 90 * twice


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("sketch", lambda _, a: a.update(quantiles=a["quantiles"][:1].copy()), "'quantiles' has the shape"),
        ("sketch", lambda _, a: a.update(quantiles=a["quantiles"][:, ::-1].copy()), "not sorted"),
        ("sketch", lambda _, a: a["quantiles"].__setitem__((0, 0), np.nan), "NaN or infinity"),
        ("sketch", lambda _, a: a["counts"].__setitem__(0, -5), "negative numbers"),
        ("sketch", lambda _, a: a["counts"].__setitem__(slice(None), 0), "no points"),
        ("sketch", lambda _, a: a["lost"].__setitem__((0, 1), 1e300), "beyond all projected values"),
        ("sketch", lambda _, a: a["halves"].__setitem__((0, 1), 1e300), "beyond all projected values"),
        ("sketch", lambda h, _: h.update(classes=[0, 0, 1]), "a label twice"),
        ("sketch", lambda h, _: h.update(classes=[[0], 1, 2]), "no labels"),
        ("sketch", lambda h, _: h.update(remarks=[5]), "no texts"),
        ("sketch", lambda h, _: h["recipe"].update(columns=["a"]), "one for each feature"),
        ("sketch", lambda h, _: h.update(scale=-1.0), "scale"),
        ("sketch", lambda _, a: a["counts"].__setitem__(0, 2**62 + 2**61), "more than there can be"),
        ("sketch", lambda _, a: a["lengths"].__setitem__(-1, 1.0), "fewer dimensions"),
        ("sketch", lambda h, _: h.update(exact=True), "every value"),
        ("sketch", lambda h, _: h.pop("name"), "'name' is missing"),
        ("half sketch", lambda _, a: a["quantiles step"].__setitem__(0, 1e300), "leave float32"),
        ("sketch builder", lambda _, a: a["counted low"].__setitem__((0, 0), np.nan), "'counted' are missing"),
        ("sketch builder", lambda _, a: a["counted high"].__setitem__((0, 0), -1e9), "the wrong way round"),
        ("sketch builder", lambda _, a: a["counted counts"].__setitem__((0, 0, -1), 1), "do not fit their ranges"),
        ("sketch builder", lambda h, _: h["seen"].update(counts=[1, 2, 3]), "not what it has seen"),
        ("sketch builder", lambda h, _: h["dealt"].pop(), "'dealt counts' has the shape"),
        ("sketch builder", lambda h, _: h["dealt"][0].__setitem__(1, 0), "do not fit"),
        ("sketch builder", lambda h, _: h["counted"].__setitem__(0, h["counted"][1]), "a group twice"),
        ("sketch builder", lambda h, _: h["counted"].__setitem__(0, 5), "no groups"),
        ("sketch window", lambda h, _: h.update(names=["a", "a"]), "one name"),
        ("drift reference", lambda _, a: a["codes"].__setitem__(0, 7), "of classes that it does not have"),
        ("drift reference", lambda _, a: a["codes"].__setitem__(0, -1), "of classes that it does not have"),
        ("drift reference", lambda _, a: a["rows"].__setitem__((0, 0), 1e30), "farther than any reference keeps"),
        ("drift reference", lambda _, a: a["rows"].__setitem__((0, 0), np.nan), "NaN or infinity"),
        ("drift reference", lambda _, a: a.update(rows=a["rows"][:, :9].copy()), "'rows' has the shape"),
        ("drift reference", lambda _, a: a.pop("label rows"), "no array 'label rows'"),
        ("drift reference", lambda _, a: a["commonest"].__setitem__(0, 91), "are not counts of its rows"),
        ("drift reference", lambda h, _: h.update(label_names="x"), "'label_names' are 'x'"),
        ("drift reference", lambda h, _: h.update(seed="-1"), "'seed' is no whole number"),
        ("drift reference", lambda h, _: h.update(p=0.5), "p is 0.5"),
        ("drift reference", lambda h, _: h["reading"]["settings"].update(encoder="m"), "in a way that no reference"),
        ("drift reference", lambda h, _: h["reading"]["settings"].update(label={"a": 1}), "in a way that no reference"),
        ("drift reference", lambda _, a: a.update(edges=np.array([1.0, 0.0])), "'edges' do not ascend"),
        ("drift reference with a sketch", lambda _, a: a.update(sketch=a["sketch"][:99].copy()), "not a whole sketch"),
        ("class statistics", lambda _, a: a.pop("seen sums"), "do not fit what is kept of them"),
        ("class statistics", lambda h, _: h["seen"].update(counts=[90]), "one for each class"),
        ("class statistics", lambda h, _: h["seen"].update(counts=[0, 1, 2]), "do not fit what is kept of them"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(contents, tmp_path, kind, change, said):
    name, header, arrays = contents[kind]
    header, arrays = json.loads(json.dumps(header)), {key: array.copy() for key, array in arrays.items()}
    change(header, arrays)
    (tmp_path / "crafted.sotdd").write_bytes(packed(name, header, arrays))
    with pytest.raises(sotdd.SotddError, match=said):
        used(name, tmp_path / "crafted.sotdd")
