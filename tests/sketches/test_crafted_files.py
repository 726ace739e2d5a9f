"""Files that anyone may have written, with a checksum that matches: a result or one line, never a crash."""

import json
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sotdd
from sotdd.sketches import file as sketch_file
from sotdd.sketches.file import packed

KINDS = (
    "sketch", "half sketch", "all values", "class statistics", "sketch builder", "second pass", "quantile builder",
    "private statistics", "private counts", "drift reference", "drift reference with a sketch",
)  # fmt: skip


def written(kind):
    """The content of a file of each kind, as header and arrays."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(90, 3)), rng.integers(3, size=90)
    law = "quantiles" if kind == "quantile builder" else "moments"
    projections = sotdd.Projections.fit([(x, y)], n_projections=5, label_law=law)
    if kind in ("sketch", "half sketch", "all values"):
        made = sotdd.sketch((x, y), projections, n_quantiles=None if kind == "all values" else 8)
        content = sketch_file.to_bytes(made, half=kind == "half sketch")
        return "sketch", content
    if kind.startswith("private"):
        builder = sotdd.PrivateBuilder(projections, classes=range(3), epsilon=1, delta=1e-6, seed=0).add(x[:50], y[:50])
        return kind, builder.statistics() if kind == "private statistics" else builder.release()
    if kind.startswith("drift reference"):
        own = {"shared_directions": False} if kind == "drift reference" else {"with_sketch": True}
        return "drift reference", sotdd.DriftReference.fit((x, y), n_projections=5, **own)
    statistics = sotdd.ClassStatistics(projections).add(x, y)
    if kind == "class statistics":
        made = statistics
    else:
        made = sotdd.SketchBuilder(projections, statistics if kind == "second pass" else None).add(x, y)
    return ("class statistics" if kind == "class statistics" else "sketch builder"), made


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Of each kind: its name in the header, the header and the arrays."""
    folder = tmp_path_factory.mktemp("crafted")
    found = {}
    for number, kind in enumerate(KINDS):
        name, made = written(kind)
        if not isinstance(made, bytes):
            made.save(folder / str(number))
            made = (folder / str(number)).read_bytes()
        from safetensors.numpy import load

        header = json.loads(sketch_file._metadata(made)["sotdd"])
        header.pop("checksum"), header.pop("format"), header.pop("kind")
        found[kind] = name, header, load(made)
    return found


def used(name, path):
    """Do with a file what parties do: open it, look at it, merge it, compare it."""
    if name == "sketch":
        one = sotdd.Sketch.load(path)
        repr(one)
        one.distance(one)
        one.vector(8)
        one.reduced(2)
        return one
    if name == "private statistics":
        one = sotdd.PrivateStatistics.load(path)
        repr(one)
        one.terms()
        one.edges(4)
        return one
    if name == "private counts":
        one = sotdd.PrivateCounts.load(path)
        repr(one)
        sketch = one.finish()
        sketch.distance(sketch)
        return sketch
    if name == "drift reference":
        one = sotdd.DriftReference.load(path)
        repr(one)
        batch = np.zeros((5, 3)), [0, 1, 2, 1, 0]
        one.test(batch, n_permutations=3)
        one.distance(batch)
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


numbers = st.sampled_from([0, -1, 1, 2, 7, 2**31, 2**63 - 1, -(2**63), 10**30, 0.5, -0.0, 1e308, 1e-308])
odd = st.one_of(
    numbers, st.none(), st.booleans(), st.just(""), st.just("x"), st.just([]), st.just({}), st.just([[1, 2]])
)


@st.composite
def changes(draw):
    """A change to a header or to an array, by where it is made."""
    return draw(st.sampled_from(["drop", "odd", "inner", "dtype", "cut", "grow", "flat", "value", "swap"])), draw(
        st.integers(0, 50)), draw(st.integers(0, 10**6)), draw(odd), draw(
        st.sampled_from([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 255.0]))  # fmt: skip


