"""An inner function from functions of one's own."""

import numpy as np
import pytest

from stoic.errors import IncompatibleParts, InvalidParameter, InvalidProblem
from stoic.inners import FunctionInner, Moments, functions

X = np.random.default_rng(0).normal(size=(30, 3))
W = np.array([1.0, -2.0, 0.5])


def value(w, x):
    return np.stack([x @ w, (x @ w) ** 2], axis=1)


def jacobian(w, x):
    return np.stack([x, 2 * (x @ w)[:, None] * x], axis=1)


def make(**changes):
    settings = {"value": value, "jacobian": jacobian, "shape": (2, 3), "data": X}
    return FunctionInner(**(settings | changes))


def test_functions_on_data_agree_with_the_same_problem_from_a_built_in_part():
    inner, built_in = make(), Moments(X)
    ours, theirs = inner.everything(), built_in.everything()
    np.testing.assert_allclose(inner.value(W, ours), built_in.value(W, theirs), rtol=1e-13)
    np.testing.assert_allclose(inner.jacobian(W, ours), built_in.jacobian(W, theirs), rtol=1e-12)
    assert inner.n_samples == 30
    assert inner.shape == (2, 3)
    assert repr(inner) == "FunctionInner(shape=(2, 3), 30 samples)"


def test_draws_from_data_are_rows_of_them_with_replacement():
    batch = make().draw(100, np.random.default_rng(0))
    assert batch.shape == (100, 3)
    assert {tuple(row) for row in batch} <= {tuple(row) for row in X}


def test_a_tuple_of_arrays_is_drawn_together():
    inner = make(data=(X, np.arange(30)))
    rows, numbers = inner.draw(50, np.random.default_rng(0))
    np.testing.assert_array_equal(rows, X[numbers])


def test_a_stream_draws_fresh_samples_and_has_no_whole():
    inner = make(data=None, draw=lambda size, rng: rng.normal(size=(size, 3)))
    assert inner.n_samples is None
    assert inner.value(W, inner.draw(8, np.random.default_rng(0)), 4).shape == (4, 2)
    with pytest.raises(InvalidProblem, match="no data to go through"):
        inner.everything()


def test_with_data_and_draw_batches_come_from_draw_and_the_whole_from_data():
    inner = make(draw=lambda size, rng: np.zeros((size, 3)))
    assert not inner.draw(4, np.random.default_rng(0)).any()
    assert inner.everything() is X


def test_large_batches_are_evaluated_in_parts_to_the_same_means(monkeypatch):
    inner = make()
    batch = inner.draw(50, np.random.default_rng(1))
    whole = [inner.value(W, batch, 7), inner.jacobian(W, batch, 7), inner.vjp(W, batch, np.ones(2))]
    monkeypatch.setattr(functions, "_MAX_ENTRIES", 12)
    parts = [inner.value(W, batch, 7), inner.jacobian(W, batch, 7), inner.vjp(W, batch, np.ones(2))]
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_product_of_ones_own_is_used():
    inner = make(vjp=lambda w, x, q: np.full(3, 7.0))
    np.testing.assert_array_equal(inner.vjp(W, inner.everything(), np.ones(2)), [7.0, 7.0, 7.0])


@pytest.mark.parametrize(
    ("changes", "evaluate", "fragment"),
    [
        ({"value": lambda w, x: x @ w}, "value", r"value\(w, samples\).*\(30,\).*\(n, p\) = \(30, 2\)"),
        (
            {"jacobian": lambda w, x: jacobian(w, x)[0]},
            "jacobian",
            r"jacobian\(w, samples\).*\(2, 3\).*\(n, p, d\) = \(30, 2, 3\)",
        ),
        ({"vjp": lambda w, x, q: np.ones(4)}, "vjp", r"vjp\(w, samples, q\).*\(4,\).*\(d,\) = \(3,\)"),
    ],
)
def test_a_wrong_shape_is_named_with_the_right_one(changes, evaluate, fragment):
    inner = make(**changes)
    arguments = (W, inner.everything()) + ((np.ones(2),) if evaluate == "vjp" else ())
    with pytest.raises(IncompatibleParts, match=fragment):
        getattr(inner, evaluate)(*arguments)


@pytest.mark.parametrize(
    ("changes", "error", "fragment"),
    [
        ({"data": None}, InvalidParameter, "neither data nor draw"),
        ({"jacobian": None}, InvalidParameter, "jacobian=None is not a function"),
        ({"draw": 3}, InvalidParameter, "draw=3 is not a function"),
        ({"shape": 2}, InvalidParameter, "shape=2 is not a pair"),
        ({"shape": (2, 0)}, InvalidParameter, "d of shape=0"),
        ({"data": (X, np.ones(4))}, InvalidProblem, r"\(30, 3\), \(4,\)"),
        ({"data": np.ones((0, 3))}, InvalidProblem, r"shape \(0, 3\)"),
        ({"data": 1.0}, InvalidProblem, r"shape \(\)"),
        ({"data": ()}, InvalidProblem, "at least one"),
    ],
)
def test_wrong_parts_are_refused_at_once(changes, error, fragment):
    with pytest.raises(error, match=fragment):
        make(**changes)


def test_a_draw_of_the_wrong_length_is_refused():
    inner = make(data=None, draw=lambda size, rng: np.ones((size + 1, 3)))
    with pytest.raises(IncompatibleParts, match=r"draw\(size=4, rng\) returned 5 samples"):
        inner.draw(4, np.random.default_rng(0))


@pytest.mark.parametrize("size", [0, -1])
def test_a_draw_of_nothing_is_refused(size):
    with pytest.raises(InvalidParameter, match=f"size={size}"):
        make().draw(size, np.random.default_rng(0))


@pytest.mark.parametrize("blocks", [0, 6])
def test_blocks_that_do_not_fit_the_batch_are_refused(blocks):
    inner = make()
    with pytest.raises(InvalidParameter, match=f"blocks={blocks} does not fit a batch of 5"):
        inner.value(W, inner.draw(5, np.random.default_rng(0)), blocks)


@pytest.mark.parametrize("is_tuple", [False, True])
def test_batches_that_are_joined_have_the_means_of_their_samples(is_tuple):
    rng = np.random.default_rng(0)
    pick = (lambda x: x[0]) if is_tuple else (lambda x: x)
    inner = FunctionInner(
        lambda w, x: (pick(x) @ w)[:, None],
        lambda _w, x: pick(x)[:, None, :],
        (1, 3),
        data=(X, np.ones(len(X))) if is_tuple else X,
    )
    batches = [inner.draw(size, rng) for size in (2, 3)]
    joined, w = inner.joined(batches), np.arange(3.0)
    first, second = (inner.value(w, batch)[0] for batch in batches)
    np.testing.assert_allclose(inner.value(w, joined)[0], 0.4 * first + 0.6 * second)
