"""
Sketches, and how exact they are
================================

A sketch keeps, of every projection, a number of quantile means in place of all points.
Two sketches are compared without the data. Here two datasets of 20,000 points are
sketched with more and more quantiles, and once more from a stream of batches that are
never in memory together.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import ticker

import sotdd

rng = np.random.default_rng(0)
centres = rng.normal(0, 2, size=(4, 10))


def draw(n, shift):
    """Four round classes in ten dimensions."""
    y = rng.integers(4, size=n)
    return (rng.normal(centres[y], 1.0) + shift).astype(np.float32), y


a, b = draw(20_000, 0.0), draw(20_000, 0.3)
projections = sotdd.Projections.fit([a, b], n_projections=200)
exact = sotdd.distance(a, b, projections=projections)
exact

# %%
# A stream is any iterable of batches; what it keeps does not grow with their number.


def batches(data):
    """A thousand points at a time."""
    return [
        (data[0][start : start + 1000], data[1][start : start + 1000])
        for start in range(0, 20_000, 1000)
    ]


streamed = sotdd.sketch_stream(batches(a), projections).distance(
    sotdd.sketch_stream(batches(b), projections)
)
streamed

# %%

kept = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
errors = []
for n_quantiles in kept:
    one, other = (
        sotdd.sketch(data, projections, n_quantiles=n_quantiles) for data in (a, b)
    )
    errors.append(abs(1 - one.distance(other).value / exact.value))

figure, ax = plt.subplots()
off, chance = 100 * abs(1 - streamed.value / exact.value), 100 * exact.stderr / exact.value
ax.plot(kept, 100 * np.array(errors), "o-", color="C0", label="sketches")
ax.plot(
    [384], [off], "s", color="C1", markersize=8, label="streamed, 384 quantiles", zorder=3
)
ax.axhline(chance, color="C2", linestyle=(0, (4, 3)), linewidth=1)
ax.annotate(
    "error from the choice of 200 projections",
    (kept[-1], chance),
    (0, -12),
    textcoords="offset points",
    ha="right",
    color="C2",
    fontsize=9,
)
ax.set(
    xscale="log",
    yscale="log",
    xticks=kept,
    xticklabels=kept,
    xlabel="quantiles kept of each projection",
    ylabel="off by, %",
    title="A few quantiles are soon exact enough",
)
ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
ax.yaxis.set_major_formatter("{x:g}")
ax.minorticks_off()
ax.grid()
ax.legend()
plt.show()

# %%
# Even a few quantiles cause a smaller error here than the choice of projections does. The
# default, 384, causes far less, from a stream as well as from sorted data.
