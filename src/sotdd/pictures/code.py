"""Python code that gives the numbers of a page again, with every setting that is not the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

import numpy as np

from sotdd.results.matrix import DistanceMatrix

# Stands for what the reader has to fill in, such as the data.
_FILL_IN = "..."


def matrix_code(matrix: DistanceMatrix) -> str:
    """Code that measures the same matrix again, with ``...`` where the reader fills something in."""
    settings: dict[str, Any] = dict(matrix.asked.settings) if matrix.asked else {}
    projections = matrix.projections
    if isinstance(settings.get("seed"), np.random.Generator) and projections is not None:
        settings["seed"] = projections.recipe()["seed"]
    lines = ["import sotdd", "", *_datasets(matrix)]
    if settings.get("projections") is not None:
        lines.append("projections = ...  # fill in those that the matrix was measured through")
        settings["projections"] = _Name("projections")
    lines.append(_call("matrix = sotdd.pairwise", "datasets", settings))
    if projections is not None and matrix.asked is not None:
        lines.append(f"assert matrix.projections.fingerprint == {projections.fingerprint!r}")
    return "\n".join(lines)


def pair_code(what: str, sources: Sequence[str], settings: Mapping[str, Any], last: str) -> str:
    """Code that calls a function on two sources again, and prints what the last line says."""
    one, other = (repr(source) for source in sources)
    return "\n".join(["import sotdd", "", _call(what, f"{one}, {other}", settings), last])


def saved_gate_code(reference: str, batches: Mapping[str, int | None]) -> str:
    """Batches against a saved reference; with each the number of permutations, or None where it was not tested."""
    lines = [f"reference = sotdd.DriftReference.load({reference!r})"]
    return _loop(lines, batches, "reference.distance(batch).value")


def data_gate_code(
    reference: str,
    batches: Mapping[str, int | None],
    testing: Mapping[str, Any],
    drawing: Mapping[str, Any],
    order: Mapping[str, Any],
) -> str:
    """Batches against the data of a reference, which sets unit and projections of the distances."""
    few = {name: value for name, value in drawing.items() if name != "n_projections"}
    lines = [
        f"data = {reference!r}",
        _call("reference = sotdd.DriftReference.fit", "data", {**few, **order, **testing}),
        _call("projections = sotdd.Projections.fit", "[data]", drawing),
    ]
    through = {"projections": _Name("projections"), **order}
    return _loop(lines, batches, f"{_call('sotdd.distance', 'data, reference.opened(batch)', through)}.value")


def sketch_gate_code(reference: str, batches: Mapping[str, int | None], order: Mapping[str, Any]) -> str:
    """Batches against a sketch."""
    lines = [f"reference = sotdd.Sketch.load({reference!r})"]
    return _loop(lines, batches, f"{_call('sotdd.distance', 'reference, batch', order)}.value")


class _Name(str):
    """A variable of the code, which stands there without quotes."""

    __slots__ = ()


def _datasets(matrix: DistanceMatrix) -> list[str]:
    """The sources by name: paths as they are, and ``...`` for all others."""
    sources = matrix.asked.sources if matrix.asked else {}
    known = {name: _FILL_IN if sources.get(name) is None else repr(sources[name]) for name in matrix.names}
    note = "  # fill in the data" if _FILL_IN in known.values() else ""
    return [f"datasets = {{{note}", *(f"    {name!r}: {source}," for name, source in known.items()), "}"]


def _loop(lines: list[str], batches: Mapping[str, int | None], distance: str) -> str:
    """Every batch in turn: its p-value, where there was a test, and its distance."""
    tested = any(batches.values())
    result = "test.p_value, " if tested else ""
    return "\n".join([
        "import sotdd", "", *lines,
        "batches = {  # with the number of permutations of each",
        *(f"    {name!r}: {count}," for name, count in batches.items()),
        "}",
        "results = {}",
        "for batch, count in batches.items():",
        *(["    test = reference.test(batch, n_permutations=count)"] if tested else []),
        f"    results[batch] = {result}{distance}",
        "print(results)",
    ])  # fmt: skip


def _call(function: str, first: str, settings: Mapping[str, Any]) -> str:
    """A call on one line, or with a line for each setting."""
    arguments = [first, *(f"{name}={_code_of(value)}" for name, value in settings.items())]
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= 100:
        return line
    return "\n".join([f"{function}(", *(f"    {argument}," for argument in arguments), ")"])


def _code_of(value: object) -> str:
    """A setting as code: laws of this package with what is not their default, ``...`` for a user's own objects."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, _Name):
        return str(value)
    if isinstance(value, (str, int, float, bool, type(None))):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_code_of(part) for part in value)}]"
    kind = type(value)
    if not is_dataclass(value) or not kind.__module__.startswith("sotdd.projections."):
        return _FILL_IN
    changed = {part.name: getattr(value, part.name) for part in fields(value) if _differs(value, part)}
    settings = ", ".join(f"{name}={_code_of(part)}" for name, part in changed.items())
    return f"sotdd.projections.{kind.__name__}({settings})"


def _differs(law: object, part: Field[Any]) -> bool:
    """Whether a setting of a law is not its default."""
    usual = part.default_factory() if part.default_factory is not MISSING else part.default
    return bool(usual is MISSING or getattr(law, part.name) != usual)
