"""What is done to features first: one affine map for every dataset that is compared together."""

from sotdd.scaling.scaler import Scale, Scaler, scaler_for
from sotdd.scaling.statistics import ScaleStatistics

__all__ = ["Scale", "ScaleStatistics", "Scaler", "scaler_for"]
