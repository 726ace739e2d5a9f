"""From what was trained and measured to the tables: nothing is measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from experiments.lib.store import Row, read, write
from experiments.studies.choosing import statistics
from experiments.studies.choosing.design import BASES, DOMAINS, SETTINGS, SHORTLISTS, VARIANTS, VARIED
from experiments.studies.choosing.distances import DEFAULT, EXCESS
from experiments.studies.choosing.statistics import Bools, Estimate, Floats, Way

PRIMARY = ("frozen10", "tuned10")
COMBINED = "z(−log d) + 3 · separation"
WEIGHT = 3.0  # of the separation, tuned on the five bases
NETWORK = ("LogME", "LEEP", "H-score")
RULES = {"most points": "points", "most classes": "classes", "separation": "separation"}
ALL_LOGME, KEEP_ALL = "LogME on all sources", "transfer all, keep the best"
_SHORT, _LITTLE = 0.15, 0.1  # how far below LogME on all is still near it, and what is too small a gain


def shortlisted(count: int) -> str:
    """The name of a shortlist by distance, ordered by LogME."""
    return f"{count} nearest, then LogME"


def at_random(count: int) -> str:
    """The name of a shortlist at random, ordered by LogME."""
    return f"{count} at random, then LogME"


@dataclass(frozen=True, eq=False)
class Measured:
    """All that was measured of one domain."""

    domain: str
    training: list[dict[str, str]]
    distances: list[dict[str, str]]
    sources: list[dict[str, str]]

    @cached_property
    def bases(self) -> list[str]:
        """Those that were measured, in the design's order."""
        there = {row["target"] for row in self.training}
        return [name for name in BASES[self.domain] if name in there]

    @cached_property
    def seeds(self) -> list[str]:
        """Those with all targets."""
        done: dict[str, set[str]] = {}
        for row in self.training:
            done.setdefault(row["seed"], set()).add(row["target"])
        return [seed for seed, targets in done.items() if targets >= set(self.bases)]

    def trained(self, column: str, sources: list[str] | None = None) -> Floats:
        """A column of the training: (seeds, sources, targets)."""
        values = {(row["seed"], row["source"], row["target"]): float(row[column]) for row in self.training}
        names = sources or self.bases
        return np.array([[[values[seed, s, t] for t in self.bases] for s in names] for seed in self.seeds])

    def distance(self, name: str, sources: list[str] | None = None) -> Floats:
        """A distance: (1, sources, targets)."""
        column, name = ("excess", DEFAULT) if name == EXCESS else ("value", name)
        found = {(r["source"], r["target"]): float(r[column]) for r in self.distances if r["measure"] == name}
        return np.array([[[found[s, t] for t in self.bases] for s in sources or self.bases]])

    def of_sources(self, column: str, sources: list[str] | None = None) -> Floats:
        """What is known of every source."""
        found = {row["source"]: float(row[column]) for row in self.sources}
        return np.array([found[name] for name in sources or self.bases])

    def scores(self, sources: list[str] | None = None) -> dict[str, Floats]:
        """Of every method, higher for sources that it takes for better."""
        measures = dict.fromkeys(row["measure"] for row in self.distances)
        found = {name: -self.distance(name, sources) for name in (DEFAULT, EXCESS, *tuple(measures)[1:])}
        found |= {name: self.trained(name, sources) for name in NETWORK}
        for name, column in RULES.items():
            known = self.of_sources(column, sources)
            found[name] = np.repeat(known[None, :, None], len(self.bases), axis=2)
        return found


