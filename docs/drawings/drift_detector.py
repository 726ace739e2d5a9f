"""Twelve batches of digits that fade: the score of each, and where the detector draws the line."""

import matplotlib.pyplot as plt
import numpy as np
from scene import COLOURS, INK, QUIET
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sotdd.demo import digits
from sotdd.integrations.sklearn import DriftDetector

images, _ = digits()
rows = images.reshape(len(images), -1)[np.random.default_rng(3).permutation(len(images))]
known, later = rows[:1197], rows[1197:]
bright = np.concatenate([np.ones(6), np.linspace(0.95, 0.7, 6)])
watch = make_pipeline(StandardScaler(), PCA(16), DriftDetector(batch_size=50)).fit(known)
faded = later * bright.repeat(50)[:, None]
scores, drifted = watch.score_samples(faded)[::50], watch.predict(faded)[::50] == -1

figure, ax = plt.subplots(figsize=(7.2, 3.4))
days = np.arange(1, len(bright) + 1)
limit = watch[-1].offset_
ax.axhline(limit, color=QUIET, linewidth=1, linestyle="--")
ax.text(0.6, limit - 0.3, "below: drift, at a level of 5 %", color=QUIET, fontsize=9, va="top")
ax.plot(days, scores, color=QUIET, linewidth=1, zorder=1)
ax.scatter(days, scores, s=46, c=[COLOURS[int(one)] for one in drifted], zorder=2)
for day, score, share in zip(days, scores, bright, strict=True):
    if share < 1:
        ax.annotate(f"{share:.0%}", (day, score), (6, 4), textcoords="offset points", color=INK, fontsize=9)
ax.set(xlabel="batch of 50 digits; from the seventh on they fade", ylabel="score_samples", xticks=days)
ax.margins(y=0.15)
