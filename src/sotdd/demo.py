"""The datasets of the demonstration: handwritten digits, variants of them, and stripes."""

from sotdd.commands.demonstration import STORY, datasets, digits, reading

__all__ = ["STORY", "datasets", "digits", "reading"]
