"""Changes that projections hardly see, rows that depend on each other, classes absent by chance, and one reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from experiments.lib.files import default_folder
from scipy.special import ndtr
from scipy.stats import binomtest, fisher_exact, ks_2samp, rankdata

import sotdd
from benchmarks.decision_data import changed_pair, laws, sources, spread
from benchmarks.decision_peers import p_values
from benchmarks.decision_power import LEVEL, share
from benchmarks.ordinary import Doubles, Pair

Rng = np.random.Generator


def labelled(rng: Rng, *parts: Doubles) -> Any:  # noqa: ANN401  # a pair
    """Points with three classes that mean nothing."""
    return tuple((part, rng.integers(3, size=len(part))) for part in parts)


# ------------------------------------------------------------------ what projections hardly see


def correlated(rng: Rng) -> Pair:
    """One pair of 30 columns, correlation 0.6 and -0.6."""
    a, b = rng.normal(size=(2, 300, 30))
    for part, slope in ((a, 0.6), (b, -0.6)):
        part[:, 1] = slope * part[:, 0] + 0.8 * part[:, 1]
    return labelled(rng, a, b)


def one_column(rng: Rng, n: int, d: int, shift: float = 0.0, scale: float = 1.0) -> Pair:
    """One column of many moved or scaled."""
    a, b = rng.normal(size=(2, n, d))
    b[:, d // 2] = scale * b[:, d // 2] + shift
    return labelled(rng, a, b)


def one_class(rng: Rng) -> Pair:
    """One of ten classes moved by 0.35 standard deviations in each of 800 features."""
    a, b = (rng.integers(10, size=300) for _ in range(2))
    centres = 0.3 * np.random.default_rng(5).normal(size=(10, 800))
    x, y = (centres[labels] + rng.normal(size=(300, 800)) for labels in (a, b))
    return (x, a), (y + 0.35 * (b == 0)[:, None], b)


def other_shares(rng: Rng) -> Pair:
    """Four classes that lie alike, half of them 1.5 times as frequent."""
    shares = np.array([1.5, 1.5, 1.0, 1.0]) / 5
    return (rng.normal(size=(500, 10)), rng.integers(4, size=500)), (
        rng.normal(size=(500, 10)), rng.choice(4, 500, p=shares)
    )  # fmt: skip


def rare_value(rng: Rng) -> Pair:
    """A mark that 2 % of rows have, and 10 %."""
    a, b = rng.normal(size=(2, 200, 8))
    a[:, 7], b[:, 7] = rng.random(200) < 0.02, rng.random(200) < 0.1
    return labelled(rng, a, b)


def flipped(rng: Rng) -> Pair:
    """Labels that are the sign of x3 × x4, with 20 % noise; and labels that have nothing to do with anything."""
    x, other = rng.normal(size=(2, 300, 6))
    labels = np.where((x[:, 3] * x[:, 4] > 0) ^ (rng.random(300) < 0.2), 1, 0)
    return (x, labels), (other, rng.integers(2, size=300))


def fewer_known(rng: Rng) -> Any:  # noqa: ANN401  # a pair of tables
    """One of ten columns of numbers with 2 % gaps and 8 %; another has 2 % on both sides."""
    tables = []
    for rate in (0.02, 0.08):
        table = pd.DataFrame(rng.normal(size=(250, 10)), columns=[f"x{place}" for place in range(10)])
        table.loc[rng.random(250) < 0.02, "x1"] = np.nan
        table.loc[rng.random(250) < rate, "x3"] = np.nan
        tables.append((table, rng.integers(2, size=250)))
    return tuple(tables)


def shuffled_categories(rng: Rng) -> Any:  # noqa: ANN401  # a pair of tables
    """Two categories of six values that agree in a quarter of rows more than by chance; and shuffled."""
    tables = []
    for shuffles in (False, True):
        first = rng.integers(6, size=500)
        second = np.where(rng.random(500) < 0.2, first, rng.integers(6, size=500))
        second = rng.permutation(second) if shuffles else second
        codes = {"color": np.char.mod("c%d", first), "clarity": np.char.mod("k%d", second)}
        tables.append(
            (pd.DataFrame(codes).assign(x=rng.normal(size=500), z=rng.normal(size=500)), rng.integers(2, size=500))
        )
    return tuple(tables)


def in_law(change: str, n: int = 120) -> Callable[[Rng], Pair]:
    """A change of Gaussian classes."""
    return lambda rng: changed_pair(sources()["Gaussian classes"], change, rng, n)


SPOTS: dict[str, Callable[[Rng], Pair]] = {
    "one pair's correlation 0.6 → −0.6, d = 30, n = 300": correlated,
    "one column of 800 + 0.87 sd, n = 300": lambda rng: one_column(rng, 300, 800, 0.87),
    "one column of 100 × 1.58, n = 500": lambda rng: one_column(rng, 500, 100, 0.0, 1.58),
    "one class of ten moved, d = 800, n = 300": one_class,
    "shares of four classes 1.5 : 1, d = 10, n = 500": other_shares,
    "one column of 10 + 0.4 sd, n = 150": lambda rng: one_column(rng, 150, 10, 0.4),
    "rare value 2 → 10 %, n = 200": rare_value,
    "gaps 2 → 8 %, d = 10, n = 250": fewer_known,
    "two categories shuffled, n = 500": shuffled_categories,
    "labels = sign(x₃x₄), 20 % noise, n = 300": flipped,
    "label noise 30 %": in_law("label noise 30 %", 250),
    "one class of four moved": in_law("one class moved"),
    "all features + 0.2 sd": in_law("all features + 0.2 sd", 90),
    "nothing, d = 30": lambda rng: one_column(rng, 150, 30),
    "nothing, Gaussian classes": in_law("nothing"),
}


def blind_spots(simulations: int) -> list[list[str]]:
    """Power of the test beside that of others, at 5 %; the last lines are false alarms."""
    names = ["combined", "names matched", "KS", "Fisher's exact", "Fisher's z", "z in classes", "MMD",
             "MMD with labels", "energy", "energy with labels", "linear", "random forest"]  # fmt: skip
    lines = [["what differs", *names]]
    for name in SPOTS:
        found = spread(judge_spot, [(name, number) for number in range(simulations)])
        lines.append([name, *(share([one[by] <= LEVEL for one in found]) for by in names)])
        print(lines[-1], flush=True)
    return lines


def judge_spot(item: tuple[str, int]) -> dict[str, float]:
    """The p-values of one simulation; others see categories one-hot, and gaps as a mean and a mark."""
    name, number = item
    rng = np.random.default_rng([number, 33])
    pair = SPOTS[name](rng)
    settings: dict[str, Any] = {"n_permutations": 199, "n_projections": 64, "seed": number, "device": "cpu"}
    ours = tuple(part[0].assign(label=part[1]) if isinstance(part[0], pd.DataFrame) else part for part in pair)
    found = {"combined": sotdd.test(*ours, **settings).p_value}
    found["names matched"] = sotdd.test(*ours, label_names="match", **settings).p_value
    pair = one_hot(pair)
    n_classes = 1 + max(int(part[1].max()) for part in pair)
    found |= p_values(pair, n_classes, 99, rng) | {"KS": by_columns(pair), "Fisher's z": by_pairs(pair)}
    return found | {
        "Fisher's exact": by_marks(pair), "z in classes": by_classes(pair), "random forest": by_forest(pair, number)
    }  # fmt: skip


def one_hot(pair: Any) -> Pair:  # noqa: ANN401  # arrays or tables
    """Tables as arrays: a column for every value of a category, and a mark beside a mean for gaps."""
    if not isinstance(pair[0][0], pd.DataFrame):
        return pair  # type: ignore[no-any-return]  # arrays
    whole = pd.concat([part[0] for part in pair], ignore_index=True)
    marks = whole.isna().loc[:, whole.isna().any()].add_suffix(" is missing")
    coded = pd.get_dummies(whole.fillna(whole.mean(numeric_only=True))).join(marks).to_numpy(float)
    n = len(pair[0][0])
    return (coded[:n], pair[0][1]), (coded[n:], pair[1][1])


def by_marks(pair: Pair) -> float:
    """The least p-value of Fisher's exact test of all columns of two values, by Bonferroni; 1 for none."""
    (a, _), (b, _) = pair
    marks = [place for place in range(a.shape[1]) if len(np.unique([*a[:, place], *b[:, place]])) == 2]
    if not marks:
        return 1.0
    found = []
    for place in marks:
        high = max(a[:, place].max(), b[:, place].max())
        counts = [[int((side[:, place] == high).sum()), int((side[:, place] < high).sum())] for side in (a, b)]
        found.append(float(fisher_exact(counts)[1]))
    return min(found) * len(marks)


