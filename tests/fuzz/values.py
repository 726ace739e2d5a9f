"""The words of a drawn call: every argument is an expression of these names, so that a failing call can be printed."""

# ruff: noqa: F401  # the names are used by expressions in `pools`

import datetime
import io
import math
import re
from collections import Counter, OrderedDict, namedtuple
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import dask
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
import torch
from matplotlib.figure import Figure
from numpy import array, eye, float16, float32, float64, inf, int8, int64, longdouble, nan, ones, uint8, zeros

import sotdd
import sotdd.cluster
import sotdd.demo
import sotdd.inputs
import sotdd.peers
import sotdd.torch
from laws import Medians
from sotdd.projections import Directions, Layer, Polynomials, Quantiles, Summaries, Tilted

Row = namedtuple("Row", "x y")


# ------------------------------------------------------------------ data


def points(n=9, d=2, seed=0):
    """Points without anything odd."""
    return np.random.default_rng(seed).normal(size=(n, d))


def pair(n=9, classes=2, seed=0, d=2):
    """Points and labels without anything odd."""
    return points(n, d, seed), np.random.default_rng(seed).integers(classes, size=n)


def images(n=6, side=4, channels=None):
    """Small images in bytes."""
    shape = (n, side, side) if channels is None else (n, side, side, channels)
    return np.random.default_rng(0).integers(256, size=shape).astype(np.uint8)


_KINDS = (float16, float32, float64, float64, float64, longdouble, ">f8", int8, int64, uint8, "u8", bool, complex,
          "M8[D]", "m8[s]", "U3", "S2", object)  # fmt: skip
_SIZES = (1e-320, 1e-200, 1e-30, 1e-3, 1.0, 1.0, 1.0, 30.0, 1e4, 1e30, 1e120, 1e200, 1e308)


