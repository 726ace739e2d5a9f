"""What torch differentiates: the distance as a loss, and datasets that flow down its slope."""

from sotdd.gradients.loss import sotdd_loss

__all__ = ["sotdd_loss"]
