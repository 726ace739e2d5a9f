"""Sketches from batches: against sorted data, in any order and grouping, in one pass and in two."""

import logging

import numpy as np
import pytest

import sotdd
from laws import Medians
from sketches.cases import in_batches, two_passes
from sotdd.sketches import statistics as gathering
from sotdd.sketches.counting import BINS


def labelled(rng, n, d=6, classes=4):
    labels = rng.integers(classes, size=n)
    return rng.normal(size=(n, d)) + 0.7 * labels[:, None], labels


@pytest.fixture
def data(rng):
    return labelled(rng, 20_000)


@pytest.fixture
def projections(data):
    return sotdd.Projections.fit([data], n_projections=100, seed=3)


# ------------------------------------------------------------------ builders


def test_any_order_and_grouping_gives_the_same(data, projections, rng):
    first = sotdd.sketch_stream(in_batches(data, [5000, 10_000, 15_000]), projections)
    order = rng.permutation(20_000)
    shuffled = data[0][order], data[1][order]
    parts = [sotdd.SketchBuilder(projections).add(*batch) for batch in in_batches(shuffled, [10, 7000, 7001, 12_000])]
    left = parts[3].merge(parts[1])
    right = parts[0].merge(parts[4]).merge(parts[2])
    second = left.merge(right).finish()
    # Counts are the same. Sums of classes differ in their last bits, which may carry a point into the next fine cell.
    np.testing.assert_allclose(first.quantiles, second.quantiles, atol=2e-5)
    assert first.distance(second).value < 1e-5


def tailed(kind, rng, n=20_000, d=3):
    labels = rng.integers(3, size=n)
    x = {
        "cauchy": rng.standard_cauchy((n, d)),
        "lognormal": np.exp(2 * rng.normal(size=(n, d))),
        "counts": rng.zipf(1.6, size=(n, d)).astype(float),
    }.get(kind, rng.normal(size=(n, d)) + 0.3 * labels[:, None])
    if kind == "one outlier":
        x[7] = 1e5
    if kind == "fifty outliers":
        x[rng.choice(n, 50, replace=False)] *= 1e4
    return x, labels


@pytest.mark.first(5)
@pytest.mark.parametrize("label", ["moments", "quantiles"])
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("kind", ["one outlier", "fifty outliers", "cauchy", "lognormal", "counts"])
def test_outliers_and_heavy_tails_leave_the_others_where_they_are(rng, kind, d, label):
    """A stream is as good as a sorted sketch; in even bins all but the outliers would fall into one."""
    here, there = tailed(kind, rng, d=d), tailed(kind, rng, d=d)
    there = there[0] + 0.5, there[1]
    # The scale is of the points that matter, as where a reference without outliers was agreed on.
    usual = tailed("none", rng, n=500, d=d)
    projections = sotdd.Projections.fit([usual], n_projections=64, seed=3, label_law=label)
    batches = [in_batches(dataset, [1, 500, 9000]) for dataset in (here, there)]
    ways = [[sotdd.sketch_stream(parts, projections) for parts in batches]]
    if label == "moments":
        ways.append([two_passes(parts, projections) for parts in batches])
    whole = [sotdd.sketch(dataset, projections) for dataset in (here, there)]
    wanted = whole[0].distance(whole[1]).value
    for streamed in ways:
        assert streamed[0].distance(streamed[1]).value == pytest.approx(wanted, rel=0.02)
        for made, sorted_sketch in zip(streamed, whole, strict=True):
            assert made.distance(sorted_sketch, estimator="plain").value < 0.1 * wanted


def test_one_point_more_than_are_sorted_changes_nothing(rng, monkeypatch):
    monkeypatch.setattr("sotdd.sketches.making._MOST_SORTED", 100_000)
    x = rng.normal(size=(100_001, 1))
    x[5] = 1e5
    projections = sotdd.Projections.fit([x[10:500]], n_projections=8, seed=3)
    other = sotdd.sketch(np.append(rng.normal(0.7, 1, size=(9_999, 1)), [[1e4]], axis=0), projections)
    counted, sorted_sketch = sotdd.sketch(x, projections), sotdd.sketch(x[:-1], projections)
    assert counted.distance(other).value == pytest.approx(sorted_sketch.distance(other).value, rel=1e-3)


