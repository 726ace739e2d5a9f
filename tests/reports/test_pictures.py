"""Pictures: what they draw is what was measured."""

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform

import sotdd
from sotdd.reports.datasets import Groups, ScalingMap, limit_colours


@pytest.fixture(autouse=True)
def _closed():
    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.fixture
def datasets(rng):
    return {
        "near": (rng.normal(size=(80, 5)), rng.integers(0, 3, size=80)),
        "far": (rng.normal(3, 1, size=(60, 5)), ["a", "b"] * 30),
        "here": (rng.normal(size=(120, 5)), rng.integers(0, 3, size=120)),
        "cheap $5 to $9": (rng.normal(1, 1, size=(60, 5)), ["a", "b"] * 30),
    }


@pytest.fixture
def matrix(datasets):
    return sotdd.pairwise(datasets, n_projections=128)


def texts(ax):
    return [text.get_text() for text in ax.figure.findobj(mpl.text.Text)]


def drawn(ax):
    ax.figure.canvas.draw()
    return ax


def test_the_order_puts_near_datasets_side_by_side(matrix):
    order = Groups.of(matrix.values).order
    assert sorted(order) == [0, 1, 2, 3]
    assert abs(order.index(0) - order.index(2)) == 1
    assert order.index(1) in (0, 3)


def test_the_stress_is_the_stress_and_no_worse_than_scikit_learn(rng):
    from sklearn.manifold import smacof

    values = squareform(pdist(rng.normal(size=(15, 6))))
    made = ScalingMap.of(values)
    gap = squareform(pdist(made.points)) - values
    assert made.stress == pytest.approx(np.sqrt(np.sum(gap**2) / np.sum(values**2)))
    _, theirs = smacof(values, n_components=2, n_init=8, random_state=0, normalized_stress=False)
    assert np.sum(gap**2) / 2 <= 1.02 * theirs


def test_names_on_a_map_do_not_meet_and_an_outlier_does_not_take_the_colours(rng):
    points = rng.normal(size=(24, 2)) / 100
    points[0] += 50
    values = squareform(pdist(points))
    places = ScalingMap.of(values).place()
    for side in (True, False):
        heights = sorted(height for _, _, to_the_left, height in places if to_the_left is side)
        assert len(heights) == 12
        assert np.diff(heights).min() > 100 / 12 - 1e-6
        assert heights[0] > 0
        assert heights[-1] < 100
    assert limit_colours(values) < 0.1 < values.max()
    assert limit_colours(values[1:, 1:]) == pytest.approx(values[1:, 1:].max(), rel=0.5)


def test_a_heat_map_shows_the_values_in_order(matrix):
    ax = drawn(matrix.plot())
    order = Groups.of(matrix.values).order
    shown = ax.images[0].get_array()
    expected = matrix.values[np.ix_(order, order)]
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(np.asarray(shown)[off], expected[off])
    assert shown.mask[~off].all()
    said = texts(ax)
    assert r"cheap \$5 to \$9" in said
    assert any("in units of the pooled spread" in text for text in said)


def test_a_map_states_its_stress(matrix):
    ax = drawn(matrix.map())
    made = ScalingMap.of(matrix.values)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), made.points)
    assert any(f"stress {made.stress:.3f}" in text for text in texts(ax))
    assert {"near", "far", "here"} <= set(texts(ax))


def test_a_dendrogram_joins_at_average_distances(matrix):
    ax = drawn(matrix.dendrogram())
    heights = sorted(float(max(line.get_xdata())) for line in ax.lines)
    np.testing.assert_allclose(heights, sorted(linkage(squareform(matrix.values), "average")[:, 2]))


def test_an_explanation_shows_classes_and_frames_counterparts(datasets):
    why = sotdd.explain(datasets["near"], datasets["far"], n_projections=128)
    ax = drawn(why.plot())
    np.testing.assert_allclose(ax.images[0].get_array(), why.by_class.distances)
    frames = [patch for patch in ax.patches if isinstance(patch, mpl.patches.Rectangle) and not patch.get_fill()]
    assert len(frames) == len(why.counterparts)
    assert ax.get_ylabel() == "class of a"


def test_a_ranking_and_a_test_are_drawn(matrix, rng):
    order = matrix.ranking("near")
    ax = drawn(order.plot())
    assert [bar.get_width() for bar in ax.patches] == [line.distance.value for line in order]
    assert any(text.endswith(str(order.lines[-1].rank)) for text in texts(ax))
    found = sotdd.test(rng.normal(size=(40, 2)), rng.normal(1, 1, size=(40, 2)), n_permutations=59, n_projections=16)
    ax = drawn(found.plot())
    assert sum(patch.get_height() for patch in ax.patches) == 59
    assert ax.lines[0].get_xdata()[0] == found.statistic
    assert any("p = 0.0167" in text for text in texts(ax))


def test_a_distance_is_drawn_beside_its_floor_or_its_projections(rng):
    a, b = rng.normal(size=(60, 2)), rng.normal(1, 1, size=(60, 2))
    for floor, count in ((True, 59), (False, 64)):
        found = sotdd.distance(a, b, n_projections=64, noise_floor=floor)
        ax = drawn(found.plot())
        assert sum(patch.get_height() for patch in ax.patches) == count
        assert ax.lines[0].get_xdata()[0] == found.value
    with pytest.raises(sotdd.SotddError, match="nothing to draw"):
        sotdd.distance(a, b, method="mmd").plot()


def test_axes_that_are_given_are_used(matrix, datasets):
    figure, axes = plt.subplots(2, 3)
    assert matrix.plot(axes[0, 0]) is axes[0, 0]
    assert matrix.map(ax=axes[0, 1]) is axes[0, 1]
    assert matrix.dendrogram(ax=axes[0, 2]) is axes[0, 2]
    assert sotdd.explain(datasets["near"], datasets["far"], n_projections=64).plot(axes[1, 2]) is axes[1, 2]
    figure.canvas.draw()
    assert plt.get_fignums() == [figure.number]


def test_what_cannot_be_drawn(matrix, rng):
    with pytest.raises(sotdd.SotddError, match="only one dataset"):
        sotdd.pairwise({"alone": rng.normal(size=(5, 2))}).dendrogram()
    with pytest.raises(sotdd.SotddError, match="ax is"):
        matrix.plot(5)


def test_without_matplotlib_the_error_says_what_to_install(matrix, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(sotdd.SotddError, match=r"pip install 'sotdd\[report\]'"):
        matrix.plot()
