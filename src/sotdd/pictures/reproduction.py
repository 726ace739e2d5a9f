"""Python code that measures a matrix again, with every setting that is not the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

import numpy as np

from sotdd.projections.directions import Tilted
from sotdd.projections.draws import Laws
from sotdd.projections.recipe import Projections
from sotdd.results.matrix import DistanceMatrix

# Stands for what the reader has to fill in, such as the data.
_FILL_IN = "..."


def reproduction(matrix: DistanceMatrix) -> str:
    """Python code that measures the same matrix again, with ``...`` where the reader fills something in."""
    settings: dict[str, Any] = dict(matrix.asked.settings) if matrix.asked else {}
    projections = matrix.projections
    if isinstance(settings.get("seed"), np.random.Generator) and projections is not None:
        settings["seed"] = projections.recipe()["seed"]
    lines = ["import sotdd", "", *_datasets(matrix)]
    if settings.pop("projections", None) is not None and projections is not None:
        lines += _fitted(projections)
        settings = {"projections": "projections", **{name: code_of(value) for name, value in settings.items()}}
    else:
        settings = {name: code_of(value) for name, value in settings.items()}
    lines.append(call("matrix = sotdd.pairwise", "datasets", settings))
    if projections is not None and matrix.asked is not None:
        lines.append(f"assert matrix.projections.fingerprint == {projections.fingerprint!r}")
    return "\n".join(lines)


def _datasets(matrix: DistanceMatrix) -> list[str]:
    """The sources by name: paths as they are, and ``...`` for all others."""
    sources = matrix.asked.sources if matrix.asked else {}
    known = {name: _FILL_IN if sources.get(name) is None else repr(sources[name]) for name in matrix.names}
    note = "  # fill in the data" if _FILL_IN in known.values() else ""
    line = f"datasets = {{{', '.join(f'{name!r}: {source}' for name, source in known.items())}}}{note}"
    if len(known) <= 4 and len(line) <= 100:
        return [line]
    return [f"datasets = {{{note}", *(f"    {name!r}: {source}," for name, source in known.items()), "}"]


def _fitted(projections: Projections) -> list[str]:
    """Code that fits again the projections that the caller passed."""
    laws = projections.source
    if not isinstance(laws, Laws):
        return ["projections = sotdd.Projections.from_arrays(...)  # fill in the arrays"]
    tilted = isinstance(laws.directions, Tilted)
    settings = {
        "n_projections": code_of(projections.n_projections),
        "seed": code_of(laws.seed),
        "label_law": code_of(laws.label),
    }
    if not tilted:
        settings["directions"] = code_of(laws.directions)
    elif laws.directions.structured:  # type: ignore[attr-defined]  # tilted
        settings["directions"] = "sotdd.Hadamard()"
    if not laws.shared_directions:
        settings["shared_directions"] = "False"
    if projections.scaler is None:
        settings["scale"] = "None"
    if tilted:
        settings["tilt"] = "True"
    lines = [
        "reference = ...  # fill in the data that the projections were fitted on, and scale= if it was a Scaler",
        call("projections = sotdd.Projections.fit", "reference", settings),
    ]
    if laws.first_block:
        lines.append(f"projections = projections.from_block({laws.first_block}, {projections.n_projections})")
    return lines


def call(function: str, first: str, settings: Mapping[str, str]) -> str:
    """A call on one line, or with a line for each setting."""
    arguments = [first, *(f"{name}={value}" for name, value in settings.items())]
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= 100:
        return line
    return "\n".join([f"{function}(", *(f"    {argument}," for argument in arguments), ")"])


def code_of(value: object) -> str:
    """A setting as code: laws of this package with what is not their default, ``...`` for a user's own objects."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (str, int, float, bool, type(None))):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(code_of(part) for part in value)}]"
    kind = type(value)
    if not is_dataclass(value) or not kind.__module__.startswith("sotdd.projections."):
        return _FILL_IN
    changed = {part.name: getattr(value, part.name) for part in fields(value) if _differs(value, part)}
    return f"sotdd.{kind.__name__}({', '.join(f'{name}={code_of(part)}' for name, part in changed.items())})"


def _differs(law: object, part: Field[Any]) -> bool:
    """Whether a setting of a law is not its default."""
    usual = part.default_factory() if part.default_factory is not MISSING else part.default
    return bool(usual is MISSING or getattr(law, part.name) != usual)