def by_classes(pair: Pair) -> float:
    """The same as `by_pairs` within every class, by Bonferroni over classes too."""
    (a, y), (b, z) = pair
    classes = [label for label in np.unique(y) if min((y == label).sum(), (z == label).sum()) > 10]
    found = [by_pairs(((a[y == label], y[y == label]), (b[z == label], z[z == label]))) for label in classes]
    return min(found, default=1.0) * max(len(classes), 1)


def by_forest(pair: Pair, seed: int) -> float:
    """A random forest that tells the two apart by features and labels, on half of the rows: a binomial p-value."""
    from sklearn.ensemble import RandomForestClassifier

    (a, y), (b, z) = pair
    rng = np.random.default_rng(seed)
    few = min(len(a), len(b))
    rows = np.concatenate(
        [np.column_stack([x, labels])[rng.permutation(len(x))[:few]] for x, labels in ((a, y), (b, z))]
    )
    side, train = np.repeat([0, 1], few), np.tile(np.arange(few) < few // 2, 2)
    forest = RandomForestClassifier(100, random_state=seed, n_jobs=1).fit(rows[train], side[train])
    right = int((forest.predict(rows[~train]) == side[~train]).sum())
    return float(binomtest(right, int((~train).sum()), 0.5, alternative="greater").pvalue)


def by_columns(pair: Pair) -> float:
    """The least p-value of Kolmogorov and Smirnov of all columns, by Bonferroni."""
    (a, _), (b, _) = pair
    return min(float(ks_2samp(x, y, method="asymp").pvalue) for x, y in zip(a.T, b.T, strict=True)) * a.shape[1]


def by_pairs(pair: Pair) -> float:
    """The least p-value of differences of rank correlations, by Fisher's transform and Bonferroni."""
    found = []
    for part, _ in pair:
        correlations = np.corrcoef(rankdata(part, axis=0), rowvar=False)[np.triu_indices(part.shape[1], 1)]
        found.append(np.arctanh(np.clip(correlations, -0.999, 0.999)))
    error = np.sqrt(1.06 * sum(1 / (len(part) - 3) for part, _ in pair))
    return float(2 * ndtr(-np.abs(found[0] - found[1]).max() / error)) * len(found[0])


def levels(simulations: int, n: int = 150, m: int = 60) -> list[list[str]]:
    """False alarms at 5 % on every law: of the test, with names matched, and of a reference."""
    lines = [["law", "test", "names matched", "reference"]]
    for name in laws():
        found = spread(judge_law, [(name, n, m, number) for number in range(simulations)])
        lines.append([name, *(share([one[at] <= LEVEL for one in found]) for at in range(3))])
        print(lines[-1], flush=True)
    return lines


def judge_law(item: tuple[str, int, int, int]) -> tuple[float, float, float]:
    """The p-values of one simulation."""
    name, n, m, number = item
    a, b = laws()[name].pair(np.random.default_rng([number, 37]), (n, m))
    settings: dict[str, Any] = {"n_projections": 16, "seed": number, "device": "cpu"}
    tests = [sotdd.test(a, b, n_permutations=99, label_names=how, **settings) for how in ("ignore", "match")]
    tests.append(sotdd.DriftReference.fit(a, **settings).test(b, n_permutations=99))
    return tests[0].p_value, tests[1].p_value, tests[2].p_value


# ------------------------------------------------------------------ rows that depend on each other


def autoregression(rng: Rng, n: int, slope: float) -> Doubles:
    """A series of five columns."""
    noise = np.sqrt(1 - slope**2) * rng.normal(size=(n, 5))
    noise[0] /= np.sqrt(1 - slope**2)
    for row in range(1, n):
        noise[row] += slope * noise[row - 1]
    return noise


def repeat_rows(rng: Rng, times: int, noise: float) -> tuple[Doubles, Doubles, dict[str, Any]]:
    """Each of 200 / times things several times, with noise."""
    who = np.repeat(np.arange(200 // times), times)
    a, b = (rng.normal(size=(200 // times, 5))[who] + noise * rng.normal(size=(len(who), 5)) for _ in range(2))
    return a, b, {"groups": who}


def cut_series(rng: Rng, slope: float, blocks: int) -> tuple[Doubles, Doubles, dict[str, Any]]:
    """The first two thirds of a series, and the rest."""
    rows = autoregression(rng, 600, slope)
    return rows[:400], rows[400:], {"blocks": blocks}


DEPENDENT: dict[str, Callable[[Rng], tuple[Doubles, Doubles, dict[str, Any]]]] = {
    "every row twice, groups": lambda rng: repeat_rows(rng, 2, 0.0),
    "five rows per person, groups": lambda rng: repeat_rows(rng, 5, 0.7),
    "series, 0.3, blocks of 20": lambda rng: cut_series(rng, 0.3, 20),
    "series, 0.6, blocks of 20": lambda rng: cut_series(rng, 0.6, 20),
    "series, 0.6, blocks of 40": lambda rng: cut_series(rng, 0.6, 40),
    "series, 0.9, blocks of 50": lambda rng: cut_series(rng, 0.9, 50),
    "series, 0.9, blocks of 100": lambda rng: cut_series(rng, 0.9, 100),
}


def dependent_rows(simulations: int) -> list[list[str]]:
    """False alarms at 5 % with rows that depend on each other, as they are and in groups or blocks."""
    lines = [["rows", "as they are", "a remark says so", "in groups or blocks", "reference, in groups or blocks"]]
    for name in DEPENDENT:
        found = spread(judge_dependent, [(name, number) for number in range(simulations)])
        lines.append([name, *(share([one[at] for one in found]) for at in range(4))])
        print(lines[-1], flush=True)
    return lines


def judge_dependent(item: tuple[str, int]) -> tuple[bool, ...]:
    """One simulation."""
    name, number = item
    a, b, how = DEPENDENT[name](np.random.default_rng([number, 34]))
    settings: dict[str, Any] = {"n_projections": 16, "seed": number, "device": "cpu"}
    plain = sotdd.test(a, b, n_permutations=99, **settings)
    first, second = sotdd.open_dataset(a, **how), sotdd.open_dataset(b, **how)
    reference = sotdd.DriftReference.fit(first, **settings)
    kinds = {remark.kind for remark in plain.remarks}
    return (
        plain.rejects(LEVEL), bool(kinds & {"rows repeat", "neighbours alike"}),
        sotdd.test(first, second, n_permutations=99, **settings).rejects(LEVEL),
        reference.test(second, n_permutations=99).rejects(LEVEL),
    )  # fmt: skip


# ------------------------------------------------------------------ classes absent by chance


def zipf(rng: Rng) -> Pair:
    """Two hundred classes, of which the k-th is there by 1 / k."""
    shares = 1 / np.arange(1, 201)
    labels = rng.choice(200, 800, p=shares / shares.sum())
    points = np.random.default_rng(5).normal(size=(200, 6))[labels] + rng.normal(size=(800, 6))
    return (points[:400], labels[:400]), (points[400:], labels[400:])


def absent_classes(simulations: int) -> list[list[str]]:
    """Two samples of one law: how often `sotdd.explain` calls a class lost or moved, and names a column."""
    lines = [["law", "no counterpart", "called lost", "called moved", "a column named"]]
    known = {"abalone": "rings", "wine_red": "quality", "adult": "income"}
    tables = [name for name in known if (default_folder() / "tables" / f"{name}.csv.gz").is_file()]
    for name in ("200 classes, Zipf", *tables):
        found = spread(judge_absent, [(name, known.get(name), number) for number in range(simulations)])
        lines.append([name, *(share([one[at] for one in found]) for at in range(4))])
        print(lines[-1], flush=True)
    return lines


def judge_absent(item: tuple[str, str | None, int]) -> tuple[bool, ...]:
    """One simulation."""
    name, label, number = item
    rng = np.random.default_rng([number, 35])
    if label is None:
        why = sotdd.explain(*zipf(rng), n_projections=64, seed=number, device="cpu")
    else:
        whole = pd.read_csv(default_folder() / "tables" / f"{name}.csv.gz")
        rows = whole.iloc[rng.permutation(len(whole))[:800]]
        why = sotdd.explain(rows[:400], rows[400:], label=label, n_projections=64, seed=number, device="cpu")
    classes = [line for side in (0, 1) for line in why.lines(side)]
    return (
        any(line.counterpart is None for line in classes), any(line.lost for line in classes),
        any(line.moved for line in classes), bool(why.by_feature.changed),
    )  # fmt: skip


# ------------------------------------------------------------------ one reference


def one_reference(count: int, batches: int = 200, m: int = 50) -> list[list[str]]:
    """False alarms at 5 % of single references, in per cent: the mean over them, and how far they are apart.

    Of the variance between references, what the number of batches alone gives is taken off.
    """
    cells = [f"reference {times} × batch: {what}" for times in (4, 20) for what in ("mean", "two of three")]
    lines = [["law", *cells]]
    for name in ("Gaussian classes", "t₃", "log-normal"):
        line = [name]
        for times in (4, 20):
            items = [(name, times * m, m, batches, number) for number in range(count)]
            found = np.array(spread(judge_reference, items))
            mean = float(found.mean())
            apart = np.sqrt(max(0.0, float(found.var(ddof=1)) - mean * (1 - mean) / batches))
            line += [f"{100 * mean:.1f}", f"{100 * max(0.0, mean - apart):.1f} to {100 * (mean + apart):.1f}"]
        lines.append(line)
        print(line, flush=True)
    return lines


def judge_reference(item: tuple[str, int, int, int, int]) -> float:
    """The share of batches of one law that one reference of it calls drift."""
    name, n, m, batches, number = item
    rng = np.random.default_rng([number, 36])
    reference = sotdd.DriftReference.fit(laws()[name].sample(rng, n), n_projections=16, seed=number, device="cpu")
    tests = (reference.test(laws()[name].sample(rng, m), n_permutations=99, device="cpu") for _ in range(batches))
    return float(np.mean([test.rejects(LEVEL) for test in tests]))
