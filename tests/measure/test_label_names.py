"""Names of classes that count, and targets that are numbers: against a brute force in float64."""

import numpy as np
import pytest
import torch

import reference
import sotdd
from sotdd import SotddError, open_dataset


def by_hand(pairs, spread=None):
    """The points of the definition, (f x, r e_c), row by row in float64, where both datasets count the same."""
    parts = [x.astype(np.float64) for x, _ in pairs]
    names = sorted({str(name) for _, y in pairs for name in y})
    d, c = parts[0].shape[1], len(names)
    centre = np.mean([x.mean(axis=0) for x in parts], axis=0)
    variance = np.mean([((x - centre) ** 2).mean(axis=0) for x in parts], axis=0)
    spread = np.sqrt(variance.mean()) if spread is None else spread
    shares = np.mean([[np.mean([str(own) == name for own in y]) for name in names] for _, y in pairs], axis=0)
    sides = []
    for x, y in pairs:
        rows = [
            [
                *(np.sqrt((d + c) / d) * (point - centre) / spread),
                *(np.sqrt(d + c) * (np.array([float(str(name) == other) for other in names]) - shares)),
            ]
            for point, name in zip(x.astype(np.float64), y, strict=True)
        ]
        sides.append((np.array(rows), np.asarray(y)))
    return sides


def two(rng, d, n=60, m=45, classes=3):
    """Two datasets that share some names, with heavy tails."""
    names = np.array([f"class {k}" for k in range(classes + 1)])
    x, z = rng.standard_t(4, size=(n, d)), rng.normal(0.5, 2, size=(m, d))
    return (x, names[rng.integers(classes, size=n)]), (z, names[1 + rng.integers(classes, size=m)])


@pytest.mark.parametrize(("p", "d", "classes"), [(1, 1, 2), (2, 4, 3), (2, 150, 3), (1, 3, 200)])
def test_every_projection_is_what_brute_force_says(rng, d, classes, p):
    pairs = two(rng, d, n=20 if classes == 2 else 500, m=400, classes=classes)
    found = sotdd.distance(*pairs, label_names="match", estimator="plain", n_projections=64, p=p, seed=5)
    sides = by_hand(pairs)
    scaled_already = sotdd.Scaler(np.zeros(sides[0][0].shape[1]), 1.0)
    recipe = sotdd.Projections.fit(sides, n_projections=64, seed=5, scale=scaled_already, tilt=False)
    block = recipe.draw(0, 64)
    expected = reference.cut_per_projection(*sides, _directions(block, recipe.n_features), block.terms, cut=5.0, p=p)
    np.testing.assert_allclose(found.per_projection, expected, rtol=5e-3, atol=2e-5 * expected.max())
    assert found.value == pytest.approx(np.mean(expected) ** (1 / p), rel=1e-3)
    assert found.scale == "pooled"


def _directions(block, d):
    """Directions as rows, however they are held: what unit vectors give."""
    if hasattr(block.features, "theta"):
        return block.features.theta.astype(np.float64)
    return np.asarray(block.features(np.eye(d, dtype=np.float32)), np.float64)


@pytest.mark.parametrize("d", [2, 20])
def test_the_controlled_estimator_measures_the_same(rng, d):
    pairs = two(rng, d, n=300, m=200)
    controlled = sotdd.distance(*pairs, label_names="match", n_projections=2000)
    plain = sotdd.distance(*pairs, label_names="match", n_projections=20_000, estimator="plain", seed=1)
    assert controlled.estimator != "plain"
    assert abs(controlled.value - plain.value) < 4 * (controlled.stderr + plain.stderr)
    assert controlled.stderr < 3 * plain.stderr  # with a tenth of the projections


def swapped(names):
    return np.where(names == "yes", "no", "yes")


@pytest.mark.parametrize("d", [1, 30])
def test_names_that_are_exchanged_are_a_difference_and_only_then(rng, d):
    def sample(n):
        y = rng.choice(["no", "yes"], n)
        return rng.normal(size=(n, d)) + 2.5 * (y == "yes")[:, None] / np.sqrt(d), y

    (x, y), (z, w) = sample(400), sample(400)
    ignored = [sotdd.distance((x, y), (z, names), seed=2).value for names in (w, swapped(w))]
    assert ignored[0] == pytest.approx(ignored[1], rel=1e-9)
    same, other = (
        sotdd.distance((x, y), (z, names), label_names="match", noise_floor=True, seed=2) for names in (w, swapped(w))
    )
    assert same.within_noise
    assert not other.within_noise
    why = sotdd.explain((x, y), (z, swapped(w)), n_projections=200, label_names="match")
    assert not why.distance.within_noise
    assert why.unlabelled.within_noise
    assert other.value > 2 * same.value
    assert sotdd.distance((x, y), (x, y), label_names="match").value == 0
    assert sotdd.distance((x, y), (x, swapped(y)), label_names="match").value > 0.2


