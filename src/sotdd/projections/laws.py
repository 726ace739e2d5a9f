"""Laws that come with this package: each is known by a name, and its fields are its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

from sotdd.basics.errors import SotddError


class Law:
    """A dataclass that says what it is in JSON values, and is made again from them.

    A subclass gives its name: ``class Sphere(Law, name="sphere")``.
    """

    law: ClassVar[str]
    _known: ClassVar[dict[str, type[Law]]] = {}

    def __init_subclass__(cls, *, name: str) -> None:
        """Make it known by its name."""
        cls.law = name
        Law._known[name] = cls

    def describe(self) -> Mapping[str, object]:
        """Name the law and its settings: they become part of the fingerprint."""
        return {"law": self.law, **{field.name: getattr(self, field.name) for field in fields(self)}}  # type: ignore[arg-type]

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """A law of this kind, from what it said of itself."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # every law is a dataclass
        return cls(**{name: settings[name] for name in names if name in settings})

    @staticmethod
    def restore(settings: Mapping[str, Any]) -> Any:  # noqa: ANN401  # a law of directions, of labels or of orders
        """The law that these settings are of, where they say all of it."""
        name = settings.get("law")
        if not isinstance(name, str) or name not in Law._known:
            shown = name or "a law of its own"
            raise SotddError(f"its projections ({shown}) cannot be drawn from their description alone")
        return Law._known[name].of(settings)
