"""Projections are values: the same in any portion, told apart by fingerprints, and checked."""

import inspect
import math
import os
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

import sotdd
from sotdd.projections.settings import DEFAULT_SETTINGS, ProjectionKeywords, ProjectionSettings

LAWS = {
    "sphere": sotdd.projections.Sphere(),
    "hadamard": sotdd.projections.Hadamard(),
    "orthogonal": sotdd.projections.Orthogonal(),
    "convolution": sotdd.projections.Convolution((2, 6)),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_projection_is_the_same_in_any_portion(law):
    many = sotdd.Projections.fit([np.zeros((1, 12))], directions=law, n_projections=300)
    few = sotdd.Projections.fit([np.zeros((1, 12))], directions=law, n_projections=100)
    whole = many.draw(0, 300)
    assert len(whole) == 300
    for start, stop in [(0, 64), (64, 192), (192, 300), (256, 1000)]:
        part, rows = many.draw(start, stop), slice(start, stop)
        np.testing.assert_array_equal(part.features.theta, whole.features.theta[rows])
        np.testing.assert_array_equal(part.terms.weights, whole.terms.weights[rows])
        columns = part.terms.coefficients.shape[1]
        np.testing.assert_array_equal(part.terms.coefficients, whole.terms.coefficients[rows, :columns])
        assert not whole.terms.coefficients[rows, columns:].any()
    np.testing.assert_array_equal(few.draw(0, 100).features.theta, whole.features.theta[:100])


def test_blocks_are_independent():
    theta = sotdd.Projections.fit([np.zeros((1, 30))]).draw(0, 1000).features.theta
    assert len(np.unique(theta[:, 0])) == len(theta)


def test_seeds():
    def theta(seed):
        return sotdd.Projections.fit([np.zeros((1, 3))], seed=seed).draw(0, 1000).features.theta

    np.testing.assert_array_equal(theta(5), theta(5))
    np.testing.assert_array_equal(theta(5), theta(np.int64(5)))
    assert not np.array_equal(theta(5), theta(6))
    np.testing.assert_array_equal(theta(np.random.default_rng(1)), theta(np.random.default_rng(1)))
    one = np.random.default_rng(1)
    assert not np.array_equal(theta(one), theta(one))
    assert theta(2**200).shape == (1000, 3)


def test_fingerprints_tell_settings_apart(rng):
    x = rng.normal(size=(20, 4))

    def mark(**settings):
        return sotdd.Projections.fit([x], **settings).fingerprint

    changes = [
        {"seed": 1},
        {"n_projections": 999},
        {"n_moments": 4},
        {"label_law": "quantiles"},
        {"moments": sotdd.projections.ZeroTruncatedPoisson(max_order=4)},
        {"directions": sotdd.projections.Orthogonal()},
        {"directions": sotdd.projections.Convolution((2, 2))},
        {"directions": sotdd.projections.Convolution((2, 2), clamp=None)},
        {"label_directions": "own"},
        {"scale": None},
        {"scale": sotdd.Scaler(np.zeros(4), 2.0)},
    ]
    marks = [mark(), *(mark(**change) for change in changes)]
    assert len(set(marks)) == len(marks)
    assert mark() == mark()


def test_fingerprints_of_given_arrays_tell_the_numbers_apart():
    def mark(**change):
        arrays = {"theta": [[1.0, 0.0]], "psi": [[0.6, 0.8]], "orders": [[2]], **change}
        return sotdd.Projections.from_arrays(**arrays).fingerprint

    changes = [{"theta": [[0.0, 1.0]]}, {"psi": [[0.8, 0.6]]}, {"orders": [[3]]}, {"clamp": 1}, {"phi": [[1.0, 0.0]]}]
    marks = [mark(), *(mark(**change) for change in changes)]
    assert len(set(marks)) == len(marks)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"theta": [1.0]}, "theta has shape"),
        ({"theta": [[math.nan]]}, "theta holds NaN"),
        ({"psi": [[1.0, 0.0, 0.0]]}, "orders has shape"),
        ({"orders": [[0]]}, "from 1 to 170"),
        ({"orders": [[1.5]]}, "from 1 to 170"),
        ({"clamp": 0}, "clamp is 0"),
        ({"phi": [[1.0, 2.0]]}, "phi has shape"),
    ],
)
def test_given_arrays_are_checked(change, said):
    with pytest.raises(sotdd.SotddError, match=said):
        sotdd.Projections.from_arrays(**{"theta": [[1.0]], "psi": [[1.0, 0.0]], "orders": [[1]], **change})


def test_the_fingerprint_forgives_last_bits(rng):
    centre = rng.normal(size=5)
    marks = {
        sotdd.Projections.fit([np.zeros((1, 5))], scale=sotdd.Scaler(centre * (1 + error), 2.0 + error)).fingerprint
        for error in (0, 1e-14)
    }
    assert len(marks) == 1


ISOTROPIC = """
import hashlib, numpy as np, sotdd
for seed in range(6):
    x = np.random.default_rng(seed).normal(size=(1000, 300))  # no direction is the first by much
    for law in (None, sotdd.projections.Sphere(), sotdd.projections.Orthogonal()):
        drawn = sotdd.Projections.fit([x], n_projections=64, directions=law)
        print(drawn.fingerprint, hashlib.sha256(drawn.draw(0, 64).features.theta.tobytes()).hexdigest())
"""


def test_any_number_of_threads_gives_the_same_bits():
    """Principal directions of isotropic data depend on every last bit of the products that find them."""
    found = [
        subprocess.check_output([sys.executable, "-c", ISOTROPIC], env={**os.environ, "OPENBLAS_NUM_THREADS": threads})
        for threads in ("1", "2")
    ]
    assert found[0] == found[1]
    assert len(found[0].splitlines()) == 18


def test_kept_directions_cannot_be_written_to():
    projections = sotdd.Projections.fit([np.zeros((1, 2))], n_projections=64)
    with pytest.raises(ValueError, match="read-only"):
        projections.draw(0, 64).features.theta[:] = 0


def test_shown_defaults_are_those_that_are_drawn(rng):
    data, names = rng.normal(size=(20, 3)), [field.name for field in fields(ProjectionSettings)]
    assert list(ProjectionKeywords.__annotations__) == names
    shown = inspect.signature(sotdd.Projections.fit).parameters
    given = {setting: shown[setting].default for setting in names}
    assert sotdd.Projections.fit([data], **given).fingerprint == sotdd.Projections.fit([data]).fingerprint
    tested = inspect.signature(sotdd.test).parameters["n_projections"].default
    assert sotdd.test(data, data + 1, n_permutations=9).n_projections == tested
    assert sotdd.DriftReference.fit(data).projections.n_projections == tested


def test_a_setting_that_there_is_not_is_refused():
    with pytest.raises(sotdd.SotddError, match="s-OTDD has no setting n_projection:"):
        DEFAULT_SETTINGS.but({"n_projection": 5})
