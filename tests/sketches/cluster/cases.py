"""Batches, tables and frames that the tests of clusters go over, and what they should give."""

import dask
import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa

D = 5


def batch(seed, n=1500, classes=3, d=D):
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    return (rng.normal(size=(n, d)) + 0.5 * labels[:, None]).astype(np.float32), labels


def table(features, labels, lists=False):
    if lists:
        rows = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), features.shape[1])
        return pa.table({"point": rows, "label": labels})
    return pa.table({**{f"x{k}": column for k, column in enumerate(features.T)}, "label": labels})


def frame(parts, npartitions, lists=False):
    features, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    columns = {"point": list(features)} if lists else {f"x{k}": column for k, column in enumerate(features.T)}
    with dask.config.set({"dataframe.convert-string": False}):
        return dask.dataframe.from_pandas(pd.DataFrame({**columns, "label": labels}), npartitions=npartitions)


def same(found, expected):
    """Counts merge to the bit, sums of classes to rounding."""
    assert found.classes == expected.classes
    assert found.counts.tolist() == expected.counts.tolist()
    np.testing.assert_allclose(found.class_terms, expected.class_terms, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.quantiles, expected.quantiles, atol=2e-6)