def test_a_class_may_be_in_one_shard_only(data, projections):
    x, y = data
    shards = [sotdd.SketchBuilder(projections).add(x[y == label], y[y == label]) for label in range(4)]
    merged = shards[2].merge(shards[0]).merge(shards[3]).merge(shards[1]).finish()
    assert merged.classes == (0, 1, 2, 3)
    assert merged.distance(sotdd.sketch(data, projections)).value < 2e-3


@pytest.mark.parametrize(
    "settings_",
    [
        {"shared_directions": False},
        {"directions": sotdd.projections.Orthogonal()},
        {"directions": sotdd.projections.Hadamard()},
        {"scale": None},
        {"label_law": "quantiles"},
        {"label_law": sotdd.projections.ClassQuantiles(5, 0.3), "shared_directions": False},
    ],
)
def test_other_laws_stream_too(data, settings_):
    projections = sotdd.Projections.fit([data], n_projections=70, **settings_)
    exact = sotdd.sketch(data, projections)
    batches = in_batches(data, [3000, 12_345])
    spread = float(np.abs(exact.quantiles).max())
    for made in (sotdd.sketch_stream(batches, projections), two_passes(batches, projections)):
        assert made.distance(exact).value < 2e-3 * max(1.0, spread / 10)


def test_clamped_and_given_projections_stream_too(data, rng):
    import reference

    projections = sotdd.Projections.from_arrays(**reference.draw(rng, 80, 6), clamp=1.5)
    exact = sotdd.sketch(data, projections)
    assert sotdd.sketch_stream([data], projections).distance(exact).value < 2e-3


def test_many_classes_take_two_passes_and_say_so(rng, caplog, monkeypatch):
    monkeypatch.setattr(gathering, "CLASS_BYTES", 40 * 64 * BINS * 4)
    data = labelled(rng, 5000, classes=50)
    projections = sotdd.Projections.fit([data], n_projections=64)
    batches = in_batches(data, [1000])
    with caplog.at_level(logging.INFO, "sotdd"):
        made = sotdd.sketch_stream(batches, projections)
        sotdd.sketch_stream(lambda: iter(batches), projections)
        few = sotdd.sketch_stream([labelled(rng, 500)], projections)
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "sketching stream in two passes",
        "sketching stream in two passes",
        "sketched stream in one pass",
    ]
    assert made.distance(sotdd.sketch(data, projections)).value < 5e-3
    assert few.n_points == 500
    with pytest.raises(sotdd.SotddError, match="gone over twice"):
        sotdd.sketch_stream(iter(batches), projections)


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("label", ["moments", "quantiles"])
@pytest.mark.parametrize("passes", [1, 2])
def test_parties_exchange_files(tmp_path, data, label, passes):
    projections = sotdd.Projections.fit([data], n_projections=70, label_law=label)
    parts = in_batches(data, [7000])
    expected = two_passes(parts, projections) if passes == 2 else sotdd.sketch_stream(parts, projections)
    known = None
    if passes == 2:
        for k, part in enumerate(parts):
            sotdd.ClassStatistics(projections).add(*part).save(tmp_path / f"statistics {k}")
        known = sotdd.ClassStatistics.load(tmp_path / "statistics 0")
        known.merge(sotdd.ClassStatistics.load(tmp_path / "statistics 1"))
    for k, part in enumerate(parts):
        sotdd.SketchBuilder(projections, known).add(*part).save(tmp_path / f"builder {k}")
    merged = sotdd.SketchBuilder.load(tmp_path / "builder 1")
    found = merged.merge(sotdd.SketchBuilder.load(tmp_path / "builder 0")).finish()
    np.testing.assert_allclose(found.quantiles, expected.quantiles, atol=1e-5)
    assert found.counts.tolist() == expected.counts.tolist()
    more = sotdd.SketchBuilder.load(tmp_path / "builder 0", projections)
    if passes == 1:
        more.add(*parts[1])
        np.testing.assert_allclose(more.finish().quantiles, expected.quantiles, atol=1e-5)


