"""Who uses a scaler: distances, engines, spans, peers, flows, sketches and references."""

import numpy as np
import pandas as pd
import pytest

import sotdd
from projections.tables import mixed, table
from sotdd import LabelledData, Scaler


def test_tables_are_scaled_by_column_and_arrays_together(rng, tmp_path):
    x = rng.normal(size=(60, 3)) * [1, 10, 100]
    frame = table(x)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    lists = pd.DataFrame({"vector": list(x), "label": 0})
    features = {"frame": frame, "csv": str(tmp_path / "t.csv"), "parquet": str(tmp_path / "t.parquet")}
    features |= {"pair": (frame.drop(columns="label"), frame["label"])}
    pooled = {"array": x, "pair": (x, np.zeros(60)), "lists": lists, "numbers": sotdd.open_dataset(
        pd.DataFrame(x), label=None)}  # fmt: skip
    for expected, sources in (("features", features), ("pooled", pooled)):
        for source in sources.values():
            assert sotdd.distance(source, source, n_projections=64).scale == expected
    assert sotdd.distance(frame, x, n_projections=64).scale == "features"
    assert sotdd.distance(x, frame, n_projections=64, scale="pooled").scale == "pooled"


def test_the_text_says_how_features_were_scaled(rng):
    x = rng.normal(size=(60, 3))
    said = repr(sotdd.distance(table(x), table(x + 1), n_projections=64))
    assert "(s-OTDD, p=2, 64 projections, each column scaled)" in said
    assert ", each feature scaled)" in repr(sotdd.distance(x, x + 1, n_projections=64, scale="features"))
    assert "(s-OTDD, p=2, 64 projections)" in repr(sotdd.distance(x, x + 1, n_projections=64))
    told = sotdd.distance(table(x), table(x + 1), n_projections=64).to_dict()
    assert (told["scale"], told["scaler"]["kind"], told["columns"]) == ("features", "features", ["c0", "c1", "c2"])
    assert sotdd.distance(x, x, scale=None, n_projections=64).to_dict()["scale"] == "none"


def scaled_by_hand(*parts):
    scaler = Scaler.fit(list(parts), "features")
    return [(part - scaler.centre) / scaler.scale for part in parts]


@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_engines_scale_every_feature(rng, device):
    a, b = mixed(rng, 400)[:, :6], mixed(rng, 300)[:, :6]
    found = sotdd.Projections.fit([a, b], n_projections=128, scale="features", tilt=False)
    plain = sotdd.Projections.fit([a, b], n_projections=128, scale=None, label_law=sotdd.Moments(), tilt=False)
    if device == "cpu":
        one = sotdd.distance(a, b, projections=found).value
        other = sotdd.distance(*scaled_by_hand(a, b), projections=plain).value
    else:
        torch = pytest.importorskip("torch")
        labels = [torch.zeros(len(part), dtype=torch.long) for part in (a, b)]

        def loss(x, y, projections):
            x, y = torch.tensor(x), torch.tensor(y)
            return float(sotdd.torch.sotdd_loss(x, labels[0], y, labels[1], projections)) ** 0.5

        one, other = loss(a, b, found), loss(*scaled_by_hand(a, b), plain)
    assert one == pytest.approx(other, rel=1e-4)


def test_the_torch_engine_scales_every_feature(rng):
    pytest.importorskip("torch")
    from sotdd.engines.comparison import compare
    from sotdd.engines.torch.engine import TorchEngine

    data = [LabelledData.of(mixed(rng, n)[:, :6], name) for n, name in ((400, "a"), (300, "b"))]
    projections = sotdd.Projections.fit(data, n_projections=128, scale="features")
    on_cpu = compare(data, [(0, 1)], projections, 2)[0, 1].value
    assert compare(data, [(0, 1)], projections, 2, engine=TorchEngine("cpu"))[0, 1].value == pytest.approx(on_cpu, 1e-4)


def test_a_span_and_a_peer_scale_every_feature(rng):
    a, b = rng.normal(size=(8, 40)) * np.geomspace(1, 1e6, 40), rng.normal(1, 2, size=(9, 40))
    span = sotdd.onto_span([a, b], scale="features")
    by_hand = np.concatenate(scaled_by_hand(a, b))
    turned = np.concatenate([part.features for part in span.datasets.values()])
    np.testing.assert_allclose(turned @ turned.T, by_hand @ by_hand.T, rtol=1e-6, atol=1e-6)
    found = sotdd.peers.frechet(a, b, scale="features").value
    assert found == pytest.approx(sotdd.peers.frechet(*scaled_by_hand(a, b)).value, rel=1e-6)


def test_a_flow_returns_features_in_their_own_units(rng):
    pytest.importorskip("torch")
    a, b = table(rng.normal(0, [1, 100], size=(60, 2))), table(rng.normal([3, 500], [1, 100], size=(50, 2)))
    moved = sotdd.flow(a, b, steps=40, snapshots=2, n_projections=64)
    np.testing.assert_allclose(moved.features.mean(axis=0), b[["c0", "c1"]].mean(), rtol=0.3)
    assert moved.distances[-1] < 0.3 * moved.distances[0]


def test_sketches_and_references_keep_every_scale(rng, tmp_path):
    a, b = table(rng.normal(0, [1, 10, 100], size=(300, 3))), table(rng.normal(1, [1, 10, 100], size=(200, 3)))
    projections = sotdd.Projections.fit([a, b], n_projections=64)
    made = sotdd.sketch(a, projections, name="a")
    made.save(tmp_path / "a.sotdd")
    again = sotdd.Sketch.load(tmp_path / "a.sotdd")
    np.testing.assert_array_equal(again.scaler.scale, projections.scaler.scale)
    assert again.projections.fingerprint == projections.fingerprint
    expected = sotdd.distance(a, b, projections=projections).value
    assert sotdd.distance(tmp_path / "a.sotdd", b).value == pytest.approx(expected, rel=1e-4)
    builder = sotdd.SketchBuilder(projections).add(a[:100]).add(a[100:])
    builder.save(tmp_path / "builder")
    finished = sotdd.SketchBuilder.load(tmp_path / "builder").finish("a")
    assert finished.distance(again).value < 0.01
    assert finished.distance(again).scale == "features"
    reference = sotdd.DriftReference.fit(a)
    assert reference.projections.scaler.kind == "features"


@pytest.mark.parametrize(
    ("centre", "scale"),
    [([0.0, 1.0], [1.0]), ([0.0], [[1.0]]), ([0.0], [0.0]), ([0.0], [-1.0]), ([0.0], [np.inf]), ([0.0], [1e-320])],
)
def test_numbers_that_make_no_scale(centre, scale):
    with pytest.raises(sotdd.SotddError, match="Scaler's scale"):
        Scaler(centre, scale)


@pytest.mark.parametrize("scale", ["feature", "none", 3, ["pooled"], b"pooled"])
def test_other_scales_are_refused(rng, scale):
    with pytest.raises(sotdd.SotddError, match=r"scale is .*expected 'auto', 'features', 'pooled', None or a Scaler"):
        sotdd.distance(rng.normal(size=(5, 2)), rng.normal(size=(5, 2)), scale=scale)
