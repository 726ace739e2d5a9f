"""Projections as files keep them: enough to recognise them, and mostly enough to draw them again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from sotdd.basics.errors import SotddError, describe, first_line
from sotdd.basics.resources import kept_property
from sotdd.basics.text import quote, say_count, show
from sotdd.compute.matrix import DistanceMatrix
from sotdd.inputs.data import LabelledData
from sotdd.projections.directions import TILTED_ROTATIONS, ImportanceSampled
from sotdd.projections.projections import Projections
from sotdd.projections.scaler import Scaler
from sotdd.sketches.codec import Arrays, Header, Reader, pack_remarks

# What calls take as ``projections``: those of a matrix have the unit of all its datasets.
Given: TypeAlias = Projections | DistanceMatrix

# Blocks of directions with more features do not fit in memory.
MOST_FEATURES = 1 << 24


@dataclass(frozen=True, eq=False)
class SavedProjections:
    """The projections of a sketch or of a catalog, as a file keeps them.

    In a file the scaler is an array ``centre`` (d,), with ``scale`` (d,) if each feature has its own; tilted directions
    have ``basis`` (r, d) and ``stretch`` (r,).

    Attributes
    ----------
    settings
        What `Projections.recipe` says of them.
    fingerprint
        Of the settings and of numbers that were drawn.
    scaler
        How features were scaled first.
    tilt
        The law of directions where it was learnt from data, which the settings cannot describe; None for others.
    known
        The projections themselves, where they need not be drawn again.
    """

    settings: Mapping[str, Any]
    fingerprint: str
    scaler: Scaler | None
    tilt: ImportanceSampled | None
    known: Projections | None = None

    @classmethod
    def of(cls, projections: Projections) -> SavedProjections:
        """Those that are at hand."""
        check_projections(projections)
        return cls(projections.recipe(), projections.fingerprint, projections.scaler, projections.tilt, projections)

    @kept_property
    def projections(self) -> Projections | None:
        """The projections, drawn again when they are first used; None where they cannot be.

        Sketches compare without them, so a file that asks for large ones costs no more than its own size to read.
        """
        if self.known is not None:
            return self.known
        # Settings from a file can be wrong in any way.
        with suppress(KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError):
            if self.settings["n_features"] <= MOST_FEATURES:
                return Projections.restore(self.settings, self.scaler, self.fingerprint, self.tilt)
        return None

    def refuse_other(self, other: SavedProjections, what: str) -> None:
        """Refuse others whose fingerprint differs, and name the settings that do."""
        if self.fingerprint == other.fingerprint:
            return
        reason = (
            "; ".join(_find_differences(self.settings, other.settings)[:3])
            or "the settings are the same, but other versions of libraries drew other numbers from them"
        )
        raise SotddError(f"{what} are through different projections: {reason}. Use the same for both.")

    def refuse_data(self, data: LabelledData) -> None:
        """Refuse data with another number of features before anything is drawn: a small file may claim very many."""
        count = self.settings.get("n_features")
        if "columns" not in self.settings and count != data.n_features:
            raise SotddError(
                f"dataset {data.name!r} has {say_count(data.n_features, 'feature')} but the sketch is of "
                f"{show(repr(count), 20)}: compare data with the same features."
            )

    def require_projections(self, whose: str) -> Projections:
        """The projections, to see other data through, or an error where they cannot be had."""
        if self.projections is None:
            raise SotddError(
                f"the projections of {whose} cannot be drawn again from its file (laws of your own, your own arrays, "
                "or other versions of libraries): pass projections=, or sketch data through the original ones first."
            )
        return self.projections

    def pack(self) -> tuple[Header, Arrays]:
        """What a file says of them: entries of the header, and arrays."""
        header: Header = {"recipe": dict(self.settings), "fingerprint": self.fingerprint}
        arrays: Arrays = {}
        if self.tilt is not None:
            arrays |= {"basis": self.tilt.basis.astype(np.float32), "stretch": self.tilt.stretch}
        if self.scaler is None:
            return header, arrays
        header["scale_remarks"] = pack_remarks(self.scaler.remarks)
        arrays["centre"] = self.scaler.centre
        if isinstance(self.scaler.scale, float):
            header["scale"] = self.scaler.scale
        else:
            arrays["scale"] = self.scaler.scale
        return header, arrays

    @classmethod
    def read(cls, reader: Reader, projections: Projections | None = None) -> SavedProjections:
        """What a file says, through these projections if they are the same, else with those that it describes."""
        fingerprint, (scaler, tilt) = reader.get("fingerprint", str), _read_learnt(reader)
        if projections is not None and projections.fingerprint == fingerprint:
            return cls.of(projections)
        return cls(reader.get("recipe", dict), fingerprint, scaler, tilt)


def check_projections(given: object) -> Projections:
    """Return projections, or those of a matrix; refuse anything else."""
    found = given.projections if isinstance(given, DistanceMatrix) else given
    if not isinstance(found, Projections):
        raise SotddError(
            f"is {describe(given)}: expected Projections.fit(...) or from_arrays(...), or a matrix of s-OTDD.",
            setting="projections",
        )
    return found


def read_projections(reader: Reader, projections: Projections | None) -> Projections:
    """The projections of a file: drawn again from its recipe, or those passed, once they are checked."""
    if projections is not None and check_projections(projections).fingerprint != reader.get("fingerprint", str):
        raise SotddError(f"{quote(reader.name)} was made through other projections than those passed: pass its own.")
    return SavedProjections.read(reader, projections).require_projections(quote(reader.name))


def _read_learnt(reader: Reader) -> tuple[Scaler | None, ImportanceSampled | None]:
    """What was learnt from data: the scaler and the tilt."""
    settings, scaler, tilt = reader.within("recipe"), None, None
    n_features, columns = settings.count("n_features"), settings.texts("columns") or None
    if columns is not None and len(columns) != n_features:
        raise reader.refuse("its columns are not one for each feature")
    order = settings.get("order", list) if settings.has("order") else []
    if order and (set(map(type, order)) != {int} or sorted(order) != list(range(n_features))):
        raise reader.refuse("its order of features has not each of them once")
    if reader.holds("centre"):
        centre, remarks = reader.array("centre", "f8", (n_features,)), reader.remarks("scale_remarks")
        scale = reader.array("scale", "f8", (n_features,)) if reader.holds("scale") else reader.number("scale")
        scaler = partial(
            Scaler, centre, scale, columns, remarks, settings.within("scaler").get("kind", str) == "arcsinh"
        )
    if reader.holds("basis"):
        basis = reader.array("basis", "f4", (None, n_features))
        rotated = settings.within("directions").get("law", str) == TILTED_ROTATIONS
        tilt = partial(ImportanceSampled, basis, reader.array("stretch", "f8", (len(basis),)), rotated)
    try:
        return None if scaler is None else scaler(), None if tilt is None else tilt()
    except SotddError as error:
        raise reader.refuse(first_line(error)) from error


def _find_differences(a: Mapping[str, Any], b: Mapping[str, Any], inside: str = "") -> list[str]:
    """Settings that differ, by name, with both values."""
    found = []
    for name in [*a, *(name for name in b if name not in a)]:
        left, right = a.get(name), b.get(name)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            found += _find_differences(left, right, f"{name} ")
        elif left != right:
            found.append(f"{inside}{name} is {show(repr(left), 60)} and {show(repr(right), 60)}")
    return found
