"""Every public name that can be called, found by walking the package: functions, constructors, methods, properties."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import sotdd
import sotdd.cluster
import sotdd.demo
import sotdd.inputs
import sotdd.peers
import sotdd.torch

MODULES: dict[ModuleType, list[str]] = {
    sotdd: list(sotdd.__all__),
    sotdd.projections: list(sotdd.projections.__all__),
    sotdd.peers: list(sotdd.peers.__all__),
    sotdd.torch: list(sotdd.torch.__all__),
    sotdd.cluster: list(sotdd.cluster.__all__),
    sotdd.demo: list(sotdd.demo.__all__),
    sotdd.inputs: ["ParquetBatches"],
}

# What methods and properties are read from. A class that is not here, and no protocol, has no method to be called on.
RECEIVERS: dict[str, tuple[str, ...]] = {
    "Catalog": ("a_catalog()",),
    "ClassQuantiles": ("sotdd.ClassQuantiles()", "sotdd.ClassQuantiles(1, 0.0)"),
    "ClassStatistics": ("counted()", "sotdd.ClassStatistics(seen_through())"),
    "Convolution": ("sotdd.Convolution((2, 1), 'stride')", "sotdd.Convolution((4, 4, 3), channels='last')"),
    "Directions": ("Directions(points(4))", "Directions(points(4), 2.0, ones(4))"),
    "Distance": (
        "a_distance()",
        "a_distance(noise_floor=2)",
        "a_distance(n_projections=1)",
        "a_distance(method='otdd')",
        "a_distance(p=50, noise_floor=3)",
        "sotdd.distance(zeros((3, 2)), ones((2, 2)), n_projections=300)",
        "sotdd.distance(points(), points(), n_projections=4, noise_floor=2)",
        "sotdd.distance(points() * 1e30, points(5), n_projections=4, scale=None, label_law='quantiles')",
        "sotdd.distance(points(), points(7) + 1e-9, n_projections=300, noise_floor=2)",
        "in_sketch().distance(in_sketch(seed=1))",
    ),
    "DistanceMatrix": (
        "a_matrix()",
        "a_matrix(noise_floor=2)",
        "a_matrix(method='chsw')",
        "sotdd.pairwise([pair()])",
        "sotdd.pairwise({'<b>': points(), 'x' * 300: points()}, n_projections=4)",
    ),
    "DriftMonitor": (
        "a_reference().monitor()",
        "a_reference().monitor(2).after((points(5) + 9, [0, 1, 0, 1, 0]), n_permutations=9)",
    ),
    "DriftReference": (
        "a_reference()",
        "sotdd.DriftReference.fit(points(1), n_projections=1)",
        "sotdd.DriftReference.fit('a.csv', n_projections=4, with_sketch=True)",
    ),
    "Explanation": (
        "an_explanation()",
        "an_explanation(n_projections=1)",
        "sotdd.explain(pair(), pair(), n_projections=4, n_splits=19)",
        "sotdd.explain((points(6), list('abcdef')), (points(6), odd_labels(6, 1)), n_projections=4, n_splits=19)",
    ),
    "Flow": ("a_flow()", "a_flow(labels='move', snapshots=[0])"),
    "LabelledData": (
        "sotdd.LabelledData.of(pair())",
        "sotdd.open_dataset('a.parquet')",
        "sotdd.LabelledData.of(scipy.sparse.csr_array(points(9)))",
    ),
    "Layer": ("Layer((2, 2))",),
    "Moments": ("sotdd.Moments(2)", "sotdd.Moments(3, sotdd.UniformOrders(4), None)"),
    "NoiseFloor": ("a_distance(noise_floor=2).noise", "a_distance(noise_floor=30).noise"),
    "Orthogonal": ("sotdd.Orthogonal()",),
    "ParquetBatches": ("sotdd.inputs.ParquetBatches.open('a.parquet')",),
    "Polynomials": ("Polynomials(ones(4), points(4, 3))", "Polynomials(ones(4), zeros((4, 1)), 5.0)"),
    "PrivateBuilder": ("a_private()", "a_private(seed=1).add(*pair())"),
    "Projections": (
        "seen_through()",
        "seen_through(200, tilt=True)",
        "seen_through(label_law='quantiles', shared_directions=False)",
        "sotdd.Projections.from_arrays(theta=points(4), psi=points(4, 3), orders=ones((4, 2)))",
        "seen_through(10**9)",
    ),
    "Quantiles": ("Quantiles(ones(4), points(4, 2))",),
    "Ranked": ("a_matrix().ranking('a')[0]",),
    "Ranking": (
        "sotdd.rank(pair(), [pair(seed=1), pair(5)], n_projections=4)",
        "sotdd.rank(pair(), {'a': pair(5)}, n_projections=1)",
    ),
    "ScaleStatistics": ("spread()", "sotdd.ScaleStatistics()"),
    "Scaler": ("sotdd.Scaler(zeros(2), 2.0)", "sotdd.Scaler(zeros(2), ones(2), ('u', 'v'))"),
    "Sketch": ("in_sketch()", "in_sketch(1, label_law='quantiles')", "in_sketch(5, scale=None)"),
    "SketchBuilder": ("built()", "sotdd.SketchBuilder(seen_through())"),
    "SketchWindow": ("a_window()", "sotdd.SketchWindow(seen_through())"),
    "Hadamard": ("sotdd.Hadamard()", "sotdd.Hadamard(207)"),
    "Sphere": ("sotdd.Sphere()", "sotdd.Sphere(7)"),
    "TurnedDirections": ("sotdd.Hadamard().draw(np.random.default_rng(0), 4, 200)",),
    "Summaries": ("Summaries(ones(4), points(4, 2), Medians.summary)",),
    "TaskEmbeddings": ("sotdd.peers.wte([pair(), points(5)], n_reference=5)",),
    "Tilted": ("Tilted(eye(1, 2), ones(1) * 2)", "Tilted(eye(1, 2), ones(1) * 2, 9)"),
    "TwoSampleTest": (
        "a_test()",
        "a_test(n_permutations=1)",
        "a_test(statistic='distance', p=3)",
        "sotdd.test(ones((3, 2)), ones((3, 2)), n_permutations=3, n_projections=2)",
    ),
    "UniformOrders": ("sotdd.UniformOrders(3)",),
    "ZeroTruncatedPoisson": ("sotdd.ZeroTruncatedPoisson()", "sotdd.ZeroTruncatedPoisson((1.0, 2.0), 4)"),
}

# Results of calls: nobody constructs them, so their constructors are not called with odd values.
RESULTS = {
    "TurnedDirections",
    "Distance", "DistanceMatrix", "DriftMonitor", "DriftReference", "Explanation", "Flow", "LabelledData",
        "NoiseFloor",
    "ParquetBatches", "PrivateCounts", "PrivateStatistics",
    "Projections", "Ranked", "Ranking", "Sketch", "TaskEmbeddings", "TwoSampleTest",
}  # fmt: skip

# Methods by which the rooms of the package hand opened data and drawn numbers on to each other; no page mentions them.
# They trust what they get, so they are called as the package calls them.
BETWEEN_ROOMS = {
    "ClassStatistics.add_opened": "counted().add_opened(sotdd.LabelledData.of(pair()))",
    "ClassStatistics.expect": None,
    "ClassStatistics.gather": None,
    "ClassStatistics.merge_expected": None,
    "ClassStatistics.note_columns": "counted().note_columns(sotdd.LabelledData.of(pair()))",
    "Convolution.check_points": "sotdd.Convolution((2, 1), 'stride').check_points((2,), 'a')",
    "Directions.part": "Directions(points(4)).part(slice(0, 2))",
    "Distance.to_dict": "a_distance().to_dict(per_projection=True)",
    "DistanceMatrix.__array__": "np.asarray(a_matrix())",
    "DriftReference.opened": "a_reference().opened(pair())",
    "Explanation.lines": "an_explanation().lines(0)",
    "Hadamard.check_space": "sotdd.Hadamard(207).check_space(200)",
    "Hadamard.turn": "sotdd.Hadamard().turn(np.random.default_rng(0), 200)",
    "LabelledData.rows": "sotdd.LabelledData.of(pair()).rows(slice(0, 2))",
    "LabelledData.take": "sotdd.LabelledData.of(pair()).take(array([0, 1]))",
    "NoiseFloor.of": "sotdd.NoiseFloor.of(ones((4, 3)), ones(4), 2.0, 1.0)",
    "Polynomials.joined": "Polynomials.joined([Polynomials(ones(4), points(4, 3)), Polynomials(ones(4), points(4))])",
    "Polynomials.part": "Polynomials(ones(4), points(4, 3)).part(slice(0, 2))",
    "Projections.aligned": "seen_through().aligned(sotdd.LabelledData.of(pair()))",
    "Projections.check": "seen_through().check(sotdd.LabelledData.of(pair()))",
    "Projections.from_block": "seen_through().from_block(1, 64)",
    "Projections.refuse_weighted": "seen_through().refuse_weighted('this')",
    "Quantiles.part": "Quantiles(ones(4), points(4, 2)).part(slice(0, 2))",
    "ScaleStatistics.in_order": "spread().in_order(None, 'this')",
    "ScaleStatistics.of": "sotdd.ScaleStatistics.of(sotdd.LabelledData.of(pair()))",
    "Scaler.in_order": "sotdd.Scaler(zeros(2), 2.0).in_order(('u', 'v'))",
    "Sketch.cut": "in_sketch().cut(in_sketch().levels)",
    "Sketch.vector_at": "in_sketch().vector_at(in_sketch().levels, None)",
    "SketchBuilder.add_opened": "built().add_opened(sotdd.LabelledData.of(pair()))",
    "SketchBuilder.resume": None,
    "Sphere.check_space": "sotdd.Sphere(7).check_space(3)",
    "Summaries.part": "Summaries(ones(4), points(4, 2), Medians.summary).part(slice(0, 2))",
    "Tilted.fit": "Tilted.fit([sotdd.LabelledData.of(pair())], None, sotdd.Sphere())",
    "Tilted.turn": "Tilted(eye(1, 200), ones(1) * 2).turn(np.random.default_rng(0), 200)",
    "TurnedDirections.__call__": "sotdd.Hadamard().draw(np.random.default_rng(0), 4, 200)(ones((3, 200)))",
    "TurnedDirections.drawn": None,
    "TurnedDirections.joined": None,
    "TurnedDirections.part": "sotdd.Hadamard().draw(np.random.default_rng(0), 4, 200).part(slice(1, 3))",
    "TurnedDirections.write": None,
    "TurnedDirections.write_columns": None,
}

# Python's own methods that users reach by operators.
_OPERATORS = {
    "__len__",
    "__iter__",
    "__getitem__",
    "__contains__",
    "__float__",
    "__array__",
    "__add__",
    "__call__",
    "__repr__",
}


@dataclass(frozen=True)
class Target:
    """Something to call: ``line`` without its arguments, or a property, which has none."""

    name: str
    receivers: tuple[str, ...]
    attribute: str | None
    parameters: tuple[inspect.Parameter, ...]
    is_property: bool = False
    whole: str | None = None  # the only line it is called by

    @property
    def weight(self) -> int:
        """How often it is drawn beside others: those that take more, more often."""
        return 1 if self.whole else 1 + 2 * len(self.parameters)


def targets() -> list[Target]:
    """All of them, in a steady order."""
    found: dict[int, Target] = {}
    for module, names in MODULES.items():
        for name in names:
            value = getattr(module, name)
            if inspect.isclass(value):
                for target in _of_class(value, f"{module.__name__}.{name}"):
                    found.setdefault(hash(target.name), target)
            elif callable(value):
                line = f"{module.__name__}.{name}"
                found.setdefault(id(value), Target(_short(line), (line,), None, _parameters(value)))
    return sorted(found.values(), key=lambda target: target.name)


def missing() -> list[str]:
    """Public classes without a receiver to call their methods on."""
    classes = {
        name for module, names in MODULES.items() for name in names if inspect.isclass(value := getattr(module, name))
        and not getattr(value, "_is_protocol", False) and not issubclass(value, Exception) and _members(value)
    }  # fmt: skip
    return sorted(classes - set(RECEIVERS))


def _of_class(cls: type, line: str) -> Iterator[Target]:
    if getattr(cls, "_is_protocol", False) or issubclass(cls, Exception):
        return
    if cls.__name__ not in RESULTS:
        yield Target(cls.__name__, (line,), None, _parameters(cls))
    receivers = RECEIVERS.get(cls.__name__, ())
    for name, member in _members(cls).items():
        full = f"{cls.__name__}.{name}"
        if full in BETWEEN_ROOMS:
            if BETWEEN_ROOMS[full] is not None:
                yield Target(full, (), None, (), whole=BETWEEN_ROOMS[full])
        elif isinstance(member, (classmethod, staticmethod)):
            yield Target(full, (line,), name, _parameters(member.__func__)[1:])
        elif callable(member):
            yield Target(full, receivers, name, _parameters(member)[1:])
        elif receivers:
            yield Target(full, receivers, name, (), is_property=True)


def _members(cls: type) -> dict[str, object]:
    """Methods and properties that are public: no constants, no fields with their defaults."""
    from functools import cached_property

    kinds = (classmethod, staticmethod, property, cached_property)
    return {
        name: member
        for name, member in sorted(_written_here(cls).items())
        if (name in _OPERATORS or not name.startswith("_"))
        and (isinstance(member, kinds) or inspect.isfunction(member))
    }


def _written_here(cls: type) -> dict[str, object]:
    """What a class has, also from classes of the package that it is made of."""
    ours = [base for base in reversed(cls.__mro__) if base.__module__.startswith("sotdd")]
    return {name: member for base in ours for name, member in vars(base).items()}


def _parameters(call: object) -> tuple[inspect.Parameter, ...]:
    shown = inspect.signature(call).parameters.values()  # type: ignore[arg-type]
    return tuple(part for part in shown if part.kind is not inspect.Parameter.VAR_POSITIONAL)


def _short(line: str) -> str:
    """``distance`` of ``sotdd.distance``, but ``cluster.sketch``."""
    return line.removeprefix("sotdd.").removeprefix("projections.")
