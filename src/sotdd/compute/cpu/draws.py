"""Projections that threads draw ahead of the work."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.threads import Workers
from sotdd.projections.draws import BLOCK, Block, Laws
from sotdd.projections.moments import Moments
from sotdd.projections.recipe import Projections

# Further draws follow from the label law and the seed alone. Those of comparisons of few projections, in so many chunks
# no larger than this, are kept for the next one: to make them takes longer than a small comparison.
_KEPT, _KEPT_BYTES, _FEW = 2, 6 << 20, 1024
_kept: dict[Hashable, NDArray[np.float64]] = {}


class Draws:
    """Projections that threads draw ahead of the work.

    Parameters
    ----------
    workers
        The threads.
    projections
        What is drawn.
    more
        How many further draws of the label law each projection gets.
    blocks
        How many blocks a thread draws at a time.
    """

    def __init__(self, workers: Workers, projections: Projections, more: int, blocks: int) -> None:
        self.projections: Projections = projections
        self.more: int = more
        self._workers, self._size = workers, BLOCK * blocks
        self._begun: deque[tuple[list[Future[Block]], Hashable, NDArray[np.float64] | None]] = deque()

    def begin(self, part: slice) -> None:
        """Begin to draw some projections, those that follow on what was begun last."""
        name = self._name(part)
        kept = _kept.get(name)
        alone = kept is not None or self._workers.count == 1
        more, size = 0 if kept is not None else self.more, part.stop - part.start if alone else self._size
        starts = range(part.start, part.stop, size)
        pieces = [(start, min(start + size, part.stop), more) for start in starts]
        futures = [self._workers.submit(partial(self.projections.draw, *piece)) for piece in pieces]
        self._begun.append((futures, name, kept))

    def follow(self, parts: Sequence[slice], ahead: int) -> Iterator[tuple[int, Block]]:
        """Draw one part after another, this many begun at a time: where it starts, and what was drawn.

        The first parts may have been begun before.
        """
        for number, part in enumerate(parts):
            for later in parts[number + len(self._begun) : number + ahead]:
                self.begin(later)
            futures, name, kept = self._begun.popleft()
            block = Block.join([drawing.result() for drawing in futures])
            del futures  # which hold what was drawn
            if kept is not None:
                block = replace(block, draws=kept)
            elif name is not None and block.draws is not None and block.draws.nbytes <= _KEPT_BYTES:
                _kept[name] = block.draws
                for old in list(_kept)[:-_KEPT]:
                    _kept.pop(old, None)
            yield part.start, block

    def _name(self, part: slice) -> Hashable:
        """What the further draws of some projections follow from; None where they are not kept."""
        laws = self.projections.source
        if not self.more or self.projections.n_projections > _FEW:
            return None
        if not isinstance(laws, Laws) or type(laws.label) is not Moments:
            return None
        return laws.label, laws.seed, laws.first_block, part.start, part.stop, self.more