def odd_points(seed):
    """An array of some shape and dtype, with values of some size: ordinary ones, extreme ones, or both."""
    rng = np.random.default_rng(seed)
    shape = [(rng.integers(0, 9), 2), (rng.integers(1, 9), 2), (rng.integers(0, 4),), (3, 2, 2), (2, 0), ()]
    values = rng.normal(size=shape[min(rng.integers(12) // 2, 5) if rng.random() < 0.4 else 1]) * rng.choice(_SIZES)
    if values.ndim == 2 and values.size:
        if rng.random() < 0.4:
            values[:, rng.integers(values.shape[1])] *= rng.choice(_SIZES)
        if rng.random() < 0.4:
            values[rng.integers(len(values))] *= rng.choice(_SIZES)
        if rng.random() < 0.2:
            values[:, 0] = values[0, 0]
        if rng.random() < 0.1:
            values[0, 0] = rng.choice([nan, inf, -inf, -0.0])
        if rng.random() < 0.3:
            values = values[rng.integers(len(values), size=len(values))]
    kind = float64 if rng.random() < 0.5 else _KINDS[rng.integers(len(_KINDS))]
    with np.errstate(all="ignore"):
        return np.clip(values, -1e308, 1e308).astype(kind) if kind is not float64 else values


_LABELS = (0, 1, 2, -1, 1.0, 0.5, nan, inf, True, False, None, "a", "b", "", "é", "\x1b[31m", "x\ny", b"x", (1, 2),
        10**400,
           Decimal(1), Decimal("sNaN"), Fraction(1, 3), datetime.date(2020, 1, 1), float32(2), int8(1),
        frozenset([1]), [],
           pd.NA, pd.NaT, np.datetime64("NaT", "s"), 1j, "a" * 300)  # fmt: skip


def odd_labels(n, seed):
    """Labels of mixed kinds, or of two of them."""
    rng = np.random.default_rng(seed)
    few = [_LABELS[i] for i in rng.integers(len(_LABELS), size=rng.integers(1, 5))]
    return [few[i] for i in rng.integers(len(few), size=n)]


def odd_pair(seed):
    """Odd points, odd labels, or both."""
    rng = np.random.default_rng(seed)
    features = odd_points(seed) if rng.random() < 0.6 else points(5, 2, seed)
    n = len(features) if features.ndim else 1
    return features, odd_labels(n, seed) if rng.random() < 0.6 else rng.integers(3, size=n)


class Endless:
    """Rows without an end and without a length."""

    def __getitem__(self, row):
        return np.zeros(2), row % 2


# ------------------------------------------------------------------ laws of one's own


class Coordinates:
    """Directions along single features."""

    def describe(self):
        return {"law": "coordinates"}

    def draw(self, rng, n_projections, n_features):
        return Directions(np.eye(n_features)[rng.integers(n_features, size=n_projections)])


class Bent:
    """A projection that is not linear."""

    def describe(self):
        return {"law": "bent"}

    def draw(self, rng, n_projections, n_features):
        theta = rng.normal(size=(n_projections, n_features))
        return lambda values: np.tanh(theta @ values.T)


class Wrong:
    """A law that keeps no promise."""

    def describe(self):
        return {"law": object()}

    def draw(self, rng, n_projections, n_features=0):
        return 5


# ------------------------------------------------------------------ what methods are called on


def seen_through(n_projections=4, **settings):
    """Projections of two features."""
    return sotdd.Projections.fit([pair(20)], n_projections=n_projections, **settings)


def in_sketch(n=9, seed=0, **settings):
    """A sketch through few projections."""
    return sotdd.sketch(pair(n, seed=seed), seen_through(**settings), n_quantiles=8)


def built(n=9, seed=0):
    """A builder with points."""
    builder = sotdd.SketchBuilder(seen_through(), n_quantiles=8)
    builder.add(*pair(n, seed=seed))
    return builder


def a_window():
    """A window with two parts."""
    window = sotdd.SketchWindow(seen_through(), n_quantiles=8)
    return window.add("mon", *pair()).add("tue", *pair(seed=1))


def counted(n=9, seed=0):
    """Class statistics with points."""
    statistics = sotdd.ClassStatistics(seen_through())
    statistics.add(*pair(n, seed=seed))
    return statistics


def a_private(seed=0):
    """A private builder with points that are not those its projections were fitted on."""
    return sotdd.PrivateBuilder(seen_through(), classes=range(5)).add(*pair(9, seed=seed))


def spread(n=9, seed=0):
    """Statistics of scales with points."""
    statistics = sotdd.ScaleStatistics()
    statistics.add(points(n, seed=seed))
    return statistics


def few(settings):
    """Settings with four projections, unless they are for another method."""
    return settings if "method" in settings else {"n_projections": 4, **settings}


def a_distance(**settings):
    """The distance of two ordinary datasets."""
    return sotdd.distance(pair(), pair(7, 3, 1), **few(settings))


def a_matrix(**settings):
    """The distances of three."""
    data = {"a": pair(), "b": pair(7, 3, 1), "c": sotdd.open_dataset(points(5), label=None)}
    return sotdd.pairwise(data, **few(settings))


def an_explanation(**settings):
    """Why two ordinary datasets differ."""
    return sotdd.explain(pair(), pair(7, 3, 1), **{"n_projections": 4, "n_splits": 19, **settings})


def a_test(**settings):
    """A test of two ordinary datasets."""
    return sotdd.test(pair(), pair(7, 3, 1), **{"n_projections": 4, "n_permutations": 9, **settings})


def a_reference():
    """A reference of a hundred points."""
    return sotdd.DriftReference.fit(pair(100), n_projections=4)


def a_flow(**settings):
    """A flow of two steps."""
    return sotdd.flow(pair(), pair(7, 3, 1), **{"n_projections": 4, "steps": 2, **settings})


def a_catalog():
    """A catalog of three sketches, in a folder that `python -m fuzz` has prepared."""
    return sotdd.Catalog("catalog")


def prepare_folder():
    """Write the files that paths in `pools` name to the current folder."""
    x, y = pair(12, 3)
    np.savez("a.npz", X=x, y=y)
    np.save("x.npy", x)
    np.save("y.npy", y)
    frame = pd.DataFrame({"u": x[:, 0], "v": x[:, 1], "label": [f"k{i}" for i in y]})
    frame.to_csv("a.csv", index=False)
    frame.to_parquet("a.parquet", index=False)
    Path("empty").touch()
    Path("folder").mkdir()
    Path("odd.csv").write_bytes(b'x,y\n1,"a\n2,b\n')
    Path("odd.npz").write_bytes(b"PK\x03\x04")
    in_sketch().save("a.sotdd")
    Path("odd.sotdd").write_bytes(Path("a.sotdd").read_bytes()[:-9])
    a_reference().save("a.ref")
    built().save("builder")
    counted().save("statistics")
    kept = sotdd.Catalog("catalog")
    for number in range(3):
        kept.add(f"s{number}", in_sketch(9, number), kind="small", size=number)
