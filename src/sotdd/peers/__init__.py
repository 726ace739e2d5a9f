"""Other dataset distances, behind the same inputs and results."""

from sotdd.peers.calls import TaskEmbeddings, chsw, frechet, mmd, otdd, sliced_wasserstein, wte

__all__ = ["TaskEmbeddings", "chsw", "frechet", "mmd", "otdd", "sliced_wasserstein", "wte"]
