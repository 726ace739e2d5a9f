"""CSV files: plain, compressed, long and malformed."""

import subprocess
import sys

import pytest

from inputs.helpers import refusal
from sotdd import open_dataset


def test_separators_decimals_and_encodings_may_be_said(folder):
    (folder / "t.csv").write_text("a;ä,b;y\n1,5;2;0\n2,5;3;1\n", encoding="latin-1")
    assert "encoding=" in refusal("t.csv")
    opened = open_dataset("t.csv::separator=semicolon,decimal=comma,encoding=latin-1")
    assert opened.columns == ("a", "ä,b")
    assert opened.rows(slice(None)).tolist() == [[1.5, 2], [2.5, 3]]
    for wrong in ("separator=ab", "decimal=semicolon", "encoding=klingon", "separator=comma,decimal=comma"):
        assert wrong.partition("=")[0] in refusal(f"t.csv::{wrong}")


def test_csv_labels_keep_their_kind(folder):
    for written, expected in [
        (["1", "2", "1"], [1, 2, 1]),
        (["01", "2", "01"], ["01", "2", "01"]),
        (["0.5", "2", "0.5"], [0.5, 2.0, 0.5]),
        (["1.0", "1.00", "2"], [1.0, 1.0, 2.0]),
        (["10", "9", "x"], ["10", "9", "x"]),
    ]:
        folder.joinpath("l.csv").write_text("x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(written)))
        opened = open_dataset("l.csv")
        assert [opened.classes[code] for code in opened.codes] == expected


def test_csv_types_may_change_further_down(folder, monkeypatch):
    """The first block looks like integers; fractions and letters come later."""
    monkeypatch.setattr("sotdd.inputs.loaders.csv._BLOCK_BYTES", 1 << 14)
    (folder / "long.csv").write_text("x,y\n" + "1,1\n" * 30_000 + "2.5,a\n")
    opened = open_dataset("long.csv")
    assert opened.n_points == 30_001
    assert set(opened.classes) == {"1", "a"}
    assert opened.rows(slice(30_000, None))[0, 0] == 2.5


def test_quoted_fields_over_lines_and_blocks(folder, monkeypatch):
    monkeypatch.setattr("sotdd.inputs.loaders.csv._BLOCK_BYTES", 1 << 14)
    labels = ["two\nlines", "plain", 'a "quoted" word', "a,comma", "three\r\nmore\nlines", 'ends in "', " spaces "]
    quoted = ['"' + label.replace('"', '""') + '"' for label in labels]
    text = "x,label\n" + "".join(f"{i},{q}\n" for i in range(1000) for q in quoted)
    folder.joinpath("q.csv").write_bytes(text.encode())
    opened = open_dataset("q.csv")
    assert opened.classes == tuple(sorted(labels))
    assert opened.counts.tolist() == [1000] * len(labels)


def test_texts_of_a_sample_alone_are_encoded(data_folder):
    seen = []
    data = open_dataset(data_folder / "ag_news.csv.gz", features="text", label="label_name", max_points=100, seed=1,
                        encoder=lambda texts: [[seen.append(text) or len(text)] for text in texts])  # fmt: skip
    assert data.n_points == len(seen) == 100
    assert set(data.classes) == {f"class {label}" for label in range(4)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x,y\n1,2\n3\n", "cannot read t.csv"),
        ("x,y\n1,2\nabc,3\n", "'x'"),
        ("x,y\n" + "1,2\n" * 2_000_000 + "abc,3\n", "cannot read t.csv"),
        ("age,y\n", "'age' (empty)"),
        ("x,x,y\n1,2,3\n", "'x'"),
        ("\n\n\n", "cannot read t.csv"),
        ("1,2\n3,4\n", "label="),
        ("x,y\n1,2\n,3\n", "1 of 2 rows, x (1)"),
        ("x,y\nnan,2\n4,3\n", "1 of 2 rows, x (1)"),
        ('x,y\n1,"k1\n' + "2,k2\n" * 300, "label of 1,"),  # a quote that is left open
        ('x,y\n"1,k1\n' + "2,k2\n" * 300, "cannot read t.csv"),
    ],
)
def test_malformed_tables_are_one_line(folder, text, said):
    (folder / "t.csv").write_text(text)
    assert said in refusal("t.csv")


def test_missing_libraries_say_how_to_install_them(folder):
    (folder / "t.csv").write_text("x,y\n1,2\n")
    code = "import sys; sys.modules['pyarrow'] = None; import sotdd; sotdd.open_dataset('t.csv')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'sotdd[inputs]'" in done.stderr.splitlines()[-1]
