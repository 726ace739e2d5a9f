"""The peers by name, each as a function of several datasets and the pairs to measure among them."""

from __future__ import annotations

from functools import partial

from sotdd.peers.call import Method, keywords_of
from sotdd.peers.gaussians import frechet
from sotdd.peers.hyperbolic import chsw
from sotdd.peers.kernel_means import mmd
from sotdd.peers.optimal_transport import otdd
from sotdd.peers.slicing import sliced_wasserstein
from sotdd.peers.task_embedding import wte

METHODS: dict[str, Method] = {
    "otdd": otdd.of_pairs,
    "otdd-gaussian": partial(otdd.of_pairs, inner="gaussian"),
    "wte": wte.of_pairs,
    "chsw": chsw.of_pairs,
    "frechet": frechet.of_pairs,
    "sw": sliced_wasserstein.of_pairs,
    "mmd": mmd.of_pairs,
}


def settings_of(method: str) -> list[str]:
    """The names of the settings that a method takes."""
    return keywords_of(METHODS[method])
