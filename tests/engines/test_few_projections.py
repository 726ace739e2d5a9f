"""Few projections through tilted directions, where the label law cannot be controlled."""

import numpy as np
import pytest

import sotdd


@pytest.mark.slow
@pytest.mark.parametrize("law", ["quantiles", "moments"])
@pytest.mark.parametrize("count", [64, 200])
def test_few_projections_are_no_worse_controlled_than_plain(rng, law, count):
    """Directions are controlled by fitted coefficients; with too few projections the costs stay as they are."""
    x, y = rng.normal(size=(300, 30)) * np.linspace(3, 0.1, 30), np.arange(300) % 3
    pair = (x, y), (x * 1.1 + 0.2, y)
    settings = {"n_projections": count, "label_law": law}
    true = sotdd.distance(*pair, n_projections=8000, label_law=law).value
    found = {
        one: [sotdd.distance(*pair, seed=seed, estimator=one, **settings) for seed in range(30)]
        for one in ("plain", "controlled")
    }
    errors = {one: np.sqrt(np.mean([(r.value / true - 1) ** 2 for r in each])) for one, each in found.items()}
    assert errors["controlled"] < 1.1 * errors["plain"]
    name = "plain" if law == "quantiles" else "controlled (labels and tilted directions)"
    assert {r.estimator for r in found["controlled"]} == {name}
