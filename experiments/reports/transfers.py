"""The sections on what distances foretell: *NIST, texts, Split Tiny-ImageNet, augmentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from experiments import augmentation, nist_transfer, split_tiny_imagenet, text_transfer
from experiments.correlate import between_targets, mean_by
from experiments.methods import EXACT, METHODS, SOTDD
from experiments.page import Line, Section, claimed, coefficient, compared, one, remarks, seeds
from experiments.store import read
from experiments.verdicts import on_its_own, said

_SPACES = ("pixels", "embedding")


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
    sizes = (
        f"{rows[0]['pairs']} ordered pairs, {seeds(training, 'points', 'source', 'target')} seeds of training and "
        f"{measured} of distances, averaged; whole sets for s-OTDD, but "
        f"{used.slow:,} points of each for convolutions with the cut and for the other methods, and "
        f"{used.embedded:,} for the embedding by efficientnet-lite0; {used.n_projections:,} projections. "
        f"Accuracy alone: {best}."
    )
    claims = [*_claims(rows)]
    return Section("*NIST transfer", "nist_transfer", sizes, claims, lines, remarks("nist_transfer"), "nist.png")


def _claims(rows: Sequence[Mapping[str, str]]) -> Iterator[Line]:
    for method in (SOTDD, nist_transfer.AUTHORS, EXACT):
        row = one(rows, points="all", space="pixels", method=method, metric="accuracy")
        if row is not None:
            quantity = method if method in METHODS else SOTDD
            yield claimed(f"ρ of {method} with the gap", "nist_transfer", quantity, coefficient(row, "rho"))


def _over_all_pairs(rows: Sequence[Mapping[str, str]], few: str) -> Iterator[Line]:
    for space in _SPACES:
        for method in (*METHODS, nist_transfer.AUTHORS, nist_transfer.CONVOLUTION, nist_transfer.UNCUT):
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
            for method in METHODS:
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
        claimed(f"r of {row['method']} with the gap", "text_transfer", row["method"], coefficient(row, "r"))
        for row in rows
    ]
    return Section("Text transfer", "text_transfer", sizes, claims, lines, remarks("text_transfer"), "text.png")


def tiny(results: Path, size: str = "full") -> Section:
    """Split Tiny-ImageNet."""
    rows = read(results / "tiny_correlations.csv")
    against = {"trained": "a network trained on the target", "untrained": "a last layer on an untrained network"}
    on = {"accuracy": "pictures not seen", "train_accuracy": "the pictures trained on"}
    lines = [
        Line(
            f"{row['method']}: gain over {against[row['baseline']]}, on {on[row['measured_on']]}",
            "–",
            f"ρ {coefficient(row, 'rho')}, r {coefficient(row, 'r')}; ρ within a target {float(row['rho_within']):.2f}",
        )
        for row in rows
    ]
    used = split_tiny_imagenet.SIZES[size]
    paper = int(said("split_tiny_imagenet", "points").split()[0].replace(",", ""))
    needed = split_tiny_imagenet.exact_bytes(paper, used.side) / 1e9
    feasible = f"infeasible: {needed:,.0f} GB of features and costs for one pair of {paper:,} points"
    lines.append(Line("OTDD (exact)", "infeasible (Section 4.2)", feasible))
    training = read(results / "tiny_training.csv")
    count = {seed: sum(row["seed"] == seed for row in training) for seed in {row["seed"] for row in training}}
    whole = [seed for seed, rows_of_seed in count.items() if rows_of_seed == (used.tasks + 1) * used.tasks]
    sizes = (
        f"{used.tasks} tasks of {used.classes} classes, {used.side} × {used.side} pixels, {rows[0]['pairs']} ordered "
        f"pairs, {len(whole)} seed(s) of every pair, {used.epochs} epochs; with the cut {used.points} points of each "
        f"task and {used.n_projections:,} projections, without it all points and {used.uncut_projections:,}, "
        f"linear all points and {used.linear_projections:,}."
    )
    claims = []
    for row in rows:
        # As the paper's text has it, and as the authors' scripts do it.
        if row["method"] == SOTDD and (row["baseline"] == "trained") == (row["measured_on"] == "accuracy"):
            rho = coefficient(row, "rho")
            what = f"ρ of s-OTDD with the gain over {against[row['baseline']]}, on {on[row['measured_on']]}"
            claims.append(Line(what, "strong (Figure 6)", str(rho), on_its_own(rho, -1)))
    words = remarks("split_tiny_imagenet")
    return Section("Split Tiny-ImageNet", "split_tiny_imagenet", sizes, claims, lines, words, "tiny.png")


def augmentations(results: Path, size: str = "full") -> Section:
    """Augmentation."""
    rows = read(results / "augmentation_correlations.csv")
    training = read(results / "augmentation_training.csv")
    lines = []
    for row in rows:
        paper = SOTDD if row["method"] == augmentation.UNCUT else row["method"]
        lines.append(compared(f"{row['method']}: ρ with accuracy", "augmentation", paper, coefficient(row, "rho")))
        taken = f"{float(row['seconds']):,.0f} for {row['augmentations']} augmentations"
        lines.append(Line(f"{row['method']}: seconds", said("augmentation", f"seconds of {paper}"), taken))
    reached = [100 * value for value in mean_by(training, ("augmentation",), "accuracy").values()]
    lines.append(Line("accuracy by augmentation", "–", f"{min(reached):.1f} to {max(reached):.1f} %"))
    used = augmentation.SIZES[size]
    sizes = (
        f"{used.augmentations} augmentations, {seeds(training, 'augmentation')} seeds; {used.source:,} pictures of "
        f"Tiny-ImageNet at 32 × 32 and {used.target:,} of CIFAR-10; a ResNet-18 of half its width, {used.epochs} and "
        f"{used.tuning_epochs} epochs; {used.points:,} points a side and {used.n_projections:,} projections, without "
        f"the cut {used.uncut_points:,} and {used.uncut_projections:,}."
    )
    claims = [
        claimed(f"ρ of {row['method']} with accuracy", "augmentation", row["method"], coefficient(row, "rho"))
        for row in rows
        if row["method"] != augmentation.UNCUT
    ]
    return Section("Augmentation", "augmentation", sizes, claims, lines, remarks("augmentation"))
