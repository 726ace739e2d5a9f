"""The code on the pages of other libraries: it runs where they are installed."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

import sotdd

PAGES = Path(__file__).parents[2] / "docs" / "integrations"


def code(page):
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def tables(rng, tmp_path, monkeypatch):
    """A folder with a reference table, and a function that writes today's."""
    monkeypatch.chdir(tmp_path)

    def write(name, n_rows, shift):
        frame = pd.DataFrame(rng.normal(shift, 1, size=(n_rows, 3)), columns=list("abc"))
        frame.assign(kind=rng.choice(["x", "y"], n_rows)).to_csv(name, index=False)

    write("train.csv", 1000, 0)
    sotdd.DriftReference.fit("train.csv::label=kind").save("train.ref")
    return lambda shift: write("today.csv", 100, shift)


def test_mlflow(tables, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")  # which MLflow reads when it is loaded
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    tables(1)
    names = {}
    exec(compile(code("mlflow")[0], "page", "exec"), names)
    client, run_id = names["mlflow"].MlflowClient(), names["run"].info.run_id
    kept = client.get_run(run_id).data
    assert kept.metrics["drift/distance"] == names["distance"].value > 0.3
    assert kept.tags["drift/verdict"] == "drift"
    assert [item.path for item in client.list_artifacts(run_id)] == ["drift.html"]


@pytest.mark.skipif(find_spec("great_expectations") is None, reason="needs great_expectations, which is not installed")
@pytest.mark.filterwarnings("ignore")  # of the library's own
def test_great_expectations(tables, monkeypatch, capsys):
    monkeypatch.setenv("GX_ANALYTICS_ENABLED", "false")
    making, expectation, use = code("great-expectations")
    names = {"__name__": "page"}
    for block in (making, expectation):
        exec(compile(block, "page", "exec"), names)
    for shift, success in ((0, True), (1, False)):
        tables(shift)
        exec(compile(use, "page", "exec"), names)
        assert names["outcome"].success is success
        assert capsys.readouterr().out.startswith(f"{success} p = 0.")


@pytest.mark.skipif(find_spec("airflow") is None, reason="needs airflow, which is not installed")
def test_airflow(tables, tmp_path):
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "daily.py").write_text(code("airflow")[0], encoding="utf-8")
    settings = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    settings["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(sotdd.__file__).parents[1]), settings.get("PYTHONPATH")])
    )

    def airflow(*arguments):
        words = [sys.executable, "-m", "airflow", *arguments]
        done = subprocess.run(words, env=settings, capture_output=True, text=True, cwd=tmp_path, check=False)
        return done.returncode, done.stdout + done.stderr

    assert airflow("db", "migrate")[0] == 0
    tables(0)
    status, said = airflow("dags", "test", "train_daily")
    assert status == 0, said
    assert "training on data at a distance of" in said
    tables(1)
    status, said = airflow("dags", "test", "train_daily")
    assert status != 0
    assert "today.csv has drifted: p = 0.002" in said
    assert "training on data" not in said


def test_the_command_on_the_airflow_page_is_one(tables, run):
    """The words of the BashOperator, run as they are."""
    words = re.search(r'bash_command="sotdd ([^"]+)"', code("airflow")[1])[1].split()
    tables(0)
    assert run(*words)[0] == 0
    tables(1)
    assert run(*words)[0] == 1
    assert Path("gate.html").stat().st_size > 10_000
    assert Path("gate.log").read_text(encoding="utf-8").count("verdict=") == 2
