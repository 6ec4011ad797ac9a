"""Rows in groups: labels of any kind, and which rows are drawn how often."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, strategies as st

from checks import generated
from stoic.inners import GroupLoss
from stoic.inners.groups import GroupedRows

RNG = np.random.default_rng(7)
N, D = 40, 4
X = RNG.normal(size=(N, D))
Y = RNG.normal(size=N)
GROUPS = np.array(["b", "a", "c"])[RNG.integers(0, 3, N)]
W = RNG.normal(size=D)


# Groups


@pytest.mark.parametrize(
    ("groups", "labels"),
    [
        ([3, 1, 3], [1, 3]),
        ([True, False, True], [False, True]),
        ([0.5, -1.0, 0.5], [-1.0, 0.5]),
        (["north", "east", "north"], ["east", "north"]),
        (np.array(["north", "east", "north"], dtype=object), ["east", "north"]),
        (pd.Series(["b", "a", "b"], index=[5, 6, 7]), ["a", "b"]),
        (pd.Categorical(["b", "a", "b"], categories=["b", "a"]), ["a", "b"]),
        (pd.Series([2, 1, 2], dtype="category"), [1, 2]),
        (pl.Series(["b", "a", "b"]), ["a", "b"]),
        (pl.Series(["b", "a", "b"], dtype=pl.Categorical), ["a", "b"]),
        (np.array(["2024-01", "2023-01", "2024-01"], dtype="M8[M]"), None),
        (np.array([2, "a", 2], dtype=object), [2, "a"]),
    ],
)
def test_labels_of_any_kind_make_sorted_groups(groups, labels):
    inner = GroupLoss([[1.0], [2.0], [3.0]], np.zeros(3), groups)
    assert inner.n_groups == 2
    if labels is not None:
        assert inner.group_labels.tolist() == labels
    codes = inner.grouped_rows.codes
    assert codes[0] == codes[2] != codes[1]


def test_without_groups_all_rows_are_one_group():
    inner = GroupLoss(X, Y)
    assert inner.shape == (1, D)
    assert inner.group_labels.tolist() == [0]


def test_rows_of_groups_are_kept_as_a_permutation():
    rows = GroupLoss(X, Y, GROUPS).grouped_rows
    np.testing.assert_array_equal(np.sort(rows.order), np.arange(N))
    for i, label in enumerate("abc"):
        np.testing.assert_array_equal(
            rows.order[rows.offsets[i] : rows.offsets[i + 1]], np.flatnonzero(label == GROUPS)
        )


# Draws


def test_a_batch_holds_rows_of_each_group():
    rows = GroupLoss(X, Y, GROUPS).draw(200, np.random.default_rng(0)).rows
    assert rows.shape == (3, 200)
    for i, label in enumerate("abc"):
        np.testing.assert_array_equal(np.unique(rows[i]), np.flatnonzero(label == GROUPS))


@pytest.mark.parametrize("weight", [None, RNG.random(N)])
def test_many_batches_at_once_are_the_batches_drawn_one_by_one(weight):
    inner = GroupLoss(X, Y, GROUPS, sample_weight=weight)
    at_once = inner.grouped_rows.at(np.random.default_rng(3).random((5, 3, 2)))
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(at_once, [inner.draw(2, rng).rows for _ in range(5)])


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_drawn_in_proportion_to_their_weights(weighted):
    """Pearson's statistic, at most 8 degrees of freedom: a false alarm has P(chi2 > 60) = 5e-10."""
    weight = np.array([1.0, 0.0, 2.0, 3.0, 0.5, 4.0, 0.0, 1.0, 2.0, 1.0]) if weighted else np.ones(10)
    codes = np.array([0, 1, 0, 1, 0, 0, 0, 1, 0, 0])
    inner = GroupLoss(np.ones((10, 1)), np.ones(10), codes, sample_weight=weight if weighted else None)
    size = 20_000
    counts = np.bincount(inner.draw(size, np.random.default_rng(11)).rows.ravel(), minlength=10)
    expected = size * weight / np.bincount(codes, weight)[codes]
    assert (counts[weight == 0] == 0).all()
    inside = weight > 0
    assert np.sum((counts - expected)[inside] ** 2 / expected[inside]) < 60


@generated
@given(st.lists(st.integers(1, 2**52), min_size=1, max_size=5))
def test_the_largest_uniform_number_never_leaves_its_group(sizes):
    largest = 1.0 - 2.0**-53
    assert all(int(largest * float(n)) < n for n in sizes)


def test_the_largest_uniform_number_draws_the_last_row_of_each_group_of_any_size():
    sizes = np.arange(1.0, 1e6)
    assert ((1.0 - 2.0**-53) * sizes < sizes).all()
    codes = np.repeat(np.arange(50), 3)
    for weight in (None, np.tile([1.0, 2.0, 0.0], 50), np.tile([1e-300, 1e300, 1.0], 50)):
        rows = GroupedRows(codes, 50, weight)
        drawn = rows.at(np.full((50, 1), 1.0 - 2.0**-53))
        np.testing.assert_array_equal(codes[drawn[:, 0]], np.arange(50))
        if weight is not None:
            np.testing.assert_array_equal(drawn[:, 0] % 3, 1)
        first = rows.at(np.zeros((50, 1)))
        np.testing.assert_array_equal(codes[first[:, 0]], np.arange(50))


def test_a_first_row_of_weight_zero_is_not_drawn_by_the_number_zero():
    rows = GroupedRows(np.array([0, 0, 1, 1]), 2, np.array([0.0, 1.0, 0.0, 5.0]))
    np.testing.assert_array_equal(rows.at(np.zeros((2, 1)))[:, 0], [1, 3])


@pytest.mark.parametrize("scale", [1e-320, 1e308])
def test_only_ratios_of_weights_matter_even_at_the_ends_of_the_range(scale):
    inner = GroupLoss(X, Y, GROUPS, sample_weight=np.full(N, scale))
    plain = GroupLoss(X, Y, GROUPS)
    np.testing.assert_allclose(inner.value(W, inner.everything()), plain.value(W, plain.everything()), rtol=1e-12)
