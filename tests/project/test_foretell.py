"""The transfer benchmark: its statistics, scores and stacks are right, and all of it runs at its smallest."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch", reason="the benchmark trains networks: needs torch")
pytest.importorskip("ot", reason="the benchmark compares OTDD: needs POT")

from experiments.foretell import __main__ as command  # noqa: E402
from experiments.foretell import design, directed, page, pools, report, scores, stacks, statistics  # noqa: E402
from experiments.options import Options  # noqa: E402
from experiments.store import read  # noqa: E402

# --------------------------------------------------------------------------- the design


@pytest.mark.parametrize("family", design.FAMILIES)
def test_the_full_design_is_as_large_as_it_should_be(family):
    full = design.SIZES["full"]
    sources, targets = design.sources(family, full), design.targets(family, full)
    assert len(sources) >= 90
    assert len(targets) >= 30
    for recipes in (sources, targets):
        assert len({recipe.name for recipe in recipes}) == len(recipes)
    assert {recipe.wrong for recipe in sources} == {0, 0.25, 0.5, 1}
    cores = design.SIZES["cores"]
    assert {r.name for r in design.sources(family, cores)} <= {r.name for r in sources}


def _family(rng, classes=6, points=600):
    """Points that say themselves which they are: the first pixel is the row's number."""
    parts = []
    for start in (0, points):
        x = rng.integers(0, 256, size=(points, 28, 28), dtype=np.uint8)
        number = np.arange(start, start + points)
        x[:, 0, 0], x[:, 0, 1] = number // 256, number % 256
        parts.append(pools.Pool({"clean": x}, np.arange(points) % classes))
    return pools.Family("grey", {"mnist": parts[0]}, {"mnist": parts[1]}, 0.0, 1 / 255)


def _numbers(x):
    return (256 * np.round(x[:, 0, 0]) + np.round(x[:, 0, 1])).astype(int)


def test_the_same_points_come_with_right_labels_and_wrong_ones(rng):
    family, size = _family(rng), design.SIZES["cores"]
    right, half, wrong = (family.source(design.Recipe(("mnist",), wrong=share), size) for share in (0, 0.5, 1))
    assert right.x.tolist() == wrong.x.tolist() == half.x.tolist()
    assert np.mean(right.y == wrong.y) < 0.3
    assert 0.4 < np.mean(right.y == half.y) < 0.75
    assert np.bincount(right.y).tolist() == np.bincount(wrong.y).tolist()


def test_targets_learn_from_other_points_than_they_are_tested_on(rng):
    family, size = _family(rng), design.SIZES["cores"]
    target = family.target(design.Recipe(("mnist",), "even"), size)
    learnt, tested = set(_numbers(target.train.x)), set(_numbers(target.test.x))
    assert not learnt & tested
    assert min(learnt | tested) >= 600  # none of them is in the sources' pool
    assert target.train.classes == target.test.classes == 3
    few = target.few(10, seed=1)
    assert np.bincount(few.y).tolist() == [10, 10, 10]
    assert set(_numbers(few.x)) <= learnt
    assert min(np.bincount(target.train.y)) >= max(size.shots)


def test_classes_and_points_vary_by_themselves(rng):
    family, size = _family(rng), design.SIZES["cores"]
    few = family.source(design.Recipe(("mnist",), points=300), size)
    even = family.source(design.Recipe(("mnist",), "even"), size)
    merged = family.source(design.Recipe(("mnist",), merged=2), size)
    assert (len(few.y), few.classes) == (300, 6)
    assert (len(even.y), even.classes) == (300, 3)
    assert (len(merged.y), merged.classes) == (600, 2)
    noisy = family.source(design.Recipe(("mnist",), damage="noise", strength=0.5), size)
    assert noisy.x.std() != pytest.approx(family.source(design.Recipe(("mnist",)), size).x.std(), rel=0.01)


# --------------------------------------------------------------------------- stacks


def test_networks_of_a_stack_are_trained_as_if_alone():
    shape = stacks.layers("colour", 2)
    x, y = torch.randn(3, 8, 3, 32, 32), torch.randint(4, (3, 8))

    def trained(rows):
        weights = stacks.drawn(shape, len(rows), torch.Generator().manual_seed(0), "cpu")
        stacks.fit(
            weights,
            lambda part: stacks.features(shape, weights, part, len(rows))[..., :4],
            lambda: (x[rows], y[rows]),
            steps=3,
            rate=1e-2,
        )
        return stacks.all_features(shape, weights, x[0], len(rows))

    together = trained([0, 1, 2])
    for row in range(3):
        torch.testing.assert_close(together[row], trained([row])[0], rtol=1e-3, atol=1e-4)
    assert not torch.allclose(together[0], together[1], atol=1e-2)


