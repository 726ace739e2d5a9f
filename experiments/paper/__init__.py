"""The paper's experiments: each ``python -m experiments.paper.NAME``, all of them ``python -m experiments.paper``."""
