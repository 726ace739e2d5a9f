"""How projections are drawn: the settings that `sotdd.distance` and its relatives share, with their defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar

import numpy as np

from sotdd.basics.errors import (
    SotddError,
    UnknownSetting,
    check_choice,
    check_count,
    check_flag,
    check_law,
    check_seed,
    describe,
)
from sotdd.inputs.data import LabelledData, same_features
from sotdd.inputs.reading import TableSettings
from sotdd.projections.directions import DirectionLaw, Hadamard, ImportanceSampled, Orthogonal, Sphere
from sotdd.projections.label_laws import ClassQuantiles, LabelLaw
from sotdd.projections.labels import CUT, TABLE_CUT, Moments, OrderLaw, UniformOrders, ZeroTruncatedPoisson
from sotdd.projections.projections import Projections
from sotdd.projections.rotations import FEWEST_FEATURES
from sotdd.projections.scale_statistics import sort_features
from sotdd.projections.scaler import Scale, Scaler, find_scaler

if TYPE_CHECKING:
    _Call = TypeVar("_Call", bound=Callable[..., object])

LabelChoice: TypeAlias = Literal["moments", "quantiles", "paper"] | LabelLaw

_LABEL_LAWS = ("moments", "quantiles", "paper")


class ProjectionKeywords(TypedDict, total=False):
    """What a caller may say of how projections are drawn; `ProjectionSettings` says what each setting is."""

    n_projections: int
    n_moments: int | None
    moments: OrderLaw | Sequence[float] | None
    label_law: LabelChoice | None
    directions: DirectionLaw | None
    label_directions: Literal["shared", "own"]
    scale: Scale
    seed: int | np.random.Generator


class CallSettings(ProjectionKeywords, TableSettings, total=False):
    """What the calls take that open data and draw projections."""


class SampledSettings(CallSettings, total=False):
    """The same, and the size of samples, for calls that read all points unless they are told otherwise."""

    max_points: int | None


def _say(help: str, *choices: str) -> dict[str, object]:  # noqa: A002  # as options call it
    return {"help": help, "choices": choices}


@dataclass(frozen=True, eq=False)
class ProjectionSettings:
    """The settings that projections are drawn by; `Projections.fit` says more of each.

    The metadata of a field are its ``help``, a sentence, and ``choices``, the words that it may be; none for others.
    """

    n_projections: int = field(default=1000, metadata=_say("How many projections; more give a smaller error."))
    n_moments: int | None = field(default=None, metadata=_say("How many moments of a class enter."))
    moments: OrderLaw | Sequence[float] | None = field(
        default=None, metadata=_say("The law of the orders of moments, or the rates of a Poisson law.")
    )
    label_law: LabelChoice | None = field(
        default=None,
        metadata=_say(
            "How classes are summarised: moments, quantiles, or paper, which is moments without a cut.", *_LABEL_LAWS
        ),
    )
    directions: DirectionLaw | None = field(
        default=None, metadata=_say("The law of directions; structured ones from 128 features on.")
    )
    label_directions: Literal["shared", "own"] = field(
        default="shared",
        metadata=_say("The directions of class terms: shared with features, or their own.", "shared", "own"),
    )
    scale: Scale = field(
        default="auto",
        metadata=_say(
            "How features are scaled: features (each by its own spread), arcsinh (the same, tails by their logarithm), "
            "pooled (all by one), auto (arcsinh for columns with names, pooled for others), or none.",
            *("auto", "arcsinh", "features", "pooled", "none"),
        ),
    )
    seed: int | np.random.Generator = field(default=0, metadata=_say("The seed of everything random in a call."))

    def but(self, settings: Mapping[str, Any]) -> ProjectionSettings:
        """These settings, but for those that a caller gave."""
        names = {field.name for field in fields(self)}
        unknown = [name for name in settings if name not in names]
        if unknown:
            raise UnknownSetting(f"s-OTDD has no setting {', '.join(unknown)}: check the spelling, or name a method.")
        return replace(self, **settings)

    def fit(self, data: Sequence[LabelledData], *, tilt: bool = False, weigh_points: bool = False) -> Projections:
        """Draw projections for these datasets, which the scaler is learnt from; see `find_scaler`."""
        n_features = same_features(data)
        law = self.directions
        if law is None:  # structured ones where points have so many features that they pay
            law = Hadamard() if n_features >= FEWEST_FEATURES else Sphere()
        else:
            check_law(
                law,
                {"describe": 0, "draw": 3},
                "directions must be Sphere(), Hadamard(), Orthogonal(), Convolution(...) or an object like those",
            )
        scaler = find_scaler(self.scale, data, weigh_points=weigh_points)
        columns = next((part.columns for part in data if part.columns is not None), None)
        order = None  # laws of a user's own may mean single features
        if columns is not None and type(law) in (Sphere, Hadamard, Orthogonal):
            order = tuple(sort_features(data, scaler, weigh_points=weigh_points))
        if check_flag(tilt, "tilt") and isinstance(law, (Sphere, Hadamard)):
            law = ImportanceSampled.fit(data, scaler, law, order)
        label_law = self.find_label_law(scaler)
        shared = check_choice(self.label_directions, "label_directions", ("shared", "own")) == "shared"
        seed, count = check_seed(self.seed), check_count(self.n_projections, "n_projections")
        projections = Projections(n_features, count, law, label_law, seed, scaler, columns, shared, order=order)
        for part in data:
            projections.check(part)
        return projections

    def find_label_law(self, scaler: Scaler | None) -> LabelLaw:
        """The law by its name or as given; moments unless another is asked for.

        Moments are cut at five spreads, or at 2.5 where every feature has a scale of its own. Features as they are have
        no known spread to cut at, so nothing is cut there, nor by the name "paper".
        """
        law = self.label_law
        if isinstance(law, str) and law not in _LABEL_LAWS:
            names = ", ".join(map(repr, _LABEL_LAWS))
            raise SotddError(f"is {describe(law)}: expected {names} or a label law.", setting="label_law")
        if law is None or (isinstance(law, str) and law in ("moments", "paper")):
            if scaler is None or law == "paper":
                return self._moments(None)
            return self._moments(TABLE_CUT if np.ndim(scaler.scale) else CUT)
        if self.n_moments is not None or self.moments is not None:
            raise SotddError("label_law is given together with n_moments or moments: give one or the other.")
        if isinstance(law, str):
            return ClassQuantiles()
        check_law(
            law,
            {"describe": 0, "draw": 2},
            "label_law must be 'moments', 'quantiles', 'paper', Moments(...), ClassQuantiles(...) or an object like "
            "those",
        )
        return law

    def _moments(self, cut: float | None) -> Moments:
        given = self.moments
        orders = given if isinstance(given, (ZeroTruncatedPoisson, UniformOrders)) else ZeroTruncatedPoisson(given)
        count = self.n_moments
        if count is None:
            rates = getattr(orders, "rates", None)
            count = len(rates) if isinstance(rates, (Sequence, np.ndarray)) else 5
        return Moments(count, orders, cut)


# What calls draw unless they are told otherwise.
DEFAULT_SETTINGS = ProjectionSettings()


def show_settings(
    drawing: ProjectionSettings = DEFAULT_SETTINGS, *, without: Sequence[str] = ()
) -> Callable[[_Call], _Call]:
    """Show the settings of a drawing, with their defaults, in the signature of a call that takes them as keywords.

    They stand after ``p``, or first among what is given by name. ``**drawing`` stands for these settings and nothing
    else, so it is not shown; keywords by another name are.
    """

    def decorate(call: _Call) -> _Call:
        shown = inspect.signature(call)
        own = [part for part in shown.parameters.values() if part.name != "drawing"]
        settings = [
            inspect.Parameter(
                setting.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=getattr(drawing, setting.name),
                annotation=setting.type,
            )
            for setting in fields(ProjectionSettings)
            if setting.name not in without
        ]
        names = [part.name for part in own]
        by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
        position = names.index("p") + 1 if "p" in names else sum(part.kind not in by_name for part in own)
        call.__signature__ = shown.replace(  # type: ignore[attr-defined]  # as `inspect` looks it up
            parameters=[*own[:position], *settings, *own[position:]]
        )
        return call

    return decorate


# Their settings show in the signature of `Projections.fit` too, which lies below them.
show_settings()(Projections.fit.__func__)  # type: ignore[attr-defined]  # the function behind the class method
