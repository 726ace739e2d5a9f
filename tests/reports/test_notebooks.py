"""Results in the output of a notebook."""

import inspect

import numpy as np
import pandas as pd
import pytest

import sotdd

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    frames = {
        name: pd.DataFrame({HOSTILE: rng.normal(shift, 1, 90), "age": rng.normal(40, 9, 90), "label": ["x", "y"] * 45})
        for name, shift in [("here", 0), (HOSTILE, 3), ("there", 0)]
    }
    matrix = sotdd.pairwise(frames, n_projections=64, noise_floor=True)
    test = sotdd.test(frames["here"], frames[HOSTILE], n_permutations=39)
    why = sotdd.explain(frames["here"], frames[HOSTILE], n_projections=64)
    points = rng.normal(size=(2, 30, 2))
    flow = sotdd.flow(*points, steps=2, n_projections=64)
    monitor = sotdd.DriftReference.fit(points[0]).monitor(run_length=50)
    order, first = matrix.ranking("here"), matrix["here", HOSTILE]
    mixture = sotdd.mix(points[0], {"here": points[1], HOSTILE: points[1] + 3}, n_projections=64)
    copies = sotdd.copies(points[0], points[1])
    return [matrix, order, order.lines[0], first, first.noise, test, test.changes, why, flow, monitor, mixture, copies]


def test_every_result_is_shown_in_a_notebook(results):
    for name in sotdd.results.__all__:
        assert hasattr(getattr(sotdd.results, name), "_repr_html_"), name
    for result in results:
        shown = result._repr_html_()
        assert HOSTILE not in shown
        assert "<script" not in shown
        assert shown.count("<style>") == 1
        assert "body" not in inspect.cleandoc(shown).split("</style>")[0]  # the notebook's own look stays


def test_what_a_notebook_shows_is_what_was_found(results):
    matrix, order, line, first, _, test, changes, why, flow, _, mixture, _ = (
        result._repr_html_() for result in results
    )
    for name in ("here", "there"):
        assert name in matrix
    assert f"{results[0]['here', 'there'].value:.3g}" in matrix
    assert "nearest" in order.lower()
    assert "there" in line
    assert "beyond its noise" in first
    for one in (test, changes, why):
        assert "&lt;img" in one
        assert "<svg" in one  # a histogram of the column
        assert "age" not in one.split("</style>")[1].split("<details>")[0].split("Correlation")[0]
    assert "Classes of a" in why
    assert "<td" in mixture
    assert "here" in mixture
    assert f"{results[8].distances[0]:.4f}"[:5] in flow


def test_without_jinja_a_notebook_shows_text(results, monkeypatch):
    import importlib.util

    monkeypatch.setattr("sotdd.basics.errors.find_spec", lambda name: None)
    assert importlib.util.find_spec("jinja2") is not None
    assert [result._repr_html_() for result in results] == [None] * len(results)
