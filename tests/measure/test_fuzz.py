"""Odd inputs, drawn at random: every outcome is a result, or one line that says what to do.

Warnings are errors here, so a call that warns fails too. ``SOTDD_FUZZ=5000`` draws so many of each kind.
"""

import faulthandler
import math
import os
import sys
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import sotdd

EXAMPLES = int(os.environ.get("SOTDD_FUZZ", "60"))
STUCK = 120  # seconds for one example that takes milliseconds

fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="SOTDD_FUZZ" not in os.environ,  # the same ones each time, unless others are asked for
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


def outcome(call, *arguments, **options):
    """The result, or None where it was refused in one line; anything else is raised."""
    faulthandler.dump_traceback_later(STUCK, exit=True, file=sys.__stderr__)
    try:
        return call(*arguments, **options)
    except sotdd.SotddError as error:
        if not str(error).strip() or "\n" in str(error):
            raise AssertionError(f"refused, but not in one line: {str(error)!r}") from error
        return None
    finally:
        faulthandler.cancel_dump_traceback_later()


# ------------------------------------------------------------------ what is drawn

numbers = st.one_of(
    st.integers(-3, 12),
    st.sampled_from(
        [10**18, 2**63, -(2**63), 10**30, 0.0, -0.0, 0.5, 1.5, 1e-300, 1e300, math.nan, math.inf, -math.inf]
    ),
    st.floats(),
)
odd = st.one_of(
    numbers,
    st.none(),
    st.booleans(),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.sampled_from([
        (), [], {}, set(), object(), len, 1j, Fraction(1, 3), datetime(2020, 1, 1), np.float32(2), np.int8(3),
        np.array(4), np.array([1, 2]), np.array("x"), np.array(None), np.nan, [1, 2], [[1]], [None], "auto", "pooled",
        "quantiles", "moments", "cpu", "cuda", "cuda:99", "plain", "controlled", Path(), int, sotdd,
    ]),
)  # fmt: skip

dtypes = st.one_of(
    hnp.boolean_dtypes(), hnp.integer_dtypes(), hnp.floating_dtypes(endianness="?"), hnp.complex_number_dtypes(),
    hnp.datetime64_dtypes(), hnp.unicode_string_dtypes(max_len=3), st.just(np.dtype(object)),
)  # fmt: skip
shapes = st.tuples(st.integers(1, 6), st.just(2))
plain_arrays = st.one_of(
    hnp.arrays(np.float64, shapes, elements=st.floats(-9, 9, width=32)),
    hnp.arrays(np.float64, shapes, elements=st.floats(allow_nan=False, allow_infinity=False)),
    hnp.arrays(st.sampled_from([np.float16, np.float32, np.int64, np.uint8, np.bool_]), shapes),
)
any_arrays = dtypes.flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
        **({"elements": odd} if dtype.hasobject else {}),
    )
)
labels = st.one_of(
    st.lists(st.sampled_from([0, 1, "a", "b", None, 2.5, True, math.nan, (1, 2), b"x", []]), max_size=6),
    hnp.arrays(np.int64, st.integers(0, 6), elements=st.integers(-2, 2)),
    any_arrays,
    odd,
)
datasets = st.one_of(
    plain_arrays,
    plain_arrays.map(lambda x: (x, list("abcabc")[: len(x)])),
    st.tuples(plain_arrays, labels),
    st.tuples(any_arrays, labels),
    any_arrays,
    odd,
    st.lists(st.lists(numbers, max_size=3), max_size=4),
    st.lists(st.tuples(odd, odd), max_size=3),
    st.dictionaries(st.text(max_size=2), odd, max_size=2),
)  # fmt: skip
good = plain_arrays.flatmap(lambda x: hnp.arrays(np.int64, len(x), elements=st.integers(0, 2)).map(lambda y: (x, y)))
few = st.integers(1, 6)


