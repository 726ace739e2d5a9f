"""The distance as a loss that torch can differentiate."""

from sotdd.gradients.loss import sotdd_loss

__all__ = ["sotdd_loss"]
