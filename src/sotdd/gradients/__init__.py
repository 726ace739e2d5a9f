"""What torch differentiates: the distance as a loss, and datasets that flow down its slope."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from sotdd.gradients.loss import sotdd_loss as sotdd_loss

# The loss is loaded when it is first used, since it needs torch and this package does not.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={"loss": ["sotdd_loss"]})
