"""Differential privacy: what one row can change, how much noise that takes, and that nothing exact leaves."""

import copy
import math
import pickle

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy import integrate, stats

import sotdd
from sketches.cases import labelled
from sotdd.sketches.denoising import masses_of, quantiles_of_masses
from sotdd.sketches.levels import Levels
from sotdd.sketches.privacy import SHARES, Budget, Lengths, Noise, delta_of
from sotdd.sketches.private_counting import Bounds, ExactCounts


@pytest.fixture
def projections(rng):
    return sotdd.Projections.fit([labelled(rng, 800)], n_projections=80, seed=1)


def private(projections, data, seed=0, classes=range(4), epsilon=1.0, delta=1e-6, **settings):
    builder = sotdd.PrivateBuilder(projections, classes=classes, epsilon=epsilon, delta=delta, seed=seed, **settings)
    return builder.add(*data)


def refused(call, *words):
    with pytest.raises(sotdd.SotddError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    return message


# ------------------------------------------------------------------ sensitivity


def rows_of(kind, rng, n, d):
    """Ordinary rows, rows with heavy tails, and rows that somebody made to break the bounds."""
    if kind == "normal":
        return rng.normal(size=(n, d))
    if kind == "heavy":
        return rng.standard_cauchy((n, d)) * 10.0 ** rng.uniform(-3, 6, size=(n, 1))
    if kind == "huge":
        return rng.choice([-1e300, 1e300, 1e38, -1e30, 0.0, 1e-30], size=(n, d))
    return 1e4 * np.eye(d)[rng.integers(d, size=n)] * rng.choice([-1, 1], size=(n, 1))


@pytest.mark.parametrize("kind", ["normal", "heavy", "huge", "one feature"])
@pytest.mark.parametrize("d", [1, 6])
@pytest.mark.parametrize("made", ["fitted", "tilted", "two directions", "paper", "own units"])
def test_one_row_changes_no_more_than_is_claimed(rng, kind, d, made):
    public = rng.normal(size=(300, d)), rng.integers(4, size=300)
    given = {}
    if made == "own units":
        arrays = {"theta": rng.normal(size=(80, d)), "psi": rng.normal(size=(80, 4)), "orders": np.ones((80, 3)) * 3}
        projections = sotdd.Projections.from_arrays(**arrays)
        given = {"max_norm": 20.0, "reach": 7.0, "max_label": 2.0}
    else:
        settings = {"two directions": {"shared_directions": False}, "paper": {"label_law": "paper"}}.get(made, {})
        projections = sotdd.Projections.fit([public], n_projections=80, tilt=made == "tilted", **settings)
    bounds = Bounds.of(projections, *given.values())
    base = ExactCounts(projections, range(4), bounds)
    base.add(sotdd.LabelledData.of((rng.normal(size=(40, d)), np.arange(40) % 4)))
    claimed, terms = bounds.lengths(80), rng.normal(size=(80, 4))
    edges = np.sort(rng.normal(0, 3, size=(80, 2)), axis=1) @ np.stack([1 - np.linspace(0, 1, 9), np.linspace(0, 1, 9)])
    before = base.placed(terms, edges)
    for row in rows_of(kind, rng, 12, d):
        more = copy.deepcopy(base)
        more.add(sotdd.LabelledData.of((row[None], [2])))
        changes = {
            "sizes": more.sizes - base.sizes,
            "sums": more.sums - base.sums,
            "bins": more.placed(terms, edges) - before,
        }
        assert (changes["sums"][[0, 1, 3]] == 0).all()
        assert (changes["bins"].sum(axis=1) == 1).all()
        for name, change in changes.items():
            assert np.isfinite(change).all()
            assert np.sqrt((change**2.0).sum()) <= claimed[name].root_of_squares * (1 + 1e-9)
            assert np.abs(change).sum() <= claimed[name].sum_of_sizes * (1 + 1e-9)
        normal, laplace = Budget(0.8, 1e-6), Budget(0.8, 0.0)
        parts = [(change, claimed[name], SHARES[name]) for name, change in changes.items()]
        squares = sum((change**2.0).sum() / normal.scale(length, share) ** 2 for change, length, share in parts)
        sizes = sum(np.abs(change).sum() / laplace.scale(length, share) for change, length, share in parts)
        assert delta_of(math.sqrt(squares), 0.8) <= 1e-6 * (1 + 1e-6)
        assert sizes <= 0.8 * (1 + 1e-9)


def test_the_bounds_are_reached_so_that_no_noise_is_wasted(rng, projections):
    """A row far out has label sums just as long as is claimed, and every row changes bins by just that."""
    bounds = Bounds.of(projections, 1e6)
    one = ExactCounts(projections, range(4), bounds)
    one.add(sotdd.LabelledData.of((1e5 * np.ones((1, 6)), [1])))
    assert np.linalg.norm(one.sums) == pytest.approx(bounds.lengths(80)["sums"].root_of_squares)
    assert one.fine.sum() == 80


def test_points_are_brought_back_to_the_bound_and_others_left_alone(rng):
    bounds = Bounds(3.0, 5.0, 4.0)
    points = np.array([[3.0, 4.0], [1.0, 2.0], [3e38, 3e38], [np.inf, 0.0]], np.float32)
    held = bounds.hold(points)
    np.testing.assert_allclose(held[0], [1.8, 2.4], rtol=1e-6)
    np.testing.assert_array_equal(held[1], points[1])
    np.testing.assert_allclose(np.linalg.norm(held[2:], axis=1), 3.0, rtol=1e-6)


def test_exact_sums_are_those_of_ordinary_statistics_within_the_bounds(rng, projections):
    data = labelled(rng, 500)
    wide = Bounds.of(projections, 1e6, None, 1e6)
    exact = ExactCounts(projections, range(4), wide)
    exact.add(sotdd.LabelledData.of(data))
    plain = sotdd.ClassStatistics(projections).add(*data)
    for number in range(4):
        np.testing.assert_allclose(exact.sums[number] * exact.spreads, plain.sums[number], rtol=1e-4, atol=1e-3)
        assert exact.sizes[number] == plain.counts[number]


# ------------------------------------------------------------------ how much noise


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("mu", [0.02, 0.3, 1.0, 3.0])
def test_the_curve_of_the_normal_mechanism_is_the_integral_that_defines_it(epsilon, mu):
    """δ(ε) = ∫ max(p − exp(ε) q, 0) for normal laws p and q that are μ apart."""

    def beyond(x):
        return max(stats.norm.pdf(x, mu) - math.exp(epsilon + stats.norm.logpdf(x)), 0.0)

    crossing = epsilon / mu + mu / 2  # p is more than exp(ε) q from here on
    direct = integrate.quad(beyond, crossing, max(crossing, mu) + 12, epsabs=0, epsrel=1e-10, limit=500)[0]
    assert delta_of(mu, epsilon) == pytest.approx(direct, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0, 100.0, 1e6])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01, 0.1])
