"""Files: what comes back, what is refused, and what anyone may have written with a checksum that matches."""

import copy
import json
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load, save_file

import sotdd
from laws import Circles
from sotdd.sketches.catalog.search import CatalogRecipe
from sotdd.sketches.codec import pack, read_header


@pytest.mark.parametrize("features", [6, 200])
def test_a_file_brings_everything_back(tmp_path, rng, features):
    a, b = ((rng.normal(size=(500, features)) * np.linspace(2, 0.1, features) + c, np.arange(500) % 3) for c in (0, 1))
    projections = sotdd.Projections.fit([a, b], n_projections=256, seed=3)
    made, other = (sotdd.sketch(data, projections, name="stored") for data in (a, b))
    made.save(tmp_path / "a.sotdd")
    assert os.listdir(tmp_path) == ["a.sotdd"]
    found = sotdd.Sketch.load(tmp_path / "a.sotdd")
    assert (found.name, found.classes, found.counts.tolist()) == ("stored", made.classes, made.counts.tolist())
    assert found.fingerprint == made.fingerprint == found.projections.fingerprint
    was, now, exact = made.distance(other), found.distance(other), sotdd.distance(a, b, projections=projections)
    assert now.estimator == was.estimator == "controlled (labels and directions)"
    assert now.value == pytest.approx(was.value, rel=1e-7)
    assert abs(now.value - exact.value) <= now.sketch_error
    # Other data can be seen through what the file describes, to the last bit.
    np.testing.assert_array_equal(found.projections.tilt.basis, projections.tilt.basis)
    np.testing.assert_array_equal(sotdd.sketch(b, found.projections).quantiles, other.quantiles)
    for name in ("quantiles", "class_terms", "halves", "lost"):
        np.testing.assert_array_equal(getattr(found, name), getattr(made, name), err_msg=name)
    assert now.sketch_error == was.sketch_error
    with safe_open(tmp_path / "a.sotdd", framework="np") as opened:  # as others read it
        np.testing.assert_array_equal(opened.get_tensor("quantiles"), made.quantiles)
        assert json.loads(opened.metadata()["sotdd"])["recipe"]["seed"] == 3


def test_labels_that_json_cannot_hold_become_text(tmp_path, rng):
    x = rng.normal(size=(4, 2))
    y = [("a", 1), ("a", 1), ("b", 2), ("b", 2)]
    sotdd.sketch((x, y), sotdd.Projections.fit([x], n_projections=64)).save(tmp_path / "a")
    assert sotdd.Sketch.load(tmp_path / "a").classes == ("('a', 1)", "('b', 2)")


def test_own_laws_come_back_without_projections_to_draw_from(tmp_path, pair):
    own = sotdd.Projections.fit(list(pair), n_projections=64, directions=Circles())
    a, b = (sotdd.sketch(data, own) for data in pair)
    a.save(tmp_path / "a")
    found = sotdd.Sketch.load(tmp_path / "a")
    assert found.projections is None
    assert found.distance(b).value == a.distance(b).value
    with pytest.raises(sotdd.SotddError, match="cannot be drawn again"):
        sotdd.distance(found, pair[1])
    sotdd.SketchBuilder(own).save(tmp_path / "b")
    with pytest.raises(sotdd.SotddError, match="projections="):
        sotdd.SketchBuilder.load(tmp_path / "b")
    assert sotdd.SketchBuilder.load(tmp_path / "b", own).n_points == 0


def test_damage_is_found(tmp_path, pair, projections, rng):
    path = tmp_path / "a"
    sotdd.sketch(pair[0], projections, n_quantiles=4).save(path)
    whole = path.read_bytes()
    save_file({"x": np.zeros(3)}, tmp_path / "other")
    with pytest.raises(sotdd.SotddError, match="not a whole sketch"):
        sotdd.Sketch.load(tmp_path / "other")
    for cut in [0, 1, 7, 8, 100, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:cut])
        with pytest.raises(sotdd.SotddError, match="not a whole sketch"):
            sotdd.Sketch.load(path)
    for place in rng.integers(len(whole), size=100):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(sotdd.SotddError, match=r"not a whole sketch|checksum|version"):
            sotdd.Sketch.load(path)


# ------------------------------------------------------------------ crafted files

KINDS = (
    "sketch", "all values", "sketch builder", "quantile builder", "sketch window", "drift reference",
    "drift reference with a sketch", "catalog",
)  # fmt: skip
VALUES = "values values"  # the histograms of a builder


