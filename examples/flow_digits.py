"""Handwritten digits flow into other digits: zeros and ones into eights and threes.

    python examples/flow_digits.py --out digits.png

Every column of the picture follows one image along the flow; at the bottom is the target image nearest to where it
arrived. No image is told where to go: gradient descent only lowers the distance between the datasets.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

import sotdd
from sotdd.demo import digits

Labelled = tuple[NDArray[np.float64], NDArray[np.int64]]

PER_CLASS = 6  # columns of the picture for each class
ROWS = 6  # of them snapshots


def pick(kinds: tuple[int, ...], part: slice) -> Labelled:
    """Some images of these kinds, the same number of each."""
    images, labels = digits()
    rows = np.concatenate([np.flatnonzero(labels == kind)[part] for kind in kinds])
    return images[rows].astype(np.float64), labels[rows]


def main() -> None:
    """Flow, print the distances, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="flow_digits.png", help="the picture to write")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--images", type=int, default=85, help="of each class")
    settings = parser.parse_args()
    first, second = slice(settings.images), slice(settings.images, 2 * settings.images)
    source, target = pick((0, 1), first), pick((8, 3), first)
    stops = np.unique(np.geomspace(1, settings.steps, 24).astype(int)).tolist()
    flow = sotdd.flow(source, target, steps=settings.steps, learning_rate=0.5, snapshots=[0, *stops])
    floor = sotdd.distance(pick((8, 3), second), target, projections=flow.projections, estimator="plain").value
    print(f"{flow}; other images of the target's kinds are at {floor:.4f}")
    print(f"a class of the source ends among one class of the target for {agreement(flow, target):.0%} of its images")
    draw(flow, target, floor, settings.out)


def nearest(flow: sotdd.results.Flow, target: Labelled) -> NDArray[np.intp]:
    """For every image at the end, the nearest of the target."""
    moved = flow.features.reshape(len(flow.features), -1)
    still = target[0].reshape(len(target[0]), -1)
    return np.linalg.norm(moved[:, None] - still[None], axis=2).argmin(axis=1)


def agreement(flow: sotdd.results.Flow, target: Labelled) -> float:
    """How many images ended nearest to the class in which most of their own class ended."""
    found = target[1][nearest(flow, target)]
    most = [np.unique(found[flow.labels == kind], return_counts=True)[1].max() for kind in flow.classes]
    return float(sum(most) / len(found))


def draw(flow: sotdd.results.Flow, target: Labelled, floor: float, out: str) -> None:
    """Images in columns from the source to where they arrived, and the distance beside them."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    columns = [row for kind in flow.classes for row in np.flatnonzero(flow.labels == kind)[:PER_CLASS]]
    logs = np.log(np.maximum(flow.distances, 1e-12))
    between = [int(np.abs(logs - level).argmin()) for level in np.linspace(logs[0], logs[-1], ROWS)[1:-1]]
    shown = [flow.snapshots[place] for place in (0, *between, -1)]
    strips = [(f"step {snapshot.step}", snapshot.features[columns]) for snapshot in shown]
    strips.append(("nearest\nin target", target[0][nearest(flow, target)[columns]]))

    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 6.4), width_ratios=(2.1, 1), layout="constrained")
    left.imshow(sheet([strip for _, strip in strips]), cmap="gray_r", vmin=0, vmax=16)
    left.set_yticks([4.5 + 10 * row + 3 * (row == ROWS) for row in range(len(strips))], [name for name, _ in strips])
    left.set_xticks([])
    left.tick_params(length=0)
    left.spines[:].set_visible(False)
    left.set_title("zeros and ones flow into eights and threes", fontsize=11)
    right.plot(flow.steps, flow.distances, color="#333333", marker=".", markersize=4)
    right.axhline(floor, color="#999999", linestyle="--", linewidth=1)
    right.text(flow.steps[-1], floor * 1.03, "other images of the same kinds", ha="right", va="bottom", fontsize=9)
    right.set(yscale="log", xlabel="step")
    right.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
    right.yaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
    right.yaxis.set_minor_locator(mpl.ticker.NullLocator())
    right.set_title("s-OTDD to the target", fontsize=11)
    right.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, dpi=110)
    plt.close(figure)
    print(f"drawn to {out}")


def sheet(strips: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Strips of images (k, 8, 8) one under the other, the classes and the last strip set apart."""
    lines = []
    for row, strip in enumerate(strips):
        tiles = [np.pad(np.clip(image, 0, 16), 1) for image in strip]
        half = len(tiles) // 2
        line = np.concatenate([*tiles[:half], np.zeros((10, 4)), *tiles[half:]], axis=1)
        lines.append(np.pad(line, ((3 if row == len(strips) - 1 else 0, 0), (0, 0))))
    return np.concatenate(lines)


if __name__ == "__main__":
    main()
