"""What the page says of each experiment: numbers from its CSV files, words from remarks.toml."""

from experiments.reports.measures import correlations, moment_counts, projection_counts, runtimes
from experiments.reports.transfers import augmentations, nist, texts, tiny

SECTIONS = (correlations, runtimes, projection_counts, nist, moment_counts, texts, tiny, augmentations)