# Values that there are, so that odd ones meet calls that get somewhere.
KNOWN = {
    "n_projections": [1, 2, 33], "n_moments": [1, 3], "moments": [(1.0, 2.5), sotdd.UniformOrders(4)],
    "label_law": ["moments", "quantiles", sotdd.ClassQuantiles(), None], "label": [0, "y", None],
    "directions": [sotdd.Orthogonal(), sotdd.Sphere(), sotdd.Hadamard()], "shared_directions": [True, False],
    "scale": ["pooled", "features", "auto", None], "seed": [0, 7], "p": [1, 1.5, 2, 3, 50],
    "device": ["cpu", "auto"], "precision": ["float32", "tf32"], "estimator": ["plain", "controlled", "auto"],
    "rel_tol": [0.5], "noise_floor": [True, 2], "n_permutations": [1, 9], "statistic": ["distance", "balanced"],
    "method": ["otdd", "otdd-gaussian", "wte", "chsw", "frechet", "sw", "mmd", "sotdd"],
    "max_points": [1, 2, 3], "tilt": [True], "n_quantiles": [None, 1, 2], "name": ["é"], "bins": [2],
    "drop_missing": [True], "broken": ["skip"],
}  # fmt: skip


def settings_of(*names, **fixed):
    """At most two settings, odd or not, and few projections, so that nothing takes long."""
    one = st.sampled_from(names).flatmap(
        lambda name: st.tuples(st.just(name), mixed(st.sampled_from(KNOWN.get(name, [None])), odd))
    )
    return st.builds(
        lambda usual, chosen: {**usual, **dict(chosen)}, st.fixed_dictionaries(fixed), st.lists(one, max_size=2)
    )


def mixed(usual, strange):
    """Three times in four the usual: of two sources and their settings a good share is then good."""
    return st.integers(0, 3).flatmap(lambda dice: usual if dice else strange)


DRAWING = ("n_projections", "n_moments", "moments", "label_law", "directions", "shared_directions", "scale", "seed")
MEASURING = ("p", "projections", "device", "precision")
odd_sources = mixed(good, datasets)

# ------------------------------------------------------------------ calls


@fuzz
@given(
    odd_sources,
    odd_sources,
    settings_of(*DRAWING, *MEASURING, "estimator", "rel_tol", "max_projections", "noise_floor", n_projections=few),
)
def test_distance(a, b, chosen):
    if chosen.get("rel_tol") is not None:
        chosen.setdefault("max_projections", 64)
    result = outcome(sotdd.distance, a, b, **chosen)
    assert result is None or result.value >= 0
    assert result is None or repr(result)


@fuzz
@given(
    mixed(
        st.lists(odd_sources, min_size=2, max_size=3),
        st.one_of(st.lists(datasets, max_size=3), st.dictionaries(st.text(max_size=2), odd_sources, max_size=3), odd),
    ),
    settings_of(
        *DRAWING, *MEASURING, "method", "estimator", "noise_floor", "max_points", "nonsense", n_projections=few
    ),
)
def test_pairwise(sources, chosen):
    result = outcome(sotdd.pairwise, sources, **chosen)
    assert result is None or (len(result) == len(sources) and repr(result))


@fuzz
@given(
    odd_sources,
    odd_sources,
    settings_of(
        *DRAWING, *MEASURING, "n_permutations", "statistic", "max_points", n_permutations=few, n_projections=few
    ),
)
def test_two_sample(a, b, chosen):
    result = outcome(sotdd.test, a, b, **chosen)
    assert result is None or 0 < result.p_value <= 1


@fuzz
@given(odd_sources, odd_sources, settings_of(*DRAWING, *MEASURING, n_projections=few))
def test_explain(a, b, chosen):
    result = outcome(sotdd.explain, a, b, **chosen)
    assert result is None or repr(result)


@fuzz
@given(
    mixed(st.lists(odd_sources, min_size=1, max_size=2), odd), settings_of(*DRAWING, "tilt", n_projections=few),
    odd_sources, settings_of("n_quantiles", "name", "device", "precision"), mixed(st.just(2), odd),
)  # fmt: skip
def test_projections_and_sketches(sources, drawing, data, chosen, p):
    projections = outcome(sotdd.Projections.fit, sources, **drawing)
    if projections is None:
        projections, sources = sotdd.Projections.fit([np.eye(2)], n_projections=3), [np.eye(2)]
    one, other = outcome(sotdd.sketch, sources[0], projections), outcome(sotdd.sketch, data, projections, **chosen)
    if one is not None and other is not None:
        result = outcome(one.distance, other, p)
        assert result is None or result.value >= 0


