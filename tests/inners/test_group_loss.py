"""Grouped losses of a linear model: values, storage, and what is refused."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from stoic.errors import InvalidParameter
from stoic.inners import GroupLoss, designs, parted
from stoic.losses import Huber

RNG = np.random.default_rng(7)
N, D = 40, 4
X = RNG.normal(size=(N, D))
Y = RNG.normal(size=N)
GROUPS = np.array(["b", "a", "c"])[RNG.integers(0, 3, N)]
W = RNG.normal(size=D)


# Values


@pytest.mark.parametrize("weight", [None, RNG.random(N) + 0.01])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
def test_everything_is_the_weighted_mean_of_each_group(make, intercept, weight):
    inner = GroupLoss(make(X), Y, GROUPS, loss=Huber(0.7), sample_weight=weight, intercept=intercept)
    w = np.append(W, 0.3) if intercept else W
    rows = X.astype(inner.X.dtype).astype(float)
    extended = np.hstack([rows, np.ones((N, 1))]) if intercept else rows
    losses, slopes = Huber(0.7).value(extended @ w, Y), Huber(0.7).derivative(extended @ w, Y)
    for i, label in enumerate("abc"):
        inside = label == GROUPS
        share = None if weight is None else weight[inside]
        mean = np.average(losses[inside], weights=share)
        row = np.average(slopes[inside, None] * extended[inside], axis=0, weights=share)
        np.testing.assert_allclose(inner.value(w, inner.everything())[0, i], mean, rtol=1e-12)
        np.testing.assert_allclose(inner.jacobian(w, inner.everything())[0, i], row, rtol=1e-10, atol=1e-13)


def test_entries_that_are_stored_twice_in_a_csr_row_are_summed():
    doubled = sparse.csr_array(([1.0, 2.0, 5.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    assert len(doubled.data) == 3
    inner, plain = (GroupLoss(matrix, [1.0, 2.0]) for matrix in (doubled, doubled.toarray()))
    w = np.array([0.5, -1.0])
    for draw in (lambda g: g.everything(), lambda g: g.draw(9, np.random.default_rng(0))):
        np.testing.assert_allclose(inner.value(w, draw(inner)), plain.value(w, draw(plain)), rtol=1e-14)
        np.testing.assert_allclose(inner.jacobian(w, draw(inner)), plain.jacobian(w, draw(plain)), rtol=1e-14)
    assert len(doubled.data) == 3


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
def test_large_batches_are_evaluated_in_parts_to_the_same_answers(make, intercept, monkeypatch):
    w, q = np.append(W, 0.5)[: D + intercept], np.array([0.2, -1.0, 3.0])
    inner = GroupLoss(make(X), Y, GROUPS, intercept=intercept)
    monkeypatch.setattr(designs, "_MAX_ENTRIES", 5 * D)
    in_parts = GroupLoss(make(X), Y, GROUPS, intercept=intercept)
    rows = inner.draw(11, np.random.default_rng(0)).rows
    ours, theirs = designs.RowBatch(rows), designs.RowBatch(rows)
    for name, extra in (("value", 1), ("value", 4), ("jacobian", 1), ("jacobian", 4), ("vjp", q)):
        one, other = getattr(inner, name)(w, ours, extra), getattr(in_parts, name)(w, theirs, extra)
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
    assert theirs.gathered is None


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_sparse_rows_are_evaluated_like_few(intercept, dtype, monkeypatch):
    w, q = np.append(W, 0.5)[: D + intercept], np.array([0.2, -1.0, 3.0])
    given = sparse.csr_array((X * (X > -0.5)).astype(dtype))
    for array in (given.data, given.indices, given.indptr):
        array.flags.writeable = False
    inner = GroupLoss(given, Y, GROUPS, intercept=intercept)
    answers = []
    for many in (1 << 13, 0):
        monkeypatch.setattr(designs, "_MANY_ENTRIES", many)
        batch = inner.draw(11, np.random.default_rng(0))
        answers.append(
            [inner.value(w, batch, 4), *(inner.jacobian(w, batch, k) for k in (1, 4)), inner.vjp(w, batch, q)]
        )
    for few, many in zip(*answers, strict=True):
        np.testing.assert_allclose(few, many, rtol=1e-12, atol=1e-14)


def test_a_batch_may_be_evaluated_by_another_inner_part_over_the_same_rows():
    one, other = GroupLoss(X, Y, GROUPS), GroupLoss(2 * X, Y, GROUPS)
    batch = one.draw(5, np.random.default_rng(0))
    one.value(W, batch)
    np.testing.assert_allclose(other.value(W, batch), one.value(2 * W, batch), rtol=1e-12)


def test_a_row_of_weight_zero_counts_nothing_even_if_its_loss_is_infinite():
    inner = GroupLoss([[1.0], [1e200]], [0.0, 0.0], sample_weight=[1.0, 0.0])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(inner.value(np.array([3.0]), inner.everything()), [[9.0]])
        np.testing.assert_array_equal(inner.jacobian(np.array([3.0]), inner.everything()), [[[6.0]]])


# Storage


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_csr_matrix_is_used_without_copying_and_left_alone(kind, dtype):
    given = kind(X.astype(dtype))
    arrays = given.data, given.indices, given.indptr
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    inner = GroupLoss(given, Y, GROUPS, intercept=True)
    for name, array in zip(("data", "indices", "indptr"), arrays, strict=True):
        assert np.shares_memory(getattr(inner.X, name), array)
    for batch in (inner.everything(), inner.draw(3, np.random.default_rng(0))):
        inner.value(np.append(W, 1.0), batch)
        inner.jacobian(np.append(W, 1.0), batch)
        inner.vjp(np.append(W, 1.0), batch, np.ones(3))
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_indices_of_64_bits_are_used_as_they_are():
    given = sparse.csr_array(X)
    given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    inner = GroupLoss(given, Y)
    assert np.shares_memory(inner.X.indices, given.indices)
    np.testing.assert_allclose(inner.value(W, inner.everything()), [[np.mean((X @ W - Y) ** 2)]], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_read_only_array_is_used_as_it_is_with_an_intercept_too(dtype):
    given = X.astype(dtype)
    given.flags.writeable = False
    inner = GroupLoss(given, Y, GROUPS, intercept=True)
    assert inner.X is given
    assert inner.shape == (3, D + 1)
    assert inner.n_unpenalized == 1


@pytest.mark.parametrize("format_", ["csc", "coo", "lil", "dok", "bsr"])
def test_other_sparse_formats_are_converted(format_):
    inner = GroupLoss(sparse.coo_array(X).asformat(format_), Y)
    np.testing.assert_allclose(inner.vjp(W, inner.everything(), np.ones(1)), 2 * (X @ W - Y) @ X / N, rtol=1e-12)


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame(X),
        pd.DataFrame(X).convert_dtypes(),
        pl.DataFrame(X),
        X.tolist(),
        X.astype(">f8"),
    ],
    ids=["pandas", "pandas nullable", "polars", "list", "big-endian"],
)
def test_matrices_of_any_kind_are_taken(given):
    inner = GroupLoss(given, Y)
    np.testing.assert_allclose(inner.value(W, inner.everything()), [[np.mean((X @ W - Y) ** 2)]], rtol=1e-12)


@pytest.mark.parametrize("y", [pd.Series(Y), pl.Series(Y), Y.tolist(), pd.Series(Y).convert_dtypes()])
def test_targets_of_any_kind_are_taken(y):
    np.testing.assert_array_equal(GroupLoss(X, y).y, Y)


def test_columns_of_mixed_number_types_are_taken():
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]})
    np.testing.assert_array_equal(GroupLoss(frame.astype({"a": "Int64"}), [0, 1]).X, [[1, 0.5, 1], [2, 1.5, 0]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_evaluating_everything_needs_far_less_memory_than_the_data(make, dtype, monkeypatch):
    monkeypatch.setattr(designs, "_MAX_ENTRIES", 4096)
    monkeypatch.setattr(parted, "_BLOCK", 4096)
    inner = GroupLoss(make(np.ones((2000, 200), dtype=dtype)), np.ones(2000), np.arange(2000) % 4, intercept=True)
    w, batch = np.zeros(201), inner.everything()
    inner.value(w, batch)
    tracemalloc.start()
    inner.value(w, batch)
    inner.jacobian(w, batch)
    inner.vjp(w, batch, np.ones(4))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2000 * 200 * 4 / 3


def test_an_inner_part_and_its_batches_survive_pickling():
    inner = GroupLoss(sparse.csr_array(X), Y, GROUPS, loss="huber")
    batch = inner.draw(4, np.random.default_rng(0))
    again, same = pickle.loads(pickle.dumps((inner, batch)))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(inner.value(W, batch), again.value(W, same))


def test_a_pickled_batch_does_not_carry_the_data():
    inner = GroupLoss(np.ones((1000, 50)), np.ones(1000))
    batch = inner.draw(4, np.random.default_rng(0))
    inner.value(np.zeros(50), batch)
    assert len(pickle.dumps(batch)) < 1000


def test_the_representation_is_short():
    shown = repr(GroupLoss(X, Y, GROUPS))
    assert shown == "GroupLoss(40 rows, 4 columns, dense, 3 groups, loss=Squared(), intercept=False)"


# What is refused


def test_everything_is_one_block():
    inner = GroupLoss(X, Y, GROUPS)
    for method in (inner.value, inner.jacobian):
        with pytest.raises(InvalidParameter, match=r"blocks=2, but everything\(\) is one block"):
            method(W, inner.everything(), 2)


@pytest.mark.parametrize("blocks", [0, 6])
def test_blocks_that_do_not_fit_the_batch_are_refused(blocks):
    inner = GroupLoss(X, Y, GROUPS)
    batch = inner.draw(5, np.random.default_rng(0))
    for method in (inner.value, inner.jacobian):
        with pytest.raises(InvalidParameter, match=f"blocks={blocks} does not fit a batch of 5"):
            method(W, batch, blocks)


def test_a_draw_of_nothing_is_refused():
    with pytest.raises(InvalidParameter, match="size=0"):
        GroupLoss(X, Y).draw(0, np.random.default_rng(0))


def test_rows_of_a_matrix_that_lies_by_columns_are_drawn_without_a_copy_of_it():
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((20_000, 50)))
    inner = GroupLoss(X, np.zeros(20_000), np.arange(20_000) % 2)
    batch = inner.draw(5, np.random.default_rng(1))
    tracemalloc.start()
    value = inner.jacobian(np.ones(50), batch)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * X.nbytes
    same = GroupLoss(np.ascontiguousarray(X), inner.y, np.arange(20_000) % 2)
    np.testing.assert_array_equal(value, same.jacobian(np.ones(50), same.draw(5, np.random.default_rng(1))))


def test_batches_that_are_joined_have_the_rows_of_each_group_one_after_another():
    rng = np.random.default_rng(0)
    inner = GroupLoss(rng.standard_normal((30, 2)), rng.standard_normal(30), np.arange(30) % 3)
    batches = [inner.draw(size, rng) for size in (2, 3)]
    w = np.array([1.0, -1.0])
    each = [inner.value(w, batch, size) for batch, size in zip(batches, (2, 3), strict=True)]
    np.testing.assert_allclose(inner.value(w, inner.joined(batches), 5), np.concatenate(each))
