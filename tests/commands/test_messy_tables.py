"""Every command over a folder of messy tables, with what it should say."""

import json

import pytest

from inputs.messy_tables import write

LEFT_OUT = "left out: customer (id), signup (date), city (text), note (text)"


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messy")
    write(folder)
    return folder


@pytest.fixture
def sotdd(tables, monkeypatch, run):
    monkeypatch.chdir(tables)
    monkeypatch.setenv("COLUMNS", "400")

    def says(line, code=0):
        ended, said, errors = run(*line.split())
        assert ended == code, said + errors
        return said + errors

    return says


def test_distance(sotdd):
    same = sotdd("distance people.csv people.parquet --label churned")
    assert "people.csv: 120 points, 3 features, 2 classes" in same
    assert same.count(LEFT_OUT) == 1  # once, since it goes for both
    found = json.loads(sotdd("distance people.csv german.csv::encoding=latin-1 --label churned --json"))
    assert found["value"] == pytest.approx(0, abs=1e-6)
    assert found["columns"] == ["age", "income", "vip"]
    assert found["remarks"] == [LEFT_OUT]


def test_reading_options(sotdd):
    line = "distance people.csv new_city.csv --label churned --one-hot 5 --dates --exclude in*+vip --json"
    found = json.loads(sotdd(line))
    cities = [f"city={city}" for city in ("Köln", "Oslo", "Paris", "Rome")]
    assert found["columns"] == ["signup", "age", *cities]
    said = sotdd("distance people.csv gaps.csv --label churned", code=2)
    assert "gaps.csv has missing values in 8 of 120 rows, age (6), income (3): pass --missing drop" in said
    assert "112 points" in sotdd("distance people.csv gaps.csv --label churned --missing drop")
    assert "filled in by the mean" in sotdd("distance people.csv gaps.parquet --label churned --missing mean")
    assert "pass --label '' for one class" in sotdd("distance people.csv people.csv", code=2)
    assert "pass --one-hot 20 for categories" in sotdd(
        "distance people.csv people.csv --label churned --features age+city", code=2
    )


def test_names_of_classes(sotdd):
    plain = json.loads(sotdd("distance people.csv swapped.csv --label churned --json"))
    named = json.loads(sotdd("distance people.csv swapped.csv --label churned --label-names match --json"))
    assert plain["value"] == pytest.approx(0, abs=1e-6)
    assert named["value"] > 0.2
    why = sotdd("explain people.csv swapped.csv --label churned --label-names match --n-projections 64")
    assert "labels are" in why
    assert "names is 'x'" in sotdd("distance people.csv swapped.csv --label churned --label-names x", code=2)


def test_what_cannot_be_compared(sotdd):
    said = sotdd("distance people.csv age_as_text.csv --label churned", code=2)
    assert "column 'age' is a feature of dataset 'people.csv' but holds text in dataset 'age_as_text.csv'" in said
    assert "byte" in sotdd("distance people.csv german.csv --label churned", code=2)
    assert "1 class" in sotdd("distance people.csv::label=churned no_label.csv::label=")  # asked for


def test_test_check_matrix_and_rank(sotdd):
    assert LEFT_OUT in sotdd("test people.csv tabs.tsv --label churned --n-permutations 19 --n-projections 16")
    sotdd("check people.csv people.parquet --label churned --n-permutations 19 --n-projections 16")
    drifted = sotdd("check people.csv older.csv --label churned --n-permutations 99 --n-projections 32", code=1)
    assert "FAILED" in drifted
    table = sotdd("matrix people.csv parts older.csv gaps.csv --label churned --missing drop --n-projections 32")
    assert "older.csv" in table
    assert "rows with missing values left out: 8 of 120 rows" in table
    ranked = sotdd("rank people.csv older.csv excel.csv --label churned --n-projections 32")
    assert ranked.index("excel.csv") < ranked.index("older.csv")


def test_sketches(sotdd):
    said = sotdd("sketch people.csv -o people.sotdd --label churned --n-projections 32")
    assert LEFT_OUT in said
    assert "120 points" in sotdd("distance people.sotdd parts --label churned")