def ways(measured: Measured, setting: str) -> dict[str, Way]:
    """Every way of choosing, as a function of the pairs that count."""
    scores = measured.scores()
    near, logme = scores[DEFAULT], scores["LogME"]
    judged = statistics.other_seeds(measured.trained(setting))
    found: dict[str, Way] = {name: partial(statistics.pick, score) for name, score in scores.items()}
    found[COMBINED] = lambda allowed: statistics.pick(combine(measured, allowed), allowed)
    found[ALL_LOGME] = found["LogME"]

    def of_nearest(score: Floats, count: int) -> Way:
        return lambda allowed: statistics.pick(score, statistics.nearest(near[0], count, allowed))

    for count in SHORTLISTS:
        found[shortlisted(count)] = of_nearest(logme, count)
        found[at_random(count)] = partial(statistics.pick_of_random, logme, count)
        found[f"transfer the {count} nearest, keep the best"] = of_nearest(judged, count)
        found[f"transfer {count} at random, keep the best"] = partial(statistics.pick_of_random, judged, count)
    found[KEEP_ALL] = partial(statistics.pick, judged)
    return found


def combine(measured: Measured, allowed: Bools) -> Floats:
    """The distance and the separation of the source's classes."""
    separation = measured.of_sources("separation")
    return statistics.with_separation(measured.distance(DEFAULT), separation, WEIGHT, allowed)


def load(folder: Path) -> dict[str, Measured]:
    """The domains that were measured."""
    parts = {
        domain: [read(folder / f"{domain}{part}.csv") for part in ("", "_distances", "_sources")] for domain in DOMAINS
    }
    return {domain: Measured(domain, *found) for domain, found in parts.items() if all(found)}


def run(folder: Path, permutations: int) -> None:
    """Write the tables."""
    domains = load(folder)
    summary = [row for measured in domains.values() for row in _summarise(measured, permutations)]
    write(folder / "summary.csv", summary)
    write(folder / "questions.csv", list(_questions(domains, summary)))
    write(folder / "variants.csv", [row for measured in domains.values() for row in _variants(measured)])
    write(folder / "sizes.csv", [_sizes(measured) for measured in domains.values()])


def _summarise(measured: Measured, permutations: int) -> Iterator[Row]:
    """One row per setting, with and without sources of the target's own base, and way of choosing."""
    count = len(measured.bases)
    scores = measured.scores()
    for setting in SETTINGS:
        accuracy = measured.trained(setting).mean(axis=0)
        chosen = ways(measured, setting)
        for own, allowed in (("without", ~np.eye(count, dtype=bool)), ("with", np.ones((count, count), dtype=bool))):
            for name, way in chosen.items():
                row = {"domain": measured.domain, "setting": setting, "own_base": own, "method": name}
                row |= _columns("saved", statistics.jackknife(partial(_saved, way, accuracy), allowed))
                row["regret"] = 100 * _regret(way(allowed), accuracy, allowed)
                row["regret_random"] = 100 * _regret(allowed / allowed.sum(axis=0), accuracy, allowed)
                score = combine(measured, allowed) if name == COMBINED else scores.get(name)
                if score is not None:
                    row |= _columns(
                        "rho", statistics.jackknife(partial(statistics.correlate, score, accuracy), allowed)
                    )
                if own == "without" and setting in PRIMARY and (name in scores or name == COMBINED):
                    taken = way(allowed)

                    def moved(order, taken=taken, accuracy=accuracy, allowed=allowed):  # noqa: ANN001, ANN202
                        return statistics.save(taken[order][:, order], accuracy, allowed)

                    row["p"] = statistics.permute(moved, count, permutations)
                yield row


def _saved(way: Way, accuracy: Floats, allowed: Bools) -> float:
    return statistics.save(way(allowed), accuracy, allowed)


def _regret(taken: Floats, accuracy: Floats, allowed: Bools) -> float:
    best = np.where(allowed, accuracy, -np.inf).max(axis=0)
    return float(np.mean(best - np.sum(taken * accuracy, axis=0)))


