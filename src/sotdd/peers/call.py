"""A method written once, for pairs among several datasets, becomes a call on two datasets."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from sotdd.basics.errors import UnknownSetting
from sotdd.basics.memory import within_memory
from sotdd.basics.progress import Report
from sotdd.basics.renamed import renamed
from sotdd.inputs import labelled_pair
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.results.distance import Distance

Pairs: TypeAlias = Sequence[tuple[int, int]]
Distances: TypeAlias = dict[tuple[int, int], Distance]

# Takes datasets, pairs of their indices, a function to report (done, total) to, and settings by keyword.
Method: TypeAlias = Callable[..., Distances]

# What to do where memory runs out.
FEWER_POINTS = "pass max_points, or use method 'sotdd', whose memory does not grow this way"
SAMPLE = "use fewer projections, or a sample of the points: sotdd.open_dataset(..., max_points=...)"

Settings = ParamSpec("Settings")
_Function = TypeVar("_Function", bound=Callable[..., object])


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

    def call(a: Dataset, b: Dataset, **settings: Any) -> Distance:  # noqa: ANN401  # as the method says
        settings = known_settings(settings, method)
        return method(labelled_pair(a, b), [(0, 1)], silent, **settings)[0, 1]  # type: ignore[call-arg]

    instead = FEWER_POINTS if "max_points" in keywords_of(method) else SAMPLE
    shown = cast("Peer[Settings]", within_memory(instead)(showing_settings_of(method, call)))
    shown.of_pairs = method
    return shown


def showing_settings_of(method: Callable[..., object], call: _Function) -> _Function:
    """Give a call the name, the docstring and the settings of the method that it passes them to."""
    own = inspect.signature(call)
    data = [part for part in own.parameters.values() if part.kind is not inspect.Parameter.VAR_KEYWORD]
    settings = [inspect.signature(method).parameters[name] for name in keywords_of(method)]
    shown = wraps(method, assigned=("__module__", "__name__", "__qualname__", "__doc__"))(call)
    signature = own.replace(parameters=[*data, *settings])
    shown.__signature__ = signature  # type: ignore[attr-defined]  # as `inspect` looks it up
    shown.__annotations__ = {part.name: part.annotation for part in signature.parameters.values()}
    shown.__annotations__["return"] = own.return_annotation
    return cast("_Function", shown)


def keywords_of(method: Callable[..., object]) -> list[str]:
    """The names of what a method takes by keyword only: its settings."""
    parameters = inspect.signature(method).parameters.values()
    return [part.name for part in parameters if part.kind is inspect.Parameter.KEYWORD_ONLY]


def known_settings(settings: Mapping[str, Any], method: Callable[..., object]) -> dict[str, Any]:
    """The settings by their names of today, or an error where the method has none of that name."""
    known = keywords_of(method)
    current = current_names(settings, known)
    unknown = [name for name in current if name not in known]
    if unknown:
        raise UnknownSetting(f"{method.__name__} has no setting {', '.join(unknown)}: it takes {', '.join(known)}.")
    return current


def current_names(settings: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The settings by their names of today, where the method knows those."""
    if "max_points" not in known:
        return dict(settings)
    return renamed(settings, "max_samples", "max_points")


def silent(done: int, total: int) -> None:
    """Report to nobody."""
