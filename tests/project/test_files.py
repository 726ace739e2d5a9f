"""Datasets are downloaded by name from a real server: whole and checked, or not at all; and made into what is read."""

import bz2
import csv
import gzip
import hashlib
import http.server
import io
import socket
import tarfile
import threading
import zipfile

import numpy as np
import pytest
from experiments import conversions, data, files

BODY = np.random.default_rng(0).bytes(3_000_000)


class Server:
    """Serves `content`, perhaps cut off after some bytes, perhaps without going on in the middle."""

    def __init__(self):
        self.content = {"/set.bin": BODY}
        self.cut = None
        self.ranges = True
        self.asked = []
        outer = self

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.headers.get("Range"))
                body = outer.content.get(self.path)
                if body is None:
                    self.send_error(404)
                    return
                begun = int(self.headers["Range"][6:-1]) if "Range" in self.headers and outer.ranges else 0
                self.send_response(206 if begun else 200)
                self.send_header("Content-Length", str(len(body) - begun))
                self.end_headers()
                self.wfile.write(body[begun : outer.cut])

            def log_message(self, *_):
                """Nothing."""

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.address = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server():
    found = Server()
    yield found
    found.close()


def _wanted(server, content=BODY, path="/set.bin", size=None):
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return files.Download(f"{server.address}{path}", len(content) if size is None else size, digest)


def _fetched(wanted, folder):
    return files.fetched(wanted, folder / "official", folder)


def _left(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# --------------------------------------------------------------------------- downloads


@pytest.mark.parametrize("size", [None, 0])
def test_a_file_is_downloaded_once(server, tmp_path, size):
    wanted = _wanted(server, size=size)
    for _ in range(2):
        assert _fetched(wanted, tmp_path).read_bytes() == BODY
    assert server.asked == [None]
    assert _left(tmp_path) == ["official/set.bin"]


@pytest.mark.parametrize("size", [len(BODY), len(BODY) - 5, 0])
def test_another_file_is_refused_and_not_kept(server, tmp_path, size):
    wanted = files.Download(f"{server.address}/set.bin", size, "md5:" + "0" * 32)
    with pytest.raises(files.MissingData, match=r"expected md5 0{32} of http://\S+/set.bin, got [0-9a-f]{32}: nothing"):
        _fetched(wanted, tmp_path)
    assert _left(tmp_path) == []


@pytest.mark.parametrize("size", [None, 0])
@pytest.mark.parametrize("ranges", [True, False])
def test_a_transfer_that_was_cut_off_goes_on(server, tmp_path, size, ranges):
    server.cut, server.ranges = 1_000_000, ranges
    wanted = _wanted(server, size=size)
    with pytest.raises(files.MissingData, match=r"got 1,000,000 bytes of it \(.*cut off.*\): run again to go on"):
        _fetched(wanted, tmp_path)
    assert _left(tmp_path) == ["official/set.bin.part"]
    server.cut = None
    assert _fetched(wanted, tmp_path).read_bytes() == BODY
    assert server.asked == [None, "bytes=1000000-"]
    assert _left(tmp_path) == ["official/set.bin"]


def test_what_another_file_left_is_found_out(server, tmp_path):
    (tmp_path / "official").mkdir()
    (tmp_path / "official" / "set.bin.part").write_bytes(b"x" * 1000)
    wanted = _wanted(server)
    with pytest.raises(files.MissingData, match="nothing of it was kept; run again"):
        _fetched(wanted, tmp_path)
    assert _fetched(wanted, tmp_path).read_bytes() == BODY


def test_a_part_that_is_whole_only_gets_its_name(server, tmp_path):
    (tmp_path / "official").mkdir()
    (tmp_path / "official" / "set.bin.part").write_bytes(BODY)
    assert _fetched(_wanted(server), tmp_path).read_bytes() == BODY
    assert server.asked == []


def test_a_file_that_is_not_there(server, tmp_path):
    with pytest.raises(
        files.MissingData, match=r"expected a file at http://\S+/gone.bin, got 404 Not Found: try later, or"
    ):
        _fetched(_wanted(server, path="/gone.bin"), tmp_path)
    assert _left(tmp_path) == []


def test_no_network(tmp_path):
    with socket.socket() as free:  # bound and never listened on: whoever calls is refused
        free.bind(("127.0.0.1", 0))
        wanted = files.Download(f"http://127.0.0.1:{free.getsockname()[1]}/set.bin", 10, "md5:" + "0" * 32)
        with pytest.raises(files.MissingData, match=r"got 0 bytes of it \(.*refused.*\): run again") as caught:
            _fetched(wanted, tmp_path)
    assert "\n" not in str(caught.value)
    assert _left(tmp_path) == []


# --------------------------------------------------------------------------- from the server to the arrays


def _idx(array):
    sides = np.array(array.shape, ">u4").tobytes()
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + sides + array.tobytes())


