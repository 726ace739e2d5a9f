"""Which scale the columns of tables get by default: python -m benchmarks.table_scale [--data DIR] [--quick] [--final].

Every candidate is applied to the tables before `sotdd` sees them as arrays with ``scale=None``, and is fitted on all
tables of a comparison together:

- how it orders graded changes: Spearman's ρ of distance and degree;
- whether held-out rows are nearer to real rows than to a Gaussian copula, and to that than to independent columns;
- how often `test` finds a small change;
- whether 95 % intervals cover.

Some tables are there to choose by, others are reported; two are kept back, and are measured with ``--final`` alone.
Last, how far the number moves when one side is a smaller sample.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from experiments.lib.files import default_folder
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

import sotdd
from benchmarks.label_choice import correlate
from benchmarks.ordinary import Dataset, customers
from benchmarks.trust import Both, share
from sotdd import LabelledData, Scaler
from sotdd.inputs import open_all
from sotdd.projections import Moments

Doubles = NDArray[np.float64]
Rng = np.random.Generator

CHOSEN_BY = {"abalone": "rings", "adult": "income", "banknote": "forged", "customers": "often"}
REPORTED = {"diamonds": "cut", "german_credit": "risk", "titanic": "survived", "wine_red": "quality", "heavy": "of"}
KEPT_BACK = {"penguins": "species", "wine_white": "quality"}
LABELS = {**CHOSEN_BY, **REPORTED, **KEPT_BACK}
COPIED = ("adult", "diamonds", "german_credit")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 1000
    draws: int = 5
    copied_rows: int = 3000
    copies: int = 10
    tested_rows: int = 300
    tests: int = 20
    seeds: int = 100
    projections: int = 500


QUICK = Sizes(rows=100, draws=1, copied_rows=100, copies=2, tested_rows=60, tests=2, seeds=3, projections=64)

# ------------------------------------------------------------------ candidates


def scale_as_before(data: Sequence[LabelledData]) -> list[Doubles]:
    """Before tails of columns of mostly one value were those of the others: 5 % of all, or the plain deviation."""
    rows = [part.rows(slice(0, part.n_points)) for part in data]
    scaler, pool = Scaler.fit(data, "features"), np.concatenate(rows)
    centre, scale = scaler.centre.copy(), scaler.scales.copy()
    for place in find_numbers(data):
        low, high = np.quantile(pool[:, place], [0.05, 0.95], method="inverted_cdf")
        clipped = np.clip(pool[:, place], low, high) if high > low else pool[:, place]
        centre[place], scale[place] = clipped.mean(), clipped.std() / (0.911 if high > low else 1) or 1.0
    return [Scaler(centre, scale).apply(part) for part in rows]


def find_numbers(data: Sequence[LabelledData]) -> list[int]:
    """The places of the features that are no categories."""
    categories = data[0].group_features()
    return [place for place, name in enumerate(data[0].columns or ()) if name not in categories]


def scale_robustly(data: Sequence[LabelledData], kind: str = "features") -> list[Doubles]:
    """Features of all tables by a scaler of the package."""
    scaler = Scaler.fit(data, kind)  # type: ignore[arg-type]  # a name
    return [scaler.apply(part.rows(slice(0, part.n_points))) for part in data]


def clip_tails(data: Sequence[LabelledData]) -> list[Doubles]:
    """The same, no farther out than five spreads."""
    return [np.clip(features, -5, 5) for features in scale_robustly(data)]


def bend_late(data: Sequence[LabelledData]) -> list[Doubles]:
    """Arcsinh that is linear three times as far."""
    return [3 * np.arcsinh(features / 3) for features in scale_robustly(data)]


def score_ranks(data: Sequence[LabelledData]) -> list[Doubles]:
    """Numbers by the normal scores of their mid-ranks among all rows; categories by their spread."""
    pool = np.concatenate(scale_robustly(data))
    numbers = find_numbers(data)
    pool[:, numbers] = norm.ppf((rankdata(pool[:, numbers], axis=0) - 0.5) / len(pool))
    return np.split(pool, np.cumsum([part.n_points for part in data])[:-1])


def scale_with_arcsinh(data: Sequence[LabelledData]) -> list[Doubles]:
    """The scale of the package, "arcsinh"."""
    return scale_robustly(data, "arcsinh")


# What becomes of features, and where the moments of the label term are cut.
CANDIDATES: dict[str, tuple[Callable[[Sequence[LabelledData]], list[Doubles]], float]] = {
    "as before": (scale_as_before, 2.5),
    "robust spread": (scale_robustly, 2.5),
    "robust spread, clipped at 5": (clip_tails, 2.5),
    "normal scores": (score_ranks, 2.5),
    "arcsinh": (scale_with_arcsinh, 2.5),
    "arcsinh, linear to 3": (bend_late, 2.5),
    "arcsinh, moments cut at 5": (scale_with_arcsinh, 5.0),
}
DEFAULT = "arcsinh"
# Those that are still in question for tests and intervals.
FEWER = ("as before", "robust spread, clipped at 5", "normal scores", DEFAULT)


def open_tables(frames: Sequence[pd.DataFrame], label: str) -> list[LabelledData]:
    """Tables as the package reads them."""
    return open_all(list(frames), label=label)


def apply(name: str, data: Sequence[LabelledData]) -> list[Dataset]:
    """All tables as arrays, by a candidate."""
    scale, _ = CANDIDATES[name]
    return [(features, part.codes.astype(np.int64)) for features, part in zip(scale(data), data, strict=True)]


def settings(name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """What the package is asked for, so that nothing is scaled again."""
    return {"scale": None, "label_law": Moments(cut=CANDIDATES[name][1]), **more}


def measure(first: Dataset, second: Dataset, name: str, seed: int, n_projections: int) -> float:
    """The distance of two tables that were scaled."""
    how = settings(name, seed=seed, n_projections=n_projections, device="cpu")
    return float(sotdd.distance(first, second, **how).value)


# ------------------------------------------------------------------ tables, changes and copies


@cache
def read_table(name: str, folder: Path) -> pd.DataFrame:
    """A table of the folder, or one of two with heavy tails that are generated."""
    if name == "customers":
        features, of = customers(np.random.default_rng(3), 6000)
        return pd.DataFrame(features, columns=["age", "income", "visits"]).assign(often=of)
    if name == "heavy":
        rng = np.random.default_rng(4)
        of = rng.integers(3, size=6000)
        x = np.random.default_rng(5).normal(0, 0.8, (3, 8))[of] + rng.normal(size=(6000, 8))
        x[:, :4] = np.exp(1.5 * x[:, :4])
        x[:, 4:6] += 0.3 * rng.standard_t(1.5, size=(6000, 2))
        return pd.DataFrame(x, columns=list("abcdefgh")).assign(of=of)
    return pd.read_csv(folder / "tables" / f"{name}.csv.gz")


def split_rows(frame: pd.DataFrame, most: int, count: int, rng: Rng) -> list[pd.DataFrame]:
    """So many samples without a row in common, as large as asked for or as there are rows."""
    rows, n = rng.permutation(len(frame)), min(most, len(frame) // count)
    return [frame.iloc[rows[i * n : (i + 1) * n]].reset_index(drop=True) for i in range(count)]


def flip_labels(frame: pd.DataFrame, degree: float, label: str, rng: Rng) -> pd.DataFrame:
    """A share of the labels replaced by other ones."""
    codes, names = pd.factorize(frame[label])
    moved = (codes + rng.integers(1, len(names), size=len(codes))) % len(names)
    return frame.assign(**{label: names[np.where(rng.random(len(codes)) < degree, moved, codes)]})


def add_noise(frame: pd.DataFrame, degree: float, label: str, rng: Rng) -> pd.DataFrame:
    """Noise on all numbers, in standard deviations of their column; whole numbers stay whole."""
    numbers = frame.drop(columns=label).select_dtypes("number")
    noisy = numbers + degree * numbers.std().to_numpy() * rng.normal(size=numbers.shape)
    whole = numbers.select_dtypes("integer").columns
    return frame.assign(**noisy.round(dict.fromkeys(whole, 0)))


def decouple_columns(frame: pd.DataFrame, degree: float, label: str, rng: Rng) -> pd.DataFrame:
    """A share of the columns permuted, each by itself."""
    columns = [name for name in frame if name != label]
    chosen = np.random.default_rng(len(frame)).permutation(columns)[: round(degree * len(columns))]
    return frame.assign(**{name: rng.permutation(frame[name].to_numpy()) for name in chosen})


def remove_class(frame: pd.DataFrame, degree: float, label: str, rng: Rng) -> pd.DataFrame:
    """A share of the largest class left out."""
    return frame[(frame[label] != frame[label].mode()[0]) | (rng.random(len(frame)) >= degree)]


# By degrees, and one small degree of which a test is not certain.
Change = Callable[[pd.DataFrame, float, str, Rng], pd.DataFrame]
CHANGES: dict[str, tuple[Change, tuple[float, ...], float]] = {
    "label flips": (flip_labels, (0, 0.1, 0.2, 0.3, 0.4, 0.5), 0.15),
    "noise": (add_noise, (0, 0.1, 0.2, 0.3, 0.45, 0.6), 0.15),
    "decoupled columns": (decouple_columns, (0, 0.2, 0.4, 0.6, 0.8, 1), 0.2),
    "class removed": (remove_class, (0, 0.2, 0.4, 0.6, 0.8, 0.95), 0.3),
}


def copy_by_copula(frame: pd.DataFrame, rng: Rng) -> pd.DataFrame:
    """Rows of a Gaussian copula with the columns' own laws, labels among them."""
    codes = np.stack([_order_values(frame[name]) for name in frame], axis=1)
    ranks = rankdata(codes + 1e-3 * rng.random(codes.shape), axis=0)  # ties in a random order
    correlations = np.corrcoef(norm.ppf((ranks - 0.5) / len(frame)), rowvar=False)
    sampled = rng.multivariate_normal(np.zeros(len(correlations)), correlations, size=len(frame), method="eigh")
    places = np.minimum((norm.cdf(sampled) * len(frame)).astype(int), len(frame) - 1)
    order = np.argsort(ranks, axis=0)
    return pd.DataFrame(
        {name: frame[name].to_numpy()[order[places[:, i], i]] for i, name in enumerate(frame)}
    ).astype(frame.dtypes.to_dict())  # fmt: skip


