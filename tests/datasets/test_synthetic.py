"""The data set in the shape of E2006 has that shape."""

import numpy as np
import pytest

import stoic
from stoic.datasets.synthetic import e2006_like


@pytest.fixture(scope="module")
def data():
    return e2006_like(seed=0, n_train=2_000, n_test=300, d=20_000, mean_row_length=200)


def frequencies(X):
    """Return how many rows each column is in, largest first."""
    return np.sort(np.bincount(X.indices, minlength=X.shape[1]))[::-1]


def test_shapes_and_types_are_as_asked(data):
    assert data.X_train.shape == (2_000, 20_000)
    assert data.X_test.shape == (300, 20_000)
    assert data.y_train.shape == (2_000,)
    assert data.y_test.shape == (300,)
    assert data.w_true.shape == (20_000,)
    assert data.X_train.indices.dtype == data.X_train.indptr.dtype == np.int32
    assert data.X_train.dtype == data.y_train.dtype == np.float64


def test_rows_vary_in_length_around_the_mean_and_some_are_short(data):
    lengths = np.diff(data.X_train.indptr)
    assert 190 < lengths.mean() < 210
    assert 0.5 < np.log(lengths).std() < 1.0
    assert lengths.min() >= 1
    assert 0.02 < (lengths < 0.2 * lengths.mean()).mean() < 0.1


def test_columns_are_in_as_many_rows_as_zipf_says(data):
    found = frequencies(data.X_train)
    ranks = np.arange(200, 5_000)  # the most frequent ones are in almost all rows
    slope = np.polyfit(np.log(ranks), np.log(found[ranks]), 1)[0]
    assert -1.15 < slope < -0.85
    assert found[0] > 0.9 * data.X_train.shape[0]


def test_frequent_columns_are_not_neighbors(data):
    counts = np.bincount(data.X_train.indices, minlength=20_000)
    top = np.flatnonzero(counts >= frequencies(data.X_train)[99])
    assert np.corrcoef(np.sort(top), np.linspace(0, 20_000, len(top)))[0, 1] > 0.97


def test_values_are_positive_and_rows_have_norm_one(data):
    for X in (data.X_train, data.X_test):
        assert X.data.min() > 0.0
        np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1.0, rtol=1e-12)


def test_column_indices_are_sorted_and_each_is_there_once(data):
    for X in (data.X_train, data.X_test):
        entries = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)) * X.shape[1] + X.indices
        assert (np.diff(entries) > 0).all()


def test_labels_look_like_log_volatilities_and_the_planted_model_explains_them(data):
    assert abs(data.y_train.mean() + 3.9) < 0.02
    assert 0.55 < data.y_train.std() < 0.65
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        assert (y - X @ data.w_true - data.b_true).std() == pytest.approx(0.1, rel=0.15)
    assert 0.05 < (data.w_true != 0.0).mean() < 0.15


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    one, same, other = (e2006_like(seed, size=0.01) for seed in (3, 3, 4))
    for a, b in ((one.X_train, same.X_train), (one.X_test, same.X_test)):
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(a, part), getattr(b, part))
    np.testing.assert_array_equal(one.y_test, same.y_test)
    assert one.y_train[0] != other.y_train[0]


def test_size_scales_rows_and_columns_by_itself_and_row_lengths_by_its_root():
    data = e2006_like(seed=0, size=0.04)
    assert data.X_train.shape == (643, 6_014)
    assert 200 < data.X_train.nnz / 643 < 300


def test_single_precision_halves_the_values_and_changes_no_index():
    single, double = (e2006_like(seed=1, size=0.01, dtype=dtype) for dtype in ("float32", "float64"))
    assert single.X_train.dtype == np.float32
    np.testing.assert_array_equal(single.X_train.indices, double.X_train.indices)
    np.testing.assert_allclose(single.X_train.data, double.X_train.data, rtol=1e-5)


def test_no_test_rows_is_a_choice():
    assert e2006_like(seed=0, size=0.01, n_test=0).X_test.shape == (0, 1_504)


def test_a_group_loss_takes_the_rows_as_they_are(data):
    inner = stoic.GroupLoss(data.X_train, data.y_train, np.arange(2_000) % 6)
    assert inner.X.data is data.X_train.data or np.shares_memory(inner.X.data, data.X_train.data)


@pytest.mark.parametrize(
    "settings",
    [{"d": 100}, {"size": 0.0}, {"n_train": 0}, {"mean_row_length": -1}, {"dtype": "int8"}, {"n_test": -1}],
)
def test_what_cannot_be_made_is_refused(settings):
    with pytest.raises(stoic.InvalidParameter):
        e2006_like(seed=0, **settings)
