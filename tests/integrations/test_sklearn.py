"""The estimator of scikit-learn: it passes scikit-learn's own checks, and says what `sotdd.DriftReference` says."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import sotdd
from sotdd.integrations.sklearn import DriftDetector

BY_BATCH = "a row is judged together with its batch, so fewer rows are another batch"
NOT_ROWS = "the rows fitted on are one batch, which has not drifted from itself: no row of it is an outlier"
INAPPLICABLE = {
    "check_methods_subset_invariance": BY_BATCH,
    "check_outliers_fit_predict": NOT_ROWS,
    "check_outliers_train": NOT_ROWS,
}


@pytest.mark.filterwarnings("default")  # scikit-learn's checks warn on purpose
@pytest.mark.slow
def test_it_passes_the_checks_of_scikit_learn():
    results = check_estimator(
        DriftDetector(n_permutations=19, n_projections=16), expected_failed_checks=INAPPLICABLE, on_skip=None
    )
    names = {
        status: {one["check_name"] for one in results if one["status"] == status} for status in ("passed", "xfail")
    }
    assert len(names["passed"]) > 35
    assert names["xfail"] == set(INAPPLICABLE)


def rows(rng, n_points, shift=0.0):
    y = rng.integers(3, size=n_points)
    return rng.normal(shift, 1, size=(n_points, 5)) + 2 * np.eye(3, 5)[y], y


@pytest.fixture
def fitted(rng):
    return DriftDetector(n_permutations=99).fit(*rows(rng, 800))


def test_it_says_what_the_reference_says(rng):
    x, y = rows(rng, 800)
    batch, labels = rows(rng, 60, 0.3)
    detector = DriftDetector(n_permutations=199, random_state=3)
    for features, known in (((x, y), (batch, labels)), (x, batch)):
        tested = sotdd.DriftReference.fit(features, seed=3).test(known, n_permutations=199)
        ours = detector.fit(x, y).test(batch, labels if isinstance(known, tuple) else None)
        assert ours.p_value == tested.p_value
        assert ours.distance == pytest.approx(tested.distance)
        np.testing.assert_array_equal(ours.null, tested.null)


def test_batches_are_cut_by_size(fitted, rng):
    (same, _), (moved, _) = rows(rng, 100), rows(rng, 70, 1.0)
    both = np.concatenate([same, moved])
    detector = clone(fitted).set_params(batch_size=50).fit(rows(rng, 800)[0])
    verdicts = detector.predict(both)
    assert verdicts.tolist() == [1] * 100 + [-1] * 70
    scores = detector.score_samples(both)
    assert len(set(scores)) == 3  # the last twenty rows are too few for a batch of their own
    np.testing.assert_array_equal(detector.decision_function(both) < 0, verdicts == -1)
    assert detector.score(same) > detector.score(moved)


def test_the_level_is_kept_to_the_last_permutation(rng):
    """A p-value that equals the level counts as drift, as in `TwoSampleTest.rejects`; and verdicts follow p-values."""
    detector = DriftDetector(level=0.25, n_permutations=3, n_projections=16).fit(rows(rng, 300)[0])
    seen = set()
    for _ in range(20):
        batch, _ = rows(rng, 20, rng.uniform(0, 0.4))
        test = detector.test(batch)
        drifted = detector.predict(batch)[0] == -1
        assert drifted == test.rejects(0.25) == (test.p_value == 0.25)
        seen.add(drifted)
    assert seen == {True, False}


def test_labels_count_where_they_are_given(rng):
    x, y = rows(rng, 800)
    batch, labels = rows(rng, 100)
    detector = DriftDetector(n_permutations=99, label_names="match").fit(x, y)
    assert detector.predict(batch)[0] == detector.predict(batch, labels)[0] == 1
    assert detector.predict(batch, (labels + 1) % 3)[0] == -1
    with pytest.raises(sotdd.SotddError, match="fit it with y"):
        DriftDetector().fit(x).predict(batch, labels)


def test_a_pipeline_carries_it_and_a_search_goes_over_it(rng):
    x, y = rows(rng, 300)
    pipeline = make_pipeline(StandardScaler(), PCA(3), DriftDetector(n_permutations=39, n_projections=16))
    pipeline.fit(x, y)
    assert pipeline.predict(x[:50])[0] == 1
    assert pipeline.predict(x[:50] + 2)[0] == -1
    assert pipeline.predict(x[:50], y=y[:50])[0] == 1
    search = GridSearchCV(pipeline, {"driftdetector__n_projections": [8, 16], "pca__n_components": [2]}, cv=2)
    assert set(search.fit(x, y).best_params_) == {"driftdetector__n_projections", "pca__n_components"}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_frames_have_feature_names_and_sparse_rows_are_rows(rng):
    frame = pd.DataFrame(rows(rng, 200)[0], columns=list("abcde"))
    detector = DriftDetector(n_permutations=39, n_projections=16).fit(frame)
    assert detector.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        detector.predict(frame[list("edcba")])
    plain = DriftDetector(n_permutations=39, n_projections=16).fit(frame.to_numpy())
    sparse = DriftDetector(n_permutations=39, n_projections=16).fit(scipy.sparse.csr_array(frame.to_numpy()))
    batch = frame.to_numpy()[:40] + 0.2
    assert sparse.test(scipy.sparse.csr_array(batch)).distance == pytest.approx(plain.test(batch).distance, rel=1e-3)


def test_a_fitted_pipeline_is_an_encoder(rng):
    (x, y), (other, labels) = rows(rng, 300), rows(rng, 200, 0.5)
    pipeline = make_pipeline(StandardScaler(), PCA(3)).fit(x)
    encoded = [sotdd.open_dataset(data, encoder=pipeline) for data in ((x, y), (other, labels))]
    assert encoded[0].n_features == 3
    by_hand = sotdd.distance((pipeline.transform(x), y), (pipeline.transform(other), labels))
    assert sotdd.distance(*encoded).value == pytest.approx(by_hand.value, rel=1e-5)
