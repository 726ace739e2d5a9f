"""The old name of the label law: taken for one more release, warned about, and worth the same number."""

import numpy as np
import pytest

import sotdd


def fitted_distance(a, b, **settings):
    return sotdd.distance(a, b, projections=sotdd.Projections.fit([a, b], n_projections=64, **settings)).value


CALLS = {
    "distance": lambda a, b, **settings: sotdd.distance(a, b, n_projections=64, **settings).value,
    "pairwise": lambda a, b, **settings: sotdd.pairwise([a, b], n_projections=64, **settings)["0", "1"].value,
    "rank": lambda a, b, **settings: sotdd.rank(a, [b], n_projections=64, **settings)["0"].value,
    "test": lambda a, b, **settings: sotdd.test(a, b, n_permutations=9, **settings).distance,
    "explain": lambda a, b, **settings: sotdd.explain(a, b, n_projections=64, n_splits=19, **settings).distance.value,
    "DriftReference.fit": lambda a, b, **settings: (
        sotdd.DriftReference.fit(a, **settings).test(b, n_permutations=9).distance
    ),
    "Projections.fit": fitted_distance,
}


@pytest.fixture
def pair(rng):
    return (rng.normal(size=(60, 3)), np.arange(60) % 2), (rng.normal(1, 1, size=(50, 3)), np.arange(50) % 3)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_old_name_is_warned_about_and_gives_the_same(pair, call):
    new = call(*pair, label_law="quantiles")
    with pytest.warns(FutureWarning, match="label= is now called label_law=") as caught:
        old = call(*pair, label="quantiles")
    assert {warning.filename for warning in caught} == {__file__}
    assert len(caught) == 1
    assert old == new != call(*pair)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_both_names_at_once_are_refused(pair, call):
    with pytest.raises(sotdd.SotddError, match="label is the old name of label_law, and both are given"):
        call(*pair, label="quantiles", label_law="quantiles")
