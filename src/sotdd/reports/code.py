"""Python code that gives the numbers of a page again, with every setting that is not the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from sotdd.compute.matrix import DistanceMatrix
from sotdd.drift.gate import Gate

# Stands for what the reader has to fill in, such as the data.
_FILL_IN = "..."


def write_matrix_code(matrix: DistanceMatrix) -> str:
    """Code that measures the same matrix again, with ``...`` where the reader fills something in."""
    settings: dict[str, Any] = dict(matrix.asked.settings) if matrix.asked else {}
    projections = matrix.projections
    if isinstance(settings.get("seed"), np.random.Generator) and projections is not None:
        settings["seed"] = projections.recipe()["seed"]
    lines = ["import sotdd", "", *_write_datasets(matrix)]
    if settings.get("projections") is not None:
        lines.append("projections = ...  # fill in those that the matrix was measured through")
        settings["projections"] = _Name("projections")
    lines.append(_write_call("matrix = sotdd.pairwise", "datasets", settings))
    if projections is not None and matrix.asked is not None:
        lines.append(f"assert matrix.projections.fingerprint == {projections.fingerprint!r}")
    return "\n".join(lines)


def write_pair_code(function: str, sources: Sequence[str], settings: Mapping[str, Any]) -> str:
    """Code that calls a function of two datasets again, and prints what it returns."""
    call = _write_call(f"result = sotdd.{function}", ", ".join(map(repr, sources)), settings)
    return "\n".join(["import sotdd", "", call, "print(result)"])


def write_gate_code(
    gate: Gate, reference: str, batches: Mapping[str, int | None], settings: Mapping[str, Any], *, loaded: bool
) -> str:
    """Batches against a reference; with each the number of permutations, or None where it was not tested."""
    distance = "reference.distance(batch)"
    if gate.drift is None:
        line = f"reference = sotdd.Sketch.load({reference!r})"
        distance = _write_call("sotdd.distance", "reference, batch", settings)
    elif loaded:
        line = f"reference = sotdd.DriftReference.load({reference!r})"
    else:
        line = _write_call("reference = sotdd.DriftReference.fit", repr(reference), {"with_sketch": True, **settings})
    tested = any(batches.values())
    return "\n".join([
        "import sotdd", "", line,
        "batches = {  # with the number of permutations of each",
        *(f"    {name!r}: {count}," for name, count in batches.items()),
        "}",
        "results = {}",
        "for batch, count in batches.items():",
        *(["    test = reference.test(batch, n_permutations=count)"] if tested else []),
        f"    results[batch] = {'test.p_value, ' if tested else ''}{distance}.value",
        "print(results)",
    ])  # fmt: skip


class _Name(str):
    """A variable of the code, which stands there without quotes."""

    __slots__ = ()


def _write_datasets(matrix: DistanceMatrix) -> list[str]:
    """The sources by name: paths as they are, and ``...`` for all others."""
    sources = matrix.asked.sources if matrix.asked else {}
    known = {name: _FILL_IN if sources.get(name) is None else repr(sources[name]) for name in matrix.names}
    note = "  # fill in the data" if _FILL_IN in known.values() else ""
    return [f"datasets = {{{note}", *(f"    {name!r}: {source}," for name, source in known.items()), "}"]


def _write_call(function: str, first: str, settings: Mapping[str, Any]) -> str:
    """A call on one line, or with a line for each setting."""
    arguments = [first, *(f"{name}={_write_value(value)}" for name, value in settings.items())]
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= 100:
        return line
    return "\n".join([f"{function}(", *(f"    {argument}," for argument in arguments), ")"])


def _write_value(value: object) -> str:
    """A setting as code: laws of this package with all that they are made of, ``...`` for a user's own objects."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, _Name):
        return str(value)
    if isinstance(value, (str, int, float, bool, type(None))):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_write_value, value))}]"
    kind = type(value)
    if not is_dataclass(value) or not kind.__module__.startswith("sotdd.projections."):
        return _FILL_IN
    settings = ", ".join(f"{part.name}={_write_value(getattr(value, part.name))}" for part in fields(value))
    return f"sotdd.projections.{kind.__name__}({settings})"
