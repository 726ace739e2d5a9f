"""A catalog of sixty sketches."""

import shutil

import numpy as np
import pytest

import sotdd
from sketches.catalog.cases import SMALL, labelled


@pytest.fixture(scope="module")
def projections():
    return sotdd.Projections.fit([labelled(np.random.default_rng(1), 500)], n_projections=64, seed=3)


@pytest.fixture(scope="module")
def sketches(projections):
    rng = np.random.default_rng(2)
    return {
        f"set {i}": sotdd.sketch(labelled(rng, 150 + i, shift=0.05 * i, classes=1 + i % 4), projections, **SMALL)
        for i in range(60)
    }


@pytest.fixture(scope="module")
def original(tmp_path_factory, sketches):
    made = sotdd.Catalog(tmp_path_factory.mktemp("original") / "catalog")
    made.add_many(sketches, {name: {"place": i, "even": i % 2 == 0} for i, name in enumerate(sketches)})
    return made


@pytest.fixture
def catalog(tmp_path, original):
    """A copy of one's own."""
    shutil.copytree(original.path, tmp_path / "catalog")
    return sotdd.Catalog(tmp_path / "catalog")
