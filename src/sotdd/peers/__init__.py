"""Other dataset distances, behind the same inputs and results."""

from sotdd.peers.gaussians import frechet
from sotdd.peers.hyperbolic import chsw
from sotdd.peers.kernel_means import mmd
from sotdd.peers.optimal_transport import otdd
from sotdd.peers.slicing import sliced_wasserstein
from sotdd.peers.task_embedding import TaskEmbeddings, wte

__all__ = ["TaskEmbeddings", "chsw", "frechet", "mmd", "otdd", "sliced_wasserstein", "wte"]
