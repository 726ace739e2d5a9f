"""Results in a real tracking store of MLflow, read back with its own client."""

import json

import mlflow
import numpy as np
import pytest
from mlflow import MlflowClient

import sotdd
from sotdd.integrations.mlflow import log_result


@pytest.fixture
def client(tmp_path, monkeypatch):
    """A store in a folder of its own; no run is active before or after."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    yield MlflowClient()
    while mlflow.active_run():
        mlflow.end_run()
    mlflow.set_tracking_uri(before)


@pytest.fixture
def data(rng):
    y = rng.integers(2, size=200)
    return {name: (rng.normal(shift, 1, size=(200, 3)), y) for name, shift in (("old", 0), ("new", 0.5), ("far", 3))}


def artifacts(client, run, folder):
    return {item.path for item in client.list_artifacts(run.info.run_id, folder)}


def test_a_distance_is_logged_with_its_error_settings_and_report(client, data):
    found = sotdd.distance(data["old"], data["new"], n_projections=100, noise_floor=5)
    with mlflow.start_run() as run:
        logged = log_result(found, "drift", datasets={name: data[name] for name in ("old", "new")})
    kept = client.get_run(run.info.run_id).data
    assert kept.metrics == logged
    assert kept.metrics["drift/distance"] == found.value
    assert kept.metrics["drift/distance_stderr"] == found.stderr
    assert (kept.metrics["drift/distance_95_low"], kept.metrics["drift/distance_95_high"]) == found.interval(0.95)
    assert kept.metrics["drift/noise_floor"] == found.noise_floor
    assert kept.metrics["drift/excess_stderr"] == found.excess_stderr
    assert kept.params == {"drift/method": "s-OTDD", "drift/p": "2", "drift/scale": "pooled"}
    assert kept.tags["drift/fingerprint"] == found.fingerprint
    assert kept.tags["drift/summary"] == repr(found)
    assert artifacts(client, run, "drift") == {"drift/report.html", "drift/result.json"}
    page = mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/drift/report.html")
    assert "old" in page
    assert "<html" in page
    assert json.loads(mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/drift/result.json")) == found.to_dict()


def test_a_matrix_has_two_metrics_for_each_pair(client, data):
    names = {"old/2024": data["old"], "new": data["new"], "far": data["far"]}
    matrix = sotdd.pairwise(names, n_projections=50)
    with mlflow.start_run() as run:
        log_result(matrix, datasets=names)
    kept = client.get_run(run.info.run_id).data
    assert kept.metrics["sotdd/old_2024 - far"] == matrix["old/2024", "far"].value
    assert kept.metrics["sotdd/old_2024 - far_stderr"] == matrix["old/2024", "far"].stderr
    assert len(kept.metrics) == 6
    assert kept.params["sotdd/datasets"] == "old/2024, new, far"
    assert artifacts(client, run, "sotdd") == {"sotdd/report.html", "sotdd/result.json"}


def test_a_large_matrix_takes_several_requests(client, rng):
    data = [rng.normal(size=(4, 1)) for _ in range(34)]
    matrix = sotdd.pairwise(data, n_projections=2)
    with mlflow.start_run() as run:
        log_result(matrix, report=False)
    assert len(client.get_run(run.info.run_id).data.metrics) == 34 * 33


def test_a_test_is_logged_to_a_run_that_is_not_active(client, data):
    found = sotdd.test(data["old"], data["new"], n_permutations=49)
    run = client.create_run(client.create_experiment("tests"))
    log_result(found, "a/b", run_id=run.info.run_id)
    kept = client.get_run(run.info.run_id).data
    assert kept.metrics["a/b/p_value"] == found.p_value
    assert kept.metrics["a/b/distance_by_chance_95"] == pytest.approx(found.quantiles()[0.95])
    assert kept.params["a/b/n_permutations"] == "49"
    assert kept.tags["a/b/strongest"] == found.strongest
    assert mlflow.active_run() is None


def test_a_monitor_is_a_series_with_a_page_for_each_batch(client, data, rng):
    monitor = sotdd.DriftReference.fit(data["old"][0], n_projections=32).monitor(run_length=50)
    with mlflow.start_run() as run:
        log_result(monitor, "drift")
        for shift in (0, 2):
            monitor = monitor.after(rng.normal(shift, 1, size=(40, 3)), n_permutations=49)
            log_result(monitor, "drift")
    history = client.get_metric_history(run.info.run_id, "drift/drift_sum")
    assert [point.step for point in history] == [0, 1, 2]
    assert history[-1].value == monitor.total
    assert [point.value for point in client.get_metric_history(run.info.run_id, "drift/drift_alarm")] == [0, 0, 1]
    assert artifacts(client, run, "drift") == {
        f"drift/{kind}-00000{step}.{suffix}"
        for kind, suffix in (("report", "html"), ("result", "json"))
        for step in (1, 2)
    }


def test_without_a_run_there_is_one_line_and_nothing_is_started(client, data):
    found = sotdd.distance(data["old"], data["new"], n_projections=10)
    with pytest.raises(sotdd.SotddError, match=r"no active MLflow run: .*start_run.*run_id="):
        log_result(found)
    with pytest.raises(sotdd.SotddError, match=r"MLflow could not log the result: .*not found") as caught:
        log_result(found, run_id="0" * 32)
    assert "\n" not in str(caught.value)
    assert not client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])


def test_other_settings_under_one_name_are_refused_before_anything_is_written(client, data):
    one, other = (sotdd.distance(data["old"], data["new"], n_projections=10, p=p) for p in (1, 2))
    with mlflow.start_run() as run:
        log_result(one, report=False)
        with pytest.raises(sotdd.SotddError, match=r"sotdd/p = 1 but this result 2: log it under another name"):
            log_result(other)
        log_result(other, "second", report=False)
    kept = client.get_run(run.info.run_id).data.metrics
    assert (kept["sotdd/distance"], kept["second/distance"]) == (one.value, other.value)
    assert artifacts(client, run, "sotdd") == {"sotdd/result.json"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"result": 5}, "result is 5: expected what sotdd.distance"),
        ({"name": ""}, "name is ''"),
        ({"name": "../x"}, "expected text, such as 'drift'"),
        ({"step": 1.5}, "step is 1.5"),
        ({"run_id": 5}, "run_id is 5"),
        ({"report": "yes"}, "report is 'yes'"),
        ({"datasets": [[[1.0]]]}, "expected the two"),
    ],
)
def test_bad_arguments_are_one_line(client, arguments, message):
    found = sotdd.distance(np.zeros((3, 1)), np.ones((3, 1)), n_projections=10)
    with mlflow.start_run() as run, pytest.raises(sotdd.SotddError, match=message):
        log_result(**{"result": found, **arguments})
    assert not client.get_run(run.info.run_id).data.metrics
    assert not client.list_artifacts(run.info.run_id)
