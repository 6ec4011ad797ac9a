"""Moments of returns."""

import numpy as np
import pytest
from scipy import sparse

from stoic.errors import InvalidParameter, InvalidProblem
from stoic.inners import Moments

X = np.random.default_rng(0).standard_t(3.0, size=(200, 4))
W = np.array([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_the_moments_of_everything_are_exact(make):
    inner = Moments(make(X))
    batch, t = inner.everything(), X @ W
    np.testing.assert_allclose(inner.value(W, batch), [[t.mean(), np.mean(t * t)]], rtol=1e-12)
    jacobian = np.stack([X.mean(axis=0), 2 * t @ X / len(X)])
    np.testing.assert_allclose(inner.jacobian(W, batch)[0], jacobian, rtol=1e-11)


def test_moments_have_two_outputs_and_cost_one_sample_a_row():
    inner = Moments(X)
    assert inner.shape == (2, 4)
    assert (inner.n_samples, inner.n_unpenalized, inner.cost(5)) == (200, 0, 5)


def test_both_moments_come_from_the_same_rows():
    inner = Moments(X)
    first, second = inner.value(W, inner.draw(50, np.random.default_rng(1)), 50).T
    np.testing.assert_allclose(second, first**2, rtol=1e-13)


def test_moments_use_the_array_as_it_is():
    assert Moments(X).X is X


@pytest.mark.parametrize(
    ("bad", "fragment"),
    [
        (np.ones(3), r"shape \(3,\)"),
        ([[1.0, np.nan]], "row 0, column 1"),
        (np.ones((0, 2)), "at least one row"),
    ],
)
def test_bad_returns_are_refused(bad, fragment):
    with pytest.raises(InvalidProblem, match=fragment):
        Moments(bad)


def test_everything_is_one_block():
    inner = Moments(X)
    for method in (inner.value, inner.jacobian):
        with pytest.raises(InvalidParameter, match="one block"):
            method(W, inner.everything(), 2)


def test_the_representation_says_what_it_holds():
    assert repr(Moments(X)) == "Moments(200 rows, 4 columns)"