def written(kind):
    """What is written to a file of each kind."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(90, 3)), rng.integers(3, size=90)
    own = {"label_law": "quantiles", "scale": None} if kind == "quantile builder" else {}
    projections = sotdd.Projections.fit([(x, y)], n_projections=5, **own)
    if kind in ("sketch", "all values"):
        return sotdd.sketch((x, y), projections, n_quantiles=None if kind == "all values" else 8)
    if kind.startswith("drift reference"):
        return sotdd.DriftReference.fit((x, y), n_projections=5, with_sketch=kind != "drift reference")
    if kind == "sketch window":
        return sotdd.SketchWindow(projections).add("a", x[:40], y[:40]).add("b", x[40:], y[40:])
    return sotdd.SketchBuilder(projections).add(x, y)


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Of each kind: its name in the header, the header and the arrays."""
    path, found = tmp_path_factory.mktemp("crafted") / "file", {}
    for kind in KINDS:
        if kind == "catalog":
            path.write_bytes(CatalogRecipe.of(written("sketch")).pack())
        else:
            written(kind).save(path)
        header = read_header(path.read_bytes())
        header.pop("checksum"), header.pop("format")
        found[kind] = header.pop("kind"), header, load(path.read_bytes())
    return found


def used(name, path):
    """Do with a file what parties do: open it, look at it, merge it, compare it."""
    if name == "catalog":
        one = written("sketch")
        CatalogRecipe.unpack(path.read_bytes()).entry_vector(one)
        return one
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
    one = sotdd.SketchBuilder.load(path)
    repr(one)
    return one.merge(sotdd.SketchBuilder.load(path)).finish()


numbers = st.sampled_from([0, -1, 1, 2, 7, 2**31, 2**63 - 1, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308, 1e-308])
odd = st.one_of(
    numbers, st.none(), st.booleans(), st.just(""), st.just("x"), st.just([]), st.just({}), st.just([[1, 2]])
)
array_changes = [
    *(lambda array, kind=kind: array.astype(kind) for kind in ("f4", "f8", "i8", "u2", "i4", "u1")),
    lambda array: array[:0],
    lambda array: array[:-1],
    lambda array: np.concatenate([array, array]),
    lambda array: array.reshape(-1),
]


def make_change(draw, header, arrays):
    """Take away or replace something in the header or in a part of it, or make an array another."""
    parts = [part for part in (header, *header.values()) if isinstance(part, dict) and part]
    if parts and draw(st.booleans()):
        target = draw(st.sampled_from(parts))
        key = draw(st.sampled_from(sorted(target)))
        if draw(st.booleans()):
            del target[key]
        else:
            target[key] = draw(odd)
        return
    name, other = (draw(st.sampled_from(sorted(arrays))) for _ in range(2))
    array = arrays[name]
    change = draw(st.sampled_from(["swap", "value", *array_changes]))
    if change == "swap":
        arrays[name], arrays[other] = arrays[other], array
    elif change != "value":
        arrays[name] = change(array)
    elif array.size:
        number = draw(st.sampled_from([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 255.0]))
        array.reshape(-1)[draw(st.integers(0, array.size - 1))] = np.array(number).astype(array.dtype)


