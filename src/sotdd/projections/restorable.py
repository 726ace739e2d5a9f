"""Laws that can be made again from what they say of themselves, as files and references need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

from sotdd.basics.errors import SotddError

Settings = Mapping[str, Any]


class Restorable(Protocol):
    """A law with a name, which its description carries, and a way back from that description."""

    law: ClassVar[str]

    @classmethod
    def restore(cls, settings: Settings) -> Self:
        """The law that describes itself by these settings."""


def restored_law(settings: Settings, *laws: type[Restorable]) -> Any:  # noqa: ANN401  # one of them
    """The law of this description, which must be one of those given."""
    name = settings.get("law")
    for law in laws:
        if law.law == name:
            return law.restore(settings)
    raise SotddError(f"its projections ({name or 'a law of its own'}) cannot be drawn from their description alone")
