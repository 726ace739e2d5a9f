"""Every command over a folder of messy tables, with what it should say."""

import json

import pytest

from inputs.messy_tables import write

LEFT_OUT = "left out: customer_id (id), signup (date), note (free text)"
CITIES = ["city=Köln", "city=Oslo", "city=Rome"]


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
    assert "people.csv: 120 points, 6 features, 2 classes" in same
    assert same.count(LEFT_OUT) == 1  # once, since it goes for both
    found = json.loads(sotdd("distance people.csv german.csv::encoding=latin-1 --label churned --json"))
    assert found["value"] == pytest.approx(0, abs=1e-6)
    assert found["columns"] == ["age", "income", "vip", *CITIES]
    assert [remark["text"] for remark in found["remarks"]] == [LEFT_OUT]


def test_tables_without_labels(sotdd):
    """Every command compares them, and says so once; the names in the remark are those of its options."""
    remark = "compared without labels, since nothing is called label or labels or target or y or class"
    pair = "people.csv::exclude=churned other_order.csv::exclude=churned"
    for line in (f"distance {pair}", f"test {pair}", f"explain {pair}", f"matrix {pair}", f"rank {pair}",
                 "sketch no_label.csv -o no_label.sotdd", "reference no_label.csv -o no_label.ref"):  # fmt: skip
        assert sotdd(line).count(remark) == 1
    assert remark in sotdd("distance no_label.sotdd no_label.sotdd")
    checked = sotdd("check no_label.ref people.csv")  # whose labels are a column that the reference does not have
    assert remark in checked
    assert "churned" in checked
    assert f"{remark}: name them by --label" in checked
    assert remark not in sotdd("distance people.csv::label= other_order.csv::label=")


def test_targets_are_not_taken_for_labels(sotdd, tables):
    for name in ("people", "other_order"):
        text = (tables / f"{name}.csv").read_text(encoding="utf-8").replace("income", "y").replace("churned", "left")
        (tables / f"{name}_y.csv").write_text(text, encoding="utf-8")
    said = sotdd("distance people_y.csv other_order_y.csv")
    assert said.count("y holds many floats, so it is a feature; otherwise use --label y and FILE::bins=10") == 1
    assert "10 classes" in sotdd("distance people_y.csv::bins=10 other_order_y.csv::bins=10 --label y")
    assert "FILE::bins=10" in sotdd("distance people_y.csv other_order_y.csv --label y", code=2)
    assert "labels are 120 different numbers" in sotdd("distance people.csv people.csv --label customer_id")


def test_one_table_without_labels(sotdd):
    said = sotdd("distance people.csv::label=churned no_label.csv", code=2)
    assert "has no labels but dataset 'people.csv::label=churned' has 2 classes" in said
    assert said.rstrip().endswith("use --label '', --exclude churned.")
    assert "(s-OTDD" in sotdd("distance people.csv no_label.csv --label= --exclude churned")


def test_reading_options(sotdd):
    line = "distance people.csv new_city.csv --label churned --one-hot 5 --exclude in*+vip --json"
    found = json.loads(sotdd(line))
    cities = [f"city={city}" for city in ("Köln", "Oslo", "Paris", "Rome")]
    assert found["columns"] == ["age", *cities]
    assert "8 of 120 rows, age (6), income (3)" in sotdd(
        "distance people.csv gaps.csv --label churned --missing error", code=2
    )
    other = sotdd("distance people.csv people.csv::exclude=age --label churned", code=2)
    assert "has no column 'age'" in other
    assert other.rstrip().endswith("by renaming them or by --features.")
    told = sotdd("distance people.csv age_as_text.csv --label churned", code=2)
    assert told.rstrip().endswith("by --exclude or --na-values.")
    assert "(s-OTDD" in sotdd("distance people.csv gaps.csv --label churned --one-hot false --na-values x+y")
    assert "112 points" in sotdd("distance people.csv gaps.csv --label churned --missing drop")
    assert "filled in by the mean" in sotdd("distance people.csv gaps.parquet --label churned")


