"""A label law of your own: a class enters by its characteristic function.

The characteristic function of a law, E exp(i ω t), says everything about it and is bounded, so no tail can make a
class's term. Each projection takes it at one random frequency ω: the term of a class is the mean of cos(ω t + b) over
its points. Means of a function of single points add up over batches, so the law also works in streams and private
sketches; with `evaluate_tensor`, in the loss too. Run ``python examples/cosine_law.py``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import sotdd
from sotdd.projections import LabelTerms


class CosineTerms(LabelTerms):
    """Class terms that are means of a · cos(ω t + b)."""

    additive = True
    differentiable = True

    def evaluate(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """The value of each point, whose mean over a class is its term."""
        a, frequency, b = self.coefficients.T[:, :, None]
        return a * np.cos(frequency * values + b)

    def evaluate_tensor(self, values: Any) -> Any:  # noqa: ANN401  # a torch tensor
        """The same with torch tensors."""
        a, frequency, b = values.new_tensor(self.coefficients.T)[:, :, None]
        return a * (frequency * values + b).cos()


class Cosines:
    """Samples frequencies from a normal law, phases and weights from circles."""

    def __init__(self, bandwidth: float = 1.0) -> None:
        self.bandwidth = bandwidth

    def describe(self) -> dict[str, object]:
        """Name the law and its settings: they become part of the fingerprint."""
        return {"law": "cosines", "bandwidth": self.bandwidth}

    def draw(self, rng: np.random.Generator, n_projections: int) -> CosineTerms:
        """Sample label terms from ``rng`` alone."""
        angle, b = rng.uniform(0, 2 * np.pi, (2, n_projections))
        frequency = rng.normal(0, self.bandwidth, n_projections)
        return CosineTerms(np.cos(angle), np.column_stack([np.sqrt(2) * np.sin(angle), frequency, b]))


def main() -> None:
    """Two datasets of the same points, half of whose labels are swapped in one of them."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2000, 8)), rng.integers(3, size=2000)
    x[:, 0] += y
    swapped = np.where(rng.random(2000) < 0.5, y, rng.permutation(y))
    projections = sotdd.Projections.fit([x], label_law=Cosines())
    print(sotdd.distance((x, y), (x, swapped), projections=projections))
    print(sotdd.test((x[:1000], y[:1000]), (x[1000:], swapped[1000:]), label_law=Cosines()))

    builder = sotdd.SketchBuilder(projections)  # the first dataset as a stream
    for part in range(0, 2000, 500):
        builder.add(x[part : part + 500], y[part : part + 500])
    print(builder.finish().distance(sotdd.sketch((x, swapped), projections)))


if __name__ == "__main__":
    main()
