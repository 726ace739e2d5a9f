"""One question, one number: calls that are asked the same thing with the same settings agree to the last bit."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
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

# All settings on the usual engine, a few on the others.
CASES = [
    *(pytest.param("cpu", settings, id=name) for name, settings in SETTINGS.items()),
    *(
        pytest.param(device, SETTINGS[name], id=f"{name}, {device}")
        for device in ("torch", "numpy")
        for name in ("default", "quantiles")
    ),
]


@pytest.fixture
def pair(rng):
    a = rng.normal(size=(150, 6)) * [3, 1, 1, 1, 1, 1], rng.integers(3, size=150)
    b = rng.normal(0.4, 1, size=(120, 6)), rng.integers(4, size=120)
    return a, b


def told(found):
    """All that a distance says of its number."""
    return found.value, found.stderr, found.fingerprint, found.estimator, found.per_projection.tolist()


@pytest.mark.parametrize(("device", "settings"), CASES, indirect=["device"])
def test_distance_pairwise_and_explain_agree(pair, settings, device):
    a, b = pair
    settings = {"n_projections": 300, "device": device, **settings}
    alone = sotdd.distance(a, b, **settings)
    assert told(sotdd.explain(a, b, **settings).distance) == told(alone)
    matrix = sotdd.pairwise({"a": a, "b": b}, **settings)
    assert told(matrix["a", "b"]) == told(alone)
    assert matrix.projections.fingerprint == alone.fingerprint


@pytest.mark.parametrize(("device", "settings"), CASES, indirect=["device"])
def test_calls_through_given_projections_agree(pair, settings, device, request):
    """Distance, pairwise, explain, the statistic of a test, and sketches that keep every value."""
    a, b = pair
    drawing = {"n_projections": 200, **settings}
    p = drawing.pop("p", 2)
    drawing.pop("estimator", None)
    through = sotdd.Projections.fit([a, b], **drawing)
    one, other = (sotdd.sketch(data, through, n_quantiles=None, device=device) for data in pair)
    for estimator in ("plain", "controlled"):
        given = {"projections": through, "p": p, "estimator": estimator, "device": device}
        alone = sotdd.distance(a, b, **given)
        assert told(sotdd.explain(a, b, **given).distance) == told(alone)
        assert told(sotdd.pairwise([a, b], **given).distances[0, 1]) == told(alone)
        found = one.distance(other, p, estimator=estimator)
        # Sketches are compared by loops of the usual engine; torch takes gaps in float32.
        usual = request.node.callspec.params["device"] == "cpu"
        np.testing.assert_allclose(found.per_projection, alone.per_projection, rtol=0 if usual else 1e-5)
        # What controls are made of is kept in float32.
        assert found.value == pytest.approx(alone.value, rel=1e-12 if usual and estimator == "plain" else 1e-5)
        assert found.estimator == alone.estimator
        assert sotdd.distance(one, b, p=p, estimator=estimator, device=device).value == found.value
    plain = sotdd.distance(a, b, projections=through.evenly(), p=p, estimator="plain", device=device)
    assert sotdd.test(a, b, n_permutations=3, projections=through, p=p, device=device).distance == pytest.approx(
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


# ------------------------------------------------------------------ tables with heavy tails


@pytest.fixture
def heavy(rng):
    """Two tables: a long tail, mostly zeros with a longer one, a plain number; and projections of both."""
    sides = []
    for shift in (0.0, 0.4):
        n = 600 - round(500 * shift)
        gain = np.where(rng.random(n) < 0.06, 1e3 * (1 + rng.pareto(0.8, n)), 0)
        columns = {"income": np.exp(10 + 1.5 * rng.normal(shift, 1, n)), "gain": gain, "age": rng.normal(45, 15, n)}
        sides.append(pd.DataFrame({**columns, "label": rng.integers(3, size=n)}))
    return *sides, sotdd.Projections.fit(sides, n_projections=200)


def numbers(frame):
    """A table as an array and labels."""
    return frame.drop(columns="label").to_numpy(), frame["label"].to_numpy()


def test_tails_count_by_their_logarithm_on_every_path(heavy, tmp_path):
    """By hand, by the distance of two calls and of a test, and by sketches and their files."""
    one, other, through = heavy
    scaler = through.scaler
    assert scaler.arcsinh
    (x, labels), (z, others) = numbers(one), numbers(other)
    assert (np.abs(x - scaler.centre) / scaler.scales).max() > 30
    given = {"projections": through.evenly(), "estimator": "plain"}
    alone = sotdd.distance(one, other, **given).value
    by_hand = [(np.arcsinh((x - scaler.centre) / scaler.scales), labels), (scaler.apply(z), others)]
    assert sotdd.distance(*by_hand, projections=replace(through.evenly(), scaler=None), estimator="plain").value == (
        pytest.approx(alone, rel=1e-5)
    )
    assert sotdd.distance(one, other, n_projections=200).value == sotdd.distance(one, other, projections=through).value
    tested = sotdd.test(one, other, projections=through.evenly(), n_permutations=3)
    assert tested.distance == pytest.approx(alone, rel=1e-9)
    exact = [sotdd.sketch(side, through.evenly(), n_quantiles=None) for side in (one, other)]
    assert exact[0].distance(exact[1], estimator="plain").value == pytest.approx(alone, rel=1e-9)
    exact[0].save(tmp_path / "one.sotdd")
    loaded = sotdd.Sketch.load(tmp_path / "one.sotdd")
    assert loaded.projections.scaler.fingerprint() == scaler.fingerprint()
    assert loaded.distance(exact[1], estimator="plain").value == pytest.approx(alone, rel=1e-6)


def test_builders_streams_and_catalogs_carry_the_tails(heavy, tmp_path):
    pytest.importorskip("lancedb")
    one, other, through = heavy
    alone = sotdd.distance(one, other, projections=through.evenly(), estimator="plain").value
    (x, labels), right = numbers(one), sotdd.sketch(other, through.evenly())
    builder = sotdd.SketchBuilder(through.evenly()).add(x[:100], labels[:100])
    builder.save(tmp_path / "builder")
    built = sotdd.SketchBuilder.load(tmp_path / "builder").add(x[100:], labels[100:]).finish()
    batches = [pa.Table.from_pandas(one[:250]), pa.Table.from_pandas(one[250:])]
    streamed = sotdd.sketch_stream(batches, through.evenly(), label="label")
    for left in (built, streamed):
        assert left.distance(right, estimator="plain").value == pytest.approx(alone, rel=0.01)
    catalog = sotdd.Catalog(tmp_path / "catalog")
    catalog.add("other", right)
    [line] = sotdd.Catalog(tmp_path / "catalog").nearest(built)
    assert line.distance.value == pytest.approx(alone, rel=0.02)


def test_the_loss_and_flows_carry_the_tails(heavy):
    torch = pytest.importorskip("torch")
    one, other, through = heavy
    alone = sotdd.distance(one, other, projections=through.evenly(), estimator="plain").value
    sides = [torch.tensor(part) for side in (one, other) for part in numbers(side)]
    sides[0].requires_grad_()
    loss = sotdd.gradients.sotdd_loss(*sides, through.evenly())
    assert loss.item() == pytest.approx(alone**2, rel=1e-5)
    loss.backward()
    assert torch.isfinite(sides[0].grad).all()
    flow = sotdd.flow(numbers(one), numbers(other), scale=through.scaler, steps=40, snapshots=2, n_projections=64)
    assert flow.distances[0] == pytest.approx(alone, rel=0.1)
    assert flow.distances[-1] < 0.4 * flow.distances[0]
