"""What was measured of every promise that is a ratio, run by run, as a share of what is promised."""

import matplotlib.pyplot as plt
from benchmarks.history import read, share_of_promise
from scene import COLOURS, INK, QUIET, RULE

runs = read()
names = [what for what, (measured, promised, _) in runs[-1].measured.items() if share_of_promise(measured, promised)]
figure, axes = plt.subplots(
    len(names), 1, figsize=(6.4, 0.62 * len(names) + 0.5), sharex=True, sharey=True, squeeze=False
)
for ax, what in zip(axes[:, 0], names, strict=True):
    found = [run.measured.get(what) for run in runs]
    shares = [None if line is None else share_of_promise(line[0], line[1]) for line in found]
    places = [place for place, share in enumerate(shares) if share is not None]
    values = [share for share in shares if share is not None]
    ax.axhline(1, color=RULE, linewidth=1)
    ax.plot(places, values, color=COLOURS[0], marker="o", markersize=4)
    ax.set_title(what.replace("`", ""), fontsize=8, color=INK, loc="left", fontweight="normal", pad=2)
    ax.set_yticks([0, 1], ["0", "limit"], fontsize=8, color=QUIET)
    ax.set_ylim(0, 1.5)
    ax.spines[["top", "right"]].set_visible(False)
axes[-1, 0].set_xticks(range(len(runs)), [run.commit for run in runs], fontsize=8, color=QUIET)
