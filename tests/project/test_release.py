"""A release: the tag, the version, the changes and the citation agree."""

import re
import runpy
import shutil
from pathlib import Path

import pytest

import sotdd

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not (ROOT / ".ci").is_dir(), reason="not a checkout: there is no .ci folder")
def test_a_tag_is_published_only_if_everything_says_the_same(tmp_path):
    disagreements = runpy.run_path(str(ROOT / ".ci" / "agree"))["disagreements"]
    for name in ("src/sotdd/basics/__init__.py", "CHANGELOG.md", "CITATION.cff"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    disagreements.__globals__["ROOT"] = tmp_path
    tag, changes, citation = f"v{sotdd.__version__}", tmp_path / "CHANGELOG.md", tmp_path / "CITATION.cff"
    heading = re.compile(rf"^## {re.escape(sotdd.__version__)} \(.*\)$", re.MULTILINE)
    dated, count = heading.subn(f"## {sotdd.__version__} (2031-02-03)", changes.read_text("utf-8"))
    assert count == 1
    changes.write_text(dated, "utf-8")
    undated = citation.read_text("utf-8")
    assert "date-released" not in undated  # until there is a release
    assert len(disagreements(tag)) == 1
    citation.write_text(undated + "date-released: 2031-02-04\n", "utf-8")
    assert len(disagreements(tag)) == 1  # another date than the changelog's
    citation.write_text(undated + "date-released: 2031-02-03\n", "utf-8")
    assert disagreements(tag) == []
    assert disagreements("v99.0")
    changes.write_text(dated.replace(f"## {sotdd.__version__}", "## 0.0.9"), "utf-8")
    assert disagreements(tag)