@fuzz
@given(
    odd_sources,
    settings_of(
        "label", "features", "image_size", "image_mode", "transform", "encoder", "encoder_name", "bins", "drop_missing",
        "max_points", "seed", "broken", "split", "name",
    ),
)  # fmt: skip
def test_open_dataset(source, chosen):
    data = outcome(sotdd.open_dataset, source, **chosen)
    if data is not None:
        assert sum(len(data.rows(block)) for block in data.blocks()) == data.n_points == len(data.codes)
        assert repr(data)


def test_features_far_out_of_range_beside_others_that_are_not():
    """Three that were found by drawing: all warned of overflow."""
    assert outcome(sotdd.explain, [[1.8e302, 0.0]], [[1.8e302, 0.0]], n_projections=1) is not None
    far, near = np.full((1, 2), -9.5e153), np.zeros((1, 2), np.float16)
    assert outcome(sotdd.test, far, near, n_permutations=1, n_projections=1) is not None
    apart = np.array([[1e100, -1e100], [0, 1e100]]), [0, 1]
    assert outcome(sotdd.distance, apart, np.zeros((2, 2)), n_projections=4, scale=None) is None


# ------------------------------------------------------------------ the command line

WORDS = [
    "distance", "matrix", "rank", "explain", "test", "check", "sketch", "catalog", "add", "search", "list", "show",
    "remove", "rename", "demo", "a.npz", "b.npz", "odd.npz", "odd.csv", "odd.npy", "odd.parquet", "odd.sotdd",
    "a.sotdd", "folder", "kept", "missing.npz", "a.npz::", "a.npz::label=", "a.npz::features=X,label=y",
    "odd.csv::label=x",
    "--n-projections", "--seed", "--p", "--label", "--features", "--label-law", "--estimator", "--noise-floor",
    "--method", "--max-samples", "--device", "--csv", "--json", "--quiet", "--n-permutations", "--max-points", "--top",
    "--like", "--n-quantiles", "--half", "-o", "out.sotdd", "--report", "out.html", "--fail-above", "--p-value", "-k",
    "--", "-", "", "0", "1", "3", "-1", "nan", "inf", "1e400", "99999999999999999999", "cpu", "otdd", "frechet",
    "plain", "quantiles", "X", "y", "x", "--help", "--version", "[bold]", "\x00", "é", "../", "/",
]  # fmt: skip
lines = st.one_of(
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=5)), max_size=7),
    st.builds(
        lambda command, sources, rest: [command, *sources, "--n-projections", "3", *rest],
        st.sampled_from(["distance", "matrix", "rank", "explain", "test", "check", "sketch"]),
        st.lists(st.sampled_from(WORDS[15:31]), min_size=1, max_size=2),
        st.lists(st.sampled_from(WORDS[31:]), max_size=4),
    ),
)
contents = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet='x,y;"\n1 0.é\t-eNa', max_size=60).map(str.encode),
    st.sampled_from([b"PK\x03\x04", b"\x93NUMPY", b"PAR1", b"x,y\n1,a\n2,b\n", b"\xff\xfe", b"x,x\n1,2\n", b"{}"]),
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in "ab":
        np.savez(f"{name}.npz", X=rng.normal(size=(9, 2)), y=np.arange(9) % 2)
    projections = sotdd.Projections.fit(["a.npz"], n_projections=3)
    sotdd.sketch("a.npz", projections).save("a.sotdd")
    Path("folder").mkdir()
    return tmp_path


@fuzz
@given(lines, contents)
def test_the_command_line(files, run, arguments, content):
    for kind in ("npz", "csv", "npy", "parquet", "sotdd"):
        Path(f"odd.{kind}").write_bytes(content)
    faulthandler.dump_traceback_later(STUCK, exit=True, file=sys.__stderr__)
    try:
        code, _, said = run(*arguments)
    finally:
        faulthandler.cancel_dump_traceback_later()
    assert code in {0, 1, 2}, (arguments, said)
    assert "Traceback" not in said