def test_noise_is_the_least_that_keeps_to_the_budget(epsilon, delta):
    mu = Budget(epsilon, delta).most
    assert delta_of(mu, epsilon) <= delta < delta_of(mu * (1 + 1e-6), epsilon)


def test_noise_is_less_than_the_classical_bound_asks_for():
    assert 1 / Budget(0.9, 1e-6).most < math.sqrt(2 * math.log(1.25 / 1e-6)) / 0.9
    assert 1 / Budget(1.0, 1e-5).most == pytest.approx(3.73063, rel=1e-4)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_shares_of_the_budget_add_up_to_the_whole(delta):
    budget, lengths = Budget(0.7, delta), Bounds(3.0, 5.0, 4.0).lengths(50)
    assert sum(SHARES.values()) == pytest.approx(1)
    if delta:
        spent = [lengths[name].root_of_squares / budget.scale(lengths[name], share) for name, share in SHARES.items()]
        assert math.sqrt(sum(part**2 for part in spent)) == pytest.approx(budget.most)
    else:
        spent = [lengths[name].sum_of_sizes / budget.scale(lengths[name], share) for name, share in SHARES.items()]
        assert sum(spent) == pytest.approx(0.7)


@pytest.mark.parametrize(("delta", "law"), [(0.0, stats.laplace), (1e-6, stats.norm)])
def test_noise_has_the_law_and_the_scale_that_it_should_have(delta, law):
    budget = Budget(1.0, delta)
    scale = budget.scale(Lengths(100.0, 100.0), 1.0)
    on_sums = Noise(budget, 3).on_sums(np.zeros(50_000), scale)
    on_counts = Noise(budget, 4).on_counts(np.full(50_000, 1000), scale) - 1000
    for noise in (on_sums, on_counts):
        assert stats.kstest(noise, law(scale=scale).cdf).pvalue > 1e-3
        assert np.var(noise) == pytest.approx(budget.variance(scale), rel=0.05)
    assert on_counts.dtype == np.int64
    assert len(np.unique(np.abs(on_sums) % (scale / 4096))) < 50_000  # rounded: last bits are gone


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_rarest_random_numbers_are_finite_noise(delta):
    """All bits zero, and all bits one."""
    for byte, sign in ((b"\x00", -1), (b"\xff", 1)):
        noise = Noise(Budget(1.0, delta))
        noise.bytes = lambda size, byte=byte: size * byte
        (drawn,) = noise.on_sums(np.zeros(1), 1.0)
        assert 8 < sign * drawn < 40


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_released_numbers_have_the_noise_that_the_bounds_ask_for(rng, projections, delta):
    data = labelled(rng, 3000)
    exact = ExactCounts(projections, range(4), Bounds.of(projections))
    exact.add(sotdd.LabelledData.of(data))
    made = [private(projections, data, seed, delta=delta) for seed in range(6)]
    budget, lengths = Budget(1.0, delta), made[0].bounds.lengths(80)
    off = {"sizes": [], "sums": [], "bins": []}
    for builder in made:
        known = builder.statistics()
        placed = exact.placed(known.terms(), known.edges(32))
        off["sizes"].append(known.sizes - exact.sizes)
        off["sums"].append((known.sums / exact.spreads - exact.sums).ravel())
        off["bins"].append((builder.release().counts - placed).ravel())
    for name, noise in off.items():
        wanted = math.sqrt(budget.variance(budget.scale(lengths[name], SHARES[name])))
        assert np.std(np.concatenate(noise)) == pytest.approx(wanted, rel=0.6 if name == "sizes" else 0.06)
    assert made[0].release().variance == pytest.approx(np.var(np.concatenate(off["bins"])), rel=0.1)


