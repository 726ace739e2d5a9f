"""Python that gives the numbers of a verdict again, to be copied from its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sotdd.pictures.reproduction import call, code_of


def test_code(sources: Sequence[str], settings: Mapping[str, Any]) -> str:
    """The test of two sources."""
    return _between("result = sotdd.test", sources, settings, "print(result.p_value, result.distance)")


def explanation_code(sources: Sequence[str], settings: Mapping[str, Any]) -> str:
    """The explanation of the distance between two sources."""
    return _between("why = sotdd.explain", sources, settings, "print(why)")


def saved_gate_code(reference: str, batches: Mapping[str, int | None]) -> str:
    """Batches against a saved reference; with each the number of shuffles, or None where it was not tested."""
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
        call("reference = sotdd.DriftReference.fit", "data", _as_code({**few, **order, **testing})),
        call("projections = sotdd.Projections.fit", "[data]", _as_code(drawing)),
    ]
    settings = ", ".join(f"{name}={value}" for name, value in _as_code(order).items())
    between = f"data, reference.opened(batch), projections=projections{', ' if settings else ''}{settings}"
    return _loop(lines, batches, f"sotdd.distance({between}).value")


def sketch_gate_code(reference: str, batches: Mapping[str, int | None], order: Mapping[str, Any]) -> str:
    """Batches against a sketch."""
    settings = "".join(f", {name}={value}" for name, value in _as_code(order).items())
    lines = [f"reference = sotdd.Sketch.load({reference!r})"]
    return _loop(lines, batches, f"sotdd.distance(reference, batch{settings}).value")


def _between(what: str, sources: Sequence[str], settings: Mapping[str, Any], last: str) -> str:
    one, other = (repr(source) for source in sources)
    return "\n".join(["import sotdd", "", call(what, f"{one}, {other}", _as_code(settings)), last])


def _loop(lines: list[str], batches: Mapping[str, int | None], distance: str) -> str:
    """Every batch in turn: its p-value, where there was a test, and its distance."""
    tested = any(batches.values())
    known = ", ".join(f"{name!r}: {count}" if tested else repr(name) for name, count in batches.items())
    if len(known) > 90:
        each = [f"    {name!r}: {count}," if tested else f"    {name!r}," for name, count in batches.items()]
        known = "\n".join(["", *each, ""])
    note = "  # how often each is shuffled" if tested and "\n" not in known else ""
    lines = ["import sotdd", "", *lines, f"batches = {{{known}}}{note}" if tested else f"batches = [{known}]"]
    lines += ["results = {}", "for batch in batches:" if not tested else "for batch, shuffles in batches.items():"]
    if tested:
        lines.append("    test = reference.test(batch, n_permutations=shuffles)")
        lines.append(f"    results[batch] = test.p_value, {distance}")
    else:
        lines.append(f"    results[batch] = {distance}")
    return "\n".join([*lines, "print(results)"])


def _as_code(settings: Mapping[str, Any]) -> dict[str, str]:
    return {name: code_of(value) for name, value in settings.items()}
