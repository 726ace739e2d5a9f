from .loss import sotdd_loss as sotdd_loss
