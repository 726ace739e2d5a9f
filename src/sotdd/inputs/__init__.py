"""Data as people have it, opened as labelled datasets."""

from sotdd.inputs.opening import open_dataset
from sotdd.inputs.several import labelled, labelled_pair, named

__all__ = ["labelled", "labelled_pair", "named", "open_dataset"]