def _order_values(column: pd.Series[Any]) -> Doubles:
    """Ranks of numbers, and of categories by how frequent they are; gaps come last."""
    known = column if pd.api.types.is_numeric_dtype(column) else column.map(column.value_counts(ascending=True))
    return known.astype(float).rank(method="dense", na_option="bottom").to_numpy()


def make_copies(frame: pd.DataFrame, label: str, rng: Rng) -> dict[str, pd.DataFrame]:
    """Tables that may pass for one, from itself to the worst."""
    return {
        "train": frame,
        "bootstrap": frame.sample(len(frame), replace=True, random_state=rng),
        "jitter": add_noise(frame, 0.25, label, rng),
        "copula": copy_by_copula(frame, rng),
        "independent": frame.apply(lambda column: rng.permutation(column.to_numpy())),
    }


# ------------------------------------------------------------------ measurements


@cache
def order_changes(name: str, sizes: Sizes, folder: Path) -> list[dict[tuple[str, str], float]]:
    """For each draw, ρ of distance and degree by candidate and change; all degrees are in one scale."""
    label, draws = LABELS[name], []
    for draw in range(sizes.draws):
        rng, found = np.random.default_rng([1, draw]), {}
        first, second = split_rows(read_table(name, folder), sizes.rows, 2, rng)
        for change, (make, degrees, _) in CHANGES.items():
            data = open_tables([first, *(make(second, degree, label, rng) for degree in degrees)], label)
            for candidate in CANDIDATES:
                one, *others = apply(candidate, data)
                values = [measure(one, other, candidate, draw, sizes.projections) for other in others]
                found[candidate, change] = correlate(values, degrees)
        draws.append(found)
    return draws


