"""The paper to the letter: the authors' own outputs through the preset, and what it leaves out."""

import numpy as np
import pytest

import sotdd
from sotdd.projections.convolution import compose


@pytest.mark.parametrize("name", ["sotdd_conv28", "sotdd_conv32"])
def test_the_authors_convolutions(authors, name, device):
    known = authors(name)
    strides = [(int(s), int(s)) for s in known["strides"]]
    kernels = [known[f"kernel{i}"] for i in range(len(strides))]
    theta = compose(kernels, strides, known["X0"].shape[2:]).reshape(48, -1)
    draws = sotdd.Projections.from_arrays(theta=theta, psi=known["psi"], orders=known["orders"], clamp=5.0)
    found = sotdd.paper((known["X0"], known["y0"]), (known["X1"], known["y1"]), projections=draws, device=device)
    np.testing.assert_allclose(np.sqrt(found.per_projection), known["w_p2_01"], rtol=1e-4)


@pytest.mark.parametrize("how", [{}, {"label_directions": "own"}], ids=["Algorithm 1", "definition"])
def test_nothing_is_added_to_the_definition(rng, how):
    """No scaling, no cut, no controls: the mean over the very projections that its settings draw."""
    a = rng.normal(6, 1, size=(40, 3)), np.arange(40) % 3
    b = rng.normal(7, 1, size=(30, 3)), np.arange(30) % 2
    found = sotdd.paper(a, b, n_projections=128, n_moments=3, seed=5, **how)
    draws = sotdd.Projections.fit(
        [a, b],
        n_projections=128,
        label_law=sotdd.projections.Moments(3, cut=None),
        scale=None,
        seed=5,
        tilt=False,
        **how,
    )
    same = sotdd.distance(a, b, projections=draws, estimator="plain")
    np.testing.assert_array_equal(found.per_projection, same.per_projection)
    assert (found.estimator, found.scaler, found.weights) == ("plain", None, None)
    assert found.value == pytest.approx(np.sqrt(found.per_projection.mean()))


def test_settings_that_are_not_the_papers_are_not_taken(rng):
    x = rng.normal(size=(10, 2))
    with pytest.raises(TypeError, match="scale"):
        sotdd.paper(x, x + 1, scale="pooled")