def test_noise_comes_from_the_operating_system_unless_a_seed_is_given(rng, projections):
    data = labelled(rng, 200)
    one, other = (private(projections, data, None).release() for _ in range(2))
    assert (one.counts != other.counts).mean() > 0.9
    assert one.parties[0].name != other.parties[0].name
    one, other = (private(projections, data, 5).release() for _ in range(2))
    np.testing.assert_array_equal(one.counts, other.counts)


# ------------------------------------------------------------------ nothing exact leaves


def test_no_file_holds_anything_exact(rng, projections, tmp_path):
    data = labelled(rng, 4000)
    exact = ExactCounts(projections, range(4), Bounds.of(projections))
    exact.add(sotdd.LabelledData.of(data))
    builder = private(projections, data, None)
    builder.statistics().save(tmp_path / "statistics")
    builder.release().save(tmp_path / "counts")
    builder.release().finish().save(tmp_path / "sketch")
    public = {"centre", "scale", "basis", "stretch", "weights", "sum_variances", "spacing"}
    allowed = {"statistics": {"sizes", "sums"}, "counts": {"sizes", "sums", "counts"}}
    allowed["sketch"] = {"counts", "class_terms", "quantiles"}
    known = builder.statistics()
    secrets = [exact.sizes, exact.sums, exact.sums * exact.spreads, exact.placed(known.terms(), known.edges(32))]
    plain = sotdd.sketch(data, projections)
    secrets += [plain.quantiles, plain.class_terms, plain.counts]
    for name, arrays in allowed.items():
        found = load_file(tmp_path / name)
        assert set(found) - public == arrays
        for array in (found[each] for each in arrays):
            for secret in secrets:
                if secret.shape == array.shape:
                    assert np.mean(secret == array) < 0.3  # counts without points in both, by chance
    sketch = builder.release().finish()
    assert sketch.controls is None
    assert sketch.halves is None
    assert sketch.lost is None


