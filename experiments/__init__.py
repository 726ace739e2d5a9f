"""The paper's experiments: each ``python -m experiments.NAME [--data DIR] [--quick] [--device cuda]``."""
