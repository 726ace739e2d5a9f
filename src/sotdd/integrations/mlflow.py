"""Results in MLflow: numbers with their errors, the settings behind them, and the report to look at."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sotdd.basics.checks import check_flag, described, first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import counted
from sotdd.inputs.data import Dataset
from sotdd.integrations.mlflow_entries import Entries, Result, checked_name, entries_of
from sotdd.measure.drift_monitor import DriftMonitor
from sotdd.pictures.report import report as write_report
from sotdd.results.distance import Distance
from sotdd.results.matrix import DistanceMatrix

__all__ = ["log_result"]

# MLflow takes no more metrics, or parameters, in one request.
_MOST_METRICS, _MOST_PARAMS = 1000, 100


def log_result(
    result: Result,
    name: str = "sotdd",
    *,
    step: int | None = None,
    run_id: str | None = None,
    report: bool = True,
    datasets: Mapping[str, Dataset] | Sequence[Dataset] | None = None,
) -> dict[str, float]:
    """Log a distance, a matrix, a test or the state of a drift monitor to a run of MLflow.

    Numbers become metrics, each error beside its number (``drift/distance``, ``drift/distance_stderr``). Settings
    become parameters; the fingerprint of the projections and the result in one line become tags. The report, and all
    numbers as JSON, become artifacts under the same name.

    Parameters
    ----------
    result
        What `sotdd.distance`, `sotdd.pairwise` or `sotdd.test` returned, or `sotdd.DriftReference.test` or
        ``.distance``; or a `sotdd.DriftMonitor`.
    name
        What all names begin with. A run that has several results needs one for each.
    step
        The step of the metrics; None for 0, or the number of batches so far of a monitor.
    run_id
        The run to log to; None for the active one. None is started.
    report
        Whether to make the report, which takes ``sotdd[report]``.
    datasets
        The datasets that were compared, of which the report can say more; see `sotdd.report`.

    Returns
    -------
    dict
        The metrics as they were logged.

    Examples
    --------
    >>> import mlflow, numpy as np, os, sotdd, tempfile
    >>> from sotdd.integrations.mlflow import log_result
    >>> os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    >>> rng = np.random.default_rng(0)
    >>> found = sotdd.test(rng.normal(size=(200, 4)), rng.normal(0.5, 1, size=(100, 4)), n_permutations=199)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mlflow.set_tracking_uri(f"file:{folder}/runs")
    ...     with mlflow.start_run():
    ...         log_result(found, "drift", step=3)["drift/p_value"]
    0.005
    """
    mlflow = require("mlflow", "sotdd.integrations.mlflow", "'sotdd[mlflow]'")
    prefix = checked_name(name)
    entries = entries_of(result).under(prefix)
    if isinstance(result, DriftMonitor) and step is None:
        step = result.n_batches
    if step is not None and (not isinstance(step, int) or isinstance(step, bool)):
        raise SotddError(f"step is {described(step)}: expected a whole number, or None.")
    with TemporaryDirectory() as folder, _in_one_line(mlflow):
        client = mlflow.MlflowClient()
        run = client.get_run(_run_id(mlflow, run_id))
        _refuse_other_settings(run.data.params, entries, prefix)
        _write_pages(Path(folder), result, step, check_flag(report, "report"), datasets)
        client.log_artifacts(run.info.run_id, folder, prefix)
        _log_entries(mlflow, client, run.info.run_id, entries, step or 0)
    return dict(entries.metrics)


def _run_id(mlflow: Any, run_id: str | None) -> str:  # noqa: ANN401  # the library
    """The run that is meant; none is started behind the caller's back."""
    if run_id is not None:
        if not isinstance(run_id, str):
            raise SotddError(f"run_id is {described(run_id)}: expected the text of an MLflow run's id, or None.")
        return run_id
    active = mlflow.active_run()
    if active is None:
        raise SotddError("there is no active MLflow run: log within `with mlflow.start_run():`, or pass run_id=.")
    found: str = active.info.run_id
    return found


def _refuse_other_settings(logged: Mapping[str, str], entries: Entries, name: str) -> None:
    """Refuse a result with other settings than one before it, since MLflow never changes a parameter."""
    for key, value in entries.params.items():
        if logged.get(key, value) != value:
            raise SotddError(
                f"the run has {key} = {logged[key]} but this result {value}: log it under another name than {name!r}."
            )


def _write_pages(
    folder: Path,
    result: Result,
    step: int | None,
    report: bool,
    datasets: Mapping[str, Dataset] | Sequence[Dataset] | None,
) -> None:
    """Write what becomes artifacts: the numbers as JSON and, where it is asked for, the report."""
    at = "" if step is None else f"-{step:06d}"
    shown = result.last if isinstance(result, DriftMonitor) else result
    if shown is None:  # a monitor before its first batch
        return
    (folder / f"result{at}.json").write_text(json.dumps(shown.to_dict(), indent=1), encoding="utf-8")
    if not report:
        return
    path = folder / f"report{at}.html"
    if isinstance(shown, Distance):  # whose report is that of a matrix of two, without its projections
        if datasets is not None and len(datasets) != 2:
            raise SotddError(f"datasets has {counted(len(datasets), 'dataset')}: expected the two that were compared.")
        names = tuple(map(str, datasets)) if isinstance(datasets, Mapping) else ("a", "b")
        write_report(DistanceMatrix(names, {(0, 1): shown}, None), path, datasets=datasets, explanations={})
    else:
        write_report(shown, path, datasets=datasets)


def _log_entries(mlflow: Any, client: Any, run_id: str, entries: Entries, step: int) -> None:  # noqa: ANN401  # of the library
    now = int(time.time() * 1000)
    metrics = [mlflow.entities.Metric(key, value, now, step) for key, value in entries.metrics.items()]
    params = [mlflow.entities.Param(key, value) for key, value in entries.params.items()]
    tags = [mlflow.entities.RunTag(key, value) for key, value in entries.tags.items()]
    client.log_batch(run_id, params=params[:_MOST_PARAMS], tags=tags)
    for start in range(0, len(metrics), _MOST_METRICS):
        client.log_batch(run_id, metrics=metrics[start : start + _MOST_METRICS])


@contextmanager
def _in_one_line(mlflow: Any) -> Iterator[None]:  # noqa: ANN401  # the library
    """Say in one line what MLflow could not do."""
    try:
        yield
    except (mlflow.exceptions.MlflowException, OSError) as error:
        raise SotddError(f"MLflow could not log the result: {first_line(error)}.") from error
