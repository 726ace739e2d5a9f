"""Public calls with odd arguments: each line gives a plausible result or one line that refuses.

One table has the public calls, and what each of their arguments is given; the first of a pool is ordinary. Everything
is an expression of the names in this module, so that a call that went wrong is printed as a line.
"""

# ruff: noqa: F401  # the names are used by the expressions

from __future__ import annotations

import datetime
import inspect
import io
import json
import random
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy import array, eye, float32, inf, int64, nan, ones, uint8, zeros

import sotdd
import sotdd.peers
from laws import Circles, Medians

# Libraries that calls are given values of; a line that needs one that is not here is skipped. Rich draws a random
# number while it is imported, which no call is to blame for.
_OPTIONAL = {
    "pd": "pandas", "pl": "polars", "pa": "pyarrow", "torch": "torch", "pyplot": "matplotlib.pyplot", "_": "rich.style",
}  # fmt: skip
for _short, _name in _OPTIONAL.items():
    with suppress(ImportError):
        globals()[_short] = import_module(_name)

# fmt: off

# What calls are made on, and what their arguments are made of.


def points(n: int = 9, d: int = 2, seed: int = 0) -> np.ndarray:
    """Ordinary points."""
    return np.random.default_rng(seed).normal(size=(n, d))


def pair(n: int = 9, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """An ordinary dataset."""
    return points(n, 2, seed), np.random.default_rng(seed).integers(classes, size=n)


def seen_through(n_projections: int = 4, **settings: Any) -> sotdd.Projections:  # of any kind
    """Few projections."""
    return sotdd.Projections.fit([pair(20)], n_projections=n_projections, **settings)


def in_sketch(n: int = 9, seed: int = 0, **settings: Any) -> sotdd.Sketch:  # as above
    """A small sketch."""
    return sotdd.sketch(pair(n, seed=seed), seen_through(**settings), n_quantiles=8)


def built(seed: int = 0) -> sotdd.SketchBuilder:
    """A small builder."""
    return sotdd.SketchBuilder(seen_through(), n_quantiles=8).add(*pair(seed=seed))


def a_matrix() -> sotdd.results.DistanceMatrix:
    """A small matrix."""
    return sotdd.pairwise({"a": pair(), "b": pair(7, 3, 1), "c": pair(5)}, n_projections=4)


_DTYPES = ("f8", "f8", "f4", "f2", "i8", "u1", "?", ">f8", "O", "c16", "U3", "M8[D]", "longdouble")
_LABELS: tuple[Callable[[np.random.Generator, int], Any], ...] = (
    lambda rng, n: rng.integers(3, size=n),
    lambda rng, n: rng.choice(["a", "b", "", "é"], size=n),
    lambda rng, n: rng.choice([0.5, 1.0, nan, inf], size=n).tolist(),
    lambda rng, n: [[None, 1, "1", True, (1, 2), b"x"][i] for i in rng.integers(6, size=n)],
    lambda rng, n: np.arange(n + int(rng.integers(-1, 2))),
    lambda rng, n: eye(max(n, 1))[:n],
)


def any_data(seed: int) -> Any:  # arrays, pairs, lists or tables
    """Points of an odd shape, type, size or order, often with odd labels."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.choice([0, 1, 2, 3, 9, 40, 300])), int(rng.choice([1, 2, 2, 2, 2, 7]))
    x = rng.normal(size=(n, d)) * 10.0 ** rng.choice([-310, -30, -3, 0, 0, 0, 0, 3, 30, 300])
    x = np.round(x) if rng.random() < 0.3 else x
    if rng.random() < 0.1:
        x[:, :1] = rng.choice([0, nan, inf, 1e9])
    with np.errstate(all="ignore"):
        x = x.astype("i8").astype("M8[D]") if rng.random() < 0.02 else x.astype(rng.choice(_DTYPES[:-2]))
    forms = (np.asfortranarray, lambda x: x[::-1], np.ndarray.tolist, lambda x: x.reshape(n, d, 1), lambda x: x)
    x = forms[rng.integers(len(forms))](x)
    labels = _LABELS[rng.integers(len(_LABELS))](rng, n)
    return x if rng.random() < 0.3 else (x, labels)


def text(content: str | bytes, suffix: str = ".csv") -> str:
    """The path of a file with this content."""
    path = Path("text" + suffix)
    path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    return str(path)


def write_files() -> None:
    """Write the files that paths below name, in the current folder."""
    x, y = pair(12, 3)
    np.savez("a.npz", X=x, y=y)
    lines = [f"{u},{v},k{label}" for (u, v), label in zip(x, y, strict=True)]
    Path("a.csv").write_text("\n".join(["u,v,label", *lines, ""]), encoding="utf-8")
    Path("empty").touch()
    Path("folder").mkdir()
    in_sketch().save("a.sotdd")
    Path("half.sotdd").write_bytes(Path("a.sotdd").read_bytes()[:-9])
    with suppress(sotdd.SotddError):  # LanceDB may be missing
        sotdd.Catalog("catalog").add("s0", in_sketch(), kind="small")


class Wrong:
    """A law that keeps no promise."""

    def describe(self) -> dict[str, object]:
        """Nothing that can be written."""
        return {"law": object()}

    def draw(self, *_: object) -> int:
        """Nothing that can be used."""
        return 5


CALLS = (
    "sotdd.distance", "sotdd.pairwise", "sotdd.rank", "sotdd.mix", "sotdd.test", "sotdd.explain", "sotdd.copies",
    "sotdd.paper",
    "sotdd.flow", "sotdd.report", "sotdd.open_dataset", "sotdd.LabelledData.of", "sotdd.sketch", "sotdd.sketch_stream",
    "sotdd.Projections.fit", "sotdd.Projections.from_arrays", "seen_through().draw", "sotdd.Scaler",
    "sotdd.Scaler.fit", "sotdd.projections.ClassQuantiles",
    "sotdd.projections.Convolution", "sotdd.projections.Hadamard", "sotdd.projections.Moments",
    "sotdd.projections.UniformOrders", "sotdd.projections.ZeroTruncatedPoisson", "sotdd.Sketch.load",
    "in_sketch().distance", "in_sketch().vector", "in_sketch().save",
    "sotdd.SketchBuilder", "built().add", "built().merge", "built().finish",
    "sotdd.Catalog", "sotdd.Catalog('catalog').add",
    "sotdd.Catalog('catalog').nearest", "sotdd.DriftReference.fit",
    "sotdd.DriftReference.fit(pair(100), n_projections=4).test",
    "sotdd.DriftReference.fit(pair(100), n_projections=4).monitor", "sotdd.PrivateBuilder",
    "sotdd.PrivateBuilder(seen_through(), classes=range(5)).add",
    "sotdd.PrivateBuilder(seen_through(), classes=range(5)).release", "a_matrix().nearest",
    "a_matrix().ranking", "a_matrix().to_csv", "a_matrix().plot", "sotdd.peers.otdd", "sotdd.peers.wte",
    "sotdd.peers.chsw", "sotdd.peers.frechet", "sotdd.peers.sliced_wasserstein", "sotdd.peers.mmd",
)

# What any argument may be given.
ODD = (
    "0", "-1", "3", "10**30", "-10**30", "10**400", "0.5", "1e-320", "1e200", "nan", "inf", "True", "None", "''",
    "'x'", "'\\0'", "'é' * 300", "b'x'", "()", "[]", "{}", "object()", "1j", "Decimal('sNaN')",
    "Fraction(1, 3)", "datetime.date(2020, 1, 1)", "uint8(2)", "np.str_('x')", "np.datetime64('NaT', 'D')", "array(4)",
    "array([1, 2])", "array(None)", "np.ma.masked", "[[1]]", "[None]", "{'a': 1}", "Path('x')", "io.BytesIO(b'x')",
    "slice(0, 2)", "iter([1])", "sotdd", "lambda *a, **k: None", "pd.NA", "torch.tensor(2)", "pair()",
    "seen_through()", "in_sketch()",
)
DATA = (
    "pair()", "pair(7, 3, 1)", "points(5)", "(points(6), list('abacba'))", "points(1)", "'a.npz'", "'a.csv'",
    "torch.tensor(points(7))", "pd.DataFrame(points(6), columns=['u', 'v'])", "scipy.sparse.csr_array(points(9))",
    "zeros((5, 2))", "points(4) * 1e200", "points(4) * 1e-310", "points(4) + 1e9", "points(3, 5)", "zeros((0, 2))",
    "zeros((2, 0))", "zeros(())", "(points(200), np.arange(200))", "points(40)[::3, ::-1]", "points(6).astype(object)",
    "np.ma.masked_greater(points(6), 0)", "points(6).astype(complex)", "points(4) * nan", "points(4).astype('>f8')",
    "scipy.sparse.csr_array(points(4) * nan)", "scipy.sparse.csr_array((0, 2))",
    "scipy.sparse.csr_array(([1.0], [7], [0, 1, 1]), shape=(2, 2))", "torch.zeros(4, 2).to_sparse()",
    "torch.zeros(4, 2, device='meta')", "torch.zeros(4, 2, dtype=torch.bfloat16)",
    "(points(3), [Decimal('sNaN'), 1, 2])", "(points(3), [10**400, 1, 2])", "(points(3), [nan, None, 'x\\n'])",
    "(points(3), pl.Series([1, None, 2]))", "(points(3), np.arange(4))", "(points(3), eye(3))",
    "pd.DataFrame({'u': [1.0, None], 'v': [1, 2]})", "pd.DataFrame({'u': ['x', 'y'], 'v': [1, 2]})", "pd.DataFrame()",
    "pl.DataFrame({'u': [1, 2], 'label': [None, 'a']})", "pa.table({'u': [1, None]})",
    "[(points(1)[0], 'a'), (points(1)[0], 'b')]", "'missing.npz'", "'/'", "'empty'", "'folder'",
    "'a.csv::label='", "'a.npz::nonsense=1'", "'x' * 5000", "'\\ud800'", "'half.sotdd'",
    "text('')", "text('u,v\\n')", "text('u,v,label\\n1,2,a\\n3\\n')", "text('u;v\\n1,5;2\\n\\n3;4')",
    "text('u,u\\n1,2\\n3,4\\n')", "text('\\ufeffu,v\\n1,nan\\n-inf,?\\n')", "text(b'\\xff\\xfeu\\0')",
    "text('\\0,\\n' * 9)", "text('{\"u\": 1}\\n{\"u\": [1]}', '.jsonl')", "text('u,v\\n' + '1,\"\\n' * 9)",
    "text('u,v\\n1e999,1\\n2,3')",
)
SEVERAL = (
    "[pair(), pair(7, 3, 1)]", "{'a': pair(), 'b': points(5), 'c': 'a.npz'}", "[in_sketch(), in_sketch(seed=1)]",
    "[in_sketch(), pair()]", "{1: pair(), 2: pair()}", "{'': pair(), 'b': pair()}", "iter([pair()])", "[pair(), None]",
    "[points(3), points(3, 5)]", "[points(4, 30) * 1e200, points(5, 30)]", "[ones((3, 30))]", "[points(4) * 1e-310]",
)
COUNTS = ("4", "1", "65", "int64(4)", "10**18", "2.0", "'3'")
NUMBERS = ("1.0", "1e-300", "1e300", "float32(0.25)", "-1.0", "Decimal('0.5')", "'1'")
PATHS = ("'out'", "Path('out')", "'missing/out'", "'folder'", "'/'", "'x' * 5000", "'\\ud800'", "'a.npz'")
MATRICES = ("points(4, 3)", "ones((4, 2))", "[[1, 2], [3]]", "zeros((0, 2))", "points(4) * nan", "[['a']]", "ones(4)")
# By `call.argument`, else by the argument alone; an optional argument that is in neither is given what is ODD.
POOLS = {
    **dict.fromkeys(("a", "b", "source", "target", "data", "batch", "synthetic", "train"), DATA),
    "holdout": ("None", *DATA),
    "sotdd.mix.target": ("pair(20)", *DATA),
    "sotdd.mix.sources": ("[pair(20), pair(30)]", "pair(40)", "{'a': [in_sketch(20)] * 2, 'b': points(20)}", *SEVERAL),
    **dict.fromkeys(("datasets", "candidates"), SEVERAL),
    **dict.fromkeys(("n_projections", "n_moments", "n_quantiles", "max_points", "n_permutations", "steps",
                     "max_projections", "k", "dim", "ambient", "levels",
                     "run_length", "bins", "limit"), COUNTS),
    **dict.fromkeys(("p", "weight", "clamp", "cut", "epsilon", "delta", "level", "rel_tol", "learning_rate",
                     "bandwidth", "max_label"), NUMBERS),
    "theta": ("points(4)", *MATRICES),
    "psi": MATRICES,
    "orders": ("ones((4, 2), int64)", "zeros((4, 2))", "ones((4, 2)) * 171", "[[1.5, 1]] * 4", "Wrong()"),
    "sotdd.projections.Moments.orders": ("None", "sotdd.projections.UniformOrders(3)", "[1, 2]", "Wrong()"),
    "features": ("points()", *DATA[2:]),
    "sotdd.open_dataset.features": ("None", "'u'", "['u', 'v']", "['u', 'u']", "[0, 1]"),
    "labels": ("np.arange(9) % 2", "None", "list('ababababa')", "np.arange(4)", "'keep'", "'move'"),
    "batches": ("[pair(), pair(seed=1)]", "lambda: iter([pair()])", "lambda: 5", "[pair(), points(3, 5)]", "pair()"),
    "projections": ("seen_through()", "seen_through(65)", "seen_through(label_law='quantiles')",
                    "seen_through(directions=Circles())", "seen_through(tilt=True)"),
    "label_law": ("'moments'", "'quantiles'", "'paper'", "Medians()", "Wrong()", "sotdd.projections.Moments"),
    "moments": ("(1.0, 2.5)", "sotdd.projections.UniformOrders(4)", "[0]", "[nan]", "[10**400]", "Wrong()"),
    "directions": ("sotdd.projections.Sphere()", "sotdd.projections.Orthogonal()", "Circles()",
                   "Wrong()", "sotdd.projections.Sphere", "sotdd.projections.Convolution((2, 1), 'stride')"),
    "scale": ("'auto'", "'pooled'", "'features'", "None", "sotdd.Scaler(zeros(3), 1.0)"),
    "sotdd.Scaler.scale": ("1.0", "ones(2)", "ones(3)", "array([1, 0])", "'1'"),
    "centre": ("zeros(2)", "zeros(3)", "[nan, 0]", "zeros((2, 2))", "[1j, 0]", "[10**400, 0]"),
    "method": ("'sotdd'", "'otdd'", "'wte'", "'chsw'", "'frechet'", "'sw'", "'mmd'"),
    "encoder": ("None", "lambda batch: [[1.0, 2.0] for _ in batch]", "lambda batch: [[nan]] * len(batch)"),
    "label": ("'auto'", "'label'", "'u'", "-1", "5.5"),
    "result": ("a_matrix()", "eye(3)"),
    "sotdd.report.datasets": ("None", "{'a': pair(), 'b': pair(7, 3, 1), 'c': pair(5)}", "{'a': pair()}"),
    "path": PATHS,
    "sotdd.Sketch.load.path": ("'a.sotdd'", "'half.sotdd'", "'/dev/zero'", "'folder'", "'empty'", "'a.npz'"),
    "sotdd.Catalog.path": ("'catalog'", "'new'", "'folder'", "'a.npz'", "'x' * 5000", "'s3://'"),
    "sotdd.Catalog('catalog').nearest.source": ("in_sketch(seed=4)", "'s0'", "pair()", "'missing'"),
    "sketch": ("in_sketch()", "in_sketch(n_projections=5)", "pair()", "'a.sotdd'"),
    "other": ("in_sketch(seed=1)", "in_sketch(n_projections=5)", "built()"),
    "built().merge.other": ("built(seed=1)", "in_sketch()"),
    "sotdd.peers.wte.other": ("None", *DATA),
    "metadata": ("None", "{'kind': 'x'}", "{'kind': nan}", "{'name': 'x'}", "{1: 2}", "{'kind': 10**30}"),
    "where": ("None", "\"kind = 'small'\"", "'size >'", "'x = 1'", "'(' * 500"),
    "name": ("'a'", "'x\\ny'", "'x' * 5000", "'\\ud800'"),
    "part": ("'mon'", "'tue'", "'a' * 10**6"),
    "classes": ("[0, 1, 2]", "[0, 0]", "'ab'", "[[1]]", "[nan]"),
    "image_shape": ("(4, 4)", "(2, 1)", "(0, 4)", "(10**9, 10**9)", "(2.5, 2)"),
    "kernels": ("'auto'", "'stride'", "[(2, 1), (3, 1)]", "[(0, 1)]", "[(10**30, 1)]"),
    "max_order": ("4", "170", "171", "2.5"),
    "rates": ("(1.0, 2.0)", "[0]", "[nan]", "[1e300]", "['1']", "[10**400]", "iter([1])"),
    "reference": ("None", "points(5, 12)", "points(5, 3)", "points(5, 12) * nan"),
    "start": ("0", "64", "1", "-64", "0.0"),
    "stop": ("4", "0", "200", "2.5"),
}
# fmt: on
# Keeps a call cheap unless the argument itself is drawn.
_FEW = {"n_projections": "8", "n_permutations": "9", "steps": "2", "max_projections": "128"}


def draw(number: int) -> str:
    """A line that makes a call with one or two arguments of many kinds, and the others ordinary."""
    call, rng = CALLS[number % len(CALLS)], random.Random(number)
    owner = call.rpartition(".")[0]
    shown = inspect.signature(eval(call, globals())).parameters.values()
    parameters = [one for one in shown if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    odd = {one.name for one in rng.sample(parameters, min(len(parameters), rng.choice((1, 1, 2))))}
    given = {}
    for one in parameters:
        pool = POOLS.get(f"{call}.{one.name}", POOLS.get(one.name, ()))
        if one.name in odd and pool is DATA and rng.random() < 0.3:
            given[one] = f"any_data({rng.randrange(10**6)})"
        elif one.name in odd:
            given[one] = rng.choice(pool if pool and rng.random() < 0.7 else ODD)
        elif one.default is one.empty:
            given[one] = pool[0]
        elif one.name in _FEW and owner in ("sotdd", "sotdd.peers") and not odd & {"projections", "method"}:
            given[one] = _FEW[one.name]
    texts = [text if one.kind is one.POSITIONAL_ONLY else f"{one.name}={text}" for one, text in given.items()]
    return f"{call}({', '.join(texts)})"


def run_line(line: str) -> str:
    """What came of a line."""
    return find_outcome(lambda: eval(line, globals()))


def find_outcome(act: Callable[[], Any]) -> str:
    """Act, and say "result", "refused", "skipped" for want of a library, or what is wrong with the outcome."""
    states = _find_states()
    outcome = "result"
    try:
        with warnings.catch_warnings(action="error"):
            _judge(act())
    except sotdd.SotddError as error:
        said = str(error)
        outcome = "skipped" if "which is not installed" in said else "refused"
        if not said.strip() or len(said.splitlines()) > 1 or len(said) > 2000:
            return f"refused, but not in one line: {error}"
    except Exception as error:  # noqa: BLE001  # everything else is what is looked for
        missing = isinstance(error, NameError) and error.name in _OPTIONAL
        return "skipped" if missing else f"{type(error).__name__}: {error}"
    finally:
        if "pyplot" in globals():
            globals()["pyplot"].close("all")
    return outcome if _find_states() == states else "changed random states or settings"


def _find_states() -> tuple[object, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002  # the state that old code shares
    torch = globals().get("torch")
    of_torch = () if torch is None else (torch.get_rng_state().numpy().tobytes(), torch.get_num_threads())
    return random.getstate(), kind, keys.tobytes(), *rest, *np.geterr().items(), *of_torch


def _judge(result: Any) -> None:  # of any call
    """Refuse an outcome that cannot be right."""
    str(result)
    if type(result).__module__.startswith("sotdd") and hasattr(result, "to_dict"):
        json.dumps(result.to_dict(), allow_nan=False)
    if isinstance(result, sotdd.results.Distance):
        low, high = result.interval()
        assert 0 <= result.value < inf
        assert not any((result.stderr < 0, low > result.value, high < result.value))  # these may be NaN
    elif isinstance(result, sotdd.results.DistanceMatrix):
        assert (result.values == result.values.T).all()
        assert np.isfinite(result.values).all()
    elif isinstance(result, sotdd.results.TwoSampleTest):
        assert 0 < result.p_value <= 1
    elif type(result).__module__ == "torch":
        assert 0 <= float(result.detach()) < inf
