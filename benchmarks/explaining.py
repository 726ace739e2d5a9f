"""What an explanation costs beside the distance itself: python -m benchmarks.explaining [--quick].

Whether it names the right features is in `benchmarks.feature_causes`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import sotdd
from benchmarks.core import labelled, machine, turn_by_turn


def ratio(classes: int, turns: int, n: int = 10_000, d: int = 784, count: int = 1000) -> str:
    """Time of an explanation over time of the distance, through projections that are drawn already."""
    a, b = labelled(n, d, classes, seed=0), labelled(n * 9 // 10, d, classes, seed=1)
    projections = sotdd.Projections.fit([a, b], n_projections=count)
    measured, explained, tested = turn_by_turn(
        lambda: sotdd.distance(a, b, projections=projections),
        lambda: sotdd.explain(a, b, projections=projections),
        lambda: sotdd.test(a, b, projections=projections),
        turns=turns,
    )
    return f"| {d} features, {classes} classes | {explained / measured:.0f} × | {tested / explained:.0%} |"


def many(classes: int, shift: float, points: int = 25, d: int = 16) -> str:
    """Processor time of an explanation of many small classes, and of the test in it."""
    rng = np.random.default_rng(0)
    centres, y = 3 * rng.normal(size=(classes, d)), np.repeat(np.arange(classes), points)
    a, b = ((centres[y] + rng.normal(size=(len(y), d)) + move, y) for move in (0.0, shift))
    times = [time.process_time()]
    for call in (sotdd.test, sotdd.explain):
        call(a, b)
        times.append(time.process_time())
    tested, explained = np.diff(times)
    return f"| {classes:,} | {'shifted' if shift else 'nothing'} | {explained:.1f} s | {tested:.1f} s |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    turns = 1 if parser.parse_args().quick else 5
    print(machine())
    print("| data | explanation / distance | of it for the test |\n|---|---|---|")
    for classes in (2, 10, 100):
        print(ratio(classes, turns), flush=True)
    for d in (10, 100):
        print(ratio(10, turns, d=d), flush=True)
    print("\n| classes of 25 points | what differs | processor time | of it for the test |\n|---|---|---|---|")
    for classes in (200, 1000):
        for shift in (0.0, 1.0):
            print(many(classes, shift), flush=True)


if __name__ == "__main__":
    main()