def order_copies(name: str, sizes: Sizes, folder: Path) -> Iterator[dict[str, dict[str, float]]]:
    """For each draw and candidate, how far every copy of some rows is from held-out ones."""
    for draw in range(sizes.copies):
        rng = np.random.default_rng([2, draw])
        held, train = split_rows(read_table(name, folder), sizes.copied_rows, 2, rng)
        copies = make_copies(train, LABELS[name], rng)
        data = open_tables([held, *copies.values()], LABELS[name])
        found = {}
        for candidate in CANDIDATES:
            one, *others = apply(candidate, data)
            values = [measure(one, other, candidate, draw, sizes.projections) for other in others]
            found[candidate] = dict(zip(copies, values, strict=True))
        yield found


def find_changes(name: str, sizes: Sizes, folder: Path) -> Iterator[tuple[str, str, float, float]]:
    """Candidate, change, and the p-values of whole tests and of the distance alone."""
    label = LABELS[name]
    changes: dict[str, tuple[Change, float]] = {"nothing": (add_noise, 0.0)}
    changes |= {change: (make, small) for change, (make, _, small) in CHANGES.items()}
    for draw in range(sizes.tests):
        rng = np.random.default_rng([3, draw])
        first, second = split_rows(read_table(name, folder), sizes.tested_rows, 2, rng)
        for change, (make, degree) in changes.items():
            other = make(second, degree, label, rng)  # sides of one size: both count the same in the scale
            data = open_tables([first[: len(other)], other], label)
            for candidate in FEWER:
                how = settings(candidate, seed=draw, n_permutations=99, n_projections=64)
                tested = sotdd.test(*apply(candidate, data), **how)
                yield candidate, change, tested.p_value, tested.aspects["distance, order 2"].p_value


