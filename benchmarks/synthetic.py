"""Five synthetic tables judged by sotdd and by SDMetrics: python -m benchmarks.synthetic [--seeds N].

The real table is scikit-learn's of breast cancer, in thirds: training rows, a holdout, and fresh rows, which are what a
perfect generator makes. The others are a Gaussian copula of the training rows, their columns shuffled independently,
training rows with a little noise, and training rows as they are. `pip install sdmetrics` for its columns, which are
left out without it.
"""

from __future__ import annotations

import argparse
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri
from sklearn.datasets import load_breast_cancer

import sotdd

# How much noise "jitter" has, in standard deviations of its column.
_NOISE = 0.05

Tables = dict[str, pd.DataFrame]


def draw_copula(train: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """As many rows with the columns of the training rows and the correlations of their normal scores."""
    ranks = (train.rank(method="first") - 0.5) / len(train)
    normal = rng.multivariate_normal(np.zeros(train.shape[1]), np.corrcoef(ndtri(ranks).T), size=len(train))
    made = {name: np.quantile(train[name], ndtr(scores)) for name, scores in zip(train, normal.T, strict=True)}
    return pd.DataFrame(made)


def make_tables(seed: int) -> tuple[pd.DataFrame, pd.DataFrame, Tables]:
    """Training rows, a holdout, and the five tables."""
    rng, whole = np.random.default_rng(seed), load_breast_cancer(as_frame=True).frame.drop(columns="target")
    train, holdout, fresh = (whole.iloc[rows] for rows in np.array_split(rng.permutation(len(whole)), 3))
    return train, holdout, {
        "fresh rows": fresh,
        "copula": draw_copula(train, rng),
        "independent": pd.DataFrame({name: rng.permutation(train[name]) for name in train}),
        "jitter": train + _NOISE * train.std().to_numpy() * rng.normal(size=train.shape),
        "memorised": train.copy(),
    }  # fmt: skip


def judge(train: pd.DataFrame, holdout: pd.DataFrame, tables: Tables) -> pd.DataFrame:
    """What sotdd says of each table."""
    ranking = {line.name: line.distance for line in sotdd.rank(holdout, tables)}
    rows = {}
    for name, table in tables.items():
        test, found = sotdd.test(table, holdout), sotdd.copies(table, train, holdout)
        rows[name] = {
            "distance": ranking[name].value,
            "differs": float(test.rejects(0.05)),
            "nearer to train": found.share,
            "copied": found.copied,
            "copies found": float(found.verdict == "copied"),
        }
    return pd.DataFrame(rows).T


def judge_by_sdmetrics(train: pd.DataFrame, holdout: pd.DataFrame, tables: Tables) -> pd.DataFrame:
    """What SDMetrics says of each table: 1 is best."""
    from sdmetrics.reports.single_table import QualityReport
    from sdmetrics.single_table import DCRBaselineProtection, DCROverfittingProtection, NewRowSynthesis

    metadata: dict[str, Any] = {"columns": {name: {"sdtype": "numerical"} for name in train}}
    rows = {}
    for name, table in tables.items():
        report, both = QualityReport(), (train.reset_index(drop=True), table.reset_index(drop=True))
        report.generate(*both, metadata, verbose=False)
        rows[name] = {
            "QualityReport": report.get_score(),
            "NewRowSynthesis": NewRowSynthesis.compute(*both, metadata),
            "DCRBaselineProtection": DCRBaselineProtection.compute(*both, metadata, None),
            "DCROverfittingProtection": DCROverfittingProtection.compute(
                *both, holdout.reset_index(drop=True), metadata, None
            ),
        }
    return pd.DataFrame(rows).T


def main() -> None:
    """Print both tables, means over several splits of the real table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="how often the real table is split")
    drawn = [make_tables(seed) for seed in range(parser.parse_args().seeds)]
    judges = {f"sotdd {sotdd.__version__}": judge}
    if find_spec("sdmetrics"):
        judges[f"SDMetrics {version('sdmetrics')}"] = judge_by_sdmetrics
    for title, one in judges.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = sum(one(*tables) for tables in drawn) / len(drawn)
        print(f"**{title}, mean of {len(drawn)} splits**\n\n| table | {' | '.join(found.columns)} |")
        print("|---" * (1 + found.shape[1]) + "|")
        for name, row in found.iterrows():
            print(f"| {name} | {' | '.join(f'{value:.2f}' for value in row)} |")
        print(flush=True)


if __name__ == "__main__":
    main()