@pytest.mark.parametrize("family", design.FAMILIES)
def test_one_batch_for_all_is_the_same_batch_for_each(family):
    shape = stacks.layers(family, 4)
    size = {"grey": (1, 28, 28), "colour": (3, 32, 32), "text": (256,)}[family]
    weights = stacks.drawn(shape, 2, torch.Generator().manual_seed(0), "cpu")
    weights = [(weight + 0.01 * torch.randn_like(weight), bias) for weight, bias in weights]
    x = torch.randn(5, *size)
    torch.testing.assert_close(
        stacks.features(shape, weights, x, 2), stacks.features(shape, weights, torch.stack([x, x]), 2)
    )


@pytest.mark.parametrize("family", ["grey", "colour"])
@pytest.mark.parametrize("own", [False, True])
def test_convolutions_as_products_are_the_same(family, own):
    shape = [layer for layer in stacks.layers(family, 4) if isinstance(layer, stacks.Conv)]
    size = {"grey": (1, 28, 28), "colour": (3, 32, 32)}[family]
    x = torch.randn(*((3, 5) if own else (5,)), *size)

    def found(convolve):
        weights = stacks.drawn(shape, 3, torch.Generator().manual_seed(0), "cpu")
        generator = torch.Generator().manual_seed(1)
        parts = [part.add_(0.1 * torch.randn(part.shape, generator=generator)) for pair in weights for part in pair]
        for part in parts:
            part.requires_grad_()
        values = convolve(shape, weights, x, 3)
        values.square().sum().backward()
        return [values, *(part.grad for part in parts)]

    for one, other in zip(found(stacks.by_groups), found(stacks.by_products), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)


def test_missing_classes_are_never_chosen():
    logits = stacks.masked(torch.ones(2, 3, 4), torch.tensor([2, 4]))
    assert torch.softmax(logits, dim=2)[0, 0].tolist() == [0.5, 0.5, 0, 0]
    assert torch.softmax(logits, dim=2)[1, 0].tolist() == [0.25] * 4


# --------------------------------------------------------------------------- scores


def test_leep_is_what_its_definition_says(rng):
    likely, y = rng.dirichlet(np.ones(3), size=20), rng.integers(0, 2, size=20)
    joint = np.zeros((2, 3))
    for row, label in zip(likely, y, strict=True):
        joint[label] += row / 20
    expected = np.mean(
        [
            math.log(sum(row[z] * joint[label, z] / joint[:, z].sum() for z in range(3)))
            for row, label in zip(likely, y, strict=True)
        ]
    )
    assert scores.leep(likely, y) == pytest.approx(expected)


def test_logme_is_the_largest_log_evidence(rng):
    y = np.repeat([0, 1], 15)
    features = rng.normal(size=(30, 4)) + y[:, None]

    def evidence(truth, alpha, beta):
        covariance = np.eye(30) / beta + features @ features.T / alpha
        return stats.multivariate_normal(np.zeros(30), covariance).logpdf(truth) / 30

    grid = np.exp(np.linspace(-6, 7, 40))
    expected = [max(evidence((y == label).astype(float), a, b) for a in grid for b in grid) for label in (0, 1)]
    assert scores.logme(features, y, rounds=200) == pytest.approx(np.mean(expected), abs=0.01)


@pytest.mark.parametrize("score", [scores.logme, scores.h_score, scores.nearest_mean])
def test_scores_are_higher_where_classes_lie_apart(score, rng):
    y = np.arange(60) % 3
    noise = rng.normal(size=(60, 8))
    assert score(noise + 3 * np.eye(8)[y], y) > score(noise + np.eye(8)[y], y) > score(noise, y)


def test_the_nearest_mean_leaves_a_point_out():
    x = np.array([[0.0], [2.0], [1.15], [1.25]])
    y = np.array([0, 0, 1, 1])
    # Without itself, the point at 0 has its class's mean at 2 and the other's at 1.2: wrong; so has the one at 2.
    assert scores.nearest_mean(x, y) == pytest.approx(0.5)


def test_label_entropy():
    x = np.arange(8.0)[:, None]
    own, halves, none = np.arange(8) % 2, np.arange(8) // 4, np.zeros(8, int)
    assert directed.nearest_entropy(x, own, x + 0.1, own) == pytest.approx(0)
    assert directed.nearest_entropy(x, none, x, own) == pytest.approx(math.log(2))
    assert directed.nearest_entropy(x, halves, x, own) == pytest.approx(math.log(2))
    assert directed.sliced_entropy(x, halves, x, halves) == pytest.approx(0)
    assert directed.sliced_entropy(x, none, x, halves) == pytest.approx(math.log(2))


def test_separation_is_zero_without_classes_and_one_without_spread(rng):
    y = np.arange(400) % 10
    x = rng.normal(size=(400, 30))
    assert directed.separation(x, y) == pytest.approx(0, abs=0.01)
    assert directed.separation(np.eye(10)[y], y) == pytest.approx(1, abs=0.01)