@settings(
    max_examples=int(os.environ.get("SOTDD_FUZZ", "150")),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(kind=st.sampled_from(KINDS), n_changes=st.integers(1, 3), data=st.data())
def test_a_crafted_file_gives_a_result_or_one_line(contents, tmp_path, kind, n_changes, data):
    name, header, arrays = copy.deepcopy(contents[kind])
    with np.errstate(all="ignore"):
        for _ in range(n_changes):
            make_change(data.draw, header, arrays)
    try:
        content = pack(name, header, arrays)
    except (TypeError, ValueError, OverflowError):  # JSON has no such value: nothing was written
        return
    path = tmp_path / "crafted.sotdd"
    path.write_bytes(content)
    try:
        with np.errstate(all="ignore"):
            used(name, path)
    except sotdd.SotddError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017  # a result is as good


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_numbers_of_a_header_are_finite(contents, tmp_path, number):
    name, header, arrays = contents["sketch"]
    content = pack(name, {**header, "scale": 0.123456789}, arrays).replace(b"0.123456789", number.ljust(11).encode())
    (tmp_path / "crafted.sotdd").write_bytes(content)
    with pytest.raises(sotdd.SotddError, match=f"has {number} for a number"):
        sotdd.Sketch.load(tmp_path / "crafted.sotdd")


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_not_changed_can_be_used(contents, tmp_path, kind):
    name, header, arrays = contents[kind]
    (tmp_path / "whole.sotdd").write_bytes(pack(name, header, arrays))
    twice = 2 if kind in ("sketch builder", "quantile builder") else 1  # merged with itself
    assert used(name, tmp_path / "whole.sotdd").n_points == 90 * twice


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("sketch", lambda _, a: a.update(quantiles=a["quantiles"][:1].copy()), "'quantiles' has the shape"),
        ("sketch", lambda _, a: a.update(quantiles=a["quantiles"][:, ::-1].copy()), "not sorted"),
        ("sketch", lambda _, a: a["quantiles"].__setitem__((0, 0), np.nan), "NaN or infinity"),
        ("sketch", lambda _, a: a["counts"].__setitem__(0, -5), "negative numbers"),
        ("sketch", lambda _, a: a["counts"].__setitem__(slice(None), 0), "no points"),
        ("sketch", lambda _, a: a["lost"].__setitem__((0, 1), 1e300), "holds numbers from"),
        ("sketch", lambda h, _: h.update(classes=[0, 0, 1]), "a label twice"),
        ("sketch", lambda h, _: h.update(classes=[[0], 1, 2]), "no labels"),
        ("sketch", lambda h, _: h.update(remarks=[{"kind": "x", "about": "", "facts": {}}]), "not remarks"),
        ("sketch", lambda h, _: h.update(remarks=[{"kind": "one point", "about": "", "facts": {}}]), "not remarks"),
        ("sketch", lambda h, _: h["recipe"].update(columns=["a"]), "one for each feature"),
        ("sketch", lambda h, _: h.update(scale=-1.0), "scale"),
        ("sketch", lambda _, a: a["counts"].__setitem__(0, 2**62 + 2**61), "more than there can be"),
        ("sketch", lambda _, a: a["lengths"].__setitem__(-1, 1.0), "fewer dimensions"),
        ("sketch", lambda h, _: h.update(exact=True), "every value"),
        ("sketch", lambda h, _: h.pop("name"), "'name' is missing"),
        ("sketch builder", lambda _, a: a[f"{VALUES} low"].__setitem__((0, 0), np.nan), "NaN or infinity"),
        ("sketch builder", lambda _, a: a[f"{VALUES} high"].__setitem__((0, 0), -1e9), "the wrong way round"),
        ("sketch builder", lambda _, a: a[f"{VALUES} counts"].__setitem__((0, 0, -1), 1), "do not fit their ranges"),
        ("sketch builder", lambda h, _: h.update(counts=[1, 2, 3]), "not the points that it has seen"),
        ("sketch builder", lambda h, _: h["kept"].remove("values"), "does not have its 'values'"),
        ("sketch window", lambda h, _: h.update(names=["a", "a"]), "one name"),
        ("drift reference", lambda _, a: a["codes"].__setitem__(0, 7), "of classes that it does not have"),
        ("drift reference", lambda _, a: a["rows"].__setitem__((0, 0), 1e30), "farther than any reference keeps"),
        ("drift reference", lambda _, a: a.pop("rows"), "no array 'rows'"),
        ("drift reference", lambda _, a: a["column_codes"].__setitem__((0, 0), 999), "does not fit its codes"),
        ("drift reference", lambda _, a: a["column_steps"][::-1].sort(), "does not fit its codes"),
        ("drift reference", lambda h, _: h["columns_kept"][0].update(commonest=999), "does not fit its codes"),
        ("drift reference", lambda h, _: h.update(label_names="x"), "'label_names' are 'x'"),
        ("drift reference", lambda h, _: h.update(seed="-1"), "'seed' is no whole number"),
        ("drift reference", lambda h, _: h.update(p=0.5), "p is 0.5"),
        ("drift reference", lambda h, _: h.update(p="x"), "'p' is no number"),
        ("drift reference", lambda h, _: h["reading"]["settings"].update(encoder="m"), "in a way that no reference"),
        ("drift reference", lambda _, a: a.update(edges=np.array([1.0, 0.0])), "'edges' do not ascend"),
        ("drift reference with a sketch", lambda _, a: a.update(sketch=a["sketch"][:99].copy()), "not a whole sketch"),
        ("sketch builder", lambda _, a: a.pop("terms sums"), "no array 'terms sums'"),
        ("sketch builder", lambda h, _: h.update(counts=[0, 1, 2]), "one for each class"),
        ("catalog", lambda _, a: a.update(sums=a["sums"][:-1].copy()), "'sums' has the shape"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(contents, tmp_path, kind, change, said):
    name, header, arrays = copy.deepcopy(contents[kind])
    change(header, arrays)
    (tmp_path / "crafted.sotdd").write_bytes(pack(name, header, arrays))
    with pytest.raises(sotdd.SotddError, match=said):
        used(name, tmp_path / "crafted.sotdd")
