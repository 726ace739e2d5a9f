"""A method written once, for pairs among several datasets, becomes a call on two datasets."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, cast

from sotdd.basics.progress import Report
from sotdd.inputs import labelled_pair
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.results.distance import Distance

Pairs: TypeAlias = Sequence[tuple[int, int]]
Distances: TypeAlias = dict[tuple[int, int], Distance]

# What to do where memory runs out.

Settings = ParamSpec("Settings")


class Peer(Protocol[Settings]):
    """A call on two datasets; ``of_pairs`` measures pairs among several that are open already."""

    of_pairs: Callable[Concatenate[Sequence[LabelledData], Pairs, Report, Settings], Distances]

    def __call__(self, a: Dataset, b: Dataset, *none: Settings.args, **settings: Settings.kwargs) -> Distance:
        """Open two datasets and measure how far apart they are."""


def peer(
    method: Callable[Concatenate[Sequence[LabelledData], Pairs, Report, Settings], Distances],
) -> Peer[Settings]:
    """Make a call ``(a, b, *, settings)`` of a method ``(datasets, pairs, report, *, settings)``.

    The docstring of the method describes the call. The datasets are opened here, and nowhere below.
    """

    @wraps(method, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def call(a: Dataset, b: Dataset, **settings: Any) -> Distance:  # noqa: ANN401  # as the method says
        return method(labelled_pair(a, b), [(0, 1)], lambda done, total: None, **settings)[0, 1]  # type: ignore[call-arg]

    own, known = inspect.signature(call, follow_wrapped=False), settings_of(method)
    data = [own.parameters[name] for name in ("a", "b")]
    parameters = [inspect.signature(method).parameters[name] for name in known]
    call.__signature__ = own.replace(parameters=[*data, *parameters])  # type: ignore[attr-defined]  # what help() shows
    shown = cast("Peer[Settings]", call)
    shown.of_pairs = method
    return shown


def settings_of(method: Callable[..., object]) -> list[str]:
    """The names of what a method takes by keyword only."""
    parameters = inspect.signature(method).parameters.values()
    return [part.name for part in parameters if part.kind is inspect.Parameter.KEYWORD_ONLY]
