"""From the CSV files of training and distances to the tables and the picture: nothing is measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from experiments.foretell import picture, statistics
from experiments.foretell.design import FAMILIES
from experiments.foretell.distances import DEFAULT
from experiments.foretell.statistics import Floats, Table
from experiments.foretell.transfer import UNTRAINED
from experiments.store import Row, read, write

HEADLINE = "tuned10"
ON_OTHERS = "its mean on other targets"
_NETWORK = ("LEEP", "LogME", "H-score", "nearest mean")
_RULES = {"most classes": "classes", "most points": "points", "separation of its classes": "separation"}
# What a directed score adds up, in the order of its weights.
DIRECTED = {
    "distance and offer": (DEFAULT, *_RULES),
    "distance, label entropy and offer": (DEFAULT, "label entropy, nearest", *_RULES),
}


@dataclass(frozen=True, eq=False)
class Measured:
    """All that was measured of one family; seeds that are not complete are left out."""

    family: str
    training: list[dict[str, str]]
    distances: list[dict[str, str]]
    sets: list[dict[str, str]]

    @cached_property
    def sources(self) -> list[str]:
        """Their names."""
        return [row["name"] for row in self.sets if row["role"] == "source"]

    @cached_property
    def targets(self) -> list[str]:
        """Their names."""
        return [row["name"] for row in self.sets if row["role"] == "target"]

    @cached_property
    def seeds(self) -> list[str]:
        """Those with all targets."""
        every = dict.fromkeys(row["seed"] for row in self.training)
        done = {seed: {row["target"] for row in self.training if row["seed"] == seed} for seed in every}
        return [seed for seed in every if done[seed] >= set(self.targets)]

    @property
    def settings(self) -> list[str]:
        """What was done to a target, the headline first where it is there."""
        found = [name for name in self.training[0] if name.startswith(("tuned", "frozen"))]
        return sorted(found, key=lambda name: (name != HEADLINE, name.startswith("frozen"), name))

    def trained(self, column: str) -> Floats:
        """A column of the training: (seeds, sources and the untrained network, targets)."""
        values = {(row["seed"], row["source"], row["target"]): float(row[column]) for row in self.training}
        names = [*self.sources, UNTRAINED]
        return np.array([[[values[seed, s, t] for t in self.targets] for s in names] for seed in self.seeds])

    def table(self, setting: str) -> Table:
        """Accuracies, and what is known of the sources."""
        bases = {
            role: [set(r["bases"].split("+")) for r in self.sets if r["role"] == role] for role in ("source", "target")
        }
        related = np.array([[bool(a & b) for b in bases["target"]] for a in bases["source"]])
        known = np.column_stack([self._of_sources("classes"), self._of_sources("points")])
        return Table(self.trained(setting)[:, :-1], related, known)

    def _of_sources(self, column: str) -> Floats:
        return np.array([float(row[column]) for row in self.sets if row["role"] == "source"])

    def scores(self, setting: str) -> dict[str, Floats]:
        """Of every method (sources, targets), higher for what it holds for better."""
        shape = (len(self.sources), len(self.targets))
        found = {
            name: -np.array([float(row[name]) for row in self.distances]).reshape(shape)
            for name in self.distances[0]
            if name not in ("source", "target")
        }
        found |= {name: self.trained(name)[:, :-1].mean(axis=0) for name in _NETWORK}
        found |= {name: np.repeat(self._of_sources(column)[:, None], shape[1], 1) for name, column in _RULES.items()}
        return found | {ON_OTHERS: self.table(setting).on_others()}

    def label_pairs(self) -> list[tuple[int, int]]:
        """Places of sources of the same points, one with its labels, one with all of them shuffled."""
        wrong = {name: place for place, name in enumerate(self.sources) if name.endswith(", 100% wrong")}
        return [(self.sources.index(name.removesuffix(", 100% wrong")), place) for name, place in wrong.items()]


def load(results: Path) -> dict[str, Measured]:
    """The families that were measured."""
    found = {}
    for family in FAMILIES:
        parts = [read(results / f"foretell_{family}{part}.csv") for part in ("", "_distances", "_sets")]
        if all(parts):
            found[family] = Measured(family, *parts)
    return found


def run(
    results: Path, resamples: int = statistics.RESAMPLES, *, draw: bool = True, only: tuple[str, str] | None = None
) -> None:
    """Write the tables and draw the picture; only one family and setting, if asked: minutes become seconds."""
    families = load(results)
    summary: list[Row] = []
    differences: list[Row] = []
    labels: list[Row] = []
    weights = {family: _weights(measured) for family, measured in families.items()}
    for family, measured in families.items():
        for setting in measured.settings:
            if only not in (None, (family, setting)):
                continue
            table = measured.table(setting)
            scores = measured.scores(setting) | dict(_directed(measured, setting, weights))
            names, stacked = list(scores), np.stack(list(scores.values()))
            judgement = statistics.judged(
                stacked, table, resamples=resamples, with_partial=setting == measured.settings[0]
            )
            also = {"family": family, "setting": setting}
            summary += statistics.as_rows(names, judgement, **also)
            differences += _differences(names, judgement, also)
            if setting == measured.settings[0]:
                labels += _labels(measured, names, stacked, table)
    write(results / "foretell_summary.csv", summary)
    write(results / "foretell_differences.csv", differences)
    write(results / "foretell_labels.csv", labels)
    write(results / "foretell_weights.csv", _weight_rows(weights))
    write(results / "foretell_sizes.csv", [_sizes(measured) for measured in families.values()])
    if draw:
        picture.draw(results)


def _weights(measured: Measured) -> dict[str, Floats]:
    """Of the directed scores, fitted to this family's headline."""
    setting = measured.settings[0]
    scores, accuracy = measured.scores(setting), measured.table(setting).mean
    return {
        name: statistics.fitted(np.stack([scores[part] for part in parts]), accuracy)
        for name, parts in DIRECTED.items()
    }


