"""Studies beyond the paper: each ``python -m experiments.studies.NAME``."""