def test_every_kind_of_features(rng, tmp_path):
    x = rng.integers(256, size=(80, 4, 5)).astype(np.uint8)
    y = rng.choice(["a", "b"], 80)
    other = (255 - x, y)
    expected = sotdd.distance((x, y), other, label_names="match", n_projections=64).value
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    streamed = f"{tmp_path / 'x.npy'}::label={tmp_path / 'y.npy'}"
    for same in (streamed, (torch.from_numpy(x), y), (x.astype(np.float64), y)):
        found = sotdd.distance(same, other, label_names="match", n_projections=64).value
        assert found == pytest.approx(expected, rel=1e-5)


def test_features_as_they_are(rng):
    """Without a scale, two names are as far apart as points are in the unit of the features themselves."""
    pairs = [(10 * rng.normal(size=(50, 2)), rng.choice(["a", "b"], 50)) for _ in range(2)]
    found = sotdd.distance(*pairs, label_names="match", scale=None, estimator="plain", n_projections=32, seed=5)
    pooled = np.concatenate([x for x, _ in pairs])
    spread = np.sqrt(np.var(pooled, axis=0).mean())
    sides = [(points * spread, labels) for points, labels in by_hand(pairs)]
    sides = [(points + np.sqrt(2) * np.array([*pooled.mean(axis=0), 0, 0]), labels) for points, labels in sides]
    recipe = sotdd.Projections.fit(sides, n_projections=32, seed=5, scale=None, tilt=False)
    block = recipe.draw(0, 32)
    expected = reference.cut_per_projection(*sides, _directions(block, 4), block.terms, cut=np.inf)
    np.testing.assert_allclose(found.per_projection, expected, rtol=5e-3, atol=2e-5 * expected.max())
    assert found.scaler is None


def test_a_target_that_moves_is_a_distance(rng):
    x = rng.normal(size=(600, 3))
    y = 3 * x[:, 0] + rng.normal(size=600)

    def apart(shift, **more):
        halves = (x[:300], y[:300]), (x[300:], y[300:] + shift)
        sides = [open_dataset(half, bins=5) for half in halves]
        return sotdd.distance(*sides, n_projections=500, noise_floor=True, **more)

    values = [apart(shift) for shift in (0, 1, 3, 100)]
    assert values[0].within_noise
    assert [found.value for found in values] == sorted(found.value for found in values)
    assert not any(found.within_noise for found in values[1:])
    assert values[1].classes[0] == values[1].classes[1]  # the same bins
    ignored = [apart(shift, label_names="ignore").value for shift in (0, 1)]
    assert ignored[1] > ignored[0]  # bins of all data: classes lie elsewhere
    with pytest.raises(SotddError, match="cut into 4, 5 bins"):
        sotdd.distance(open_dataset((x, y), bins=4), open_dataset((x, y), bins=5))
    own = [open_dataset((x, y + shift), bins=3) for shift in (0, 2)]
    projections = sotdd.Projections.fit(own, n_projections=16)
    assert sotdd.distance(*own, projections=projections).value > 0  # they know of no targets


def test_names_count_between_every_two_of_several(rng):
    x = rng.normal(size=(90, 3)) + 3 * np.repeat(np.eye(3), 30, axis=0)
    y = np.repeat(["a", "b", "c"], 30)
    swapped = np.repeat(["b", "a", "c"], 30)
    sets = {"one": (x, y), "same": (x, y), "swapped": (x, swapped)}
    plain = sotdd.pairwise(sets, n_projections=128)
    matched = sotdd.pairwise(sets, n_projections=128, label_names="match")
    assert plain["one", "swapped"].value == 0
    assert matched["one", "same"].value == 0 < matched["one", "swapped"].value
    assert matched.projections is None
    assert matched.asked.settings["label_names"] == "match"
    two = sotdd.pairwise({"one": (x, y), "swapped": (x, swapped)}, n_projections=128, label_names="match")
    alone = sotdd.distance((x, y), (x, swapped), n_projections=128, label_names="match")
    assert two["one", "swapped"].value == alone.value
    halves, digits = (x[:60], [1.0, 2.0] * 30), (x, [0, 1, 2] * 30)  # 1 and 1.0 are one name
    there, back = (sotdd.distance(*pair, label_names="match").value for pair in ((halves, digits), (digits, halves)))
    assert there == back
    many = x[:1].repeat(4100, axis=0), np.arange(4100).astype(str)
    with pytest.raises(SotddError, match="4,100 names of classes: expected at most 4,096"):
        sotdd.distance(many, many, label_names="match")
    assert sotdd.distance((x, y), (x, np.char.upper(y)), label_names="match").value > 0.3  # other names are apart too
    projections = sotdd.Projections.fit([(x, y)], n_projections=8)
    with pytest.raises(SotddError, match="do not know names of classes"):
        sotdd.distance((x, y), (x, y), label_names="match", projections=projections)
    with pytest.raises(SotddError, match="label_names cannot be chosen for a sketch"):
        sotdd.distance(sotdd.sketch((x, y), projections), (x, y), label_names="match")
