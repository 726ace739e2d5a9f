"""Other dataset distances, behind the same inputs and results."""

from collections.abc import Callable
from functools import partial
from inspect import unwrap

from sotdd.peers.embeddings import TaskEmbeddings, chsw, wte, wte_of_pairs
from sotdd.peers.features import frechet, mmd, sliced_wasserstein
from sotdd.peers.optimal_transport import otdd
from sotdd.peers.points import Distances

__all__ = ["TaskEmbeddings", "chsw", "frechet", "mmd", "otdd", "sliced_wasserstein", "wte"]

# By the names that `sotdd.distance` knows: functions of opened datasets, pairs of their numbers, what reports progress,
# and settings by keyword.
METHODS: dict[str, Callable[..., Distances]] = {
    "otdd": unwrap(otdd),
    "otdd-gaussian": partial(unwrap(otdd), inner="gaussian"),
    "wte": wte_of_pairs,
    "chsw": unwrap(chsw),
    "frechet": unwrap(frechet),
    "sw": unwrap(sliced_wasserstein),
    "mmd": unwrap(mmd),
}
