"""CSV files: plain, compressed, long and malformed."""

import gzip
import io
import re
import subprocess
import sys

import pytest

from inputs.helpers import frame_of, refusal, same
from sotdd import SotddError, open_dataset
from sotdd.inputs.loaders.csv_quotes import CheckedQuotes


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
        ("x,y\n1,2\nabc,3\n", "text"),
        ("x,y\n" + "1,2\n" * 2_000_000 + "abc,3\n", "cannot read t.csv"),
        ("x,y\n", "no "),
        ("x,x,y\n1,2,3\n", "two columns named 'x'"),
        ("\n\n\n", "cannot read t.csv"),
        ("1,2\n3,4\n", "name the labels with label="),
        ("x,y\n1,2\n,3\n", "t.csv has missing values in 1 of 2 rows, x (1)"),
        ("x,y\nnan,2\n4,3\n", "t.csv has missing values in 1 of 2 rows, x (1)"),
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


def rows(count, ending="\n", note="n"):
    return "".join(f"{row}.5,k{row % 3},{note}{ending}" for row in range(count))


@pytest.mark.parametrize("ends", ["", "k1\n", 'k1"k2\n'], ids=["nothing", "a-line", "a-literal-quote"])
@pytest.mark.parametrize("column", [0, 1, 2], ids=["feature", "label", "unused"])
@pytest.mark.parametrize("count", [30, 20_000], ids=["in-one-block", "over-blocks"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_quote_that_is_left_open_is_refused(folder, monkeypatch, column, count, ends, packed):
    monkeypatch.setattr("sotdd.inputs.loaders.csv._BLOCK_BYTES", 1 << 16)
    fields = ["1", "k1", "n"]
    fields[column] = '"' + fields[column]
    text = "x,label,note\n" + rows(10) + ",".join(fields) + "\n" + rows(count) + ends
    with (gzip.open if packed else open)(f"q.csv{'.gz' if packed else ''}", "wt") as file:
        file.write(text)
    said = refusal(f"q.csv{'.gz' if packed else ''}::features=x")
    assert "opens a quote in line 12 that is not closed" in said


@pytest.mark.parametrize("between", [3, 3000, 400_000])
def test_a_quote_that_the_next_one_seems_to_close_is_refused(folder, between):
    folder.joinpath("q.csv").write_text('x,label\n1,"k1\n' + "2,k2\n" * between + '3,"k3"\n' + "4,k4\n" * 5)
    assert "opens a quote in line 2 that is not closed" in refusal("q.csv")


def test_labels_with_line_breaks_are_fine(folder):
    labels = ["two\nlines", "plain", 'a "quoted" word', "a,comma", "three\r\nmore\nlines", 'ends in "', " spaces "]
    quoted = ['"' + label.replace('"', '""') + '"' for label in labels]
    many = 40_000  # so that fields lie across the blocks that are read
    folder.joinpath("q.csv").write_bytes(
        ("x,label\n" + "".join(f"{i},{q}\n" for i in range(many) for q in quoted)).encode()
    )
    opened = open_dataset("q.csv")
    assert opened.classes == tuple(sorted(labels))
    assert opened.counts.tolist() == [many] * len(labels)


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ('\ufeff"x","label"\n"1","a\nb"\n"2","c"\n', ("a\nb", "c")),
        ('x,label\n1,5" disk\n2,3" disk\n', ('3" disk', '5" disk')),
        ('x,label\n1,"5" disk"\n2,a\n', ('5 disk"', "a")),
        ('x,label\n1,"a" \n2,"b\nc" \n', ("a ", "b\nc ")),
        ('x,label\n1,a\n2,"b"', ("a", "b")),
        ('x,label\r\n1,"a\r\nb"\r\n2,"c"\r\n', ("a\r\nb", "c")),
    ],
    ids=["mark", "literal", "after-a-quote", "blanks", "no-last-line", "carriage-returns"],
)
def test_other_uses_of_quotes_are_read_as_before(folder, text, classes):
    folder.joinpath("q.csv").write_bytes(text.encode())
    assert open_dataset("q.csv").classes == classes


def following(text):
    """The line of the quote that swallows lines, found letter by letter; None if there is none."""
    place, line, at_edge = 0, 1, True
    while place < len(text):
        if text[place] == '"' and at_edge:
            end = place + 1
            while text[end : end + 1] not in ("", '"') or text[end : end + 2] == '""':
                end += 2 if text[end] == '"' else 1
            inside, after = text[place:end], text[end + 1 :].lstrip(" \t")[:1]
            if end >= len(text) or (set(inside) & set("\r\n") and after not in ("", ",", "\r", "\n")):
                return line
            line, place, at_edge = line + inside.count("\n"), end + 1, False
            continue
        at_edge, line, place = text[place] in ",\r\n", line + (text[place] == "\n"), place + 1
    return None


@pytest.mark.slow
def test_quotes_are_followed_across_every_cut(rng):
    """Against a slow reader, over random texts that are mostly quotes and ends of lines."""
    letters = list('""",,\n\nab \t\r')
    for _ in range(3000):
        text = "".join(rng.choice(letters, size=rng.integers(14)))
        for size in (1, 2, 3, 5, 100):
            stream = CheckedQuotes(io.BytesIO(text.encode()), "t.csv", ",", 1 << 20)
            found = None
            try:
                assert b"".join(iter(lambda stream=stream, size=size: stream.read(size), b"")) == text.encode()
            except SotddError as error:
                found = int(re.search(r"line (\d+)", str(error))[1])
            assert found == following(text), (text, size)


def test_a_header_without_rows_is_told_as_such(folder):
    folder.joinpath("h.csv").write_text("age,income,label\n")
    assert "'age' (empty), 'income' (empty)" in refusal("h.csv::label=label")
