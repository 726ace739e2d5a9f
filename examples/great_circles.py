"""A feature projection of your own that is not linear: angles on a sphere, for unit vectors such as embeddings.

A random pole has a great circle around it, as the poles have the equator. A unit vector is projected to its latitude:
how far it lies from that great circle along the sphere. Run ``python examples/great_circles.py``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import sotdd


class Latitudes:
    """Sampled poles (B, d), and the latitudes of points above the great circles around them."""

    def __init__(self, poles: NDArray[np.float32]) -> None:
        self.poles = poles

    def __call__(self, points: NDArray[np.float32]) -> NDArray[np.floating]:
        """Project points (m, d) to values (B, m)."""
        return np.arcsin(np.clip(self.poles @ points.T, -1, 1))

    def project_tensor(self, points: Any) -> Any:  # noqa: ANN401  # a torch tensor
        """The same with torch tensors: now the loss can differentiate it."""
        return (points.new_tensor(self.poles) @ points.T).clamp(-1, 1).asin()


class GreatCircles:
    """Samples poles uniformly on the sphere."""

    def describe(self) -> dict[str, object]:
        """Name the law and its settings: they become part of the fingerprint."""
        return {"law": "great circles"}

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> Latitudes:
        """Sample projections from ``rng`` alone."""
        poles = rng.standard_normal((n_projections, n_features))
        return Latitudes((poles / np.linalg.norm(poles, axis=1, keepdims=True)).astype(np.float32))


def main() -> None:
    """Embeddings of two classes; in the second dataset one class has moved along the sphere."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3000)
    x = rng.normal(size=(3000, 16)) + 2 * np.eye(2, 16)[y]
    moved = x + 0.5 * np.outer(y, np.eye(1, 16, 5)[0])
    a, b = ((points / np.linalg.norm(points, axis=1, keepdims=True), y) for points in (x, moved))
    settings = {"directions": GreatCircles(), "scale": None}  # unit vectors stay unit vectors
    print(sotdd.distance(a, b, **settings))
    print(sotdd.test(a, b, **settings))


if __name__ == "__main__":
    main()
