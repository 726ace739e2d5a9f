"""The distance as a metric of torchmetrics: batches of real and synthetic data in, one number out."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from sotdd.basics.errors import SotddError, check_flag, check_order, describe, require
from sotdd.basics.text import say_count
from sotdd.compute.distance import Distance
from sotdd.measure.distance import ORDER
from sotdd.projections.projections import Projections
from sotdd.sketches.builder import SketchBuilder, pack_builder, unpack_builder

require("torchmetrics", "sotdd.integrations.torchmetrics", "'sotdd[torchmetrics]'")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torchmetrics import Metric  # noqa: E402

__all__ = ["SlicedOTDatasetDistance"]

Side: TypeAlias = Literal["real", "synthetic"]

# Batches wait, on the device where they are, until they hold this many values; then all of them are counted at once.
# Writing the counts into a tensor takes longer than counting one batch.
_WAITING_VALUES = 1 << 24


class SlicedOTDatasetDistance(Metric):  # type: ignore[misc]  # a class of a library that is optional
    """How far synthetic data are from real data, labels included.

    Batches are counted in histograms of their projections, so memory does not grow with their number: each side
    takes 4 kB per class and projection, and up to 64 MB of batches that wait to be counted. The counts of several
    processes add up to those of one, and `compute` gives the same distance.

    Parameters
    ----------
    projections
        What both sides are projected by: `sotdd.Projections.fit` on a sample of the real data. Every process needs
        the same, so fit them on the same sample or pickle them.
    p
        The order of transport.
    encoder
        A torch module that makes feature vectors of what `update` is given, such as images; None for features as
        they are. It runs without gradients, in the mode that it is in.
    reset_real_features
        Whether `reset` drops the real data too. With False they are counted once, for all epochs.
    **kwargs
        Settings of `torchmetrics.Metric`, such as ``sync_on_compute``.

    Attributes
    ----------
    result
        The `sotdd.results.Distance` that `compute` made last, with its standard error and interval; None before.

    Examples
    --------
    >>> import sotdd, torch
    >>> from sotdd.integrations.torchmetrics import SlicedOTDatasetDistance
    >>> rng = torch.Generator().manual_seed(0)
    >>> x, y = torch.randn(600, 8, generator=rng), torch.randint(3, (600,), generator=rng)
    >>> metric = SlicedOTDatasetDistance(sotdd.Projections.fit([(x, y)], n_projections=256))
    >>> for start in range(0, 600, 200):
    ...     rows = slice(start, start + 200)
    ...     metric.update(x[rows], y[rows], real=True)
    ...     metric.update(1.5 * x[rows], y[rows], real=False)
    >>> round(metric.compute().item(), 2)
    0.38
    >>> metric.result.n_points
    (600, 600)
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0

    real_counts: list[Tensor]
    synthetic_counts: list[Tensor]

    def __init__(
        self,
        projections: Projections,
        *,
        p: float = ORDER,
        encoder: torch.nn.Module | None = None,
        reset_real_features: bool = True,
        **kwargs: Any,  # noqa: ANN401  # as Metric takes them
    ) -> None:
        super().__init__(**kwargs)
        SketchBuilder(projections)  # refuses what batches cannot be counted through
        if encoder is not None and not isinstance(encoder, torch.nn.Module):
            raise SotddError(f"is {describe(encoder)}: expected a torch module, or None.", setting="encoder")
        self.projections = projections
        self.p: float = check_order(p)
        self.encoder = encoder
        self.reset_real_features = check_flag(reset_real_features, "reset_real_features")
        self.result: Distance | None = None
        self._labelled: bool | None = None  # whether batches come with labels, once there is one
        for name in (*_name_states("real"), *_name_states("synthetic")):
            self.add_state(name, [], dist_reduce_fx=None)
        # A MetricCollection lets metrics share a state that looks the same, which other projections must not.
        seen_through = torch.tensor(list(bytes.fromhex(projections.fingerprint)), dtype=torch.float32)
        self.add_state("seen_through", seen_through, dist_reduce_fx="max")

    def update(self, features: Tensor, labels: Tensor | None = None, *, real: bool) -> None:
        """Add a batch.

        Parameters
        ----------
        features
            (n, ...) one row per point; for an encoder, what it takes.
        labels
            (n,) whole numbers; None for one class, and then for all batches.
        real
            Whether the batch is of the real data, or of the synthetic.
        """
        side: Side = "real" if check_flag(real, "real") else "synthetic"
        if self.encoder is not None:
            with torch.no_grad():
                features = self.encoder(features)
        rows = self._check_features(features)
        classes = self._check_labels(labels, len(rows))
        getattr(self, f"{side}_features").append(rows)
        getattr(self, f"{side}_labels").append(classes)
        if sum(batch.numel() for batch in getattr(self, f"{side}_features")) >= _WAITING_VALUES:
            self._count_waiting(side)

    def compute(self) -> Tensor:
        """The distance between all real and all synthetic points so far, of all processes; `result` has its error."""
        builders = [self._count(side) for side in ("real", "synthetic")]
        for side, builder in zip(("real", "synthetic"), builders, strict=True):
            if not builder.n_points:
                raise SotddError(f"there are no {side} points yet: call update(..., real={side == 'real'}) first.")
        real, synthetic = builders[0].finish("real"), builders[1].finish("synthetic")
        self.result = real.distance(synthetic, self.p)
        return torch.tensor(self.result.value, device=self.device)

    def forward(self, *_: Any, **__: Any) -> Tensor:  # noqa: ANN401  # as Metric takes them
        """Refuse to give the value of one batch, which is of one side and has none."""
        raise SotddError("a batch is of one side, real or synthetic, and has no distance: call update, later compute.")

    def reset(self) -> None:
        """Drop all batches, or all synthetic ones; see ``reset_real_features``."""
        kept = {} if self.reset_real_features else {name: list(getattr(self, name)) for name in _name_states("real")}
        super().reset()
        for name, parts in kept.items():
            setattr(self, name, parts)
        self.result = None
        if not any(kept.values()):
            self._labelled = None

    def plot(self, val: Any = None, ax: Any = None) -> Any:  # noqa: ANN401  # as torchmetrics has it
        """Draw one value, or several over time, by torchmetrics; returns a figure and its axes."""
        return self._plot(val, ax)

    def _sync_dist(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # as Metric has it
        """Bring every process to one tensor a side, since each must gather as many as the others."""
        for side in ("real", "synthetic"):
            self._count_waiting(side)
        super()._sync_dist(*args, **kwargs)

    def _count_waiting(self, side: Side) -> None:
        """Put everything of one side into the bytes of one builder."""
        content = np.frombuffer(bytearray(pack_builder(self._count(side))), np.uint8)
        setattr(self, f"{side}_counts", [torch.from_numpy(content).to(self.device)])
        setattr(self, f"{side}_features", [])
        setattr(self, f"{side}_labels", [])

    def _count(self, side: Side) -> SketchBuilder:
        """A builder with all that is counted, by this process or others, and all batches that wait."""
        builder = SketchBuilder(self.projections)
        for number, content in enumerate(getattr(self, f"{side}_counts")):
            stored = content.to("cpu", torch.uint8).numpy().tobytes()
            part = unpack_builder(stored, "the state of the metric", self.projections)
            builder = builder.merge(part) if number else part
        waiting = zip(getattr(self, f"{side}_features"), getattr(self, f"{side}_labels"), strict=True)
        for features, labels in waiting:
            builder.add(features.float().cpu().numpy(), labels.cpu().numpy() if labels.numel() else None)
        return builder

    def _check_features(self, features: Tensor) -> Tensor:
        """The rows of a batch (n, d), or an error where they do not fit the projections."""
        if not isinstance(features, Tensor) or features.ndim < 2:
            raise SotddError(f"is {describe(features)}: expected a tensor with one row per point.", setting="features")
        rows = features.detach().flatten(1)
        if not rows.is_floating_point():
            rows = rows.float()
        if rows.shape[1] != self.projections.n_features:
            raise SotddError(
                f"the batch has {say_count(rows.shape[1], 'feature')} but the projections take "
                f"{self.projections.n_features:,}: fit them on features as the metric gets them."
            )
        if not bool(torch.isfinite(rows).all()):
            raise SotddError("the batch has features that are NaN or infinite: leave such points out.")
        return rows

    def _check_labels(self, labels: Tensor | None, n_points: int) -> Tensor:
        """The labels of a batch (n,), empty for None; or an error where they are no labels, or other batches differ."""
        if self._labelled is not None and self._labelled != (labels is not None):
            raise SotddError("some batches have labels and others have none: pass labels with all of them, or none.")
        if labels is None:
            self._labelled = False
            return torch.empty(0, dtype=torch.int64, device=self.device)
        if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.is_complex():
            raise SotddError(
                f"is {describe(labels)}: expected a tensor of whole numbers, one per row.", setting="labels"
            )
        if labels.shape != (n_points,):
            raise SotddError(f"has shape {tuple(labels.shape)}: expected ({n_points},), one per row.", setting="labels")
        self._labelled = True
        return labels.detach().to(torch.int64)


def _name_states(side: Side) -> tuple[str, str, str]:
    """The names of what is kept of one side: counts as bytes, and batches that wait to be counted."""
    return f"{side}_counts", f"{side}_features", f"{side}_labels"