def test_every_command_reads_them(sotdd):
    few = "--label churned --n-projections 16"
    said = sotdd("sketch people.csv -o people.sotdd --label churned --n-projections 16")
    assert LEFT_OUT in said
    assert "120 points" in sotdd("distance people.sotdd parts --label churned")
    assert LEFT_OUT in sotdd(f"test people.csv tabs.tsv {few} --n-permutations 19")
    assert "8 of 120 rows" in sotdd(f"matrix people.csv parts older.csv gaps.csv {few} --missing drop")
    ranked = sotdd(f"rank people.csv older.csv excel.csv {few}")
    assert ranked.index("excel.csv") < ranked.index("older.csv")
    assert "'age'" in sotdd(f"distance people.csv age_as_text.csv {few}", code=2)
    assert "1 class" in sotdd("distance people.csv::label=churned no_label.csv::label=")  # asked for


def test_a_reference_and_its_batches(sotdd, tables):
    """A reference of a messy table reads batches as it was read, whatever their order, file type and other columns."""
    said = sotdd("reference people.csv -o people.ref --label churned")
    assert "people.ref: 120 points in 2 classes, 6 features" in said
    assert "columns: age, income, vip, city=Köln, city=Oslo, city=Rome" in said
    assert said.count(LEFT_OUT) == 1
    batches = "other_order.csv people.parquet parts with_index.csv empty_column.csv tabs.tsv few.csv"
    said = sotdd(f"check people.ref {batches} --n-permutations 39")
    assert "7 batches: 7 passed" in said
    assert "judged 4 of 7 columns (left out: customer_id, id; signup, date; note, free text)\n" in said
    assert "FAILED" in sotdd("check people.ref older.csv --n-permutations 39", code=1)
    for batch, why in [
        ("age_as_text.csv", "'age'"), ("german.csv", "encoding"),
        ("no_label.csv", "'churned'"),
    ]:  # fmt: skip
        assert why in sotdd(f"check people.ref {batch} --n-permutations 39", code=2)
    sotdd("check people.ref gaps.csv --missing drop --n-permutations 39")
    sotdd("check people.ref german.csv::encoding=latin-1 --n-permutations 39")
    sotdd("check people.ref swapped.csv --n-permutations 39")
    sotdd("reference people.csv -o named.ref --label churned --label-names match")
    sotdd("check named.ref swapped.csv --n-permutations 39", code=1)


def test_the_settings_of_a_reference_go_for_its_batches(sotdd):
    sotdd("reference german.csv::encoding=latin-1 -o german.ref --label churned --one-hot 5 --missing drop")
    told = json.loads(sotdd("check german.ref german.csv --n-permutations 39 --json"))
    assert told["verdict"] == "passed"
    assert told["distance"]["columns"] == ["age", "income", "vip", *CITIES]
    assert "2 passed" in sotdd("check german.ref gaps.csv excel.csv::encoding=utf-16 --n-permutations 39")
    said = sotdd("check german.ref new_city.csv --n-permutations 39", code=1)
    assert "new category, category gone  'Paris' 0 % → " in said


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("check people.csv older.csv --n-permutations 39", 1),
        ("check people.csv age_as_text.csv --n-permutations 39", 2),
        ("test people.csv older.csv --n-permutations 39", 0),
        ("explain people.csv older.csv --n-projections 64", 0),
        ("matrix people.csv parts gaps.csv --missing drop --n-projections 64", 0),
    ],
)
def test_pages_say_what_was_left_out(sotdd, tables, line, code):
    assert "wrote page.html" in sotdd(f"{line} --label churned --report page.html", code=code)
    page = (tables / "page.html").read_text(encoding="utf-8")
    assert "people.csv" in page
    assert LEFT_OUT[1:] in page  # where it begins a sentence
    if "gaps" in line:
        assert "8 of 120 rows" in page
    assert "Gaps.csv" not in page  # a name stays as it is written, where it begins a sentence too