def changed(header, arrays, change):
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
    max_examples=int(os.environ.get("SOTDD_FUZZ", "400")),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(kind=st.sampled_from(KINDS), several=st.lists(changes(), min_size=1, max_size=3))
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
    noisy = int(np.maximum(arrays["sizes"], 0).sum()) if kind.startswith("private") else None
    assert used(name, tmp_path / "whole.sotdd").n_points == (noisy or 90 * twice)


def crafted(contents, tmp_path, kind, change):
    name, header, arrays = contents[kind]
    header, arrays = json.loads(json.dumps(header)), {key: array.copy() for key, array in arrays.items()}
    change(header, arrays)
    (tmp_path / "crafted.sotdd").write_bytes(packed(name, header, arrays))
    with pytest.raises(sotdd.SotddError) as caught:
        used(name, tmp_path / "crafted.sotdd")
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("sketch", lambda _, a: a.update(quantiles=a["quantiles"][:1].copy()), "its array 'quantiles' has the shape"),
        ("sketch", lambda _, a: a.update(quantiles=a["quantiles"][:, ::-1].copy()), "are not sorted"),
        ("sketch", lambda _, a: a["quantiles"].__setitem__((0, 0), np.nan), "holds NaN or infinity"),
        ("sketch", lambda _, a: a["counts"].__setitem__(0, -5), "holds negative numbers"),
        ("sketch", lambda _, a: a["lost"].__setitem__((0, 1), 1e300), "beyond all projected values"),
        ("sketch", lambda _, a: a["halves"].__setitem__((0, 1), 1e300), "beyond all projected values"),
        ("sketch", lambda h, _: h.update(classes=[0, 0, 1]), "hold a label twice"),
        ("sketch", lambda h, _: h.update(exact=True), "claims to keep every value"),
        ("sketch", lambda h, _: h.pop("name"), "its 'name' is no text"),
        ("sketch builder", lambda _, a: a["counted low"].__setitem__((0, 0), np.nan), "'counted low' is missing"),
        ("sketch builder", lambda _, a: a["counted high"].__setitem__((0, 0), -1e9), "too wide or the wrong way round"),
        ("sketch builder", lambda _, a: a["counted counts"].__setitem__((0, 0, -1), 1), "do not fit their ranges"),
        ("sketch builder", lambda h, _: h["seen"].update(counts=[1, 2, 3]), "is not what it has seen"),
        ("drift reference", lambda _, a: a["codes"].__setitem__(0, 7), "of classes that it does not have"),
        ("drift reference", lambda _, a: a["codes"].__setitem__(0, -1), "of classes that it does not have"),
        ("drift reference", lambda _, a: a["rows"].__setitem__((0, 0), 1e30), "farther than any reference keeps"),
        ("drift reference", lambda _, a: a["rows"].__setitem__((0, 0), np.nan), "holds NaN or infinity"),
        ("drift reference", lambda _, a: a.update(rows=a["rows"][:, :9].copy()), "its array 'rows' has the shape"),
        ("drift reference", lambda _, a: a.pop("label rows"), "it has no array 'label rows'"),
        ("drift reference", lambda _, a: a["commonest"].__setitem__(0, 91), "are not counts of its rows"),
        ("drift reference", lambda h, _: h.update(reference=2), "reads up to 1: update sotdd"),
        ("drift reference", lambda h, _: h.update(seed="-1"), "its 'seed' is no whole number"),
        ("drift reference", lambda h, _: h.update(p=0.5), "p is 0.5"),
        ("drift reference", lambda h, _: h["reading"]["settings"].update(encoder="m"), "in a way that no reference"),
        ("drift reference", lambda h, _: h["reading"]["settings"].update(label={"a": 1}), "in a way that no reference"),
        ("drift reference", lambda _, a: a.update(edges=np.array([1.0, 0.0])), "its 'edges' do not ascend"),
        ("drift reference with a sketch", lambda _, a: a.update(sketch=a["sketch"][:99].copy()), "not a whole sketch"),
        ("class statistics", lambda _, a: a.pop("seen sums"), "do not fit what is kept of them"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(contents, tmp_path, kind, change, said):
    assert said in crafted(contents, tmp_path, kind, change)