def _packed(rng, *names):
    x = rng.integers(0, 256, size=(5, 28, 28), dtype=np.uint8)
    y = np.array([3, 1, 2, 1, 26], np.uint8)
    return x, y, dict(zip(names, (_idx(x), _idx(y), _idx(x[:2]), _idx(y[:2])), strict=True))


def _served(server, name, content):
    """The dataset with this name, its files served here."""
    server.content |= {f"/{file}": body for file, body in content.items()}
    downloads = tuple(_wanted(server, body, f"/{file}") for file, body in content.items())
    known = files.DATASETS[name]
    return {name: files.Dataset(name, known.file, known.terms, known.made_by, downloads)}


def test_a_dataset_is_downloaded_converted_and_read(server, tmp_path, rng, capsys):
    x, y, content = _packed(rng, "a.gz", "b.gz", "c.gz", "d.gz")
    datasets = _served(server, "fashion_mnist", content)
    folder = tmp_path / "new" / "folder"
    path = files.at_hand("fashion_mnist", folder, datasets)
    assert "fashion_mnist: downloading" in capsys.readouterr().err
    assert path == folder / "fashion_mnist.npz"
    train, test = data.images("fashion_mnist", folder)
    np.testing.assert_array_equal(train.x, x)
    np.testing.assert_array_equal(train.y, y)
    np.testing.assert_array_equal(test.x, x[:2])
    assert len(server.asked) == 4
    files.at_hand("fashion_mnist", folder, datasets)
    assert len(server.asked) == 4


def test_official_files_that_cannot_be_read_leave_nothing(server, tmp_path):
    datasets = _served(server, "cifar10", {"cifar.tar.gz": b"no archive"})
    with pytest.raises(files.MissingData, match=r"expected the official files of cifar10, got cifar.tar.gz \("):
        files.at_hand("cifar10", tmp_path, datasets)
    assert _left(tmp_path) == ["official/cifar10/cifar.tar.gz"]


def test_what_is_not_downloaded_says_where_to_get_it(tmp_path):
    with pytest.raises(
        files.MissingData, match=r"expected .*amazon_review_full.csv.gz, which .*: get amazon_review_full_csv"
    ):
        data.texts("amazon_polarity", tmp_path)


def test_the_table_names_files_and_functions():
    for name, dataset in files.DATASETS.items():
        assert dataset.name == name
        assert bool(dataset.downloads) != bool(dataset.by_hand)
        assert callable(getattr(conversions, dataset.made_by)) if dataset.downloads else True
        for one in dataset.downloads:
            kind, digest = one.checksum.split(":")
            assert len(bytes.fromhex(digest)) == {"sha256": 32, "md5": 16}[kind]
            assert one.url.startswith("http")
    assert {*data.NIST, "cifar10", "tiny_imagenet", "ag_news"} <= set(files.DATASETS)


def test_the_folder_is_the_users_unless_it_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SOTDD_DATA", str(tmp_path))
    assert files.default_folder() == tmp_path
    monkeypatch.delenv("SOTDD_DATA")
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert files.default_folder() == tmp_path / "sotdd" / "data"


def test_the_command(tmp_path, capsys, rng):
    _, _, content = _packed(rng, "a.gz", "b.gz", "c.gz", "d.gz")
    for name, body in content.items():
        (tmp_path / name).write_bytes(body)
    folder = ["--data", str(tmp_path / "kept")]
    files.main([*folder, "mnist", *(str(tmp_path / name) for name in content)])
    files.main([*folder, "mnist"])  # is there
    assert capsys.readouterr().out.split() == [str(tmp_path / "kept" / "mnist.npz")] * 2
    with pytest.raises(SystemExit):
        files.main([*folder, "mnits"])
    assert "got 'mnits'" in capsys.readouterr().err


# --------------------------------------------------------------------------- conversions


def _loaded(convert, official, folder):
    convert(official, folder / "kept.npz")
    return dict(np.load(folder / "kept.npz"))


def test_letters_stand_upright_and_are_counted_from_0(tmp_path, rng):
    kinds = ("images-idx3", "labels-idx1")
    names = [f"gzip/emnist-letters-{part}-{kind}-ubyte.gz" for part in ("train", "test") for kind in kinds]
    x, y, content = _packed(rng, *names)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, body in content.items():
            archive.writestr(name, body)
    found = _loaded(conversions.emnist_letters, [tmp_path / "a.zip"], tmp_path)
    np.testing.assert_array_equal(found["X_train"][0].T, x[0])
    assert found["y_train"].tolist() == (y - 1).tolist()


def test_usps_as_libsvm_keeps_it(tmp_path):
    for name, label in (("a.bz2", 7), ("b.bz2", 1)):
        row = " ".join(f"{place + 1}:{-1 + 2 * place / 255:.6f}" for place in range(256))
        (tmp_path / name).write_bytes(bz2.compress(f"{label} {row} \n".encode()))
    found = _loaded(conversions.usps, [tmp_path / "a.bz2", tmp_path / "b.bz2"], tmp_path)
    assert (found["y_train"].tolist(), found["y_test"].tolist()) == ([6], [0])
    assert np.abs(found["X_train"].ravel().astype(int) - np.arange(256)).max() <= 1
    assert found["X_test"].shape == (1, 16, 16)


