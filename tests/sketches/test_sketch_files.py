"""Files: what comes back, what is refused, and what anyone may have written with a checksum that matches."""

import copy
import json
import os
import tracemalloc

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import sotdd
from attack.files import OWN, read_content, run_file, use
from laws import Circles
from sotdd.sketches.codec import pack


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
    with pytest.raises(sotdd.SotddError, match=r"cannot be drawn again.* pass projections="):
        sotdd.distance(found, pair[1])
    for source in (found, tmp_path / "a.sotdd"):  # which is what to do
        found.save(tmp_path / "a.sotdd")
        assert sotdd.distance(source, pair[1], projections=own).value == found.distance(b).value
    other = sotdd.Projections.fit(list(pair), n_projections=64, directions=Circles(3.0))
    with pytest.raises(sotdd.SotddError, match="different projections"):
        sotdd.distance(found, pair[1], projections=other)
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
    with pytest.raises(sotdd.SotddError, match="it is a device or a pipe"):
        sotdd.Sketch.load(os.devnull)
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

VALUES = "values values"  # the histograms of a builder


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Of each kind: its name in the header, the header and the arrays."""
    folder = tmp_path_factory.mktemp("crafted")
    return {kind: read_content(kind, folder) for kind in OWN}


@pytest.mark.parametrize("part", range(2))
def test_a_crafted_file_gives_a_result_or_one_line(tmp_path, part):
    found = {number: run_file(number, tmp_path, OWN) for number in range(part, 400, 2)}
    assert {said for _, said in found.values()} >= {"result", "refused"}
    assert {number: said for number, said in found.items() if said[1] not in ("result", "refused")} == {}


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_numbers_of_a_header_are_finite(contents, tmp_path, number):
    name, header, arrays = contents["sketch"]
    content = pack(name, {**header, "scale": 0.123456789}, arrays).replace(b"0.123456789", number.ljust(11).encode())
    (tmp_path / "crafted.sotdd").write_bytes(content)
    with pytest.raises(sotdd.SotddError, match=f"has {number} for a number"):
        sotdd.Sketch.load(tmp_path / "crafted.sotdd")


def test_a_file_costs_no_more_than_its_size(contents, tmp_path):
    name, header, arrays = copy.deepcopy(contents["sketch"])
    header["recipe"] |= {"n_features": 4_000_000, "directions": {"law": "sphere"}}
    header["recipe"]["label"] |= {"n_moments": 10**6}
    for array in ("basis", "stretch", "centre", "values", "lengths", "mean"):
        del arrays[array]
    (tmp_path / "large.sotdd").write_bytes(pack(name, header, arrays))
    once = sotdd.Sketch.load(tmp_path / "large.sotdd")
    sotdd.distance(once, once)  # what is imported and compiled on the first call
    tracemalloc.start()
    one = sotdd.Sketch.load(tmp_path / "large.sotdd")
    sotdd.distance(one, one)
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


@pytest.mark.parametrize("kind", OWN)
def test_what_was_not_changed_can_be_used(contents, tmp_path, kind):
    name, header, arrays = contents[kind]
    (tmp_path / "whole.sotdd").write_bytes(pack(name, header, arrays))
    twice = 2 if kind == "sketch builder" else 1  # merged with itself
    assert use(kind, tmp_path / "whole.sotdd").n_points == 90 * twice


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
        ("drift reference", lambda _, a: a["codes"].__setitem__(0, 7), "of classes that it does not have"),
        ("drift reference", lambda _, a: a["numbers"].__setitem__((0, 0), np.nan), "holds NaN or infinity"),
        ("drift reference", lambda _, a: a.pop("numbers"), "no array 'numbers'"),
        ("drift reference", lambda _, a: a.update(numbers=a["numbers"][1:].copy()), "'numbers' has the shape"),
        ("drift reference", lambda _, a: a.update(numbers=a["numbers"][:, 1:].copy()), "other features than its proj"),
        ("drift reference", lambda _, a: a.update(numbers=a["numbers"].astype(int)), "'numbers' has the type int64"),
        ("drift reference", lambda h, _: h["data"]["origin"].update(gaps={"x": "y"}), "no array 'y'"),
        ("drift reference", lambda h, _: h["data"]["origin"].update(groups="codes"), "'codes' has the type int32"),
        ("drift reference", lambda h, a: h["data"]["origin"].update(
            target={"values": "y", "bins": 2**60}) or a.update(y=np.zeros(90)), "cut otherwise"),
        ("drift reference", lambda h, _: h["data"]["origin"]["categories"].update(
            x={"values": ["u"], "codes": "codes", "most": 9, "flag": None, "number": None}), "does not fit its codes"),
        ("drift reference", lambda h, _: h["data"]["origin"]["left_out"].update(x={"why": "magic"}), "'why' is 'magi"),
        ("drift reference", lambda h, _: h["plain"].update(label_names="x"), "'label_names' is 'x'"),
        ("drift reference", lambda h, _: h["plain"].update(seed=-1), "seed is -1"),
        ("drift reference", lambda h, _: h["plain"].update(p=0.5), "p is 0.5"),
        ("drift reference", lambda h, _: h["plain"].update(p="x"), "'p' is missing or not of type float"),
        ("drift reference", lambda h, _: h["settings"].update(encoder="m"), "in a way that no reference"),
        ("drift reference with a sketch", lambda _, a: a.update(sketch=a["sketch"][:99].copy()), "not a whole sketch"),
        ("sketch builder", lambda _, a: a.pop("terms sums"), "no array 'terms sums'"),
        ("sketch builder", lambda h, _: h.update(counts=[0, 1, 2]), "one for each class"),
        ("catalog recipe", lambda _, a: a.update(sums=a["sums"][:-1].copy()), "'sums' has the shape"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(contents, tmp_path, kind, change, said):
    name, header, arrays = copy.deepcopy(contents[kind])
    change(header, arrays)
    (tmp_path / "crafted.sotdd").write_bytes(pack(name, header, arrays))
    with pytest.raises(sotdd.SotddError, match=said):
        use(kind, tmp_path / "crafted.sotdd")
