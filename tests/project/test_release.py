"""A release: the tag, the version, the changes and the citation agree, and the page of benchmarks is their history."""

import re
import runpy
import shutil
from pathlib import Path

import pytest
from benchmarks import history
from benchmarks.core import Line

import sotdd

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not (ROOT / ".ci").is_dir(), reason="not a checkout: there is no .ci folder")
def test_a_tag_is_published_only_if_everything_says_the_same(tmp_path):
    disagreements = runpy.run_path(str(ROOT / ".ci" / "agree"))["disagreements"]
    for name in ("src/sotdd/basics/version.py", "CHANGELOG.md", "CITATION.cff"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    disagreements.__globals__["ROOT"] = tmp_path
    tag, changes, citation = f"v{sotdd.__version__}", tmp_path / "CHANGELOG.md", tmp_path / "CITATION.cff"
    heading = re.compile(rf"^## {re.escape(sotdd.__version__)} \(.*\)$", re.MULTILINE)
    dated, count = heading.subn(f"## {sotdd.__version__} (2031-02-03)", changes.read_text("utf-8"))
    assert count == 1
    changes.write_text(dated, "utf-8")
    assert len(disagreements(tag)) == 1  # the citation has another date
    said = re.sub(r"^date-released: .*$", "date-released: 2031-02-03", citation.read_text("utf-8"), flags=re.MULTILINE)
    citation.write_text(said, "utf-8")
    assert disagreements(tag) == []
    assert disagreements("v99.0")
    changes.write_text(dated.replace(f"## {sotdd.__version__}", "## 0.0.9"), "utf-8")
    assert disagreements(tag)


def test_a_run_of_benchmarks_is_kept_and_shown(tmp_path):
    kept = tmp_path / "history.jsonl"
    for number, measured in enumerate(("0.5 × (1 s against 2 s)", "3.0 ×")):
        history.Run.of([Line("one / other", measured, "≤ 2.0 ×", number == 0)], "a machine").append(kept)
    first, second = history.read(kept)
    assert (first.version, first.machine) == (sotdd.__version__, "a machine")
    assert history.share_of_promise(*second.measured["one / other"][:2]) == 1.5
    assert "| one / other | ≤ 2.0 × | 0.5 × | **3.0 ×** |" in history.page([first, second])