def test_exact_counts_are_gone_once_released_and_noise_is_drawn_once(rng, projections):
    data = labelled(rng, 500)
    builder = private(projections, data, None)
    assert builder.statistics() is builder.statistics()
    refused(lambda: builder.add(*data), "cannot be added any more")
    released = builder.release()
    assert builder.release() is released
    assert builder._exact is None
    refused(lambda: builder.add(*data), "cannot be added any more")
    refused(lambda: builder.release(copy.copy(builder.statistics())), "released already")
    assert "500" not in repr(builder)


def test_builders_are_never_copied_nor_pickled(rng, projections):
    builder = private(projections, labelled(rng, 50))
    for copies in (copy.copy, copy.deepcopy, pickle.dumps):
        refused(lambda: copies(builder), "never copied")  # noqa: B023


def test_projections_of_the_private_rows_themselves_are_refused(rng):
    data = labelled(rng, 3000)
    own = sotdd.Projections.fit([data], n_projections=20)
    refused(private(own, data).release, "fit them on public data")
    half = data[0][:1500], data[1][:1500]
    private(own, half).release()


def test_a_batch_that_fails_half_way_spoils_the_builder(rng, projections, monkeypatch):
    """Its rows would count twice once it is added again, and twice is more than the bound."""
    builder = private(projections, labelled(rng, 50))

    def fails(portion):
        raise KeyboardInterrupt

    monkeypatch.setattr(builder._exact, "_count", fails)
    with pytest.raises(KeyboardInterrupt):
        builder.add(*labelled(rng, 50))
    monkeypatch.undo()
    refused(lambda: builder.add(*labelled(rng, 50)), "start again")
    refused(builder.release, "start again")


# ------------------------------------------------------------------ what is left of distances


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_with_much_budget_distances_are_those_without_noise(rng, projections, delta):
    a, b = labelled(rng, 4000), labelled(rng, 3000, shift=0.6)
    settings = {"epsilon": 1e5, "delta": delta, "n_bins": 512, "max_label": 50.0, "reach": 12.0, "max_norm": 100.0}
    one, two = (private(projections, data, **settings).release().finish() for data in (a, b))
    plain = [sotdd.sketch(data, projections) for data in (a, b)]
    true = plain[0].distance(plain[1], estimator="plain").value
    assert one.distance(two).value == pytest.approx(true, rel=0.02)
    assert one.distance(plain[1]).value == pytest.approx(true, rel=0.02)
    assert one.distance(plain[0]).value < 0.03 * true
    assert np.abs(one.counts - plain[0].counts).max() <= 1
    first = plain[0].distance(plain[1], 1, estimator="plain").value
    assert one.distance(two, p=1).value == pytest.approx(first, rel=0.02)


def test_less_budget_is_more_error_and_the_remark_says_how_much(rng):
    public, data = labelled(rng, 800), labelled(rng, 20_000)
    projections = sotdd.Projections.fit([public], n_projections=32)
    plain = sotdd.sketch(data, projections)
    off = []
    for epsilon in (0.1, 1.0, 10.0):
        sketch = private(projections, data, epsilon=epsilon).release().finish("mine")
        result = sketch.distance(plain)
        off.append(result.value)
        (remark,) = [text for text in result.remarks if "noised" in text]
        assert f"'mine' was noised for privacy (ε = {epsilon:g}, δ = 1e-06)" in remark
        said = float(remark.rsplit(" ", 1)[1])
        assert 0.4 * off[-1] < said < 2.5 * off[-1]
        assert result.sketch_error is None
    assert off[0] > off[1] > off[2]


