"""The metric of torchmetrics: in batches, in collections, and in two processes, it says what `sotdd.distance` says."""

import copy
import pickle

import numpy as np
import pytest
import torch
from torchmetrics import MetricCollection

import sotdd
from sotdd.integrations import torchmetrics as door
from sotdd.integrations.torchmetrics import SlicedOTDatasetDistance


def some_data(seed=0, n_points=900):
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (n_points,), generator=rng)
    return torch.randn(n_points, 6, generator=rng) + labels[:, None], labels


REAL, FAKE = some_data(), (1.4 * some_data(1)[0], some_data(1)[1])
PROJECTIONS = sotdd.Projections.fit([REAL], n_projections=128)


def fed(metric, parts=slice(None), batch=100):
    """A metric that has seen every ``parts``-th batch of both sides."""
    for side, (x, y) in ((True, REAL), (False, FAKE)):
        for start in range(0, len(x), batch)[parts]:
            metric.update(x[start : start + batch], y[start : start + batch], real=side)
    return metric


@pytest.fixture(scope="module")
def alone():
    metric = fed(SlicedOTDatasetDistance(PROJECTIONS))
    metric.compute()
    return metric.result


def test_batches_give_the_distance_of_sketches(alone):
    whole = sotdd.sketch(REAL, PROJECTIONS).distance(sotdd.sketch(FAKE, PROJECTIONS))
    assert alone.value == pytest.approx(whole.value, rel=2e-3)
    assert alone.stderr == pytest.approx(whole.stderr, rel=0.05)
    assert alone.n_points == (900, 900)


def test_counting_early_changes_nothing_and_bounds_what_waits(alone, monkeypatch):
    monkeypatch.setattr(door, "_WAITING_VALUES", 1000)
    metric = fed(SlicedOTDatasetDistance(PROJECTIONS))
    sizes = [part.numel() for part in metric.real_counts]
    assert sum(part.numel() for part in metric.real_features) < 1000
    assert metric.compute().item() == pytest.approx(alone.value, rel=1e-6)
    assert metric.result.value == pytest.approx(alone.value, rel=1e-9)
    fed(metric)
    assert [part.numel() for part in metric.real_counts] == pytest.approx(sizes, rel=0.01)


@pytest.mark.filterwarnings("ignore:The ``compute`` method")  # of the restored one, which has seen no update itself
def test_merged_cloned_pickled_and_saved_states_give_the_same(alone):
    one, other = (fed(SlicedOTDatasetDistance(PROJECTIONS), slice(k, None, 2)) for k in (0, 1))
    other._count_waiting("real")
    one.merge_state(other)
    one.persistent(True)
    restored = SlicedOTDatasetDistance(PROJECTIONS)
    restored.load_state_dict(one.state_dict())
    for metric in (one, one.clone(), copy.deepcopy(one), pickle.loads(pickle.dumps(one)), restored):
        metric.compute()
        assert metric.result.value == pytest.approx(alone.value, rel=1e-9)


def test_reset_forgets(alone):
    metric = SlicedOTDatasetDistance(PROJECTIONS)
    metric.update(torch.zeros(5, 6), real=True)
    metric.reset()
    metric.update(*FAKE, real=False)
    with pytest.raises(sotdd.SotddError, match="no real points yet"):
        metric.compute()
    metric.reset()
    fed(metric).compute()
    assert metric.result.value == alone.value


def test_real_data_are_counted_once_for_all_epochs(alone):
    metric = fed(SlicedOTDatasetDistance(PROJECTIONS, reset_real_features=False))
    metric.reset()
    with pytest.raises(sotdd.SotddError, match="or none"):
        metric.update(FAKE[0], real=False)
    metric.update(*FAKE, real=False)
    metric.compute()
    assert metric.result.value == pytest.approx(alone.value, rel=1e-9)


def test_a_collection_keeps_metrics_with_other_projections_apart(alone):
    others = sotdd.Projections.fit([REAL], n_projections=64, seed=1)
    together = MetricCollection(
        {
            "a": SlicedOTDatasetDistance(PROJECTIONS),
            "b": SlicedOTDatasetDistance(PROJECTIONS, p=1),
            "c": SlicedOTDatasetDistance(others),
        }
    )
    values = fed(together).compute()
    assert sorted(map(sorted, together.compute_groups.values())) == [["a", "b"], ["c"]]
    assert values["a"].item() == pytest.approx(alone.value, rel=1e-6)
    apart = fed(SlicedOTDatasetDistance(others)).compute()
    assert values["c"].item() == apart.item() != values["a"].item()
    assert values["b"].item() < values["a"].item()


def test_an_encoder_makes_the_features(alone):
    turned = torch.nn.Linear(6, 6, bias=False)
    metric = fed(SlicedOTDatasetDistance(PROJECTIONS, encoder=turned))
    assert not metric.real_features[0].requires_grad
    by_hand = [(turned(x).detach(), y) for x, y in (REAL, FAKE)]
    expected = sotdd.sketch(by_hand[0], PROJECTIONS).distance(sotdd.sketch(by_hand[1], PROJECTIONS))
    assert metric.compute().item() == pytest.approx(expected.value, rel=2e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.zeros(5, 7), None), "7 features but the projections take 6"),
        ((torch.full((5, 6), torch.nan), None), "NaN or infinite"),
        ((np.zeros((5, 6)), None), "expected a tensor"),
        ((torch.zeros(5, 6), torch.zeros(4, dtype=torch.int64)), r"expected \(5,\)"),
        ((torch.zeros(5, 6), torch.zeros(5)), "whole numbers"),
    ],
)
def test_a_bad_batch_is_refused_and_leaves_nothing_behind(arguments, message):
    metric = SlicedOTDatasetDistance(PROJECTIONS)
    with pytest.raises(sotdd.SotddError, match=message):
        metric.update(*arguments, real=True)
    assert not metric.real_features
    assert not metric.real_labels
    with pytest.raises(sotdd.SotddError, match="has no distance"):
        metric(*REAL, real=True)  # a batch of one side
    for projections, encoder in ((5, None), (PROJECTIONS, len)):
        with pytest.raises(sotdd.SotddError):
            SlicedOTDatasetDistance(projections, encoder=encoder)


def in_a_process(rank, address, projections, results):
    """One of two: the first has most batches, the second has a few real ones and all others of the synthetic."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    metric = SlicedOTDatasetDistance(projections)
    for side, (x, y), cut in ((True, REAL, 700), (False, FAKE, 0)):
        rows = slice(0, cut) if rank == 0 else slice(cut, None)
        for features, labels in zip(x[rows].split(100), y[rows].split(100), strict=True):
            if len(features):
                metric.update(features, labels, real=side)
    value = metric.compute().item()
    again = metric.compute().item()  # what was gathered is not kept, and not counted twice
    results.put((rank, value, again, metric.result.value, metric.result.n_points, len(metric.real_counts)))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_give_the_answer_of_one(alone, tmp_path):
    """The first has no synthetic batches at all, and still there is no waiting for each other without end."""
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    address = f"file://{tmp_path}/meeting"
    processes = [
        context.Process(target=in_a_process, args=(rank, address, PROJECTIONS, results), daemon=True) for rank in (0, 1)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    found = sorted(results.get() for _ in processes)
    for rank, value, again, exact, n_points, kept in found:
        assert value == again == pytest.approx(alone.value, rel=1e-6), rank
        assert exact == pytest.approx(alone.value, rel=1e-9)
        assert n_points == (900, 900)
        assert kept == 0  # each process has only its own batches again
