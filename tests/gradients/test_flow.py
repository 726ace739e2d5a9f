"""Flows: that they arrive, what they return, what they refuse; and the examples that draw them."""

import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import sotdd

EXAMPLES = Path(__file__).parents[2] / "examples"


def ring(n):
    """Two halves of a ring, one class each."""
    turn = 2 * np.pi * (np.arange(n) + 0.5) / n
    return np.stack([3 + np.cos(turn), 1 + np.sin(turn)], axis=1), np.where(turn < np.pi, "upper", "lower")


def clouds(n, seed=0):
    """Two clouds, one class each."""
    labels = np.arange(n) % 2
    centres = np.where(labels, 1.0, -1.0)[:, None] * [2.0, 1.0]
    return np.random.default_rng(seed).normal(centres, 0.3), labels


# ------------------------------------------------------------------ arriving


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [{}, {"p": 1}, {"p": 3}, {"fresh": False}, {"scale": None}, {"labels": "move"}, {"shared_directions": False}],
    ids=str,
)
def test_arrives_nearer_than_another_sample_of_the_target(settings):
    target = clouds(120)
    flow = sotdd.flow(ring(100), target, steps=100, n_projections=128, snapshots=3, **settings)
    others = [
        sotdd.distance(
            clouds(100, seed), target, p=settings.get("p", 2), projections=flow.projections, estimator="plain"
        ).value
        for seed in range(1, 6)
    ]
    assert flow.distances[-1] < 0.05 * flow.distances[0]
    assert flow.distances[-1] < min(others)


def test_the_unit_and_the_place_of_features_do_not_matter():
    source, target = ring(60), clouds(60)
    plain = sotdd.flow(source, target, steps=30, snapshots=2)
    moved = [(x * 250 + 4000, y) for x, y in (source, target)]
    far = sotdd.flow(*moved, steps=30, snapshots=2)
    np.testing.assert_allclose((far.features - 4000) / 250, plain.features, atol=1e-2)
    assert far.distances[-1] == pytest.approx(plain.distances[-1], rel=0.05)


def test_classes_arrive_whole():
    flow = sotdd.flow(ring(60), clouds(80), steps=60, snapshots=2)
    right = flow.features[:, 0] > 0
    assert {len(set(right[flow.labels == name])) for name in ("upper", "lower")} == {1}


@pytest.mark.slow
def test_moving_labels_mend_class_shares():
    x, _ = ring(100)
    uneven = x, np.where(np.arange(100) < 20, "few", "many")
    kept = sotdd.flow(uneven, clouds(100), steps=100, snapshots=2)
    moved = sotdd.flow(uneven, clouds(100), steps=100, snapshots=2, labels="move")
    assert moved.distances[-1] < 0.3 * kept.distances[-1]
    assert moved.labels.shape == (100, 2)
    np.testing.assert_allclose(moved.labels.sum(axis=1), 1, atol=1e-5)
    assert 40 <= np.sum(moved.likeliest == "few") <= 60


def test_images_keep_their_shape_and_precision(rng):
    images = rng.normal(size=(20, 4, 5)).astype(np.float32)
    flow = sotdd.flow(images, images[:15] + 2, steps=10, snapshots=2)
    assert (flow.features.shape, flow.features.dtype) == ((20, 4, 5), np.float32)
    assert flow.labels.tolist() == ["all"] * 20
    flow = sotdd.flow(np.arange(20, dtype=np.uint8).reshape(10, 2), np.zeros((5, 2)), steps=2, labels="move")
    assert flow.features.dtype == np.float64
    assert flow.labels.tolist() == [[1.0]] * 10


def test_a_dataset_that_is_there_stays(rng):
    x = rng.normal(size=(30, 3))
    for p in (1, 2, 3):
        flow = sotdd.flow(x, x, steps=5, snapshots=2, p=p)
        np.testing.assert_allclose(flow.features, x, atol=1e-5)


# ------------------------------------------------------------------ what comes back


def test_the_distances_are_those_of_the_distance():
    source, target = ring(50), clouds(40)
    flow = sotdd.flow(source, target, steps=20, snapshots=3, seed=7)
    assert flow.distances[0] == pytest.approx(sotdd.distance(source, target, seed=7, estimator="plain").value, rel=1e-4)
    for snapshot in flow.snapshots:
        now = sotdd.distance(
            (snapshot.features, snapshot.labels), target, projections=flow.projections, estimator="plain"
        )
        assert snapshot.distance == pytest.approx(now.value, rel=1e-4)
    np.testing.assert_allclose(flow.snapshots[0].features, source[0], atol=1e-6)
    assert flow.labels.tolist() == source[1].tolist()
    assert flow.likeliest is flow.labels
    assert repr(flow).startswith("Flow(50 points, 20 steps: ")
    assert flow.settings["steps"] == 20
    assert flow.classes == ("lower", "upper")


@pytest.mark.parametrize(
    ("snapshots", "steps"), [(2, [0, 8]), (3, [0, 4, 8]), (100, list(range(9))), ([3, 5], [3, 5, 8]), ([], [8])]
)
def test_snapshots_are_taken_where_asked(snapshots, steps):
    flow = sotdd.flow(ring(10), clouds(10), steps=8, n_projections=64, snapshots=snapshots)
    assert flow.steps.tolist() == steps
    assert len(flow.distances) == len(steps)


