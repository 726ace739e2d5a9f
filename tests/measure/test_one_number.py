"""One question, one number: calls that are asked the same thing with the same settings agree to the last bit."""

import numpy as np
import pytest

import sotdd

SETTINGS = {
    "default": {},
    "plain": {"estimator": "plain"},
    "seed": {"seed": 7},
    "p": {"p": 1.5},
    "quantiles": {"label_law": "quantiles"},
    "class quantiles": {"label_law": sotdd.projections.ClassQuantiles(4, 0.5)},
    "moments": {"n_moments": 3, "moments": sotdd.projections.ZeroTruncatedPoisson(max_order=4)},
    "uniform orders": {"moments": sotdd.projections.UniformOrders(2)},
    "orthogonal": {"directions": sotdd.projections.Orthogonal()},
    "hadamard": {"directions": sotdd.projections.Hadamard()},
    "no scale": {"scale": None},
    "scaler": {"scale": sotdd.Scaler(np.full(6, 0.5), 2.0)},
}


@pytest.fixture
def pair(rng):
    a = rng.normal(size=(150, 6)) * [3, 1, 1, 1, 1, 1], rng.integers(3, size=150)
    b = rng.normal(0.4, 1, size=(120, 6)), rng.integers(4, size=120)
    return a, b


def told(found):
    """All that a distance says of its number."""
    return found.value, found.stderr, found.fingerprint, found.estimator, found.per_projection.tolist()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_distance_pairwise_and_explain_agree(pair, settings):
    a, b = pair
    settings = {"n_projections": 300, **settings}
    alone = sotdd.distance(a, b, **settings)
    assert told(sotdd.explain(a, b, **settings).distance) == told(alone)
    matrix = sotdd.pairwise({"a": a, "b": b}, **settings)
    assert told(matrix["a", "b"]) == told(alone)
    assert matrix.projections.fingerprint == alone.fingerprint


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_calls_through_given_projections_agree(pair, settings):
    """Distance, pairwise, explain, the statistic of a test, and sketches that keep every value."""
    a, b = pair
    drawing = {"n_projections": 200, **settings}
    p = drawing.pop("p", 2)
    drawing.pop("estimator", None)
    through = sotdd.Projections.fit([a, b], **drawing)
    one, other = (sotdd.sketch(data, through, n_quantiles=None) for data in pair)
    for estimator in ("plain", "controlled"):
        given = {"projections": through, "p": p, "estimator": estimator}
        alone = sotdd.distance(a, b, **given)
        assert told(sotdd.explain(a, b, **given).distance) == told(alone)
        assert told(sotdd.pairwise([a, b], **given).distances[0, 1]) == told(alone)
        found = one.distance(other, p, estimator=estimator)
        np.testing.assert_array_equal(found.per_projection, alone.per_projection)
        # What controls are made of is kept in float32.
        assert found.value == pytest.approx(alone.value, rel=1e-12 if estimator == "plain" else 1e-5)
        assert found.estimator == alone.estimator
        assert sotdd.distance(one, b, p=p, estimator=estimator).value == found.value
    plain = sotdd.distance(a, b, projections=through.evenly(), p=p, estimator="plain")
    assert sotdd.test(a, b, n_permutations=3, projections=through, p=p).distance == pytest.approx(
        plain.value, rel=1e-12
    )


def test_the_distance_of_a_test_is_the_plain_one_of_its_projections(pair):
    """Where both have one size, points and datasets that count the same have one unit."""
    a, b = (tuple(part[:60] for part in side) for side in pair)
    found = sotdd.test(a, b, n_permutations=19, seed=3)
    alone = sotdd.distance(a, b, n_projections=found.n_projections, seed=3, estimator="plain")
    assert found.fingerprint == alone.fingerprint
    assert found.distance == pytest.approx(alone.value, rel=1e-12)


def test_the_report_explains_the_number_of_the_matrix(pair, monkeypatch, tmp_path):
    data = {"a": pair[0], "b": pair[1], "c": (pair[1][0] + 1, pair[1][1])}
    for settings in ({}, {"estimator": "plain"}, {"label_law": "quantiles"}):
        matrix = sotdd.pairwise(data, n_projections=128, **settings)
        shown = []
        monkeypatch.setattr("sotdd.reports.report.write_matrix_page", lambda *told, shown=shown: shown.append(told[2]))
        sotdd.report(matrix, tmp_path / "r.html", datasets=data)
        assert set(shown[0]) == {(0, 1), (0, 2), (1, 2)}
        for places, why in shown[0].items():
            assert told(why.distance) == told(matrix.distances[places])


def test_a_matrix_gives_its_unit_to_every_call(pair):
    """Of one pair there is one number, however many other datasets were measured with it."""
    (x, y), b = pair
    matrix = sotdd.pairwise({"a": (x, y), "b": b, "far": (x + 9, y)}, n_projections=64)
    expected = told(matrix["a", "b"])
    assert told(sotdd.distance((x, y), b, projections=matrix)) == expected
    assert told(sotdd.explain((x, y), b, projections=matrix).distance) == expected
    assert told(sotdd.pairwise([(x, y), b], projections=matrix).distances[0, 1]) == expected
    assert (
        sotdd.test((x, y), b, projections=matrix, n_permutations=19).fingerprint
        == matrix.projections.evenly().fingerprint
    )
    assert sotdd.sketch(b, sotdd.pairwise([b, b], estimator="plain", n_projections=8)).n_projections == 8
    assert told(sotdd.distance((x, y), b, n_projections=64)) != expected  # in the unit of the two alone
    by_peer = sotdd.pairwise({"a": x, "b": b[0]}, method="frechet")
    with pytest.raises(sotdd.SotddError, match=r"projections is .*expected"):
        sotdd.distance((x, y), b, projections=by_peer)
