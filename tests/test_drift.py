"""A stored reference against batches."""

import pickle

import numpy as np
import pytest

import sotdd
from sotdd.data import LabelledData
from sotdd.drift import null_of_batches
from sotdd.splits import Splits


def sample(rng, n, shift=0.0):
    labels = rng.integers(3, size=n)
    return rng.normal(size=(n, 6)) + 2 * np.eye(3, 6)[labels] + shift, labels


@pytest.fixture
def fitted(rng):
    data = sample(rng, 400)
    return data, sotdd.DriftReference.fit(data, batch_size=50, n_batches=99)


def test_the_distance_is_that_of_the_raw_data(fitted, rng):
    data, reference = fitted
    batch = sample(rng, 50)
    found = reference.test(batch)
    assert found.distance == pytest.approx(sotdd.distance(data, batch, projections=reference.projections).value)
    assert (found.n_points, found.n_projections, len(found.null)) == ((400, 50), 128, 99)
    assert found.fingerprint == reference.projections.fingerprint


def test_what_chance_gives_is_the_distance_of_batches_to_the_rest(rng):
    x, y = sample(rng, 90)
    data = LabelledData.of((x, y))
    projections = sotdd.Projections.fit([data], n_projections=70)
    costs = null_of_batches(data, projections, 30, 4, seed=5)
    splits = Splits.of([data], (30, 60), 4, 5)
    for number in range(4):
        batch, rest = splits.draw(number)
        expected = sotdd.distance(
            (x[batch.index], y[batch.index]), (x[rest.index], y[rest.index]), projections=projections
        )
        np.testing.assert_allclose(costs[:, number], expected.per_projection * (1 - 1 / 9), rtol=1e-5)


@pytest.mark.parametrize(("n", "m"), [(400, 40), (120, 60)])
def test_the_level_is_kept(n, m):
    """150 references and batches at 5 %: 7.5 expected; more than 16 have a chance of 0.1 %."""
    rejections = 0
    for simulation in range(150):
        rng = np.random.default_rng([2, simulation])
        reference = sotdd.DriftReference.fit(
            sample(rng, n), batch_size=m, n_batches=39, n_projections=16, seed=simulation
        )
        rejections += reference.test(sample(rng, m)).rejects(0.05)
    assert 1 <= rejections <= 16


def test_drift_is_found(fitted, rng):
    reference = fitted[1]
    x, y = sample(rng, 50)
    assert reference.test(sample(rng, 50, shift=0.7)).rejects(0.05)
    assert reference.test((np.where(y[:, None] == 2, x + 3, x), y)).rejects(0.05)  # one class replaced
    of_order_one = sotdd.DriftReference.fit(fitted[0], batch_size=50, n_batches=99, p=1)
    assert of_order_one.test(sample(rng, 50, shift=1)).rejects(0.05)


def test_it_can_be_stored(fitted, rng):
    reference = fitted[1]
    batch = sample(rng, 50)
    stored = pickle.loads(pickle.dumps(reference))
    assert stored.test(batch).to_dict() == reference.test(batch).to_dict()
    assert repr(stored) == "DriftReference(400 points in 3 classes, for batches of 50, 128 projections)"
    with pytest.raises(ValueError, match="read-only"):
        reference.rows[0, 0] = 0


def test_bad_input(fitted, rng):
    data, reference = fitted
    for settings, said in [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": 201}, "batch_size is 201 but the reference has 400 points: expected at most half"),
        ({"batch_size": 5, "n_batches": 0}, "n_batches is 0"),
        ({"batch_size": 5, "p": 0}, "p is 0"),
        ({"batch_size": 5, "projections": reference.projections, "n_moments": 2}, "given together with n_moments"),
        ({"batch_size": 5, "projections": 5}, "projections is a int"),
        ({"batch_size": 5, "n_projection": 5}, "no setting n_projection"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            sotdd.DriftReference.fit(data, **settings)
    with pytest.raises(sotdd.SotddError, match=r"the batch has 49 points .* fit a reference with batch_size=49"):
        reference.test(sample(rng, 49))
    with pytest.raises(sotdd.SotddError, match="dataset 'batch' has 2 features"):
        reference.test(np.zeros((50, 2)))