def _tar(path, content):
    with tarfile.open(path, "w:gz") as archive:
        for name, body in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))


def test_cifar_has_its_colours_last(tmp_path, rng):
    rows = rng.integers(0, 10, size=(2, 3073), dtype=np.uint8)
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    _tar(tmp_path / "a.tgz", {f"cifar-10-batches-bin/{name}.bin": rows.tobytes() for name in names})
    found = _loaded(conversions.cifar10, [tmp_path / "a.tgz"], tmp_path)
    assert found["X_train"].shape == (10, 32, 32, 3)
    assert found["X_test"][1, 2, 3, 1] == rows[1, 1 + 1024 + 2 * 32 + 3]
    assert found["y_test"].tolist() == rows[:, 0].tolist()


def test_tiny_imagenet_keeps_its_pictures_as_they_are(tmp_path):
    from PIL import Image

    def picture(level):
        file = io.BytesIO()
        Image.new("RGB", (64, 64), (level,) * 3).save(file, "JPEG")
        return file.getvalue()

    root = "tiny-imagenet-200"
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(f"{root}/wnids.txt", "n2\nn1\n")
        archive.writestr(f"{root}/words.txt", "n1\tcliff, drop\nn2\talp\nn3\tno class\n")
        for wnid, base in (("n1", 100), ("n2", 0)):
            for number in (10, 2):
                archive.writestr(f"{root}/train/{wnid}/images/{wnid}_{number}.JPEG", picture(base + number))
        archive.writestr(f"{root}/val/val_annotations.txt", "val_1.JPEG\tn1\t0\t0\nval_0.JPEG\tn2\t0\t0\n")
        for number in (0, 1):
            archive.writestr(f"{root}/val/images/val_{number}.JPEG", picture(200 + number))
    conversions.tiny_imagenet([tmp_path / "a.zip"], tmp_path / "tiny_imagenet_subset.npz")
    assert data.tiny_classes(tmp_path) == ["alp", "cliff"]
    train, test = data.images("tiny_imagenet", tmp_path)
    assert train.x[:, 0, 0, 0].tolist() == pytest.approx([2, 10, 102, 110], abs=2)
    assert train.y.tolist() == [0, 0, 1, 1]
    assert test.x[:, 0, 0, 0].tolist() == pytest.approx([200, 201], abs=2)
    assert test.y.tolist() == [0, 1]


def _csv(rows):
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return file.getvalue().encode()


def test_texts_of_an_archive_and_of_two_files(tmp_path):
    train = [(1, "Title", 'Say "hi",\\nthen go'), (4, "", "x")]
    test = [(2, "T", "y")]
    (tmp_path / "train.csv").write_bytes(_csv(train))
    (tmp_path / "test.csv").write_bytes(_csv(test))
    conversions.zhang_texts([tmp_path / "train.csv", tmp_path / "test.csv"], tmp_path / "ag_news.csv.gz")
    first, second = data.texts("ag_news", tmp_path)
    assert list(first.x) == ['Title Say "hi",\nthen go', "x"]
    assert (first.y.tolist(), second.y.tolist()) == ([0, 3], [1])
    untitled = {"yelp/train.csv": _csv([(1, "bad"), (3, "so"), (5, "good")]), "yelp/test.csv": _csv([(5, "fine")])}
    _tar(tmp_path / "a.tgz", untitled)
    conversions.zhang_texts([tmp_path / "a.tgz"], tmp_path / "yelp_review_full.csv.gz")
    first, second = data.texts("yelp_polarity", tmp_path)
    assert (list(first.x), first.y.tolist(), list(second.x)) == (["bad", "good"], [0, 1], ["fine"])


def test_reviews_of_films(tmp_path):
    reviews = {
        f"aclImdb/train/{kind}/{n}_1.txt": f"{kind} {n}".encode() for kind in ("neg", "pos", "unsup") for n in (0, 1)
    }
    _tar(tmp_path / "a.tgz", {**reviews, "aclImdb/train/labeledBow.feat": b"1"})
    conversions.imdb([tmp_path / "a.tgz"], tmp_path / "imdb_train2000.csv.gz")
    parts = data.texts("imdb", tmp_path)
    found = {text: label for part in parts for text, label in zip(part.x, part.y.tolist(), strict=True)}
    assert found == {"neg 0": 0, "neg 1": 0, "pos 0": 1, "pos 1": 1}


def test_a_sample_is_the_same_every_time_and_from_everywhere():
    rows = [(number % 3, "", str(number)) for number in range(2000)]
    sample = conversions._sample(iter(rows), 100)
    assert sample == conversions._sample(iter(rows), 100) == sorted(sample, key=lambda row: int(row[2]))
    assert len({row[2] for row in sample}) == 100
    assert np.mean([int(row[2]) for row in sample]) == pytest.approx(1000, abs=250)
