"""The paper's experiments run at their smallest size, and what they stand on has known answers."""

import csv
import types
import zlib
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch", reason="the experiments train networks: needs torch")

from experiments import (  # noqa: E402
    augmentation,
    augmentation_training,
    correlate,
    correlation,
    data,
    families,
    methods,
    moments,
    networks,
    nist_training,
    nist_transfer,
    options,
    page,
    projections,
    reports,
    runtime,
    side_by_side,
    split_tiny_imagenet,
    store,
    text_transfer,
    tiny_training,
    training,
)

import sotdd  # noqa: E402

ROOT = Path(__file__).parents[2]


def test_a_stopped_run_resumes_from_its_last_finished_unit(tmp_path):
    path = tmp_path / "results.csv"
    units = [{"seed": seed, "name": name} for seed in (0, 1) for name in ("a, b", "c")]
    done = []

    def work(unit):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(unit)
        return [{"value": 1 / 3, "part": part} for part in range(2)]

    with pytest.raises(KeyboardInterrupt):
        store.complete(path, units, work, title="test")
    assert len(store.read(path)) == 6
    again = []
    rows = store.complete(path, units, lambda unit: again.append(unit) or [{"value": 2.0, "part": 0}], title="test")
    assert again == units[3:]
    assert [row["value"] for row in rows] == ["0.333333"] * 6 + ["2"]
    assert store.complete(path, units, work, title="test", workers=4) == rows


def test_correlations_agree_with_scipy(rng):
    x = rng.normal(size=30)
    y = np.round(x + rng.normal(size=30), 1)  # with ties
    for found, theirs in ((correlate.spearman(x, y), stats.spearmanr), (correlate.pearson(x, y), stats.pearsonr)):
        assert found.value == pytest.approx(theirs(x, y).statistic)
        assert found.low < found.value < found.high


def test_choosing_the_nearest_source():
    gaps = {("a", "t"): 0.1, ("b", "t"): 0.2, ("c", "t"): 0.6, ("a", "u"): 0.5, ("b", "u"): 0.3, ("c", "u"): 0.1}
    distances = {("a", "t"): 1, ("b", "t"): 2, ("c", "t"): 3, ("a", "u"): 1, ("b", "u"): 2, ("c", "u"): 3}
    found = correlate.choice(distances, gaps)
    assert found.rho == pytest.approx(0)  # in order for one target, in reverse for the other
    assert found.best == 0.5
    assert found.regret == pytest.approx((0 + 0.4) / 2)
    assert found.blind == pytest.approx((0.2 + 0.2) / 2)


@pytest.mark.parametrize("store_of", ["yelp", "amazon"])
def test_reviews_that_two_sets_would_share_are_taken_apart(store_of, data_folder):
    full, polar = (data.texts(f"{store_of}_{kind}", data_folder, apart=True) for kind in ("full", "polarity"))
    assert not {*full[0].x, *full[1].x} & {*polar[0].x, *polar[1].x}
    assert set(full[0].x) <= set(data.texts(f"{store_of}_full", data_folder)[0].x)


def test_s_otdd_is_the_papers(rng):
    sets = {name: (rng.normal(size=(40, 6)), rng.integers(0, 3, size=40)) for name in "ab"}
    found = methods.measure(methods.Method(methods.SOTDD, 200, 3), sets, seed=5).values["a", "b"]
    settings = {"n_projections": 200, "moments": (1.0, 2.0, 3.0), "estimator": "plain", "seed": 5, "device": "cpu"}
    paper = sotdd.distance(*sets.values(), **settings)
    assert found == pytest.approx(paper.value, rel=1e-6)
    by_count = methods.by_projections(methods.Method(methods.SOTDD, 200, 3), *sets.values(), [50, 200], seed=5)
    assert by_count[200] == pytest.approx(found, rel=1e-6)
    assert by_count[50] == pytest.approx(np.mean(paper.per_projection[:50]) ** 0.5, rel=1e-4)


# --------------------------------------------------------------------------- training


@pytest.mark.slow
def test_training_is_seeded_and_learns(rng):
    x = torch.tensor(rng.normal(size=(200, 4)), dtype=torch.float32)
    y = (x[:, 0] > 0).long()

    def trained(seed):
        training.seeded(seed)
        model = torch.nn.Linear(4, 2)
        training.fit(model, x, y, epochs=20, seed=seed, title="test", rate=0.05, batch=32)
        return training.apply(model, x)

    first = trained(0)
    assert torch.equal(first, trained(0))
    assert not torch.equal(first, trained(1))
    assert training.scores(first, y)["accuracy"] > 0.95


