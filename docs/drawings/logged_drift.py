"""What MLflow keeps of a monitored series: metrics by step, read back from a tracking store."""

import os
import tempfile

os.environ["MLFLOW_ALLOW_FILE_STORE"] = os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

import matplotlib.pyplot as plt
import mlflow
import numpy as np
from scene import COLOURS, QUIET

import sotdd
from sotdd.demo import digits
from sotdd.integrations.mlflow import log_result

images, labels = digits()
order = np.random.default_rng(0).permutation(len(images))
known, later = order[:1197], order[1197:]
reference = sotdd.DriftReference.fit((images[known], labels[known]), with_sketch=True)
monitor = reference.monitor(run_length=200)
with tempfile.TemporaryDirectory() as folder:
    mlflow.set_tracking_uri(f"file:{folder}/runs")
    with mlflow.start_run() as run:
        for day, bright in enumerate([1, 1, 1, 1, 1, 1, 0.97, 0.94, 0.91, 0.88, 0.85, 0.82]):
            rows = later[50 * day : 50 * (day + 1)]
            batch = bright * images[rows], labels[rows]
            monitor = monitor.after(batch)
            log_result(monitor, "drift", report=False)
            log_result(reference.distance(batch), "size", step=monitor.n_batches, report=False)
    client = mlflow.MlflowClient()
    history = {
        name: [point.value for point in client.get_metric_history(run.info.run_id, name)]
        for name in (
            "drift/drift_sum", "drift/drift_limit", "drift/drift_alarm", "size/distance", "size/distance_95_low",
            "size/distance_95_high", "size/noise_floor",
        )
    }  # fmt: skip

figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.3))
steps = np.arange(1, len(history["size/distance"]) + 1)
alarms = np.array(history["drift/drift_alarm"], bool)
left.plot(steps, history["drift/drift_sum"], color=QUIET, linewidth=1, zorder=1)
left.scatter(steps, history["drift/drift_sum"], c=[COLOURS[int(one)] for one in alarms], s=36, zorder=2)
left.plot(steps, history["drift/drift_limit"], color=QUIET, linewidth=1, linestyle="--")
left.text(1, history["drift/drift_limit"][0], " drift/drift_limit", color=QUIET, fontsize=9, va="bottom")
left.set(title="drift/drift_sum", xlabel="step", xticks=steps[::2])
right.fill_between(
    steps, history["size/distance_95_low"], history["size/distance_95_high"], color=COLOURS[0], alpha=0.3, linewidth=0
)
right.plot(steps, history["size/distance"], color=COLOURS[0], marker="o", markersize=4)
right.plot(steps, history["size/noise_floor"], color=QUIET, linewidth=1, linestyle="--")
right.text(12, history["size/noise_floor"][-1], "size/noise_floor", color=QUIET, fontsize=9, va="top", ha="right")
right.margins(y=0.12)
right.set(title="size/distance", xlabel="step", xticks=steps[::2])
