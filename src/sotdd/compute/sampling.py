"""Projections that threads sample ahead of the work."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import Workers
from sotdd.projections.blocks import BLOCK, ORDERS, Block
from sotdd.projections.recipe import Projections

Doubles = NDArray[np.float64]

# Further samples follow from the label law and the seed alone. Those of comparisons of few projections, in so many
# chunks no larger than this, are kept for the next one: to make them takes longer than a small comparison.
_KEPT, _KEPT_BYTES, _FEW = 2, 6 << 20, 1024
_kept: dict[Hashable, Doubles] = {}
# Projections that a thread samples at a time: of rotations, as many as share one of up to 1,024 features.
_TOGETHER, _TOGETHER_ROTATED = 4 * BLOCK, 16 * BLOCK


class Sampler:
    """Samples projections ahead of the work.

    Parameters
    ----------
    workers
        The threads.
    projections
        What is sampled.
    n_label_samples
        How many further samples of the label law each projection gets.
    """

    def __init__(self, workers: Workers, projections: Projections, n_label_samples: int = 0) -> None:
        self._workers, self._projections, self._more = workers, projections, n_label_samples
        self._size = _TOGETHER if projections.rotation_size is None else _TOGETHER_ROTATED
        self._begun: deque[tuple[list[Future[Block]], list[Future[None]], Doubles | None]] = deque()

    def begin(self, part: slice) -> None:
        """Begin to sample some projections, those that follow on what was begun last."""
        submit, counted = self._workers.submit, _kept.get(self._name(part))
        further: list[Future[None]] = []
        if self._more and counted is None:
            counted = np.zeros((part.stop - part.start, ORDERS + 2, 1 + self._more))
            for start, stop in self._cut(part, _TOGETHER):
                some = counted[start - part.start : stop - part.start]
                further.append(submit(partial(self._projections.sample_further, start // BLOCK, some)))
        blocks = [submit(partial(self._projections.draw, start, stop)) for start, stop in self._cut(part, self._size)]
        self._begun.append((blocks, further, counted))

    def _cut(self, part: slice, size: int) -> list[tuple[int, int]]:
        """Cut projections into pieces that a thread samples at a time; a single thread samples all of them."""
        size = part.stop - part.start if self._workers.count == 1 else size
        return [(start, min(start + size, part.stop)) for start in range(part.start, part.stop, size)]

    def follow(self, parts: Sequence[slice], ahead: int) -> Iterator[Block]:
        """Sample one part after another, this many begun at a time.

        The first parts may have been begun before.
        """
        for number, part in enumerate(parts):
            for later in parts[number + len(self._begun) : number + ahead]:
                self.begin(later)
            blocks, further, counted = self._begun.popleft()
            block = Block.join([begun.result() for begun in blocks])
            for begun in further:
                begun.result()
            if counted is not None:
                block = block.with_draws(counted) if further else replace(block, draws=counted)
                self._keep(block, part)
            del blocks, further, counted  # which hold what was sampled
            yield block

    def _keep(self, block: Block, part: slice) -> None:
        """Keep further samples for the next comparison, where they are small."""
        name = self._name(part)
        if name is not None and block.draws is not None and block.draws.nbytes <= _KEPT_BYTES:
            _kept[name] = block.draws
            for old in list(_kept)[:-_KEPT]:
                _kept.pop(old, None)

    def _name(self, part: slice) -> Hashable:
        """What the further samples of some projections follow from; None where they are not kept."""
        label_key = self._projections.label_key
        if not self._more or label_key is None or self._projections.n_projections > _FEW:
            return None
        return label_key, part.start, part.stop, self._more
