"""The moving dataset of a flow, in torch: where it is, how far from the target, and its next step.

Points are held in the unit of the scaler, in float32. A step is plain gradient descent, with the
gradient brought to the length that the mathematics suggests: see docs/decisions/package.md.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from sotdd.basics.errors import SotddError
from sotdd.compute.torch.rows import check_device
from sotdd.gradients.flow import Snapshot, label_array
from sotdd.gradients.loss import sotdd_loss
from sotdd.inputs.data import LabelledData
from sotdd.projections.projections import Projections

# The weights of this many projections tell how much features count.
_SAMPLE = 256


class Descent:
    """A labelled dataset on its way to a target.

    Parameters
    ----------
    source, target
        The dataset that moves, and where it moves to.
    projections
        What snapshots are measured through; its scaler serves every step.
    p
        The order of transport.
    device
        Where to compute, as in `flow`.
    """

    def __init__(
        self,
        source: LabelledData,
        target: LabelledData,
        projections: Projections,
        p: float,
        device: str | torch.device,
    ) -> None:
        self.device: torch.device = check_device(device)
        self._source, self._scaler, self._p = source, projections.scaler, p
        self._yardstick = replace(projections, scaler=None)  # points are scaled already
        self._points, self._target = (self._scale(data).to(self.device) for data in (source, target))  # (n, d), (m, d)
        self._codes, self._target_codes = (torch.tensor(data.codes, device=self.device) for data in (source, target))
        # No point moves farther in one step: where high moments make the slope steep, only its direction is followed.
        pooled = torch.cat([self._points, self._target])
        self._longest = float((pooled - pooled.mean(0)).square().mean().sqrt()) or 1.0  # their standard deviation
        self._weights = projections.draw(0, _SAMPLE).terms.weights

    def snapshot(self, step: int) -> Snapshot:
        """Where the dataset is after this many steps, in the unit, the shape and the precision of the source."""
        with torch.no_grad():
            loss = float(self._loss(self._points, self._yardstick))
        points = self._points.cpu().double().numpy()
        if self._scaler is not None:
            points = self._scaler.invert(points)
        original = self._source.features
        features = points.reshape(original.shape).astype(original.dtype if original.dtype.kind == "f" else np.float64)
        labels = label_array(self._source.classes)[self._source.codes]
        return Snapshot(step, math.pow(loss, 1 / self._p), features, labels)

    def step(self, projections: Projections, rate: float) -> None:
        """Go down the slope of the squared distance that these projections see."""
        points = self._points.clone().requires_grad_()
        loss = self._loss(points, replace(projections, scaler=None))
        slope = torch.autograd.grad(loss, points)[0] * self._square(loss.item())
        move = slope * (rate * self._unit(projections.n_projections))
        if not bool(move.isfinite().all()):
            raise SotddError(
                "the slope of the distance is not finite: use a smaller learning_rate, or lower orders, such as "
                "moments=sotdd.projections.UniformOrders(4)."
            )
        lengths = move.norm(dim=1, keepdim=True) / math.sqrt(move.shape[1])
        self._points = self._points - move / (lengths / self._longest).clamp_min(1)

    def _loss(self, points: torch.Tensor, projections: Projections) -> torch.Tensor:
        return sotdd_loss(points, self._codes, self._target, self._target_codes, projections, self._p)

    def _square(self, loss: float) -> float:
        """Turn the slope of W^p into that of W^2, whose steps shrink with the distance for any p."""
        return 2 / self._p * loss ** (2 / self._p - 1) if loss > 0 else 0.0

    def _unit(self, n_projections: int) -> float:
        """The step that, for features alone, would be Newton's, were it not for the choice of projections.

        The Hessian for one point is 2 E[w²] / (n d) times the identity. With L random directions a step
        of stochastic descent is stable if shorter by 1 + κ d / L, κ the kurtosis of the weights.
        """
        square = float(np.mean(self._weights**2)) or 1.0
        kurtosis = float(np.mean(self._weights**4)) / square**2
        n, d = self._points.shape
        return n * d / (2 * square) / (1 + kurtosis * d / n_projections)

    def _scale(self, data: LabelledData) -> torch.Tensor:
        points = np.concatenate([data.rows(block).astype(np.float64) for block in data.blocks()])
        if self._scaler is not None:
            points = self._scaler.apply(points)
        return torch.tensor(points, dtype=torch.float32)
