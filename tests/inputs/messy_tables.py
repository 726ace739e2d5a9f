"""A folder of tables as people have them: ids, dates, notes, gaps, other separators, other alphabets."""

import numpy as np
import pandas as pd

CITIES = ("Köln", "Oslo", "Rome")


def people(seed, n=120, shift=0.0, cities=CITIES):
    """Customers: what is known of them, and whether they stayed."""
    rng = np.random.default_rng(seed)
    age, stays = rng.normal(45 + shift, 12, n).round(1), rng.random(n) < 0.5
    return pd.DataFrame(
        {
            "customer_id": rng.permutation(n) + 10_000,
            "signup": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 500, n), "D"),
            "age": age,
            "income": (rng.lognormal(10, 0.4, n) * np.where(stays, 1.5, 1)).round(2),
            "vip": rng.random(n) < 0.3,
            "city": rng.choice(cities, n),
            "note": [f"called {k} times" for k in range(n)],
            "churned": np.where(stays, "no", "yes"),
        }
    )


def with_gaps(frame):
    """Six ages and three incomes are missing, in eight rows."""
    frame = frame.copy()
    frame.loc[[3, 5, 8, 13, 21, 34], "age"] = np.nan
    frame.loc[[34, 55, 89], "income"] = np.nan
    return frame


def write(folder):
    """Write all tables."""
    one, other = people(1), people(2, 90)
    one.to_csv(folder / "people.csv", index=False)
    other[other.columns[::-1]].to_csv(folder / "other_order.csv", index=False)
    people(3, 100, shift=30).to_csv(folder / "older.csv", index=False)
    one.to_parquet(folder / "people.parquet", row_group_size=50)
    (folder / "parts").mkdir()
    one.iloc[:70].to_parquet(folder / "parts" / "part-0.parquet")
    one.iloc[70:].to_parquet(folder / "parts" / "part-1.parquet")
    one.to_csv(folder / "german.csv", index=False, sep=";", encoding="latin-1")
    one.to_csv(folder / "tabs.tsv", index=False, sep="\t")
    one.to_csv(folder / "excel.csv", index=False, sep="\t", encoding="utf-16")
    one.to_csv(folder / "with_index.csv")
    one.assign(fax=np.nan).to_csv(folder / "empty_column.csv", index=False)
    one.assign(age=one["age"].astype(str) + " years").to_csv(folder / "age_as_text.csv", index=False)
    with_gaps(one).to_csv(folder / "gaps.csv", index=False)
    with_gaps(one).to_parquet(folder / "gaps.parquet", row_group_size=50)
    people(4, 90, cities=("Oslo", "Paris")).to_csv(folder / "new_city.csv", index=False)
    one.assign(churned=np.where(one["churned"] == "no", "yes", "no")).to_csv(folder / "swapped.csv", index=False)
    one.drop(columns="churned").to_csv(folder / "no_label.csv", index=False)
    people(5, 10).to_csv(folder / "few.csv", index=False)
