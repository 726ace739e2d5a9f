"""The experiments: known answers, runs at the smallest size, and pages that are what the committed tables give."""

import csv
import types
import zlib
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch", reason="the experiments train networks: needs torch")

from experiments.lib import correlate, methods, networks, options, side_by_side, store  # noqa: E402
from experiments.paper import (  # noqa: E402
    augmentation,
    claims,
    correlation,
    moments,
    nist_transfer,
    page,
    projections,
    runtime,
    split_tiny_imagenet,
    text_transfer,
)
from experiments.studies.choosing import page as choosing_page  # noqa: E402
from experiments.studies.taskweb import page as taskweb_page  # noqa: E402

import sotdd  # noqa: E402

ROOT = Path(__file__).parents[2]


def test_correlations_agree_with_scipy(rng):
    x = rng.normal(size=30)
    y = np.round(x + rng.normal(size=30), 1)  # with ties
    for found, theirs in ((correlate.spearman(x, y), stats.spearmanr), (correlate.pearson(x, y), stats.pearsonr)):
        assert found.value == pytest.approx(theirs(x, y).statistic)
        assert found.low < found.value < found.high
    first, second, third = (stats.rankdata(part) for part in (x, y, x + y))
    left = [part - np.polyval(np.polyfit(third, part, 1), third) for part in (first, second)]
    assert correlate.partial_spearman(x, y, x + y) == pytest.approx(stats.pearsonr(*left).statistic)


def test_intervals_leave_whole_datasets_out(rng):
    pairs = [(a, b) for a in "abcde" for b in "abcde" if a != b]
    x, y = rng.normal(size=(2, 20))
    y += x
    without = []
    for name in "abcde":
        rows = [place for place, pair in enumerate(pairs) if name not in pair]
        without.append(stats.spearmanr(x[rows], y[rows]).statistic)
    reach = stats.t.ppf(0.975, 4) * np.sqrt(4 / 5 * np.sum((np.array(without) - np.mean(without)) ** 2))
    found = correlate.leave_out(x, y, pairs)
    assert found.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert (found.low, found.high) == pytest.approx((max(-1, found.value - reach), min(1, found.value + reach)))


@pytest.mark.parametrize(
    ("low", "high", "paper", "verdict"),
    [(0.1, 0.5, 0.4, "confirmed"), (0.1, 0.3, None, "confirmed"), (0.1, 0.3, 0.4, "weaker"),
     (0.5, 0.7, 0.4, "stronger"), (-0.1, 0.5, 0.4, "undecided"), (-0.5, -0.1, 0.4, "opposite")],
)  # fmt: skip
def test_a_verdict_asks_what_the_interval_holds(low, high, paper, verdict):
    assert claims.judge(correlate.Correlation((low + high) / 2, low, high), paper) == verdict
    mirrored = correlate.Correlation(-(low + high) / 2, -high, -low)
    assert claims.judge(mirrored, None if paper is None else -paper, sign=-1) == verdict


def test_choosing_the_nearest_source():
    gaps = {("a", "t"): 0.1, ("b", "t"): 0.2, ("c", "t"): 0.6, ("a", "u"): 0.5, ("b", "u"): 0.3, ("c", "u"): 0.1}
    distances = {("a", "t"): 1, ("b", "t"): 2, ("c", "t"): 3, ("a", "u"): 1, ("b", "u"): 2, ("c", "u"): 3}
    expected = correlate.Choice(rho=0, best=0.5, regret=0.2, blind=0.2)  # in order for t, in reverse for u
    assert vars(correlate.choice(distances, gaps)) == pytest.approx(vars(expected))


def test_s_otdd_is_the_papers(rng):
    sets = {name: (rng.normal(size=(40, 6)), rng.integers(0, 3, size=40)) for name in "ab"}
    found = methods.measure(methods.Method(methods.SOTDD, 200, 3), sets, seed=5).values["a", "b"]
    settings = {"n_projections": 200, "moments": (1.0, 2.0, 3.0), "estimator": "plain", "seed": 5, "device": "cpu"}
    paper = sotdd.distance(*sets.values(), **settings)
    assert found == pytest.approx(paper.value, rel=1e-6)
    by_count = methods.by_projections(methods.Method(methods.SOTDD, 200, 3), *sets.values(), [50, 200], seed=5)
    assert by_count[200] == pytest.approx(found, rel=1e-6)
    assert by_count[50] == pytest.approx(np.mean(paper.per_projection[:50]) ** 0.5, rel=1e-4)


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


# --------------------------------------------------------------------------- the experiments


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


class Encoder(torch.nn.Module):
    """In place of the pretrained encoder, which is a download of its own: embeddings of tokens, untrained."""

    config = types.SimpleNamespace(hidden_size=384)

    def __init__(self):
        super().__init__()
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


def test_committed_pages_are_what_the_committed_tables_give(tmp_path):
    folder = options.Options.results
    page.generate(folder, tmp_path / "paper.md")
    taskweb_page.generate(folder, tmp_path / "taskweb.md")
    for fresh, committed in (("paper.md", ROOT / "docs" / "reproduction.md"), ("taskweb.md", taskweb_page.PAGE)):
        ours, theirs = (path.read_text(encoding="utf-8").splitlines() for path in (tmp_path / fresh, committed))
        without_pictures = [[line for line in lines if not line.startswith("![")] for lines in (ours, theirs)]
        assert without_pictures[0] == without_pictures[1]
    transfer = choosing_page.PAGE.read_text(encoding="utf-8")
    assert choosing_page.fill(transfer, folder / "choosing") == transfer
