"""Data as people have it, opened as labelled datasets."""

from sotdd.inputs.loaders.parquet_batches import ParquetBatches
from sotdd.inputs.opening import labelled, labelled_pair, named, open_dataset

__all__ = ["ParquetBatches", "labelled", "labelled_pair", "named", "open_dataset"]
