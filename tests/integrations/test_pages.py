"""The code on the pages of other libraries; Great Expectations and Airflow are too heavy to install for the tests."""

import re
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


@pytest.mark.slow
def test_the_command_on_the_airflow_page_is_one(tables, run):
    """The words of the BashOperator, run as they are."""
    words = re.search(r'bash_command="sotdd ([^"]+)"', code("airflow")[1])[1].split()
    tables(0)
    assert run(*words)[0] == 0
    tables(1)
    assert run(*words)[0] == 1
    assert Path("gate.html").stat().st_size > 10_000
    assert Path("gate.log").read_text(encoding="utf-8").count('"verdict": ') == 2
