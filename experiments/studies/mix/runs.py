"""The runs: recovery of weights, shares of classes, and training on mixtures; each writes a table as it goes."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sotdd
from experiments.studies.mix import design, families

Row = dict[str, Any]


def recover(path: Path, data: Path, quick: bool) -> None:
    """Weights, intervals and verdicts of targets whose shares are known."""
    _write(path, _recover(data, quick))


def _recover(data: Path, quick: bool) -> Iterator[Row]:
    for family in design.FAMILIES[: 2 if quick else None]:
        sources = families.load(family, data)
        cases = [(name, 0.0) for name in design.DESIGNS] + [("30/50/20", share) for share in design.FOREIGN[1:]]
        seeds = 1 if quick else design.SEEDS_OF_MANY if len(sources) > 40 else design.SEEDS
        for size in design.SIZES[: 1 if quick else None]:
            for seed in range(seeds):
                for name, foreign in cases:
                    yield {"family": family, "size": size, "seed": seed, "design": name, "foreign": foreign} | _judge(
                        sources, size, seed, design.DESIGNS[name], foreign
                    )


def _judge(sources: Mapping[str, Any], size: int, seed: int, shares: tuple[float, ...], foreign: float) -> Row:
    rng = np.random.default_rng([seed, size, len(shares), round(100 * foreign)])
    dealt = {name: _deal(rows, size, rng) for name, rows in sources.items()}
    order = sorted(rng.permutation(list(sources)).tolist(), key=lambda name: -min(len(dealt[name][1]), size))
    many = [name for name in order if len(dealt[name][1]) >= 0.5 * size] or order
    held, chosen = order[-1], rng.permutation([name for name in many if name != order[-1]])[: len(shares)].tolist()
    truth = dict(zip(chosen, shares, strict=False))
    room = min([size, *(int(0.9 * len(dealt[name][1]) / share) for name, share in truth.items())])
    n_foreign = round(foreign * room)
    counts = dict(zip(chosen, rng.multinomial(room - n_foreign, np.array(shares) / sum(shares)), strict=True))
    parts = [_take(dealt[name][1], slice(count)) for name, count in counts.items()]
    parts += [_take(dealt[held][1], slice(n_foreign))] if n_foreign else []
    given = {name: part for name, (part, _) in dealt.items() if name != held}
    found = sotdd.mix(_join(parts), given, n_projections=design.PROJECTIONS, seed=seed)
    low, high = found.interval(0.95).T
    true = np.array([truth.get(name, 0.0) for name in found.names])
    weights = found.weights
    if " 1" in "".join(found.names) and all(name[-2:] in (" 0", " 1") for name in found.names):  # twins are summed
        kinds = [name[:-2] for name in found.names]
        weights, true_sums = (np.array([np.sum(v[np.array(kinds) == k]) for k in set(kinds)]) for v in (weights, true))
    else:
        true_sums = true
    return {
        "sources": len(given),
        "rows": room,
        "error": 50 * float(np.abs(weights - true_sums).sum()),
        "held": float(np.mean((low - 1e-9 <= true) & (true <= high + 1e-9))),
        "width": 100 * float(np.mean(high - low)),
        "p_value": found.left_over.p_value,
        "left_over": found.left_over.share,
        "grouped": sum(len(group.names) for group in found.groups),
    }


def _deal(rows: Any, size: int, rng: np.random.Generator) -> tuple[Any, Any]:  # arrays or frames
    """Rows of a source, and others for targets."""
    order, n = rng.permutation(len(rows)), min(size, len(rows) // 2)
    return _take(rows, order[:n]), _take(rows, order[n:])


def _take(rows: Any, index: Any) -> Any:  # as above
    return rows.iloc[index] if hasattr(rows, "iloc") else rows[index]


def _join(parts: list[Any]) -> Any:  # as above
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts)
    return np.concatenate(parts)


# ------------------------------------------------------------------ classes as sources


def shift(path: Path, data: Path, quick: bool) -> None:
    """Shares of classes in a batch, beside a logistic regression with EM; and whether the points changed."""
    _write(path, _shift(data, quick))


def _shift(data: Path, quick: bool) -> Iterator[Row]:
    from sklearn.linear_model import LogisticRegression

    for family in design.SHIFT[: 1 if quick else None]:
        sources = families.load(family, data)
        texts = family == "newsgroups"
        if texts:  # the other texts are encoded with these
            sources, others = _encode_together(data)
        for seed in range(1 if quick else design.SHIFT_SEEDS):
            rng = np.random.default_rng([seed, 7])
            orders = {name: rng.permutation(len(rows)) for name, rows in sources.items()}
            each = design.SHIFT_ROWS // len(sources)
            x = np.concatenate([rows[orders[name][:each]] for name, rows in sources.items()])
            y = np.repeat(np.arange(len(sources)), [min(each, len(rows)) for rows in sources.values()])
            shares = rng.dirichlet(np.ones(len(sources)))
            counts = rng.multinomial(design.SHIFT_BATCH, shares)
            pools = [rows[orders[name][each:]] for name, rows in sources.items()]
            batch = np.concatenate([pool[:count] for pool, count in zip(pools, counts, strict=True)])
            true = np.array([min(len(pool), count) for pool, count in zip(pools, counts, strict=True)])
            true = true / true.sum()
            model = LogisticRegression(max_iter=300).fit(x, y)
            by_em = _correct(model.predict_proba(batch), np.bincount(y) / len(y))
            changed = 0.9 * batch
            if texts:
                changed = np.concatenate([rng.permutation(batch)[: int(0.9 * len(batch))], others[: len(batch) // 10]])
            for case, points in (("shares", batch), ("points", changed)):
                found = sotdd.mix(points, (x, y), n_projections=design.PROJECTIONS, seed=seed)
                yield {
                    "family": family,
                    "seed": seed,
                    "case": case,
                    "error": 50 * float(np.abs(found.weights - true).sum()),
                    "error_em": 50 * float(np.abs(by_em - true).sum()),
                    "p_value": found.left_over.p_value,
                }


def _encode_together(data: Path) -> tuple[dict[str, Any], NDArray[np.float32]]:
    texts, labels = families.read_texts("newsgroups20", data)
    others = families.read_texts("ag_news", data)[0][:500]
    vectors, names = families.encode([*texts, *others]), np.array(labels)
    return {name: vectors[: len(texts)][names == name] for name in np.unique(names)}, vectors[len(texts) :]


def _correct(found: NDArray[np.float64], prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of classes by the EM of Saerens, Latinne and Decaestecker (2002)."""
    shares = prior
    for _ in range(1000):
        weighted = found * (shares / prior)
        before, shares = shares, (weighted / weighted.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(shares - before).max() < 1e-9:
            break
    return shares


# ------------------------------------------------------------------ training


def train(path: Path, data: Path, quick: bool) -> None:
    """Accuracy on a target of models trained on as many rows of the sources, drawn in four ways."""
    _write(path, _train(data, quick))


def _train(data: Path, quick: bool) -> Iterator[Row]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    sets = families.polar(data)
    names = list(sets)
    vectors = families.encode([text for texts, _ in sets.values() for text in texts])
    edges = np.cumsum([0, *(len(texts) for texts, _ in sets.values())])
    for target in names[: 1 if quick else None]:
        others = [name for name in names if name != target]
        for seed in range(1 if quick else design.TRAINING_SEEDS):
            rng = np.random.default_rng([seed, names.index(target)])
            orders = {name: rng.permutation(len(sets[name][0])) for name in names}
            x = {name: vectors[edges[i] : edges[i + 1]][orders[name]] for i, name in enumerate(names)}
            unlabelled = x[target][-design.TARGET_ROWS :]
            given = {name: x[name][: design.SOURCE_ROWS] for name in others}
            found = sotdd.mix(unlabelled, given, n_projections=design.PROJECTIONS, seed=seed)
            nearest = sotdd.rank(unlabelled, given, n_projections=design.PROJECTIONS, seed=seed).nearest
            sizes = np.array([len(x[name]) for name in others])
            ways = {
                "mixture": found.weights,
                "uniform": np.full(len(others), 1 / len(others)),
                "by size": sizes / sizes.sum(),
                "nearest": np.array([float(name == nearest) for name in others]),
            }
            tested = orders[target][: min(design.TESTED, len(orders[target]) - design.TARGET_ROWS)]
            row: Row = {"target": target, "seed": seed, "nearest_is": nearest}
            for way, shares in ways.items():
                counts = rng.multinomial(design.TRAINED, shares / shares.sum())
                rows = [(name, place) for name, n in zip(others, counts, strict=True) for place in orders[name][:n]]
                counted = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
                seen = counted.fit_transform([sets[name][0][place] for name, place in rows])
                model = LogisticRegression(C=10, max_iter=300).fit(seen, [sets[name][1][place] for name, place in rows])
                judged = model.predict(counted.transform([sets[target][0][place] for place in tested]))
                row[way] = 100 * float(np.mean([np.mean(judged[sets[target][1][tested] == k] == k) for k in (0, 1)]))
            yield row


def _write(path: Path, rows: Iterator[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table: csv.DictWriter[str] | None = None
        for row in rows:
            if table is None:
                table = csv.DictWriter(file, list(row), lineterminator="\n")
                table.writeheader()
            table.writerow({key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()})
            file.flush()
            print(row, flush=True)
