"""What torch differentiates: the distance as a loss, and datasets that flow down its slope."""

import lazy_loader

# The loss is loaded when it is first used, since it needs torch and this package does not.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
