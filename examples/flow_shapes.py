"""Two-dimensional shapes flow into others: a ring into moons, clouds into spirals.

    python examples/flow_shapes.py --out shapes.png

Every row is a flow. Colours are classes; the target is the grey behind every picture, and in colour at the
end of the row. Nothing says which class should become which, so colours may come out swapped.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

import sotdd
from sotdd.gradients.flow import Snapshot

Labelled = tuple[NDArray[np.float64], NDArray[np.int64]]

COLOURS = np.array(["#2a6fbb", "#e07a1f"])
SHOWN = 5  # snapshots of a row


def ring(n: int, rng: np.random.Generator) -> Labelled:
    """A ring, cut by a horizontal line into two classes."""
    turn = (np.arange(n) + rng.random(n)) / n
    x = np.stack([np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)], axis=1)
    return x + rng.normal(0, 0.05, size=(n, 2)), (turn > 0.5).astype(np.int64)


def moons(n: int, rng: np.random.Generator) -> Labelled:
    """Two half circles that reach into one another, one class each."""
    y = np.arange(n) % 2
    turn = np.pi * rng.random(n)
    x = np.stack([np.cos(turn), np.sin(turn)], axis=1) * np.where(y, -1, 1)[:, None]
    return x + np.where(y[:, None], [0.5, 0.25], [-0.5, -0.25]) + rng.normal(0, 0.06, size=(n, 2)), y


def blobs(n: int, rng: np.random.Generator) -> Labelled:
    """Two round clouds, one class each."""
    y = np.arange(n) % 2
    return rng.normal(0, 0.25, size=(n, 2)) + np.where(y, 0.9, -0.9)[:, None] * [1.0, 0.6], y


def spirals(n: int, rng: np.random.Generator) -> Labelled:
    """Two arms of a spiral, one class each."""
    y = np.arange(n) % 2
    along = np.sqrt(rng.random(n))
    turn = 3.5 * along + np.pi * y
    x = 1.5 * along[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return x + rng.normal(0, 0.04, size=(n, 2)), y


def main() -> None:
    """Flow, print the distances, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="flow_shapes.png", help="the picture to write")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--points", type=int, default=500)
    settings = parser.parse_args()
    rng, n = np.random.default_rng(0), settings.points
    rows = [
        ("ring → moons", ring(n, rng), moons),
        ("blobs → spirals", blobs(n, rng), spirals),
    ]
    flows = []
    for title, source, shape in rows:
        target = shape(n, rng)
        stops = np.unique(np.geomspace(1, settings.steps, 30).astype(int))  # most happens early
        flow = sotdd.flow(source, target, steps=settings.steps, snapshots=[0, *stops.tolist()])
        floor = sotdd.distance(shape(n, rng), target, projections=flow.projections, estimator="plain").value
        print(f"{title}: {flow}; another sample of the target is at {floor:.4f}")
        flows.append((title, flow, target, floor))
    draw(flows, settings.out)


def draw(flows: list[tuple[str, sotdd.results.Flow, Labelled, float]], out: str) -> None:
    """One row per flow: snapshots, the target, the distance."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    widths = [1.0] * (SHOWN + 1) + [1.5]
    figure, axes = plt.subplots(
        len(flows), SHOWN + 2, figsize=(17, 2.7 * len(flows)), width_ratios=widths, squeeze=False, layout="constrained"
    )
    for line, (title, flow, target, floor) in zip(axes, flows, strict=True):
        for axis, snapshot in zip(line, chosen(flow), strict=False):
            axis.scatter(*target[0].T, s=5, c="#e4e4e4", linewidths=0)
            scatter(axis, snapshot.features, COLOURS[snapshot.labels], f"step {snapshot.step}")
        scatter(line[SHOWN], target[0], COLOURS[target[1]], "target")
        line[0].set_ylabel(title, fontsize=11)
        curve(line[-1], flow, floor)
    figure.savefig(out, dpi=110)
    plt.close(figure)
    print(f"drawn to {out}")


def chosen(flow: sotdd.results.Flow) -> list[Snapshot]:
    """The first, the last, and between them those nearest to even parts of the way down."""
    logs = np.log(np.maximum(flow.distances, 1e-12))
    levels = np.linspace(logs[0], logs[-1], SHOWN)[1:-1]
    between = [int(np.abs(logs - level).argmin()) for level in levels]
    return [flow.snapshots[place] for place in (0, *between, -1)]


def scatter(axis, x, colour, title) -> None:  # noqa: ANN001
    """Points on equal axes, without ticks."""
    axis.scatter(*x.T, s=5, c=colour, linewidths=0)
    axis.set(xlim=(-2, 2), ylim=(-1.9, 1.9), xticks=[], yticks=[], aspect="equal")
    axis.set_title(title, fontsize=10)
    axis.spines[:].set_color("#cccccc")


def curve(axis, flow, floor) -> None:  # noqa: ANN001
    """The distance along the way, over what chance alone makes."""
    axis.plot(flow.steps, flow.distances, color="#333333", marker=".", markersize=4)
    axis.axhline(floor, color="#999999", linestyle="--", linewidth=1)
    axis.text(
        flow.steps[-1], floor * 1.1, "two samples of the target", ha="right", va="bottom", fontsize=8, color="#666666"
    )
    axis.set(yscale="log", xlabel="step")
    axis.yaxis.set_major_formatter("{x:g}")
    axis.set_title("s-OTDD to the target", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
