"""The loop that turns a stack of convolutions into a direction."""

from __future__ import annotations

from sotdd.kernels.compiling import Doubles, kernel


@kernel
def send_back(reach: Doubles, weights: Doubles, step_h: int, step_w: int, out: Doubles) -> None:
    """Send values (B, h, w) backwards through one convolution (B, C, kh, kw) with the given steps.

    Adds to out (B, C, height, width), which is zero before.
    """
    for b in range(out.shape[0]):
        for c in range(out.shape[1]):
            for y in range(reach.shape[1]):
                for i in range(weights.shape[2]):
                    line = out[b, c, y * step_h + i]
                    for j in range(weights.shape[3]):
                        weight = weights[b, c, i, j]
                        for x in range(reach.shape[2]):
                            line[x * step_w + j] += weight * reach[b, y, x]