def test_files_of_other_kinds_are_refused(tmp_path, data, projections):
    sotdd.SketchBuilder(projections).add(*data).save(tmp_path / "builder")
    sotdd.SketchBuilder(projections).save(tmp_path / "empty")
    assert sotdd.SketchBuilder.load(tmp_path / "empty").n_points == 0
    other = sotdd.Projections.fit([data], n_projections=100, seed=4)
    for load, said in [
        (lambda: sotdd.Sketch.load(tmp_path / "builder"), "holds a sketch builder: expected a sketch"),
        (lambda: sotdd.ClassStatistics.load(tmp_path / "builder"), "expected a class statistics"),
        (lambda: sotdd.SketchBuilder.load(tmp_path / "builder", other), "other projections"),
        (lambda: sotdd.SketchBuilder.load(tmp_path / "missing"), "cannot read"),
        (lambda: sotdd.ClassStatistics(projections).add(data[0][:2], [(1, 2), (3, 4)]).save(tmp_path / "x"), "label"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            load()
    assert not (tmp_path / "x").exists()


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize("batches", [lambda: 5, lambda seed: [], "abc", 5, b"abc", [5], [None]])
def test_batches_that_are_none_are_refused(projections, batches):
    with pytest.raises(sotdd.SotddError, match="batch"):
        sotdd.sketch_stream(batches, projections)


def test_errors_of_the_batches_themselves_are_their_own(data, projections):
    def broken():
        yield data
        raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="on fire"):
        sotdd.sketch_stream(broken, projections)


def test_settings_that_cannot_be_are_refused(data, projections):
    one = sotdd.sketch(data, projections, n_quantiles=8)
    for call, said in [
        (lambda: sotdd.sketch_stream([data], projections, n_quantiles=10**12), "n_quantiles is"),
        (lambda: sotdd.SketchBuilder(projections, n_quantiles=10**30), "n_quantiles is"),
        (lambda: one.vector(n_quantiles=10**9), "n_quantiles is"),
        (lambda: one.vector(n_quantiles=0), "n_quantiles is 0"),
        (lambda: one.vector(50_000), "dim is 50,000: expected at most 38,400"),
        (lambda: sotdd.sketch_stream([data], projections, name=5), "name is 5"),
        (lambda: sotdd.SketchBuilder(projections).add(*data).finish(None), "name is None"),
        (lambda: one.save("never", half=5), "half is 5"),
        (lambda: sotdd.ClassStatistics(projections).terms(), "no points yet"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            call()


def test_a_builder_that_was_interrupted_is_not_gone_on_with(data, projections, monkeypatch):
    """A batch after the interrupted one does not make it whole."""
    builder = sotdd.SketchBuilder(projections).add(*data)
    with monkeypatch.context() as patched:

        def interrupted(*_):
            raise MemoryError

        patched.setattr("sotdd.sketches.counting.Histograms.count", interrupted)
        with pytest.raises(MemoryError):
            builder.add(*data)
    for call in (
        lambda: builder.add(*data),
        builder.finish,
        lambda: builder.merge(sotdd.SketchBuilder(projections).add(*data)),
    ):
        with pytest.raises(sotdd.SotddError, match="start again with a new builder"):
            call()


def test_an_empty_batch_adds_nothing(data, projections):
    builder = sotdd.SketchBuilder(projections).add(*data)
    builder.add(np.empty((0, 6)), np.empty(0)).add(np.empty((0, 6)))
    assert builder.n_points == 20_000
    with pytest.raises(sotdd.SotddError, match="labels but no features"):
        builder.add(np.empty((0, 6)), [1])
    with pytest.raises(sotdd.SotddError, match="no points to sketch"):
        sotdd.SketchBuilder(projections).finish()


def test_bad_batches_are_refused_and_nothing_is_lost(data, projections):
    x, y = data
    builder = sotdd.SketchBuilder(projections).add(x, y)
    for features, labels, said in [
        (x[:5, :3], y[:5], "has 3 features but the projections are for 6"),
        (x[:5], y[:4], "labels"),
        (x[:5] * np.nan, y[:5], "NaN"),
        (x[:5], ["1", "2", "1", "1", "1"], "text in one batch"),
        (x[:5].astype(str), y[:5], "dtype"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            builder.add(features, labels)
    assert builder.finish().distance(sotdd.sketch(data, projections)).value < 2e-3
    with pytest.raises(sotdd.SotddError, match="too large"):
        builder.add(x * 1e39, y)
    with pytest.raises(sotdd.SotddError, match="start again"):
        builder.finish()


def test_what_does_not_belong_together_is_not_merged(data, projections):
    other = sotdd.Projections.fit([data], n_projections=100, seed=4)
    statistics = sotdd.ClassStatistics(projections).add(*data)
    builder = sotdd.SketchBuilder(projections).add(*data)
    for merge, said in [
        (lambda: builder.merge(sotdd.SketchBuilder(other)), "seed is 3 and 4"),
        (lambda: statistics.merge(sotdd.ClassStatistics(other)), "seed is 3 and 4"),
        (lambda: builder.merge(statistics), "cannot be merged"),
        (lambda: builder.merge(sotdd.SketchBuilder(projections, statistics)), "not of the same pass"),
        (lambda: sotdd.SketchBuilder(other, statistics), "seed is 4 and 3"),
        (lambda: sotdd.SketchBuilder(projections, sotdd.ClassStatistics(projections)), "empty"),
        (lambda: sotdd.SketchBuilder(projections, n_quantiles=0), "n_quantiles is 0"),
        (lambda: sotdd.sketch_stream("no", projections), "batches is 'no'"),
        (lambda: sotdd.sketch_stream([data], None), "projections is None"),
    ]:
        with pytest.raises(sotdd.SotddError, match=said):
            merge()


def test_both_passes_must_see_the_same_data(data, projections):
    x, y = data
    statistics = sotdd.ClassStatistics(projections).add(x, y)
    with pytest.raises(sotdd.SotddError, match="both must go over the same data"):
        sotdd.SketchBuilder(projections, statistics).add(x[:-1], y[:-1]).finish()
    with pytest.raises(sotdd.SotddError, match="class 9 was not there in the first pass"):
        sotdd.SketchBuilder(projections, statistics).add(x[:1], [9])


def test_laws_that_do_not_add_up_are_refused(data):

    projections = sotdd.Projections.fit([data], n_projections=64, label_law=Medians())
    assert sotdd.sketch(data, projections).n_points == 20_000
    with pytest.raises(sotdd.SotddError, match="does not add up"):
        sotdd.sketch_stream([data], projections)


# ------------------------------------------------------------------ real data


def test_streams_of_real_data_are_within_one_percent(pictures):
    """Each picture at four places a pixel apart."""
    mnist, fashion = pictures("mnist"), pictures("fashion_mnist")
    moves = [(down, right) for down in range(2) for right in range(2)]
    sets = {}
    for name, data, k, step in [("half", mnist, 0, 2), ("other half", mnist, 1, 2), ("fashion", fashion, 0, 1)]:
        x, y = data["X_train"][k::step], data["y_train"][k::step]
        moved = np.concatenate([np.roll(x, move, (1, 2)) for move in moves])
        sets[name] = moved.reshape(-1, 784), np.tile(y, len(moves))
    projections = sotdd.Projections.fit(sets, n_projections=64)
    streamed = {
        name: sotdd.sketch_stream(in_batches(data, [300, 1000]), projections, name=name) for name, data in sets.items()
    }
    found, exact = sotdd.pairwise(streamed), sotdd.pairwise(sets, projections=projections)
    np.testing.assert_allclose(found.values, exact.values, rtol=0.01)


def test_the_federated_example_agrees_with_data_in_one_place(capsys):
    import runpy
    from pathlib import Path

    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "federated.py"), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    exchanged, in_one_place = (
        float(next(line for line in said if line.startswith(start)).split(":")[1].split()[0])
        for start in ("study to laboratory", "the same with all data")
    )
    assert exchanged == pytest.approx(in_one_place, rel=0.01)
