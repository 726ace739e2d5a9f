"""As many projections as an accuracy takes: what is done once, however many rounds are drawn."""

import pytest

import sotdd
from sotdd.engines import adaptive
from sotdd.engines.controls import Controls


@pytest.mark.parametrize(("estimator", "expected"), [("controlled", 1), ("plain", 0)])
def test_controls_are_built_once(rng, monkeypatch, estimator, expected):
    built, rounds = [], []
    true_controls, true_table = Controls.of.__func__, adaptive.cost_table

    def counted(cls, *args):
        built.append(args)
        return true_controls(cls, *args)

    def table(*args):
        rounds.append(args[2].n_projections)
        return true_table(*args)

    monkeypatch.setattr(Controls, "of", classmethod(counted))
    monkeypatch.setattr(adaptive, "cost_table", table)
    a, b = rng.normal(size=(80, 4)), rng.normal(0.3, 1, size=(70, 4))
    distance = sotdd.distance(a, b, rel_tol=0.002, n_projections=64, max_projections=1000, estimator=estimator)
    assert len(rounds) > 1
    assert sum(rounds) == distance.n_projections
    assert len(built) == expected