def _columns(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


# --------------------------------------------------------------------------- the questions of the design


def _questions(domains: Mapping[str, Measured], summary: list[Row]) -> Iterator[Row]:
    """The three primary questions in every domain and primary setting, with the verdicts that the design asks for."""
    cells = [(domain, setting) for setting in PRIMARY for domain in domains]
    rows = {(row["domain"], row["setting"], row["method"]): row for row in summary if row["own_base"] == "without"}
    sure = statistics.holm({cell: float(str(rows[*cell, DEFAULT]["p"])) for cell in cells})
    for cell in cells:
        row = rows[*cell, DEFAULT]
        better = sure[cell] < 0.05 and float(str(row["saved_low"])) > 0
        yield {
            "question": 1, "domain": cell[0], "setting": cell[1], "value": row["saved"], "low": row["saved_low"],
            "high": row["saved_high"], "p": sure[cell], "verdict": "yes" if better else "not shown",
        }  # fmt: skip
    for cell in cells:
        gain = _difference(domains[cell[0]], cell[1], shortlisted(5), at_random(5))
        behind = float(str(rows[*cell, ALL_LOGME]["saved"])) - float(str(rows[*cell, shortlisted(5)]["saved"]))
        verdict = (
            "confirmed" if gain.low > 0 and behind <= _SHORT else "refuted" if gain.high < _LITTLE else "undecided"
        )
        yield {
            "question": 2,
            "domain": cell[0],
            "setting": cell[1],
            **_plain(gain),
            "behind": behind,
            "verdict": verdict,
        }
    for cell in cells:
        gain = _difference(domains[cell[0]], cell[1], COMBINED, DEFAULT)
        verdict = "better" if gain.low > 0 else "worse" if gain.high < 0 else "no difference shown"
        yield {"question": 3, "domain": cell[0], "setting": cell[1], **_plain(gain), "verdict": verdict}


def _difference(measured: Measured, setting: str, first: str, second: str) -> Estimate:
    accuracy, every = measured.trained(setting).mean(axis=0), ways(measured, setting)

    def less(allowed: Bools) -> float:
        return _saved(every[first], accuracy, allowed) - _saved(every[second], accuracy, allowed)

    return statistics.jackknife(less, ~np.eye(len(measured.bases), dtype=bool))


def _plain(found: Estimate) -> dict[str, float]:
    return {"value": found.value, "low": found.low, "high": found.high}


def _variants(measured: Measured) -> Iterator[Row]:
    """How often a method ranks the plain source above its variant, and what the plain one gains, on other bases."""
    varied = [base for base in VARIED[measured.domain] if base in measured.bases]
    away = np.array([[base != target for target in measured.bases] for base in varied])
    for variant in VARIANTS:
        names = [f"{base}, {variant}" for base in varied]
        accuracy = measured.trained("frozen10", varied) - measured.trained("frozen10", names)
        plain, other = measured.scores(varied), measured.scores(names)
        for method in plain:
            first = (plain[method] > other[method]) + 0.5 * (plain[method] == other[method])
            yield {
                "domain": measured.domain, "variant": variant, "method": method,
                "plain_first": float(first.mean(axis=0)[away].mean()),
                "gain": 100 * float(accuracy.mean(axis=0)[away].mean()),
            }  # fmt: skip


def _sizes(measured: Measured) -> Row:
    """How much was trained, and the accuracies reached with 10 examples a class."""
    found: dict[str, object] = {"domain": measured.domain, "bases": len(measured.bases), "seeds": len(measured.seeds)}
    found["transfers"] = len(measured.training) * len(SETTINGS)
    away = ~np.eye(len(measured.bases), dtype=bool)
    for setting in PRIMARY:
        accuracy = measured.trained(setting).mean(axis=0)
        found[f"{setting}_best"] = 100 * float(np.where(away, accuracy, 0).max(axis=0).mean())
        found[f"{setting}_mean"] = 100 * float(accuracy[away].mean())
        found[f"{setting}_own"] = 100 * float(accuracy[~away].mean())
        found[f"{setting}_untrained"] = 100 * float(measured.trained(setting, ["untrained"]).mean())
    return found
