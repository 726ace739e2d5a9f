"""Files and folders that may not be read: their data would be missing, so they are refused."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inputs.helpers import refusal
from sotdd import open_dataset

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions and links as POSIX has them")

NOBODY = 65534

# The source is opened once while it can be read, which imports all that is needed; then as somebody who may not read.
AS_NOBODY = f"""
import os, sys
import sotdd

source, closed, mode = sys.argv[1], sys.argv[2], int(sys.argv[3], 8)
before = sotdd.open_dataset(source)
os.chmod(closed, mode)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
try:
    print("opened", sotdd.open_dataset(source))
except sotdd.SotddError as error:
    print("refused", error)
"""


def as_nobody(source, closed, mode, folder):
    """What opening a source says to somebody who may not read a part of it."""
    temporary = Path(tempfile.gettempdir()).resolve()
    for place in (folder, *folder.parents):  # pytest keeps its folders to their owner
        if place != temporary and place.is_relative_to(temporary) and place.stat().st_uid == os.getuid():
            place.chmod(0o755)
    command = [sys.executable, "-c", AS_NOBODY, source, closed, oct(mode)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    (folder / closed).chmod(0o755)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("closed", "mode"), [("grey/cat", 0), ("grey/cat", 0o444), ("grey/cat/2.png", 0), ("grey", 0)]
)  # fmt: skip
def test_images_that_may_not_be_read_are_refused(photos, tmp_path, closed, mode):
    said = as_nobody("grey::broken=skip", closed, mode, tmp_path)
    assert said.startswith("refused cannot read ")
    assert closed in said


def test_hidden_folders_may_be_closed(photos, tmp_path):
    (tmp_path / "grey" / "cat" / ".thumbnails").mkdir()
    assert "8 points" in as_nobody("grey", "grey/cat/.thumbnails", 0, tmp_path)


@pytest.mark.parametrize(
    ("source", "closed"),
    [("t.csv", "t.csv"), ("x.npy::label=", "x.npy"), ("parts", "parts/year=2"), ("parts", "parts")],
)
def test_tables_that_may_not_be_read_are_refused(folder, source, closed):
    frame = pd.DataFrame({"x": np.arange(6.0), "y": [0, 1] * 3})
    frame.to_csv("t.csv", index=False)
    np.save("x.npy", np.ones((6, 2)))
    for year in (1, 2):
        (folder / "parts" / f"year={year}").mkdir(parents=True)
        frame.to_parquet(f"parts/year={year}/t.parquet")
    said = as_nobody(source, closed, 0, folder)
    assert said.startswith("refused")
    assert closed in said


def test_links_are_followed_and_refused_where_they_lead_nowhere(photos, tmp_path):
    (tmp_path / "grey" / "cat").rename(tmp_path / "elsewhere")
    (tmp_path / "grey" / "cat").symlink_to(tmp_path / "elsewhere")
    assert open_dataset("grey").counts.tolist() == [4, 4]
    (tmp_path / "grey" / "cat" / "9.png").symlink_to("nowhere.png")
    assert "9.png is broken" in refusal("grey")
    assert open_dataset("grey", broken="skip").counts.tolist() == [4, 4]
