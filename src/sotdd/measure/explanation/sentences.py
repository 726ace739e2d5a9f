"""What an explanation says: its sentences, and its tables of features and of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sotdd.basics.text import align_rows, join_names, say_count, show, with_error

if TYPE_CHECKING:
    from sotdd.measure.explanation.result import ClassLine, Explanation

# Classes and columns that are shown unless a number is asked for.
MOST_SHOWN = 12


_WITHIN = "the distance by itself is within its noise: two samples of one source are often as far apart"


def describe_explanation(why: Explanation, limit: int | None) -> str:
    """The test; the distance and its parts; what changed; and for each side a table of ``limit`` classes at most."""
    first = [f"{' and '.join(map(show, why.names))}: {say_verdict(why)}", f"distance {why.distance!r}"]
    blocks = ["\n".join(filter(None, [*first, say_parts(why), *say_changes(why)])), _list_changes(why, limit)]
    for side in (0, 1):
        one, other = show(why.names[side]), show(why.names[1 - side])
        header = (
            f"class of {one}",
            "points",
            "share",
            "by chance",
            f"nearest in {other}",
            "distance",
            "match",
            "counterpart",
        )
        lines = why.lines(side)
        table = align_rows([header, *(list_cells(line) for line in lines[:limit])], to_the_right=(1, 2, 3))
        left = len(lines) - len(table) + 1
        more = [f"… and {left:,} more"] if left else []
        blocks.append("\n".join([*table, *more, say_lost_classes(why, side)]))
    return "\n\n".join(filter(None, blocks))


def say_verdict(why: Explanation) -> str:
    """What the test says of both."""
    p_value = f"p = {why.test.p_value:.3g}"
    return f"no difference found, {p_value}" if why.within_noise else f"they differ, {p_value}, {why.test.say_why()}"


def _list_changes(why: Explanation, limit: int | None) -> str:
    """The columns that changed, as `sotdd.test` lists them; of pixels only how many."""
    changes = why.test.changes
    if changes.shape is not None or not changes.changed:
        return repr(changes)
    return "\n".join([*align_rows(changes.list_rows(limit, why.names), to_the_right=(3, 4)), *changes.say_rest(limit)])


# ------------------------------------------------------------------ features and labels


def say_parts(why: Explanation) -> str:
    """How much of what is beyond noise is features and how much labels; nothing where the test finds no difference."""
    parts = why.parts
    if parts.features_beyond and not parts.whole_beyond:
        return "features alone differ beyond noise; with labels, which add noise of their own, the whole is within it"
    if why.within_noise or not parts.whole_beyond:
        return "" if why.within_noise else _WITHIN
    features, labels = _share(parts.features, parts.features_interval), _share(parts.labels, parts.labels_interval)
    if not parts.labels_beyond:
        return f"of what is beyond noise, features are {features}; labels add nothing beyond noise"
    if not parts.features_beyond:
        return f"of what is beyond noise, labels are {labels}; features alone are within noise"
    return f"of what is beyond noise, features are {features} and labels {labels}"


def _share(share: float, interval: tuple[float, float]) -> str:
    share, low, high = (min(max(end, 0.0), 1.0) for end in (share, *interval))
    return f"{share:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{share:.0%} ({low:.0%} to {high:.0%})"


# ------------------------------------------------------------------ classes


def list_cells(line: ClassLine) -> tuple[str, ...]:
    """A class as a row of the table."""
    return (
        show(line.label),
        f"{line.n_points:,}",
        f"{line.share:.0%}",
        f"{line.share_by_chance:.0%}",
        show(line.nearest),
        with_error(line.distance, line.stderr),
        "–" if line.match is None else show(line.match),
        _say_counterpart(line),
    )


def _say_counterpart(line: ClassLine) -> str:
    """Whether its match is the same class; whether one that is not moved far or was replaced, nobody can tell."""
    if line.counterpart is not None:
        return "moved" if line.moved else "yes"
    if not line.lost:
        return "none by chance"
    return "none" if line.match is None else "moved or replaced"


def say_lost_classes(why: Explanation, side: int) -> str:
    """Which classes of one side have no counterpart: those that moved far or were replaced, and those left over."""
    lines = {line.label: line for line in why.lines(side)}
    lost = [lines[label] for label in why.classes[side] if lines[label].lost]
    if not lost:
        absent = sum(line.counterpart is None for line in lines.values())
        but = f", but for {say_count(absent, 'class', 'classes')} that chance may leave without one" if absent else ""
        return f"every class of {show(why.names[side])} has a counterpart{but}"
    changed, missing = ([line.label for line in lost if (line.match is None) is none] for none in (False, True))
    found = {"moved or replaced": changed, f"without a counterpart in {show(why.names[1 - side])}": missing}
    return "; ".join(f"{what}: {join_names(some)}" for what, some in found.items() if some) + _say_doubt(why)


def _say_doubt(why: Explanation) -> str:
    """What is said of single classes has a level of its own, which the test of all may not confirm."""
    return " (approximate: the test of both datasets does not confirm it)" if why.within_noise else ""


def say_changes(why: Explanation) -> list[str]:
    """Which classes have moved, and which names have changed, each in a sentence; none where there is nothing."""
    said = []
    moved = [
        show(line.label) if line.label == line.counterpart else f"{show(line.label)} ({show(line.counterpart)})"
        for line in why.lines(0)
        if line.moved
    ]
    if moved:
        said.append(
            f"moved beyond noise: {'class' if len(moved) == 1 else 'classes'} {join_names(moved)}{_say_doubt(why)}"
        )
    if why.renamed:
        changed = [f"{show(one)} → {show(other)}" for one, other in why.renamed]
        said.append(f"classes have changed names: {join_names(changed)}")
    return said