def test_the_same_seed_gives_the_same_flow():
    source, target = ring(30), clouds(30)
    one, two, other = (sotdd.flow(source, target, steps=5, snapshots=2, seed=seed).features for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_labels_of_mixed_kinds_come_back_as_they_were():
    mixed = [1, "a"] * 10
    flow = sotdd.flow((ring(20)[0], mixed), clouds(20), steps=2, snapshots=2)
    assert flow.labels.tolist() == mixed
    flow = sotdd.flow((ring(20)[0], mixed), clouds(20), steps=2, snapshots=2, labels="move")
    assert flow.likeliest.tolist() == mixed


def test_progress_is_told_step_by_step():
    seen = []
    sotdd.flow(ring(10), clouds(10), steps=3, snapshots=2, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


# ------------------------------------------------------------------ refusals

REFUSED = [
    ({"steps": 0}, "steps is 0: expected an integer of at least 1"),
    ({"n_projections": 1.5}, "n_projections is 1.5"),
    ({"learning_rate": -1}, "learning_rate is -1: expected a positive number"),
    ({"label_learning_rate": "fast"}, "label_learning_rate is 'fast'"),
    ({"labels": "soft"}, "labels is 'soft': expected 'keep' or 'move'"),
    ({"labels": np.ones(3)}, "labels is a ndarray: expected 'keep' or 'move'"),
    ({"fresh": "yes"}, "fresh is 'yes': expected True or False"),
    ({"snapshots": 1}, "snapshots is 1: expected how many, 2 or more, or steps from 0 to 5"),
    ({"snapshots": [0, 6]}, "snapshots is a list: expected how many"),
    ({"snapshots": [-1]}, "snapshots is a list: expected how many"),
    ({"snapshots": "all"}, "snapshots is 'all': expected how many"),
    ({"p": 0}, "p is 0"),
    ({"seed": -1}, "seed is -1"),
    ({"progress": 3}, "progress is 3"),
    ({"device": "abacus"}, "device is 'abacus': expected 'auto', 'cpu', 'cuda'"),
    ({"device": "cuda:99"}, "device is 'cuda:99' but"),
    ({"device": 1.5}, "device is 1.5: expected 'auto', 'cpu', 'cuda'"),
    ({"scale": "yes"}, "scale is 'yes'"),
    ({"device": "meta"}, "device is 'meta': expected 'auto', 'cpu', 'cuda'"),
    ({"learning_rate": 1e60}, "the slope of the distance is not finite: use a smaller learning_rate"),
]


@pytest.mark.parametrize(("setting", "message"), REFUSED, ids=[str(setting) for setting, _ in REFUSED])
def test_bad_settings_are_refused_in_one_line(setting, message):
    with pytest.raises(sotdd.SotddError, match=message) as caught:
        sotdd.flow(ring(10), clouds(10), **{"steps": 5, **setting})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ((ring(10)[0][:, :1], np.zeros(10)), "dataset 'target' has 2 features but dataset 'source' has 1"),
        ((ring(10)[0], np.zeros(9)), "labels of dataset 'source' have 9 entries"),
        (np.full((10, 2), np.nan), "dataset 'source' has 20 values that are NaN"),
    ],
)
def test_bad_datasets_are_refused_by_name(source, message):
    with pytest.raises(sotdd.SotddError, match=message):
        sotdd.flow(source, clouds(10), steps=2)


def test_a_flow_that_breaks_off_says_where():
    """A law that is linear at first and not later."""

    class Turning(sotdd.Sphere):
        def draw(self, rng, n_projections, n_features):
            drawn = super().draw(rng, n_projections, n_features)
            seen.append(drawn)
            return drawn if len(seen) < 12 else lambda points: drawn.theta @ points.T

    seen = []
    with pytest.raises(
        sotdd.SotddError, match=r"broke off at step \d+, a smaller learning_rate may help: the law of dir"
    ):
        sotdd.flow(ring(10), clouds(10), steps=30, n_projections=64, snapshots=[], directions=Turning())


def test_without_torch_the_install_command_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(sotdd.SotddError, match=r"sotdd.flow needs torch.*pip install 'sotdd\[torch\]'"):
        sotdd.flow(ring(10), clouds(10))


# ------------------------------------------------------------------ the examples


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [("flow_shapes", "--points=40"), ("flow_digits", "--images=12")])
def test_the_examples_draw(name, size, tmp_path):
    pytest.importorskip("matplotlib", reason="the examples draw with matplotlib")
    out = tmp_path / "picture.png"
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), f"--out={out}", "--steps=4", size]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "4 steps" in done.stdout


def test_the_signature_shows_how_projections_are_drawn():
    parameters = inspect.signature(sotdd.flow).parameters
    assert [*parameters][:5] == ["source", "target", "p", "n_projections", "n_moments"]
    assert [*parameters][-2:] == ["device", "progress"]
    assert (parameters["n_projections"].default, parameters["device"].default) == (256, "auto")


def test_sources_are_opened_once(monkeypatch):
    opened = []
    module = import_module("sotdd.gradients.flow")
    true = module.open_dataset
    monkeypatch.setattr(module, "open_dataset", lambda source, **how: opened.append(how["name"]) or true(source, **how))
    monkeypatch.setattr("sotdd.inputs.opening.open_dataset", lambda source, **how: pytest.fail("opened again"))
    sotdd.flow(ring(10), clouds(10), steps=2, snapshots=2, scale=None)
    assert opened == ["source", "target"]


def test_auto_takes_what_there_is(rng):
    points = rng.normal(size=(20, 2))
    assert sotdd.flow(points, points + 1, steps=2, snapshots=2, device="auto").distances.shape == (2,)