@pytest.mark.parametrize("case", ["20 rows", "200 classes", "one feature", "no rows", "one class", "Hadamard"])
def test_odd_data_still_give_a_sketch(rng, case, tmp_path):
    n = {"20 rows": 20, "no rows": 0}.get(case, 1000)
    d = {"one feature": 1, "Hadamard": 150}.get(case, 4)
    classes = {"200 classes": 200, "one class": 1}.get(case, 3)
    data = rng.normal(size=(n, d)), rng.integers(classes, size=n)
    projections = sotdd.Projections.fit([rng.normal(size=(100, d))], n_projections=70)
    sketch = private(projections, data, classes=range(classes)).release().finish()
    assert np.isfinite(sketch.quantiles).all()
    assert (np.diff(sketch.quantiles, axis=1) >= 0).all()
    assert len(sketch.classes) == classes
    sketch.save(tmp_path / "sketch")
    assert sotdd.Sketch.load(tmp_path / "sketch").distance(sketch).value == 0
    assert math.isfinite(sketch.distance(sotdd.sketch(rng.normal(size=(50, d)), projections)).value)


def test_unlisted_features_alone_and_batches_in_any_portion(rng, projections):
    x, y = labelled(rng, 300)
    whole = private(projections, (x, y)).release()
    builder = private(projections, (x[:1], y[:1]))
    parts = builder.add(x[1:200], y[1:200]).add(x[:0], y[:0]).add(x[200:], y[200:]).release()
    assert np.abs(whole.counts - parts.counts).sum(axis=1).max() <= 4  # sums differ in their last bits


# ------------------------------------------------------------------ several parties


def test_parties_merge_in_two_rounds(rng, projections, tmp_path):
    x, y = labelled(rng, 9000)
    shares = [(x[y < 2], y[y < 2]), (x[y >= 2], y[y >= 2]), (x[:0], y[:0])]
    builders = [private(projections, data, seed, epsilon=50.0) for seed, data in enumerate(shares)]
    for number, builder in enumerate(builders):
        builder.statistics().save(tmp_path / f"{number}.statistics")
    first, second, third = (sotdd.PrivateStatistics.load(tmp_path / f"{number}.statistics") for number in range(3))
    known = first.merge(second).merge(third)
    for number, builder in enumerate(builders):
        builder.release(known).save(tmp_path / f"{number}.counts")
    parts = [sotdd.PrivateCounts.load(tmp_path / f"{number}.counts") for number in range(3)]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    reordered = parts[2].merge(parts[0].merge(parts[1]))
    np.testing.assert_array_equal(merged.counts, reordered.counts)
    np.testing.assert_array_equal(merged.counts, sum(part.counts for part in parts))
    assert merged.variance == pytest.approx(3 * parts[0].variance)
    plain = sotdd.sketch((x, y), projections)
    sketch = merged.finish("all")
    assert sketch.distance(plain).value < 0.1
    assert np.abs(sketch.counts - plain.counts).max() < 30
    assert "each" in sketch.remarks[0]

    refused(parts[0].finish, "1 party", "3 parties")
    refused(lambda: parts[0].merge(parts[0]), "in common")
    refused(lambda: first.merge(first), "in common")
    refused(lambda: parts[0].merge(first), "expected PrivateCounts")
    refused(lambda: first.merge(parts[0]), "expected PrivateStatistics")
    alone = private(projections, shares[0], 9)
    refused(lambda: alone.release(known), "lacks the statistics of this builder")
    refused(lambda: alone.release().merge(parts[0]), "other statistics")
    other = private(projections, shares[0], 9, max_norm=4.0).statistics()
    refused(lambda: other.merge(first), "max_norm")
    refused(lambda: private(projections, shares[0], 9, classes=[3, 2, 1, 0]).statistics().merge(first), "classes")


def test_merged_statistics_of_small_classes_are_drawn_together(rng, projections):
    """Terms of classes with hardly any points are noise; they end near the term of all points, not far out."""
    data = rng.normal(size=(5000, 6)), np.where(rng.random(5000) < 0.99, 0, rng.integers(1, 4, size=5000))
    known = private(projections, data, epsilon=0.5).statistics()
    raw = (known.sums / np.maximum(known.sizes, 1)[:, None]).T
    plain = sotdd.sketch(data, projections).class_terms
    drawn = np.abs(known.terms() - plain)[:, 1:].mean()
    assert drawn < 0.3 * np.abs(raw - plain)[:, 1:].mean()


# ------------------------------------------------------------------ noisy counts as quantile functions


def test_without_noise_masses_are_the_counts(rng):
    counts = rng.integers(0, 50, size=(5, 40))
    np.testing.assert_allclose(masses_of(counts, 0.0, counts[0].sum())[0], counts[0])


