"""Units do not matter: labels and features in other units give the same answer in these units."""

import functools
import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import stoic

BUDGET, POWERS = 4_000, ((20, 0), (0, -10), (-7, 3))
CASES = tuple(itertools.product(("dense", "csr"), ("squared", "huber"), ("zero", "l2", "l1")))
METHODS = ("auto", "rrosc-growing", "rrosc")


@functools.cache
def table():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((3000, 8)), np.arange(3000) % 4
    X[np.abs(X) < 0.5] = 0.0
    return X, X @ rng.standard_normal(8) + rng.standard_t(2.5, 3000) * (1 + groups), groups


@functools.cache
def answer(method, engine, case, a=1.0, b=1.0):
    """Return w·b/a for labels times a and features times b, the temperature and the weights in matching units."""
    storage, loss, regularizer = case
    X, y, groups = table()
    X = sp.csr_array(X * b) if storage == "csr" else X * b
    losses = {"squared": stoic.Squared(), "huber": stoic.Huber(1.5 * a)}
    regularizers = {"zero": stoic.Zero(), "l2": stoic.L2(0.1 * b * b), "l1": stoic.L1(0.1 * a * b)}
    inner = stoic.GroupLoss(X, y * a, groups, loss=losses[loss])
    problem = stoic.Problem(inner, stoic.LogSumExp(10.0 * a * a), regularizers[regularizer])
    return stoic.minimize(problem, method, budget=BUDGET, seed=0, engine=engine).w * b / a


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("engine", ["plain", "compiled"])
@pytest.mark.parametrize("case", CASES, ids="-".join)
@pytest.mark.sampled(6)
def test_powers_of_two_give_the_same_bits(method, engine, case):
    expected = answer(method, engine, case)
    for a, b in POWERS:
        np.testing.assert_array_equal(answer(method, engine, case, 2.0**a, 2.0**b), expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES, ids="-".join)
@pytest.mark.parametrize(("a", "b"), [(1e6, 1.0), (1e-6, 1.0), (1.0, 1e3), (1.0, 1e-3), (1e6, 1e-3)])
@pytest.mark.sampled(6)
def test_powers_of_ten_give_the_same_answer(method, case, a, b):
    expected = answer(method, "compiled", case)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(answer(method, "compiled", case, a, b), expected, rtol=0.0, atol=1e-6 * scale)