# --------------------------------------------------------------------------- statistics


@pytest.fixture
def table(rng):
    quality = rng.normal(size=(12, 1))
    truth = rng.normal(size=(12, 7)) + quality
    accuracy = truth + 0.5 * rng.normal(size=(5, 12, 7))
    known = np.column_stack([rng.integers(2, 6, size=12), rng.integers(1, 4, size=12)]).astype(float)
    return statistics.Table(accuracy, rng.random((12, 7)) < 0.3, known)


def test_rho_within_targets_agrees_with_scipy(table, rng):
    score = np.stack([np.round(table.mean + rng.normal(size=(12, 7)), 1), np.ones((12, 7))])
    found = statistics.judged(score, table, resamples=50)
    one = [stats.spearmanr(score[0, :, t], table.mean[:, t]).statistic for t in range(7)]
    assert found.rho[0] == pytest.approx(np.mean(one))
    assert found.rho[1] == 0  # a constant says nothing
    assert found.p[1] == 1
    assert found.interval[0, 0] < found.rho[0] < found.interval[0, 1]
    other = [
        stats.spearmanr(score[0, ~table.related[:, t], t], table.mean[~table.related[:, t], t]).statistic
        for t in range(7)
    ]
    assert found.unrelated[0] == pytest.approx(np.mean(other))


def test_partial_rho_is_that_of_residuals(table, rng):
    score = table.mean + rng.normal(size=(12, 7))
    others = table.on_others()
    expected = []
    for t in range(7):
        given = np.column_stack([np.ones(12), *(stats.rankdata(c) for c in (*table.known.T, others[:, t]))])
        left = []
        for values in (score[:, t], table.mean[:, t]):
            ranks = stats.rankdata(values)
            left.append(ranks - given @ np.linalg.lstsq(given, ranks, rcond=None)[0])
        expected.append(np.corrcoef(*left)[0, 1])
    found = statistics.partial(np.stack([score, others]), table.mean, table.known, others)
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_allclose(found[1], 0, atol=1e-9)  # nothing beyond what is given


def test_a_sources_mean_on_other_targets_leaves_the_target_out(table):
    raised = table.accuracy.copy()
    raised[:, 3, 2] += 100
    again = statistics.Table(raised, table.related, table.known).on_others()
    assert again[3, 2] == pytest.approx(table.on_others()[3, 2])
    assert again[3, 1] > table.on_others()[3, 1] + 10


def test_regret_and_ties():
    accuracy = np.array([[0.9, 0.2], [0.5, 0.6], [0.1, 0.4]])
    assert statistics.regret(accuracy, accuracy) == 0
    assert statistics.regret(-accuracy, accuracy) == pytest.approx((0.8 + 0.4) / 2)
    assert statistics.regret(np.zeros((3, 2)), accuracy) == pytest.approx((0.4 + 0.2) / 2)


def test_the_ceiling_is_what_the_truth_reaches(rng):
    truth = rng.normal(size=(1, 200, 30))
    noisy = truth + rng.normal(size=(6, 200, 30))
    reached = statistics.correlations(truth[0], noisy.mean(axis=0)).mean()
    assert statistics.ceiling(noisy) == pytest.approx(reached, abs=0.02)


@pytest.mark.slow
def test_intervals_hold_the_truth_about_as_often_as_they_say(rng):
    inside = 0
    for trial in range(40):
        source, target = rng.normal(size=(20, 1)), rng.normal(size=(1, 10))
        score = source + rng.normal(size=(20, 10)) + target
        accuracy = rng.normal(size=(20, 1)) + rng.normal(size=(1, 20, 10))  # no relation at all, but shared by targets
        judged = statistics.judged(score[None], _plain(accuracy), trial, resamples=100, with_partial=False)
        inside += judged.interval[0, 0] <= 0 <= judged.interval[0, 1]
    assert inside >= 33


def _plain(accuracy):
    return statistics.Table(accuracy, np.zeros(accuracy.shape[1:], bool), np.ones((accuracy.shape[1], 2)))


def test_differences_are_paired(table, rng):
    base = table.mean + rng.normal(size=(12, 7))
    judged = statistics.judged(np.stack([base, base, table.mean]), table, resamples=60)
    assert statistics.difference(judged, 1, 0) == (0, 0, 0)
    value, low, high = statistics.difference(judged, 2, 0)
    assert value == pytest.approx(1 - judged.rho[0])
    assert 0 < low <= value <= high


def test_right_labels_first():
    score = np.zeros((2, 3, 4))
    score[0, 0] = [1, 1, 1, -1]
    assert statistics.right_labels_first(score, [(0, 1), (0, 2)]).tolist() == [0.75, 0.5]