def test_noise_in_empty_bins_is_taken_away(rng):
    truth = np.zeros((200, 64))
    truth[:, 28:36] = 2000
    noisy = np.rint(truth + rng.normal(0, 60, size=truth.shape)).astype(int)
    masses = masses_of(noisy, 3600.0, 16_000)
    np.testing.assert_allclose(masses.sum(axis=1), 16_000)
    assert (masses >= 0).all()
    cut = np.clip(noisy, 0, None)
    outside = np.delete(masses, np.s_[28:36], axis=1).sum(), np.delete(cut, np.s_[28:36], axis=1).sum()
    assert outside[0] < 0.1 * outside[1]


def test_quantiles_of_masses_are_means_over_parts(rng):
    masses = rng.random((3, 20))
    masses[0, 5:9] = 0
    edges = np.sort(rng.normal(size=(3, 21)), axis=1)
    levels = Levels(16)
    found = quantiles_of_masses(masses, edges, levels)
    fine = (np.arange(400_000) + 0.5) / 400_000
    for row, places, means in zip(masses, edges, found, strict=True):
        values = np.interp(fine, np.concatenate([[0], np.cumsum(row)]) / row.sum(), places)
        part = np.searchsorted(levels.edges, fine) - 1
        slow = np.bincount(part, values) / np.bincount(part)
        np.testing.assert_allclose(means, slow, atol=2e-3)


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epsilon": 0}, ["epsilon is 0"]),
        ({"epsilon": 1e7}, ["at most 1,000,000"]),
        ({"delta": 0.5}, ["delta is 0.5", "1e-6"]),
        ({"delta": 1e-40}, ["delta is 1e-40"]),
        ({"delta": -1}, ["delta is -1"]),
        ({"classes": []}, ["0 labels"]),
        ({"classes": [1, 1]}, ["none twice"]),
        ({"classes": "abc"}, ["expected a list"]),
        ({"classes": [[1]]}, ["cannot be a label"]),
        ({"max_norm": -1}, ["max_norm is -1"]),
        ({"reach": 0}, ["reach is 0"]),
        ({"max_label": math.inf}, ["max_label is inf"]),
        ({"n_bins": 0}, ["n_bins is 0"]),
        ({"n_bins": 10**6}, ["at most"]),
        ({"seed": -1}, ["seed is -1"]),
    ],
)
def test_settings_that_cannot_be_are_refused(projections, settings, words):
    given = {"classes": [0, 1], "epsilon": 1, "delta": 1e-6} | settings
    refused(lambda: sotdd.PrivateBuilder(projections, **given), *words)


def test_what_cannot_be_private_is_refused(rng, projections):
    given = {"classes": [0, 1], "epsilon": 1, "delta": 1e-6}
    x = rng.normal(size=(50, 6))
    quantiles = sotdd.Projections.fit([x], n_projections=8, label_law="quantiles")
    refused(lambda: sotdd.PrivateBuilder(quantiles, **given), "label_law='moments'")
    refused(lambda: sotdd.PrivateBuilder(5, **given), "projections is 5")
    unscaled = sotdd.Projections.fit([x], n_projections=8, scale=None)
    refused(lambda: sotdd.PrivateBuilder(unscaled, **given), "max_norm=", "reach=")
    refused(lambda: sotdd.PrivateBuilder(projections, **given | {"classes": range(5000)}), "fewer projections")
    refused(lambda: private(projections, (x, np.full(50, 7)), classes=[0, 1]), "class 7", "classes=")
    paper = sotdd.Projections.fit([x], n_projections=8, label_law="paper")
    refused(lambda: sotdd.PrivateBuilder(paper, **given, reach=1e29), "overflow")


@pytest.mark.parametrize("kind", [sotdd.PrivateStatistics, sotdd.PrivateCounts])
def test_files_of_other_kinds_are_refused(rng, projections, tmp_path, kind):
    sotdd.sketch(labelled(rng, 50), projections).save(tmp_path / "sketch")
    refused(lambda: kind.load(tmp_path / "sketch"), "holds a sketch")
    refused(lambda: kind.load(tmp_path / "missing"), "missing")