def _directed(
    measured: Measured, setting: str, weights: Mapping[str, Mapping[str, Floats]]
) -> Iterator[tuple[str, Floats]]:
    """Directed scores with the weights of the other families, never with a family's own."""
    scores = measured.scores(setting)
    for other in weights:
        if other != measured.family:
            for name, parts in DIRECTED.items():
                features = np.stack([scores[part] for part in parts])
                yield f"{name}, tuned on {other}", statistics.combined(features, weights[other][name])


def _weight_rows(weights: Mapping[str, Mapping[str, Floats]]) -> list[Row]:
    return [
        {"tuned_on": family, "score": name, "part": part, "weight": float(weight)}
        for family, found in weights.items()
        for name, values in found.items()
        for part, weight in zip(DIRECTED[name], values, strict=True)
    ]


def _differences(names: list[str], judgement: statistics.Judged, also: Row) -> Iterator[Row]:
    """Of every method against the default."""
    default = names.index(DEFAULT)
    for place, name in enumerate(names):
        if place != default:
            value, low, high = statistics.difference(judgement, place, default)
            yield {**also, "method": name, "difference": value, "low": low, "high": high}


def _labels(measured: Measured, names: list[str], scores: Floats, table: Table) -> Iterator[Row]:
    """What wrong labels cost, and which methods see them; beside it for sources of a base that the target shares."""
    pairs = measured.label_pairs()
    if not pairs:
        return
    first = statistics.right_labels_first(scores, pairs)
    near = np.array([table.related[right] for right, _ in pairs])
    gain = np.array([table.mean[right] - table.mean[wrong] for right, wrong in pairs])
    ahead = np.stack([np.sign(scores[:, right] - scores[:, wrong]) for right, wrong in pairs], axis=1)
    for place, name in enumerate(names):
        yield {
            "family": measured.family,
            "method": name,
            "right_first": first[place],
            "right_first_same_base": float((ahead[place][near].mean() + 1) / 2),
            "gain": 100 * float(gain.mean()),
            "gain_same_base": 100 * float(gain[near].mean()),
        }


def _sizes(measured: Measured) -> Row:
    setting = measured.settings[0]
    accuracy = measured.trained(setting).mean(axis=0)
    return {
        "family": measured.family,
        "sources": len(measured.sources),
        "targets": len(measured.targets),
        "seeds": len(measured.seeds),
        "transfers": len(measured.sources) * len(measured.targets) * len(measured.seeds) * len(measured.settings),
        "best": 100 * float(accuracy[:-1].max(axis=0).mean()),
        "mean": 100 * float(accuracy[:-1].mean()),
        "untrained": 100 * float(accuracy[-1].mean()),
    }
