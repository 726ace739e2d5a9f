"""Chunks that a device is at work on: handed out at once, checked when they are done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from sotdd.engines.faults import too_large, unusable_term
from sotdd.engines.protocol import ClassMoments, View
from sotdd.engines.torch.moments import Moments
from sotdd.engines.torch.verbs import Rows
from sotdd.projections.draws import Block


@dataclass(frozen=True, eq=False)
class SortedRows:
    """One dataset through some projections, perhaps still at work on the device."""

    name: str
    rows: Rows  # (B, n) sorted
    terms: torch.Tensor  # (B, C) the term of each class
    largest: torch.Tensor  # (B,) largest |t|, to explain terms that cannot be used
    fits: torch.Tensor  # (2, B) whether class terms, and whether rows, can be used
    moments: Moments | None  # of its classes, where they are asked for


class SortedChunk:
    """All datasets through some projections, begun on the device.

    What must be checked is copied to the host beside the work, so that checking it later waits for
    this chunk alone and the device never runs dry.
    """

    def __init__(self, part: slice, datasets: list[SortedRows], block: Block) -> None:
        self.part: slice = part
        self.datasets: list[SortedRows] = datasets
        self._terms = block.terms
        self._on_device = datasets[0].rows.is_cuda
        self._fits = torch.empty((len(datasets), 2, len(block)), dtype=torch.bool, pin_memory=self._on_device)
        for seen, host in zip(datasets, self._fits, strict=True):
            host.copy_(seen.fits, non_blocking=True)
        self._explained = [(seen.name, seen.largest) for seen in datasets]
        self._copied = torch.cuda.Event() if self._on_device else None  # type: ignore[no-untyped-call]
        if self._copied is not None:
            self._copied.record(torch.cuda.current_stream(datasets[0].rows.device))

    def handed_out(self, block: Block) -> View:
        """The sorted rows, which are not held on to."""
        datasets, self.datasets = self.datasets, []
        moments = [ClassMoments(*seen.moments) for seen in datasets if seen.moments is not None]
        return View(self.part, [seen.rows for seen in datasets], block, [seen.terms for seen in datasets], moments)

    def check(self) -> None:
        """Wait for this chunk, and refuse what is not finite."""
        if self._copied is not None:
            self._copied.synchronize()
        for (name, largest), (terms_fit, rows_fit) in zip(self._explained, self._fits.numpy(), strict=True):
            if not terms_fit.all():
                line = int(np.argmin(terms_fit))
                raise unusable_term(name, float(largest[line]), self._terms, line, self.part.start + line)
            if not rows_fit.all():
                raise too_large(name, self.part.start + int(np.argmin(rows_fit)))
