"""Every kind of file that the package writes: two versions of each, and how to tell which one a file holds."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import sotdd
from sotdd.inputs.encode import _keep
from sotdd.measure.drift_gate import BatchVerdict
from sotdd.pictures.gate_page import GateRun, write_gate_page

KINDS = [
    "sketch",
    "builder",
    "window",
    "statistics",
    "csv",
    "report",
    "drift reference",
    "gate page",
    "vectors",
]
_OF_PROJECTIONS = {
    "sketch": sotdd.Sketch,
    "builder": sotdd.SketchBuilder,
    "window": sotdd.SketchWindow,
    "statistics": sotdd.ClassStatistics,
}


def made(version):
    """What writes each kind of file; those of version 1 are larger, so that a half would be seen."""
    rng = np.random.default_rng(version)
    n = 200 + 50 * version
    x, y = rng.normal(size=(n, 3)), rng.integers(3, size=n)
    projections = sotdd.Projections.fit([(x, y)], n_projections=64 * (1 + version), seed=1)
    matrix = sotdd.pairwise({"a": x, "b": x + 1}, n_projections=16)
    return {
        "sketch": sotdd.sketch((x, y), projections).save,
        "builder": sotdd.SketchBuilder(projections).add(x, y).save,
        "window": sotdd.SketchWindow(projections).add("part", x, y).save,
        "statistics": sotdd.ClassStatistics(projections).add(x, y).save,
        "csv": matrix.to_csv,
        "report": lambda path: sotdd.report(matrix, path, title=f"version {version}"),
        "drift reference": sotdd.DriftReference.fit((x, y), n_projections=64 * (1 + version)).save,
        "gate page": lambda path: write_gate_page(
            path,
            GateRun("a", [BatchVerdict("b", error="x")], [None]),
            title=f"version {version}",
            now=datetime.now(UTC),
        ),
        "vectors": lambda path: _keep(Path(path), np.full((n, 50), version)),
    }


def version_of(kind, path):
    """Read a file, all of it, and say which version it is."""
    if kind in _OF_PROJECTIONS:
        return _OF_PROJECTIONS[kind].load(path).projections.n_projections // 64 - 1
    if kind == "drift reference":
        return sotdd.DriftReference.load(path).projections.n_projections // 64 - 1
    if kind == "vectors":
        return int(np.load(path)[-1, -1])
    text = Path(path).read_text(encoding="utf-8")
    if kind in ("report", "gate page"):
        assert text.rstrip().endswith("</html>")
        return int(text.partition("version ")[2][0])
    assert text.count("\n") == 3
    return [made(version)["csv"]() for version in (0, 1)].index(text)
