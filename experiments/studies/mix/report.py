"""What the runs say, as one JSON file: errors, coverage and verdicts by family and size; shares; training."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t


def run(folder: Path) -> None:
    """Summarise the tables that are there."""
    found: dict[str, Any] = {}
    if (path := folder / "recovery.csv").exists():
        found["recovery"] = _recovery(path)
    if (path := folder / "shift.csv").exists():
        found["shift"] = _shift(path)
    if (path := folder / "training.csv").exists():
        found["training"] = _training(path)
    (folder / "summary.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


def _recovery(path: Path) -> dict[str, Any]:
    import pandas as pd

    table = pd.read_csv(path)
    table["wrong"] = table.p_value < 0.05
    pure = table[table.foreign == 0]
    both = ["family", "size"]
    mixed = pure[pure.design == "30/50/20"].groupby(both).error.mean()
    by = pure.groupby(both).agg(error=("error", "mean"), held=("held", "mean"), wrong=("wrong", "mean"))
    by["error_30_50_20"] = mixed
    foreign = table[table.design == "30/50/20"].groupby(["size", "foreign"])
    return {
        "held": float(pure.held.mean()),
        "wrong": float(pure.wrong.mean()),
        "runs": len(table),
        "by_design": _listed(pure.groupby(["size", "design"])[["error", "held", "wrong"]].mean()),
        "by_family": _listed(by),
        "by_foreign": _listed(foreign[["wrong", "left_over"]].mean()),
    }


def _shift(path: Path) -> list[dict[str, Any]]:
    import pandas as pd

    table = pd.read_csv(path)
    table["found"] = table.p_value < 0.05
    return _listed(table.groupby(["family", "case"])[["error", "error_em", "found"]].mean())


def _training(path: Path) -> dict[str, Any]:
    import pandas as pd

    table = pd.read_csv(path).groupby("target")[["mixture", "uniform", "by size", "nearest"]].mean()
    found: dict[str, Any] = {"accuracy": table.mean().round(2).to_dict(), "by_target": _listed(table)}
    for other in ("uniform", "by size", "nearest"):
        gains = (table["mixture"] - table[other]).to_numpy()
        half = t.ppf(0.975, len(gains) - 1) * np.std(gains, ddof=1) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
        found[f"over {other}"] = [round(float(gains.mean() + sign * half), 2) for sign in (-1, 0, 1)]
    return found


def _listed(table: Any) -> list[dict[str, Any]]:  # a frame
    return json.loads(table.reset_index().round(4).to_json(orient="records"))  # type: ignore[no-any-return]
