"""The datasets of the demonstration: handwritten digits, their relatives, and a stranger."""

from sotdd.commands.demonstration import STORY, datasets, digits, reading

__all__ = ["STORY", "datasets", "digits", "reading"]
