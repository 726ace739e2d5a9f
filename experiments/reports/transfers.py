"""The sections on what distances foretell: *NIST, texts, Split Tiny-ImageNet, augmentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from experiments import augmentation, nist_transfer, split_tiny_imagenet, text_transfer
from experiments.correlate import between_targets, mean_by, spearman
from experiments.methods import EXACT, METHODS, SOTDD
from experiments.page import Line, Section, claimed, coefficient, compared, one, remarks, seeds
from experiments.store import read
from experiments.tiny_training import BY_FAMILY, RANDOM, stem
from experiments.verdicts import on_its_own, said

_SPACES = ("pixels", "embedding")
_VARIANTS = (
    nist_transfer.AUTHORS,
    nist_transfer.AUTHORS_SEVEN,
    nist_transfer.SEVEN,
    nist_transfer.CONVOLUTION,
    nist_transfer.UNCUT,
)
_TASKS = {RANDOM: "random tasks", BY_FAMILY: "families"}
_AGAINST = {"trained": "a network trained on the target", "untrained": "a last layer on an untrained network"}
_ON = {"accuracy": "pictures not seen", "train_accuracy": "the pictures trained on"}


def nist(results: Path, size: str = "full") -> Section:
    """Transfer among the *NIST sets."""
    rows = read(results / "nist_correlations.csv")
    training = read(results / "nist_training.csv")
    few = next(row["points"] for row in rows if row["points"] != "all")
    lines = [*_over_all_pairs(rows, few), *_other_gaps(rows), *_choosing(rows, few)]
    for points, what in (("all", "all"), (few, f"{int(few):,}")):
        share = between_targets(nist_transfer.gaps(results, "accuracy", points))
        title = f"share of the gap's variance that is between targets, {what} target points"
        lines.append(Line(title, "–", f"{100 * share:.0f} %"))
    alone = mean_by([row for row in training if row["points"] == "all"], ("source", "target"), "accuracy")
    best = ", ".join(f"{a} {100 * value:.1f} %" for (a, b), value in alone.items() if a == b)
    used = nist_transfer.SIZES[size]
    measured = seeds(read(results / "nist_distances.csv"), "space", "method", "a", "b")
    embedded = f" and {used.embedded:,} for the embedding by efficientnet-lite0" if used.embedded else ""
    sizes = (
        f"{rows[0]['pairs']} ordered pairs, {seeds(training, 'points', 'source', 'target')} seeds of training and "
        f"{measured} of distances, averaged; whole sets for s-OTDD, but "
        f"{used.cut:,} points of each for convolutions with the cut, {used.slow:,} for the other methods{embedded}; "
        f"{used.n_projections:,} projections. "
        f"Accuracy alone: {best}."
    )
    claims = [*_claims(rows)]
    return Section("*NIST transfer", "nist_transfer", sizes, claims, lines, remarks("nist_transfer"), "nist.png")


def _claims(rows: Sequence[Mapping[str, str]]) -> Iterator[Line]:
    # As the authors' files have it first.
    for method in (nist_transfer.AUTHORS_SEVEN, nist_transfer.AUTHORS, SOTDD, EXACT):
        row = one(rows, points="all", space="pixels", method=method, metric="accuracy")
        if row is not None:
            quantity = method if method in METHODS else SOTDD
            yield claimed(f"ρ of {method} with the gap", "nist_transfer", quantity, coefficient(row, "rho"))


def _over_all_pairs(rows: Sequence[Mapping[str, str]], few: str) -> Iterator[Line]:
    for space in _SPACES:
        for method in (*METHODS, *_VARIANTS):
            whole = one(rows, points="all", space=space, method=method, metric="accuracy")
            scarce = one(rows, points=few, space=space, method=method, metric="accuracy")
            if whole is not None and scarce is not None:
                paper = method if method in METHODS else SOTDD
                line = compared(f"{method}, {space}: ρ with the gap", "nist_transfer", paper, coefficient(whole, "rho"))
                here = f"{line.here}; r {coefficient(whole, 'r')}; ρ with {int(few):,} target points "
                yield Line(line.what, line.paper, here + str(coefficient(scarce, "rho")), line.verdict)


def _other_gaps(rows: Sequence[Mapping[str, str]]) -> Iterator[Line]:
    for metric in nist_transfer.GAPS[1:]:
        cells = []
        for method in (SOTDD, nist_transfer.AUTHORS, EXACT):
            row = one(rows, points="all", space="pixels", method=method, metric=metric)
            cells += [] if row is None else [f"{method} {float(row['rho']):.2f}"]
        yield Line(f"pixels: ρ with the gap in {metric}", "–", "; ".join(cells))


def _choosing(rows: Sequence[Mapping[str, str]], few: str) -> Iterator[Line]:
    for points, what in (("all", "all target points"), (few, f"{int(few):,} target points")):
        for space in _SPACES:
            for method in (*METHODS, nist_transfer.AUTHORS, nist_transfer.AUTHORS_SEVEN):
                row = one(rows, points=points, space=space, method=method, metric="accuracy")
                if row is not None:
                    yield Line(f"choosing a source, {what}: {method}, {space}", "–", _choice(row))


def _choice(row: Mapping[str, str]) -> str:
    share, regret, blind = (100 * float(row[name]) for name in ("nearest_is_best", "regret", "regret_blind"))
    return (
        f"ρ within a target {float(row['rho_within']):.2f}; the nearest is the best for {share:.0f} % of targets; "
        f"regret {regret:.2f} points, at random {blind:.2f}"
    )


def texts(results: Path, size: str = "full") -> Section:
    """Transfer among texts."""
    rows = read(results / "text_correlations.csv")
    lines = []
    for row in rows:
        method = row["method"]
        lines.append(compared(f"{method}: r with the gap", "text_transfer", method, coefficient(row, "r")))
        rho = f"{coefficient(row, 'rho')}"
        lines.append(Line(f"{method}: ρ with the gap", "–", rho))
        harder = f"ρ {float(row['rho_without_easiest']):.2f}, r {float(row['r_without_easiest']):.2f}"
        lines.append(Line(f"{method}: without {row['easiest']} as a target", "–", harder))
        lines.append(Line(f"choosing a source: {method}", "–", _choice(row)))
        if row.get("r_authors"):
            there = f"r {coefficient(row, 'r_authors')}, ρ {coefficient(row, 'rho_authors')}"
            lines.append(Line(f"{method}: with the gap to as few examples without a source", "–", there))
    seconds = {row["method"]: float(row["seconds"]) for row in rows}
    ratio = f"{seconds[EXACT] / seconds[SOTDD]:.0f} ({seconds[EXACT]:.0f} s and {seconds[SOTDD]:.0f} s)"
    lines.append(Line("time of OTDD (exact) / s-OTDD, all pairs", said("text_transfer", "seconds"), ratio))
    share = between_targets(text_transfer.gaps(results))
    lines.append(Line("share of the gap's variance that is between targets", "–", f"{100 * share:.0f} %"))
    used = text_transfer.SIZES[size]
    training = read(results / "text_training.csv")
    reached = mean_by(training, ("source", "target"), "accuracy")
    repeated = seeds([row for row in training if row["source"] != "none"], "source", "target")
    own = ", ".join(f"{a} {100 * value:.0f} %" for (a, b), value in reached.items() if a == b)
    sizes = (
        f"{rows[0]['pairs']} ordered pairs, {repeated} seeds; up to {used.source:,} examples of a source, "
        f"{used.per_class} per class of a target, {used.test:,} to test on, {used.length} tokens; for s-OTDD up to "
        f"{used.points:,} points and {used.n_projections:,} projections, for OTDD (exact) {used.slow_points:,} points."
        f" Tuned on the target's own train part: {own}."
    )
    claims = [
        claimed(f"r of {row['method']} with the gap{to}", "text_transfer", row["method"], coefficient(row, name))
        for name, to in (("r", ""), ("r_authors", " to as few examples without a source"))
        for row in rows
        if row.get(name)
    ]
    return Section("Text transfer", "text_transfer", sizes, claims, lines, remarks("text_transfer"), "text.png")


def tiny(results: Path, size: str = "full") -> Section:
    """Split Tiny-ImageNet."""
    used = split_tiny_imagenet.SIZES[size]
    lines, claims, repeated = [], [], {}
    for kind, tasks in _TASKS.items():
        rows = read(results / f"{stem(kind)}_correlations.csv")
        if not rows:
            continue
        lines += [_gain(row, tasks) for row in rows]
        claims += _gains_claimed(rows, tasks)
        whole = _whole_seeds(read(results / f"{stem(kind)}_training.csv"), used.tasks)
        repeated[tasks] = len(whole)
        found = [split_tiny_imagenet.gains(results, "trained", "accuracy", kind, seed) for seed in whole]
        lines += _agreement(f"{tasks}: gain over {_AGAINST['trained']}, on {_ON['accuracy']}", found)
    paper = int(said("split_tiny_imagenet", "points").split()[0].replace(",", ""))
    needed = split_tiny_imagenet.exact_bytes(paper, used.side) / 1e9
    feasible = f"infeasible: {needed:,.0f} GB of features and costs for one pair of {paper:,} points"
    lines.append(Line("OTDD (exact)", "infeasible (Section 4.2)", feasible))
    families = ""
    if _TASKS[BY_FAMILY] in repeated and used.family_projections is not None:
        some = f"{used.family_points or 'all'} points of each and {used.family_projections:,} projections"
        families = f" Families: {some}, without the cut and linear."
    seeds_of = ", ".join(f"{count} seeds of every pair of {tasks}" for tasks, count in repeated.items())
    sizes = (
        f"{used.tasks} tasks of {used.classes} classes, {used.tasks * (used.tasks - 1)} ordered pairs, {seeds_of}; "
        f"networks see {used.trained_side} × {used.trained_side} pixels and learn for {used.epochs} epochs in batches "
        f"of {used.batch}, last layers in {used.head_epochs} steps on all pictures; distances see {used.side} × "
        f"{used.side} pixels: with the cut {used.points} points of each task and {used.n_projections:,} projections, "
        f"without it all points and {used.uncut_projections:,}, linear all points and {used.linear_projections:,}."
        f"{families}"
    )
    words = remarks("split_tiny_imagenet")
    return Section("Split Tiny-ImageNet", "split_tiny_imagenet", sizes, claims, lines, words, "tiny.png")


def _gain(row: Mapping[str, str], tasks: str) -> Line:
    what = f"{tasks}, {row['method']}: gain over {_AGAINST[row['baseline']]}, on {_ON[row['measured_on']]}"
    here = f"ρ {coefficient(row, 'rho')}, r {coefficient(row, 'r')}; ρ within a target {float(row['rho_within']):.2f}"
    return Line(what, "–", here)


def _gains_claimed(rows: Sequence[Mapping[str, str]], tasks: str) -> Iterator[Line]:
    """As the paper's text has it, and as the authors' scripts do it; linear where the cut was not measured."""
    method = SOTDD if one(rows, method=SOTDD) else split_tiny_imagenet.LINEAR
    for row in rows:
        if row["method"] == method and (row["baseline"] == "trained") == (row["measured_on"] == "accuracy"):
            rho = coefficient(row, "rho")
            what = (
                f"{tasks}, ρ of {method} with the gain over {_AGAINST[row['baseline']]}, on {_ON[row['measured_on']]}"
            )
            paper = "strong (Figure 6)" if tasks == _TASKS[RANDOM] else "–"
            yield Line(what, paper, str(rho), on_its_own(rho, -1))


def _whole_seeds(training: Sequence[Mapping[str, str]], tasks: int) -> list[str]:
    """Seeds of which every pair is there, and the untrained network."""
    count = Counter(row["seed"] for row in training)
    return [seed for seed, found in count.items() if found == (tasks + 1) * tasks]


def _agreement(what: str, by_seed: Sequence[Mapping[object, float]]) -> list[Line]:
    """How well two seeds of training agree: no distance can foretell more than what repeats."""
    rhos = [
        spearman(list(first.values()), [second[key] for key in first]).value
        for first, second in combinations(by_seed, 2)
    ]
    return [Line(f"{what}: ρ between two seeds", "–", f"{min(rhos):.2f} to {max(rhos):.2f}")] if rhos else []


def augmentations(results: Path, size: str = "full") -> Section:
    """Augmentation."""
    rows = read(results / "augmentation_correlations.csv")
    training = read(results / "augmentation_training.csv")
    lines = []
    for row in rows:
        paper = SOTDD if row["method"] == augmentation.UNCUT else row["method"]
        lines.append(compared(f"{row['method']}: ρ with accuracy", "augmentation", paper, coefficient(row, "rho")))
        taken = f"{float(row['seconds']):,.0f} for {row['augmentations']} augmentations"
        given = f"{coefficient(row, 'rho_given')}; ρ of distance and brightness {float(row['rho_brightness']):.2f}"
        lines.append(Line(f"{row['method']}: ρ with accuracy given the brightness", "–", given))
        lines.append(Line(f"{row['method']}: seconds", said("augmentation", f"seconds of {paper}"), taken))
    reached = [100 * value for value in mean_by(training, ("augmentation",), "accuracy").values()]
    lines.append(Line("accuracy by augmentation", "–", f"{min(reached):.1f} to {max(reached):.1f} %"))
    by_seed: dict[str, dict[object, float]] = {}
    for row in training:
        by_seed.setdefault(row["seed"], {})[row["augmentation"]] = float(row["accuracy"])
    lines += _agreement("accuracy by augmentation", list(by_seed.values()))
    used = augmentation.SIZES[size]
    sizes = (
        f"{used.augmentations} augmentations, {seeds(training, 'augmentation')} seeds; {used.source:,} pictures of "
        f"Tiny-ImageNet, cut to 32 × 32, and {used.target:,} of CIFAR-10; four convolutions of {used.width} to "
        f"{8 * used.width} channels, {used.epochs} epochs, then frozen, and a linear layer in {used.tuning_epochs} "
        f"steps on all pictures; {used.points:,} points a side and {used.n_projections:,} projections, without "
        f"the cut {used.uncut_points:,} and {used.uncut_projections:,}."
    )
    claims = []
    for row in rows:
        if row["method"] != augmentation.UNCUT:
            what, left = f"ρ of {row['method']} with accuracy", coefficient(row, "rho_given")
            claims.append(claimed(what, "augmentation", row["method"], coefficient(row, "rho")))
            claims.append(Line(f"{what}, given the brightness", "–", str(left), on_its_own(left, -1)))
    return Section("Augmentation", "augmentation", sizes, claims, lines, remarks("augmentation"))
