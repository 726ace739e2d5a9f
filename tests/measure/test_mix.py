"""`sotdd.mix`: weights beside a brute force, their errors, what is left over, and what may go in."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import sotdd
from sotdd.basics.remarks import Verdict
from sotdd.compute.mixtures import Distributions, Values, fit_mixture, solve_simplex, tail_of_squares


def draw(rng, centre, n, d=4):
    return rng.normal(centre, 1, size=(n, d))


@pytest.fixture
def sources(rng):
    return {"low": draw(rng, 0, 400), "high": draw(rng, 2, 500), "far": draw(rng, -3, 300)}


@pytest.fixture
def target(rng):
    return np.concatenate([draw(rng, 0, 420), draw(rng, 2, 180)])


# ------------------------------------------------------------------ weights


def energy_by_integrals(samples, weights):
    """Mean over projections of ∫ (F_T − Σ w_i F_i)² dt, less the noise of the sources: steps between all values."""
    total = 0.0
    for rows in zip(*samples, strict=True):
        ends = np.unique(np.concatenate(rows))
        below = np.array([np.searchsorted(np.sort(row), ends[:-1], side="right") / len(row) for row in rows])
        sizes = np.array([len(row) for row in rows[1:]])
        noise = weights**2 @ (below[1:] * (1 - below[1:]) / (sizes[:, None] - 1))
        total += np.sum(np.diff(ends) * ((below[0] - weights @ below[1:]) ** 2 - noise)) / len(samples[0])
    return total


def test_weights_as_by_brute_force(rng):
    """Few values: every one is a threshold, so that the sum over thresholds is the integral."""
    centres = (0.3, 0.0, 1.0, 3.0)
    sizes = (60, 50, 40, 70)
    rows = [rng.normal(c, 1, size=(20, n)).round().clip(-1, 4) for c, n in zip(centres, sizes, strict=True)]
    rows = [row.astype(np.float32) for row in rows]
    found = Distributions([np.array([row.shape[1]]) for row in rows], 20, [False] * 4)
    found.add(slice(0, 20), np.ones(20), [[Values(row, np.zeros(row.shape[1], np.int64))] for row in rows])
    weights = fit_mixture(found).weights
    sums = {"type": "eq", "fun": lambda w: w.sum() - 1}
    how = {"bounds": [(0, 1)] * 3, "constraints": [sums], "method": "SLSQP", "options": {"ftol": 1e-14}}
    best = minimize(lambda w: energy_by_integrals(rows, w), np.full(3, 1 / 3), **how).x
    assert np.allclose(weights, best, atol=1e-5)


def test_simplex_as_by_slsqp(rng):
    for size in (2, 5, 20):
        root = rng.normal(size=(size + 3, size))
        form = root.T @ root
        found = solve_simplex(form)
        sums = {"type": "eq", "fun": lambda w: w.sum() - 1}
        how = {"bounds": [(0, 1)] * size, "constraints": [sums], "method": "SLSQP", "options": {"ftol": 1e-15}}
        best = minimize(lambda w, form=form: w @ form @ w, np.full(size, 1 / size), **how).x
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)
        assert found @ form @ found <= best @ form @ best * (1 + 1e-9) + 1e-12


def test_an_exact_mixture_is_recovered(rng):
    parts = [draw(rng, centre, 2000) for centre in (0, 2, -2)]
    found = sotdd.mix(np.concatenate([parts[0], parts[1][:1000]]), parts)
    assert found.weights == pytest.approx([2 / 3, 1 / 3, 0], abs=0.01)
    assert found.left_over.verdict is Verdict.PASSED
    assert found.explained > 0.95
    alone = sotdd.mix(parts[1], parts)
    assert alone.weights == pytest.approx([0, 1, 0], abs=0.01)


def test_order_and_names_change_nothing(target, sources):
    found = sotdd.mix(target, sources, n_projections=64)
    turned = sotdd.mix(target[::-1], dict(reversed(sources.items())), n_projections=64)
    listed = sotdd.mix(target, list(sources.values()), n_projections=64)
    for name in sources:
        assert turned[name] == pytest.approx(found[name], abs=1e-6)
    assert listed.weights == pytest.approx(found.weights, abs=1e-9)
    assert listed.names == ("0", "1", "2")


def test_duplicated_rows_change_little(target, sources):
    found = sotdd.mix(target, sources, n_projections=64)
    twice = sotdd.mix(np.repeat(target, 2, axis=0), {k: np.repeat(v, 2, axis=0) for k, v in sources.items()},
                      n_projections=64)  # fmt: skip
    assert twice.weights == pytest.approx(found.weights, abs=0.01)


def test_order_of_columns_changes_nothing(target, sources):
    pandas = pytest.importorskip("pandas")
    frame = lambda x: pandas.DataFrame(x, columns=list("abcd"))  # noqa: E731
    found = sotdd.mix(frame(target), {k: frame(v) for k, v in sources.items()}, n_projections=64)
    turned = sotdd.mix(frame(target), {k: frame(v)[list("dbca")] for k, v in sources.items()}, n_projections=64)
    assert turned.weights == pytest.approx(found.weights, abs=1e-9)


# ------------------------------------------------------------------ errors and what is left


def poisson(rate):
    return lambda rng, n: rng.poisson(rate, size=(n, 6)).astype(float)


def category(weight):
    shares = np.append(np.full(10, 1 + 3.0 * weight), np.ones(30))
    return lambda rng, n: np.eye(40)[rng.choice(40, size=n, p=shares / shares.sum())]


FAMILIES = {
    "counts": [poisson(0.05), poisson(0.1), poisson(0.3)],
    "category of 40": [category(0), category(1), category(3)],
    "flags": [lambda rng, n, q=q: (rng.random((n, 1)) < q).astype(float) for q in (0.02, 0.3, 0.6)],
    "ties": [lambda rng, n, c=c: np.round(rng.normal(c, 1, size=(n, 2))) for c in (0, 0.5, 1.5)],
    "heavy tails": [lambda rng, n, c=c: c + rng.standard_t(2, size=(n, 4)) for c in (0, 0.5, 2)],
}
TRUTHS = ([0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [0.9, 0.1, 0.0])


def simulate(makers, runs):
    """How often the verdict is wrong, and how often intervals hold the truth, at equal and unequal sizes."""
    wrong, held = 0, []
    for run in range(runs):
        rng, truth = np.random.default_rng(run), np.array(TRUTHS[run % 3])
        n, *sizes = [(300, 300, 300, 300), (2000, 150, 500, 300)][run % 2]
        counts = rng.multinomial(n, truth)
        target = np.concatenate([make(rng, m) for make, m in zip(makers, counts, strict=True)])
        parts = [make(rng, m) for make, m in zip(makers, sizes, strict=True)]
        found = sotdd.mix(target, parts, n_projections=64, seed=run)
        wrong += found.left_over.verdict is Verdict.DRIFT
        low, high = found.interval(0.95).T
        held.append((low - 1e-9 <= truth) & (truth <= high + 1e-9))
    return wrong / runs, float(np.mean(held))


@pytest.mark.parametrize("family", FAMILIES)
def test_level_and_coverage(family):
    wrong, held = simulate(FAMILIES[family], 18)
    assert wrong <= 4 / 18
    assert held >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_level_and_coverage_of_many(family):
    wrong, held = simulate(FAMILIES[family], 240)
    assert wrong <= 0.09
    assert held >= 0.94


def test_a_foreign_part_is_left_over(rng, sources):
    target = np.concatenate([draw(rng, 0, 300), draw(rng, 2, 180), draw(rng, [3, -3, 3, -3], 120)])
    found = sotdd.mix(target, sources)
    assert found.left_over.verdict is Verdict.DRIFT
    assert found.left_over.p_value < 0.001
    assert 0.05 < found.left_over.share < 0.4
    assert found.explained == 1 - found.left_over.share
    assert "left over: beyond noise" in repr(found)


def test_the_only_source_has_what_others_may_have(rng):
    x = rng.normal(size=(300, 3))
    found = sotdd.mix(rng.normal(0.1, 1, size=(200, 3)), {"same": x, "apart": rng.normal(-1, 1, size=(150, 3))})
    assert found.weights.tolist() == [1, 0]
    (low, high), (none, most) = found.interval().tolist()
    assert (high, none) == (1, 0)
    assert 0 < most < 1
    assert low == 1 - most


def test_sources_of_one_law_are_a_group(rng, target, sources):
    found = sotdd.mix(target, {**sources, "again": draw(rng, 2, 400)})
    [group] = found.groups
    assert group.names == ("high", "again")
    assert group.weight == pytest.approx(0.3, abs=3 * group.stderr)
    assert group.weight == pytest.approx(found["high"] + found["again"])
    assert group.stderr < found.stderr[1]
    assert "cannot tell apart" in repr(found)


def test_copies_and_constants_are_not_told_apart(sources):
    found = sotdd.mix(sources["low"], [sources["low"], sources["low"]], n_projections=16)
    assert [group.names for group in found.groups] == [("0", "1")]
    assert (found.stderr == 0.5).all()
    constant = np.zeros((20, 3))
    assert sotdd.mix(constant, [constant, constant], n_projections=16).left_over.verdict is Verdict.PASSED


def test_rows_that_belong_together_widen_errors(rng):
    groups = np.repeat(np.arange(30), 20)
    make = lambda centre: rng.normal(centre, 1, size=(30, 1)).repeat(20, axis=0) + rng.normal(0, 0.1, (600, 1))  # noqa: E731
    data = [make(centre) for centre in (0.5, 0.0, 1.0)]
    apart = sotdd.mix(data[0], data[1:], n_projections=16)
    together = [sotdd.open_dataset(one, groups=groups) for one in data]
    found = sotdd.mix(together[0], {"a": together[1], "b": together[2]}, n_projections=16)
    assert found.stderr[0] > 2 * apart.stderr[0]


def test_tail_of_squares(rng):
    for sizes in ([1.0], [5.0, 1.0], np.full(40, 0.3)):
        sums = rng.chisquare(1, size=(200_000, len(sizes))) @ np.array(sizes)
        for share in (0.9, 0.95, 0.99):
            assert tail_of_squares(float(np.quantile(sums, share)), np.diag(sizes)) == pytest.approx(
                1 - share, rel=0.12
            )


# ------------------------------------------------------------------ what goes in


def sketch_all(data, labels=None, **how):
    projections = sotdd.Projections.fit(list(data.values()), n_projections=256)
    return {name: sotdd.sketch(one, projections, name=name, **how) for name, one in data.items()}


def test_sketches_as_rows(target, sources):
    made = sketch_all({"target": target, **sources})
    by_rows = sotdd.mix(target, sources, projections=made["target"].projections)
    found = sotdd.mix(made.pop("target"), made)
    assert found.weights == pytest.approx(by_rows.weights, abs=0.02)
    assert found.names == tuple(sources)
    assert (found.stderr >= 0.9 * by_rows.stderr).all()  # bounds
    assert found.left_over.p_value > 0.05
    assert [remark.kind for remark in found.remarks] == ["errors at most"]
    mixed = sotdd.mix(target, list(made.values()))
    assert mixed.weights == pytest.approx(found.weights, abs=0.02)
    assert (mixed.stderr <= found.stderr + 0.01).all()


def test_sketches_of_parts_know_their_errors(target, sources):
    pieces = {f"{name} {k}": data[k::20] for name, data in {"target": target, **sources}.items() for k in range(20)}
    made = sketch_all(pieces)
    parts = {name: [made[f"{name} {k}"] for k in range(20)] for name in ("target", *sources)}
    by_rows = sotdd.mix(target, sources, projections=made["far 0"].projections)
    found = sotdd.mix(parts.pop("target"), parts)
    assert found.weights == pytest.approx(by_rows.weights, abs=0.01)
    assert found.remarks == ()
    assert found.stderr[:2] == pytest.approx(by_rows.stderr[:2], rel=0.5)


def test_labels_in_sketches(rng, sources):
    def labelled(name, n):
        return draw(rng, {"low": 0, "high": 2}[name], n), np.char.add(name, rng.integers(2, size=n).astype(str))

    low, high = labelled("low", 400), labelled("high", 400)
    (x1, y1), (x2, y2) = labelled("low", 300), labelled("high", 100)
    made = sketch_all({"target": (np.concatenate([x1, x2]), np.concatenate([y1, y2])), "low": low, "high": high})
    first = made.pop("target")
    found = sotdd.mix(first, made)
    assert found["low"] == pytest.approx(0.75, abs=0.1)
    assert "labels in sketches" in {one.kind for one in found.remarks}
    with pytest.raises(sotdd.SotddError, match="by features alone"):
        sotdd.mix(low[0], made)
    frame = pytest.importorskip("pandas").DataFrame(low[0], columns=list("abcd"))
    bare = sotdd.sketch(frame, first.projections, name="bare")
    with pytest.raises(sotdd.SotddError, match="'bare' has no labels"):
        sotdd.mix(first, {**made, "bare": bare})


def test_classes_as_sources(rng):
    x, y = np.concatenate([draw(rng, 0, 300), draw(rng, 2, 300)]), ["cat"] * 300 + ["dog"] * 300
    batch = np.concatenate([draw(rng, 0, 100), draw(rng, 2, 300)])
    found = sotdd.mix(batch, (x, y))
    assert found.names == ("cat", "dog")
    assert found["dog"] == pytest.approx(0.75, abs=0.06)
    assert found.left_over.verdict is Verdict.PASSED
    assert sotdd.mix(batch * 0.6, (x, y)).left_over.verdict is Verdict.DRIFT


def test_classes_of_a_table(rng, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"size": rng.normal(size=400), "colour": rng.choice(["red", "blue"], 400)})
    frame["size"] += 3 * (np.arange(400) >= 200)
    frame["kind"] = ["a"] * 200 + ["b"] * 200
    frame.to_csv(tmp_path / "reference.csv", index=False)
    batch = frame.iloc[100:]
    for asked in (batch, batch.drop(columns="kind")):
        asked.to_csv(tmp_path / "batch.csv", index=False)
        found = sotdd.mix(str(tmp_path / "batch.csv"), str(tmp_path / "reference.csv"), label="kind")
        assert found.names == ("a", "b")
        assert found["b"] == pytest.approx(2 / 3, abs=0.05)


def test_columns_are_scaled_and_sampled(rng, sources, target):
    found = sotdd.mix(target, sources, max_points=200, n_projections=64)
    assert found.n_points == (200, 200, 200, 200)
    assert [remark.kind for remark in found.remarks].count("sampled") == 4


BAD = {
    "one source": (lambda s: [s["low"]], "only one source"),
    "no sources": (lambda s: [], "no datasets"),
    "few points": (lambda s: {**s, "few": s["low"][:9]}, "'few' has 9 points"),
    "other features": (lambda s: {**s, "wide": np.ones((20, 9))}, "9 features"),
    "one class": (lambda s: (s["low"], ["a"] * 400), "only one source"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_sources_are_refused_in_one_line(case, target, sources):
    make, line = BAD[case]
    with pytest.raises(sotdd.SotddError, match=line) as caught:
        sotdd.mix(target, make(sources))
    assert "\n" not in str(caught.value)


def test_bad_settings_and_targets_are_refused(target, sources):
    with pytest.raises(sotdd.SotddError, match="at least 10 of the target"):
        sotdd.mix(target[:5], sources)
    with pytest.raises(sotdd.SotddError, match="label_law"):
        sotdd.mix(target, sources, label_law="quantiles")
    with pytest.raises(sotdd.SotddError, match="speling"):
        sotdd.mix(target, sources, speling=1)
    one, other = sketch_all({"low": sources["low"]}), sketch_all({"low": sources["high"], "far": sources["far"]})
    with pytest.raises(sotdd.SotddError, match="different projections"):
        sotdd.mix(target, [one["low"], other["low"]])
    with pytest.raises(sotdd.SotddError, match="n_projections cannot be chosen"):
        sotdd.mix(target, other, n_projections=9)
    with pytest.raises(sotdd.SotddError, match="only one source"):
        sotdd.mix(target, one["low"])
    with pytest.raises(sotdd.SotddError, match="one group"):
        sotdd.mix(sotdd.open_dataset(target, groups=np.zeros(600)), sources)


def test_no_columns_in_common(target, sources):
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(sources["low"], columns=list(names)) for names in ("abcd", "abcd", "efgh")]
    with pytest.raises(sotdd.SotddError, match="column"):
        sotdd.mix(frames[0], {"one": frames[1], "other": frames[2]})


# ------------------------------------------------------------------ the result


def test_result(target, sources):
    found = sotdd.mix(target, sources, n_projections=64)
    again = json.loads(json.dumps(found.to_dict()))
    assert again == found.to_dict()
    assert [one["name"] for one in again["sources"]] == list(sources)
    assert again["left_over"]["verdict"] == "passed"
    assert again["explained"] == found.explained
    assert len(found) == 3
    assert found["low"] == found.weights[0]
    low, high = found.interval(0.5).T
    assert (low <= found.weights).all()
    assert (found.weights <= high).all()
    assert (found.interval()[:, 0] <= low).all()
    with pytest.raises(sotdd.SotddError, match="no source 'nobody'"):
        found["nobody"]
    frame = found.to_pandas()
    assert list(frame.columns) == ["weight", "stderr", "low", "high", "n_points"]
    assert list(frame.index) == list(sources)
    assert repr(found).startswith("source  weight")
    assert "left over: within noise" in repr(found)


def test_devices_agree(target, sources):
    found = [sotdd.mix(target, sources, n_projections=32, device=device) for device in ("cpu", "numpy")]
    assert found[0].weights == pytest.approx(found[1].weights, abs=1e-4)


def test_picture_and_page(target, sources, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    found = sotdd.mix(target, sources, n_projections=64)
    axes = found.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["low", "high", "far"]
    page = sotdd.report(found, tmp_path / "page.html", title="<made> of")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page == tmp_path / "page.html"
    assert "&lt;made&gt; of" in text
    assert "within noise" in text
    assert "not be the best to train on" in text


# ------------------------------------------------------------------ the command


@pytest.fixture
def tables(tmp_path, rng, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)

    def write(name, *parts):
        ages = np.concatenate([rng.normal({"us": 40, "eu": 60}[kind], 8, n) for kind, n in parts])
        kinds = np.repeat([kind for kind, _ in parts], [n for _, n in parts])
        frame = pandas.DataFrame({"age": ages, "size": rng.normal(size=len(ages)), "region": kinds})
        (frame if name == "reference" else frame.drop(columns="region")).to_csv(f"{name}.csv", index=False)

    write("us", ("us", 300))
    write("eu", ("eu", 300))
    write("target", ("us", 210), ("eu", 90))
    write("reference", ("us", 300), ("eu", 300))


def run(*arguments):
    from typer.testing import CliRunner

    from sotdd.cli.app import app

    done = CliRunner().invoke(app, ["mix", *arguments, "--n-projections", "64"])
    return done.exit_code, done.stdout, done.stderr


def test_command(tables):
    code, said, _ = run("target.csv", "us.csv", "eu.csv")
    assert code == 0
    assert "left over: within noise" in said
    code, said, _ = run("target.csv", "us.csv", "eu.csv", "--json", "--report", "page.html")
    told = json.loads(said)
    assert [one["name"] for one in told["sources"]] == ["us.csv", "eu.csv"]
    assert told["sources"][0]["weight"] == pytest.approx(0.7, abs=0.1)
    assert told["report"] == "page.html"
    assert "sotdd.mix(" in Path("page.html").read_text(encoding="utf-8")
    code, said, _ = run("target.csv", "us.csv", "eu.csv", "--csv", "--quiet")
    assert said.splitlines()[0] == "name,weight,stderr,low,high,n_points"
    code, said, _ = run("target.csv", "reference.csv", "--label", "region", "--quiet")
    assert code == 0
    assert said.splitlines()[1].split()[0] == "us"


def test_command_of_sketches(tables):
    projections = sotdd.Projections.fit([f"{name}.csv" for name in ("target", "us", "eu")], n_projections=64)
    for name in ("us", "eu"):
        sotdd.sketch(f"{name}.csv", projections).save(f"{name}.sotdd")
    from typer.testing import CliRunner

    from sotdd.cli.app import app

    done = CliRunner().invoke(app, ["mix", "target.csv", "us.sotdd", "eu.sotdd"])
    assert done.exit_code == 0
    assert "bound errors" in done.stdout + done.stderr
    code, _, errors = run("target.csv", "us.sotdd", "eu.sotdd")
    assert code == 2
    assert "cannot be chosen" in errors


@pytest.mark.parametrize(
    ("sources", "line"),
    [(["us.csv"], "only one source"), (["us.csv", "no.csv"], "no.csv"), (["us.csv", "few.csv"], "few")],
)
def test_command_refuses_in_one_line(tables, sources, line):
    Path("few.csv").write_text("age,size\n1,2\n3,4\n", encoding="utf-8")
    code, said, errors = run("target.csv", *sources)
    assert (code, said) == (2, "")
    assert line in errors
    assert errors.count("\n") == 1