def cover_truths(name: str, sizes: Sizes, folder: Path) -> dict[str, Both]:
    """Held-out rows and a copula, by many seeds, plain and controlled."""
    rng = np.random.default_rng(4)
    held, train = split_rows(read_table(name, folder), sizes.rows, 2, rng)
    data = open_tables([held, copy_by_copula(train, rng)], LABELS[name])
    found = {}
    for candidate in FEWER:
        first, second = apply(candidate, data)
        how = settings(candidate, n_projections=sizes.projections)
        found[candidate] = Both.of((first, second), sizes.seeds, **how)
    return found


# ------------------------------------------------------------------ tables


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table in Markdown."""
    yield f"\n**{title}**\n\n| {' | '.join(head)} |\n{'|---' * len(head)}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def show_changes(title: str, names: Iterable[str], sizes: Sizes, folder: Path) -> Iterator[str]:
    """Mean ρ by candidate and change, and the gain in all over the default with twice its standard error."""
    found = [draw for name in names for draw in order_changes(name, sizes, folder)]
    cells = np.array([[[draw[one, change] for change in CHANGES] for one in CANDIDATES] for draw in found])
    gains = cells.mean(axis=2) - cells.mean(axis=2)[:, [list(CANDIDATES).index(DEFAULT)]]  # (draws, candidates)
    errors = 2 * gains.std(axis=0) / np.sqrt(len(gains))
    rows = [
        (one, *(f"{rho:.3f}" for rho in (*cells[:, i].mean(axis=0), cells[:, i].mean())),
         f"{gains[:, i].mean():+.3f} ± {errors[i]:.3f}")
        for i, one in enumerate(CANDIDATES)
    ]  # fmt: skip
    yield from table(title, ("scale", *CHANGES, "mean", "less arcsinh"), rows)


ORDERS = (("train", "copula", "independent"), ("train", "jitter"), ("bootstrap", "copula"))


def show_copies(name: str, sizes: Sizes, folder: Path) -> Iterator[str]:
    """In how many draws each order is right, and how far the copies are on average."""
    draws = list(order_copies(name, sizes, folder))
    rows = []
    for one in CANDIDATES:
        found = [draw[one] for draw in draws]
        right = [sum(list(order) == sorted(order, key=values.__getitem__) for values in found) for order in ORDERS]
        means = [f"{np.mean([values[copy] for values in found]):.3f}" for copy in found[0]]
        rows.append((one, *(f"{count} of {len(found)}" for count in right), *means))
    yield from table(f"Copies of {name}", ("scale", *(" < ".join(order) for order in ORDERS), *draws[0][one]), rows)


def show_power(sizes: Sizes, folder: Path) -> Iterator[str]:
    """The shares of tests that find each change, and in brackets of tests by the distance alone."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for name in COPIED:
        for one, change, *p_values in find_changes(name, sizes, folder):
            found.setdefault((one, change), []).append((p_values[0], p_values[1]))
    changes = ("nothing", *CHANGES)
    rows = []
    for one in FEWER:
        rates = [(np.array(found[one, change]) <= 0.05).mean(axis=0) for change in changes]
        rows.append((one, *(f"{whole:.0%} ({alone:.0%})" for whole, alone in rates)))
    yield from table("Power of the test, in brackets of its distance alone", ("scale", *changes), rows)