def test_a_directed_score_finds_its_weights(rng):
    parts = rng.normal(size=(3, 40, 9))
    accuracy = 2 * parts[0] - parts[1] + 0 * parts[2]
    weights = statistics.fitted(parts, accuracy)
    assert weights[0] > 0.7
    assert weights[1] < -0.3
    assert abs(weights[2]) < 0.1
    assert statistics.correlations(statistics.combined(parts, weights), accuracy).mean() > 0.95


# --------------------------------------------------------------------------- the whole


def _pictures(folder: Path, rng) -> None:
    """Five small sets, each with a look of its own, one bright square per class."""
    for number, name in enumerate(("mnist", "fashion_mnist", "kmnist", "usps", "emnist_letters")):
        parts = {}
        for part, points in (("train", 500), ("test", 200)):
            y = np.arange(points) % 6
            x = rng.integers(0, 40 + 30 * number, size=(points, 28, 28))
            for row, label in enumerate(y):
                x[row, 4 * label : 4 * label + 4, 3 * number : 3 * number + 8] += 140
            parts |= {f"X_{part}": np.minimum(x, 255).astype(np.uint8), f"y_{part}": y}
        np.savez(folder / f"{name}.npz", **parts)


@pytest.mark.slow
def test_the_smallest_run_from_data_to_page(tmp_path, rng):
    _pictures(tmp_path, rng)
    asked = ["--size", "smallest", "--family", "grey", "--data", str(tmp_path), "--results", str(tmp_path)]
    command.main(asked)
    size = design.SIZES["smallest"]
    sources, targets = design.sources("grey", size), design.targets("grey", size)
    rows = read(tmp_path / "foretell_grey.csv")
    assert len(rows) == size.seeds * len(targets) * (len(sources) + 1)
    assert all(0 <= float(row["tuned5"]) <= 1 for row in rows)
    summary = {row["method"]: row for row in read(tmp_path / "foretell_summary.csv") if row["setting"] == "tuned5"}
    assert {"s-OTDD", "OTDD, debiased", "LogME", "most classes"} <= set(summary)
    assert all(-1 <= float(row["rho"]) <= 1 for row in summary.values())
    assert (tmp_path / "foretell.png").stat().st_size > 5000
    before = (tmp_path / "foretell_grey.csv").read_bytes(), (tmp_path / "foretell_grey_distances.csv").read_bytes()
    command.main([*asked, "--steps", "train", "measure"])  # nothing is left to do
    after = (tmp_path / "foretell_grey.csv").read_bytes(), (tmp_path / "foretell_grey_distances.csv").read_bytes()
    assert before == after
    shared = [*asked[:-1], str(tmp_path / "shared"), "--cache", str(tmp_path / "cache")]
    command.main([*shared, "--steps", "prepare"])
    (tmp_path / "mnist.npz").unlink()  # what was prepared is enough
    command.main([*shared, "--steps", "train", "--seeds", "1", "--part", "second"])
    command.main([*shared, "--steps", "train", "--seeds", "0", "--part", "first"])
    for part, measure in (("first", "Fréchet"), ("second", "mean ink")):
        command.main([*shared, "--steps", "measure", "--measures", measure, "--part", part])
    command.main([*shared, "--steps", "join"])
    assert (tmp_path / "shared" / "foretell_grey.csv").read_bytes() == before[0]
    joined, whole = (
        read(tmp_path / "shared" / "foretell_grey_distances.csv"),
        read(tmp_path / "foretell_grey_distances.csv"),
    )
    assert [dict(row) for row in joined] == [{name: row[name] for name in joined[0]} for row in whole]
    assert list(joined[0]) == ["source", "target", "Fréchet", "mean ink"]
    command.main([*shared, "--steps", "pack"])
    assert not (tmp_path / "shared" / "foretell_grey_distances.csv").exists()
    assert read(tmp_path / "shared" / "foretell_grey_distances.csv") == joined


@pytest.mark.slow
def test_the_committed_tables_and_page_follow_from_what_was_measured(tmp_path):
    for path in Options.results.glob("foretell_*.csv*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    only = "text", report.HEADLINE  # all of them take minutes
    report.run(tmp_path, draw=False, only=only)
    for path in Options.results.glob("foretell_*.csv"):  # what was made of the large tables, which are packed
        kept = [
            row for row in read(path) if row.get("family", "text") == "text" and row.get("setting", only[1]) == only[1]
        ]
        made = [row for row in read(tmp_path / path.name) if row.get("family", "text") == "text"]
        assert kept or "sets" in path.name
        for mine, theirs in zip(made, kept, strict=True):
            assert mine.keys() == theirs.keys()
            for name, value in theirs.items():
                assert mine[name] == value or float(mine[name]) == pytest.approx(float(value), abs=2e-3), (path, name)
    committed = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(committed, Options.results) == committed
