"""What is fetched of a dataset on the Hub for a sample: footers, and row groups drawn at random."""

import matplotlib.pyplot as plt
import numpy as np
from scene import COLOURS, QUIET, RULE

from sotdd.inputs.loaders.huggingface import draw_groups

FILES, GROUPS, ROWS, WANTED = 4, 30, 1000, 10_000

figure, axes = plt.subplots(figsize=(8.6, 2.3))
drawn = set(draw_groups([ROWS] * (FILES * GROUPS), WANTED, np.random.default_rng(0)).tolist())
for file in range(FILES):
    for group in range(GROUPS):
        is_drawn = file * GROUPS + group in drawn
        axes.barh(FILES - file, 0.9, left=group, height=0.62, color=COLOURS[0] if is_drawn else RULE)
    axes.barh(FILES - file, 0.35, left=GROUPS + 0.3, height=0.62, color=COLOURS[1])
    axes.annotate(f"train-0000{file}.parquet", (-0.5, FILES - file), ha="right", va="center", color=QUIET, fontsize=8)
axes.annotate("row groups that are fetched", (0, 0.2), color=COLOURS[0], va="center", fontsize=9)
axes.annotate("footers", (GROUPS + 0.65, 0.2), color=COLOURS[1], va="center", ha="right", fontsize=9)
axes.set(xlim=(-7, GROUPS + 1), ylim=(-0.2, FILES + 0.5))
axes.axis("off")