def test_networks_side_by_side_compute_what_torch_computes_alone(rng):
    """A convolution with padding and pooling, and its gradients, for two networks at once."""
    layer = side_by_side.Conv(3, 8, 3, 1)
    x = torch.tensor(rng.normal(size=(2, 5, 8, 8, 3)), dtype=torch.float64, requires_grad=True)
    weights = [(w.double().requires_grad_(), b.double().requires_grad_()) for w, b in
               side_by_side.drawn([layer], [0, 1], "cpu", gain=2.0)]  # fmt: skip
    found = side_by_side.outputs([layer], weights, x)
    alone = []
    for place in range(2):
        kernel = weights[0][0][place].reshape(3, 3, 3, 8).permute(3, 2, 0, 1)
        shown = torch.nn.functional.conv2d(x[place].permute(0, 3, 1, 2), kernel, weights[0][1][place, 0], padding=1)
        alone.append(torch.nn.functional.max_pool2d(shown.relu(), 2).permute(0, 2, 3, 1))
    torch.testing.assert_close(found, torch.stack(alone))
    ours, theirs = (torch.autograd.grad(part.pow(2).sum(), (x, *weights[0])) for part in (found, torch.stack(alone)))
    torch.testing.assert_close(ours, theirs)


def test_every_epoch_sees_every_point_once():
    stream = side_by_side.batches([7, 7, 4], 3, torch.Generator().manual_seed(0), "cpu")
    first = torch.cat([next(stream) for _ in range(6)], dim=1)
    for epoch in (first[:2, :9], first[:2, 9:]):
        assert all(sorted(row) == [-1, -1, *range(7)] for row in epoch.tolist())
    assert sorted(first[2, :6].tolist()) == [-1, -1, 0, 1, 2, 3]
    assert first[0].tolist() != first[1].tolist()


def test_letters_lie_on_their_side_as_the_authors_load_them(data_folder):
    given, sizes = options.Options(data_folder), nist_training.SIZES["smallest"]
    upright = data.images("emnist_letters", given.data)[1].sample(sizes.points).x
    lying = nist_training.pictures("emnist_letters", given, sizes)[1].x
    np.testing.assert_array_equal(lying, upright.transpose(0, 2, 1))


def test_families_hold_every_class_once(data_folder):
    names = [name for family in families.FAMILIES.values() for name in family]
    assert sorted(names) == sorted(data.tiny_classes(data_folder))
    for kind in tiny_training.KINDS:
        tasks = tiny_training.classes_of(kind, data_folder, tiny_training.SIZES["gpu"])
        assert sorted(label for task in tasks for label in task) == list(range(200))


@pytest.mark.parametrize("count", [9, 49])
def test_the_strengths_of_augmentations_are_uncorrelated(count):
    table = np.array([design.strengths for design in augmentation_training.strengths(count)])
    np.testing.assert_allclose(np.corrcoef(table.T), np.eye(4), atol=1e-12)
    np.testing.assert_allclose(table.max(axis=0), [0.9, 0.9, 0.9, 0.5])


# --------------------------------------------------------------------------- the experiments


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


class Encoder(torch.nn.Module):
    """In place of the pretrained encoder, which is a download of its own: embeddings of tokens, untrained."""

    def __init__(self):
        super().__init__()
        self.config = types.SimpleNamespace(hidden_size=384)
        self.tokens = torch.nn.Embedding(500, 384)

    def forward(self, input_ids, attention_mask):
        return types.SimpleNamespace(last_hidden_state=self.tokens(input_ids) * attention_mask[..., None])


def tokenise(texts, max_length, **_):
    rows = [[1 + zlib.crc32(word.encode()) % 499 for word in text.split()][:max_length] for text in texts]
    return {"input_ids": [row + [0] * (max_length - len(row)) for row in rows]}


EXPERIMENTS = {
    "correlation_summary.csv": correlation,
    "runtime_mnist.csv": runtime,
    "projections_summary.csv": projections,
    "nist_correlations.csv": nist_transfer,
    "moments_correlations.csv": moments,
    "text_correlations.csv": text_transfer,
    "tiny_correlations.csv": split_tiny_imagenet,
    "augmentation_correlations.csv": augmentation,
}


@pytest.mark.slow
@pytest.mark.parametrize("table", EXPERIMENTS)
def test_every_experiment_runs(table, results, data_folder, monkeypatch):
    monkeypatch.setattr(networks, "sentence_encoder", lambda device: Encoder().to(device))
    monkeypatch.setattr(networks, "_tokeniser", lambda: tokenise)
    EXPERIMENTS[table].run(options.Options(data_folder, results, size="smallest", workers=2))
    with (results / table).open(encoding="utf-8") as file:
        assert list(csv.DictReader(file))
    assert (results / f"{table.split('_')[0]}.png").stat().st_size > 5000
    # Nothing is measured twice.
    monkeypatch.setattr(store, "write", lambda path, rows: pytest.fail(f"{path.name} was written again"))
    EXPERIMENTS[table].run(options.Options(data_folder, results, size="smallest", draw=False))


def test_the_committed_page_is_what_the_committed_results_give(tmp_path):
    folder = ROOT / "experiments" / "results"
    page.generate(folder, tmp_path / "page.md", [section(folder) for section in reports.SECTIONS])
    fresh, committed = (
        [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("![")]
        for path in (tmp_path / "page.md", ROOT / "docs" / "reproduction.md")
    )
    assert fresh == committed