def show_coverage(sizes: Sizes, folder: Path) -> Iterator[str]:
    """How often intervals cover and how large errors are, all tables together."""
    measured = [cover_truths(name, sizes, folder) for name in COPIED]
    rows = []
    for one in FEWER:
        cells = [one]
        for estimator in ("plain", "controlled"):
            runs = [getattr(found[one], estimator) for found in measured]
            truths = [found[one].truth for found in measured]
            covered = [run.covers(truth) for run, truth in zip(runs, truths, strict=True)]
            errors = [100 * run.error(truth) for run, truth in zip(runs, truths, strict=True)]
            cells += [share(np.concatenate(covered)), f"{min(errors):.1f} to {max(errors):.1f} %"]
        rows.append(cells)
    head = ("scale", "plain: covers", "plain: error", "controlled: covers", "controlled: error")
    yield from table("Coverage of 95 % intervals", head, rows)


def show_sizes(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Pictures and clothes, men and women: whole, and with one side a smaller sample."""
    pairs: dict[str, Sequence[Any]] = {}
    for name in ("mnist", "fashion_mnist"):
        with np.load(folder / f"{name}.npz") as file:
            pairs[name] = file["X_train"][:5000].reshape(-1, 784), file["y_train"][:5000]
    adult = read_table("adult", folder)
    sides = [adult[adult["sex"] == sex].drop(columns="sex").reset_index(drop=True) for sex in ("Male", "Female")]
    digits, clothes = pairs.values()
    yield from table("Samples of other sizes", ("data", "5,000 and 5,000", "5,000 and 500", "500 and 5,000"), (
        (name, *(f"{value:.3f}" for value in values)) for name, values in (
            ("MNIST, Fashion-MNIST", [_measure_prefixes(digits, clothes, *n, sizes) for n in PREFIXES]),
            ("adult, men and women", [_measure_prefixes(*sides, *n, sizes) for n in PREFIXES]),
        )
    ))  # fmt: skip


PREFIXES = ((5000, 5000), (5000, 500), (500, 5000))


def _measure_prefixes(a: Any, b: Any, n: int, m: int, sizes: Sizes) -> float:  # noqa: ANN401
    """The distance by default between so many first points of each."""
    cut = [
        part[:size] if isinstance(part, pd.DataFrame) else tuple(array[:size] for array in part)
        for part, size in ((a, n), (b, m))
    ]
    more: Mapping[str, Any] = {"label": "income"} if isinstance(a, pd.DataFrame) else {}
    return float(sotdd.distance(*cut, n_projections=sizes.projections, device="cpu", **more).value)


def report(sizes: Sizes, folder: Path, final: bool) -> Iterator[str]:
    """Lines of all tables."""
    groups = {"to choose by": CHOSEN_BY, "reported": REPORTED, **({"kept back": KEPT_BACK} if final else {})}
    for group, names in groups.items():
        yield from show_changes(f"Graded changes, tables {group}", names, sizes, folder)
    yield from show_changes("Graded changes of adult", ["adult"], sizes, folder)
    for name in COPIED:
        yield from show_copies(name, sizes, folder)
    yield from show_power(sizes, folder)
    yield from show_coverage(sizes, folder)
    yield from show_sizes(sizes, folder)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of tables/, mnist.npz and others")
    parser.add_argument("--quick", action="store_true", help="few rows and draws")
    parser.add_argument("--final", action="store_true", help="measure the tables that are kept back, too")
    options = parser.parse_args()
    for line in report(QUICK if options.quick else Sizes(), options.data, options.final):
        print(line, flush=True)


if __name__ == "__main__":
    main()
