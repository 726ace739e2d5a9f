"""The torch engine on a GPU: python -m benchmarks.gpu [--quick] [--markdown FILE].

Inputs are on the card, everything is warm, times are medians by CUDA events. Needs a CUDA device
with torch; nothing else of the benchmarks' extras.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

import sotdd
from benchmarks import plain_torch
from sotdd import LabelledData
from sotdd.engines.comparison import compare
from sotdd.engines.torch import verbs as engine_verbs
from sotdd.engines.torch.engine import TorchEngine
from sotdd.projections import DirectionLaw, Polynomials


def milliseconds(function: Callable[[], object], turns: int) -> float:
    """Median time by CUDA events, after one warm-up."""
    function()
    times = []
    for _ in range(turns):
        torch.cuda.synchronize()
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        function()
        ended.record()
        torch.cuda.synchronize()
        times.append(began.elapsed_time(ended))
    return float(np.median(times))


def labelled(n: int, d: int, seed: int) -> LabelledData:
    """Gaussian features on the card, ten classes."""
    generator = torch.Generator("cuda").manual_seed(seed)
    labels = torch.randint(10, (n,), device="cuda", generator=generator)
    return LabelledData.of((torch.randn(n, d, device="cuda", generator=generator), labels), f"set {seed}")


def whole(
    n: int, m: int, d: int, count: int, turns: int, *, precision: str = "float32", fresh: bool = False
) -> tuple[float, float]:
    """Milliseconds of a whole comparison, through projections that are reused or drawn anew; and the distance."""
    data = [labelled(n, d, 0), labelled(m, d, 1)]
    projections = sotdd.Projections.fit(data, n_projections=count)
    found: list[float] = []

    def work() -> None:
        if fresh:
            projections._kept.clear()
        result = compare(data, [(0, 1)], projections, 2, device="cuda", precision=precision)  # type: ignore[arg-type]
        found.append(result[0, 1].value)

    return milliseconds(work, turns), found[-1]


def shares(n: int, d: int, count: int, turns: int) -> dict[str, float]:
    """Milliseconds of each step for one chunk of one dataset; transport for a pair."""
    data = labelled(n, d, 0)
    projections = sotdd.Projections.fit([data], n_projections=count)
    block = projections.draw(0, count)
    terms = block.terms
    assert isinstance(terms, Polynomials)
    with TorchEngine("cuda") as engine:
        layout = engine._layouts([data], projections.scaler)[0]
        theta = torch.from_numpy(np.ascontiguousarray(block.features.theta, np.float32)).cuda()  # type: ignore[union-attr]
        rows = engine_verbs.project(layout.points, theta, block.features)  # type: ignore[arg-type]
        coefficients = torch.from_numpy(terms.coefficients).cuda()
        found = engine_verbs.class_terms(rows, layout, terms, coefficients)
        weights = torch.from_numpy(terms.weights).cuda()
        ordered = engine_verbs.sort(rows)
        other = ordered + 0.1
        return {
            "product": milliseconds(lambda: engine_verbs.project(layout.points, theta, block.features), turns),  # type: ignore[arg-type]
            "polynomial and class sums": milliseconds(
                lambda: engine_verbs.class_terms(rows, layout, terms, coefficients), turns
            ),
            "shift": milliseconds(lambda: engine_verbs.shift_rows(rows, layout.codes, weights, found), turns),
            "sort": milliseconds(lambda: engine_verbs.sort(rows), turns),
            "transport (a pair)": milliseconds(lambda: engine_verbs.transport_rows(ordered, other, 2.0, None), turns),
        }


def plain(n: int, d: int, count: int, turns: int) -> float:
    """Milliseconds of the plain PyTorch reading, 500 projections at a time."""
    generator = torch.Generator("cuda").manual_seed(0)
    draw = partial(torch.randint, device="cuda", generator=generator)
    sides = [(torch.randn(n, d, device="cuda", generator=generator), draw(10, (n,))) for _ in range(2)]
    theta, psi = (torch.randn(count, width, device="cuda", generator=generator) for width in (d, 6))
    theta, psi = theta / theta.norm(dim=1, keepdim=True), psi / psi.norm(dim=1, keepdim=True)
    orders = draw(1, 9, (count, 5))

    def work() -> None:
        for start in range(0, count, 500):
            part = slice(start, start + 500)
            plain_torch.per_projection(*sides, theta[part], psi[part], orders[part])  # type: ignore[arg-type]

    return milliseconds(work, turns)


def _images(n: int) -> list[LabelledData]:
    """Two sets of random images on the card, 20 classes."""
    generator = torch.Generator("cuda").manual_seed(0)
    draw = partial(torch.randint, dtype=torch.uint8, device="cuda", generator=generator)
    return [LabelledData.of((draw(256, (n, 3, 224, 224)), np.arange(n) % 20), name) for name in ("one", "other")]


def pictures(count: int, law: DirectionLaw, n: int = 5000) -> float:
    """Seconds per projection for images of 224 × 224 × 3."""
    data = _images(n)
    projections = sotdd.Projections.fit(data, n_projections=count, directions=law)
    torch.cuda.synchronize()
    began = time.perf_counter()
    compare(data, [(0, 1)], projections, 2, device="cuda")
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / count


def pictures_on_their_span(count: int, n: int = 5000) -> tuple[float, float]:
    """Seconds to turn the same images onto their span, and seconds per projection there."""
    data = _images(n)
    torch.cuda.synchronize()
    began = time.perf_counter()
    span = sotdd.onto_span({part.name: part for part in data})
    torch.cuda.synchronize()
    turned = time.perf_counter() - began
    datasets = list(span.datasets.values())
    projections = sotdd.Projections.fit(datasets, n_projections=count, directions=span.directions, scale=None)
    began = time.perf_counter()
    compare(datasets, [(0, 1)], projections, 2, device="cuda")
    torch.cuda.synchronize()
    return turned, (time.perf_counter() - began) / count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--pictures", type=int, default=20_000, help="projections for the 224-pixel images")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    n, d, count, turns = (6000, 784, 1000, 3) if options.quick else (60_000, 784, 10_000, 7)
    size = f"n = m = {n:,}, d = {d}, L = {count:,}"
    lines = [
        "# Benchmarks on a GPU",
        "",
        f"Measured on one {torch.cuda.get_device_name()}, torch {torch.__version__}; `python -m benchmarks.gpu`.",
        "",
    ]

    def tell(text: str) -> None:
        print(text, flush=True)
        lines.append(f"- {text}")

    equal, exact = whole(n, n, d, count, turns)
    tell(f"whole comparison through given projections ({size}), float32: {equal:.0f} ms")
    fresh, _ = whole(n, n, d, count, turns, fresh=True)
    tell(f"the same, with the projections drawn anew on the processor: {fresh:.0f} ms")
    rough, near = whole(n, n, d, count, turns, precision="tf32")
    tell(f"the same with tf32 products: {rough:.0f} ms; the distance differs by {abs(near / exact - 1):.1e} relative")
    unequal, _ = whole(n, n * 4 // 5, d, count, turns)
    tell(f"unequal sizes ({n:,} against {n * 4 // 5:,}) / equal sizes: {unequal / equal:.2f} ×")
    slow = plain(n, d, count, 2)
    tell(f"plain PyTorch reading of the algorithm on the same card / here: {slow / equal:.1f} × ({slow:.0f} ms)")
    for step, spent in shares(n, d, 512, turns).items():
        tell(f"one chunk of 512 projections, {step}: {spent:.2f} ms")
    if options.pictures:
        for law in (sotdd.Convolution((3, 224, 224)), sotdd.Sphere()):
            each = pictures(options.pictures, law)
            tell(
                f"224 × 224 × 3 images, n = m = 5,000, {type(law).__name__}: {each * 1e3:.3f} ms per projection, "
                f"{each * 500_000:.0f} s for the paper's 500,000"
            )
    if options.pictures:
        turned, each = pictures_on_their_span(options.pictures)
        tell(
            f"the same on their span: {turned:.0f} s to turn, then {each * 1e3:.3f} ms per projection, "
            f"{turned + each * 500_000:.0f} s for the paper's 500,000"
        )
    if options.markdown:
        options.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
