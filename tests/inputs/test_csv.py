"""CSV files: plain, compressed, long and malformed."""

import gzip
import subprocess
import sys

import pytest

from inputs.helpers import frame_of, refusal, same
from sotdd import open_dataset


def test_csv(xy, folder):
    frame = frame_of(xy)
    frame.to_csv("t.csv", index=False)
    frame.to_csv("t.csv.gz", index=False)
    frame.to_csv("t.tsv", index=False, sep="\t")
    for source in ["t.csv", "t.csv.gz", "t.tsv"]:
        same(open_dataset(f"{source}::label=species"), xy)
    same(open_dataset("t.csv::label=species,features=x0+x2"), (xy[0][:, [0, 2]], xy[1]))


def test_csv_labels_keep_their_kind(folder):
    for written, expected in [
        (["1", "2", "1"], [1, 2, 1]),
        (["01", "2", "01"], ["01", "2", "01"]),
        (["0.5", "2", "0.5"], [0.5, 2.0, 0.5]),
        (["1.0", "1.00", "2"], [1.0, 1.0, 2.0]),
        (["10", "9", "x"], ["10", "9", "x"]),
        (["10", "9", "10"], [10, 9, 10]),
    ]:
        folder.joinpath("l.csv").write_text("x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(written)))
        opened = open_dataset("l.csv")
        assert [opened.classes[code] for code in opened.codes] == expected


def test_csv_types_may_change_further_down(folder):
    """The first rows look like integers; fractions and letters come megabytes later."""
    rows = 700_000
    with open("long.csv", "w", encoding="ascii") as file:
        file.write("x,y\n" + "1,1\n" * (4 * rows) + "2.5,a\n")
    opened = open_dataset("long.csv")
    assert opened.n_points == 4 * rows + 1
    assert set(opened.classes) == {"1", "a"}
    assert opened.rows(slice(4 * rows, None))[0, 0] == 2.5


def test_gz_is_read_as_a_stream(folder):
    with gzip.open("t.csv.gz", "wt") as file:
        file.write("x,label\n" + "".join(f"{i},{i % 2}\n" for i in range(1000)))
    assert open_dataset("t.csv.gz").counts.tolist() == [500, 500]


def test_real_texts(real_files):
    path = real_files("ag_news.csv.gz")
    seen = []
    data = open_dataset(path, features="text", label="label_name", max_points=300, seed=1,
                        encoder=lambda texts: [[seen.append(text) or len(text)] for text in texts])  # fmt: skip
    assert data.n_points == len(seen) == 300  # what is not in the sample is not encoded
    assert set(data.classes) == {"World", "Sports", "Business", "Sci/Tech"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x,y\n1,2\n3\n", "cannot read t.csv"),
        ("x,y\n1,2\nabc,3\n", "text"),
        ("x,y\n" + "1,2\n" * 2_000_000 + "abc,3\n", "cannot read t.csv"),
        ("x,y\n", "no "),
        ("x,x,y\n1,2,3\n", "two columns named 'x'"),
        ("\n\n\n", "cannot read t.csv"),
        ("1,2\n3,4\n", "name the labels with label="),
        ("x,y\n1,2\n,3\n", "column 'x' of t.csv has 1 missing value"),
        ("x,y\nnan,2\n4,3\n", "column 'x' of t.csv has 1 missing value"),
    ],
)
def test_bad_tables_as_text(folder, text, said):
    (folder / "t.csv").write_text(text)
    assert said in refusal("t.csv")


def test_missing_libraries_say_how_to_install_them(folder):
    (folder / "t.csv").write_text("x,y\n1,2\n")
    code = "import sys; sys.modules['pyarrow'] = None; import sotdd; sotdd.open_dataset('t.csv')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "which is not installed: pip install 'sotdd[inputs]'" in done.stderr.splitlines()[-1]
