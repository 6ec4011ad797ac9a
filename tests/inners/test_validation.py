"""Data that cannot be used are refused, with the place of what is wrong and a remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from stoic.errors import InvalidParameter, InvalidProblem
from stoic.inners import GroupLoss

RNG = np.random.default_rng(7)
N, D = 40, 4
X = RNG.normal(size=(N, D))
Y = RNG.normal(size=N)
GROUPS = np.array(["b", "a", "c"])[RNG.integers(0, 3, N)]
NAN_X = X.copy()
NAN_X[3, 2] = np.nan
NAN_Y = Y.copy()
NAN_Y[5] = np.inf
BAD_CSR = sparse.csr_array(X)
BAD_CSR.data[9] = -np.inf


def damaged(**arrays):
    """Return a 3 x 2 CSR matrix some of whose arrays were exchanged after SciPy looked at them."""
    matrix = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0], [4.0, 0.0]]))
    for name, array in arrays.items():
        setattr(matrix, name, np.asarray(array))
    return matrix


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        ({"X": NAN_X}, "X is nan in row 3, column 2; remove"),
        ({"X": pd.DataFrame(NAN_X, columns=list("pqrs"))}, r"row 3, column 2 \(r\)"),
        ({"X": pl.DataFrame(NAN_X, schema=list("pqrs"))}, r"row 3, column 2 \(r\)"),
        ({"X": pd.DataFrame({"a": [1, None] * 20}).convert_dtypes()}, r"nan in row 1, column 0 \(a\)"),
        ({"X": BAD_CSR}, "X is -inf in row 2, column 1"),
        ({"X": BAD_CSR.tocsc()}, "X is -inf in row 2, column 1"),
        ({"X": X[:, 0]}, r"X has shape \(40,\).*reshape\(-1, 1\)"),
        ({"X": X[None]}, r"shape \(1, 40, 4\)"),
        ({"X": X[:0]}, r"shape \(0, 4\).*at least one row"),
        ({"X": X[:, :0]}, r"shape \(40, 0\)"),
        ({"X": X.astype(object)}, r"X has dtype object.*astype\(float\)"),
        ({"X": X.astype(complex)}, "X has dtype complex128"),
        ({"X": X.astype(str)}, "X has dtype <U"),
        ({"X": [[1.0], [2.0, 3.0]]}, "differ in length"),
        ({"X": pd.DataFrame({"a": X[:, 0], "city": ["x"] * N})}, "X column 'city' holds str"),
        ({"X": pl.DataFrame({"a": X[:, 0], "city": ["x"] * N})}, "X column 'city' holds String"),
        ({"X": np.ma.masked_invalid(NAN_X)}, "masked"),
        ({"X": X[:-1]}, "y has 40 entries, but X has 39 rows"),
        ({"y": NAN_Y}, r"y\[5\] is inf"),
        ({"y": Y[:, None]}, r"y has shape \(40, 1\).*y.ravel\(\)"),
        ({"y": np.stack([Y, Y], 1)}, r"y has shape \(40, 2\)"),
        ({"y": 1.0}, r"y has shape \(\)"),
        ({"y": ["a"] * N}, "y has dtype <U1"),
        ({"y": pd.Series([1.0, None] * 20).convert_dtypes()}, r"y\[1\] is nan"),
        ({"y": sparse.csr_array(Y[:, None])}, "y is a sparse matrix"),
        ({"groups": GROUPS[1:]}, "groups has 39 entries, but X has 40 rows"),
        ({"groups": GROUPS[:, None]}, r"groups has shape \(40, 1\)"),
        ({"groups": [*GROUPS[:-1], None]}, r"groups\[39\] is None"),
        ({"groups": [*GROUPS[:-1], float("nan")]}, r"groups\[39\] is nan"),
        ({"groups": pd.Series([*GROUPS[:-1], pd.NA], dtype="object")}, r"groups\[39\] is <NA>"),
        ({"groups": pd.Categorical([*GROUPS[:-1], None])}, r"groups\[39\] is nan"),
        ({"groups": [1.0] * 39 + [np.nan]}, r"groups\[39\] is nan"),
        ({"groups": np.array(["2020"] * 39 + ["NaT"], dtype="M8[Y]")}, r"groups\[39\] is NaT"),
        ({"groups": np.ma.masked_equal(np.arange(N), 3)}, "groups has masked entries"),
        ({"y": pl.Series(["1"] * N)}, "y holds String"),
        ({"groups": np.fromiter([[1]] * N, dtype=object)}, "cannot be hashed"),
        ({"groups": pd.Categorical(GROUPS, categories=list("abcde"))}, "no row in the categories d, e"),
        ({"groups": pd.Series(GROUPS, dtype=pd.CategoricalDtype(list("abcz")))}, "categories z"),
        ({"groups": pl.Series(GROUPS, dtype=pl.Enum(list("abcz")))}, "categories z"),
        ({"sample_weight": np.ones(3)}, "sample_weight has 3 entries"),
        ({"sample_weight": np.where(np.arange(N) == 4, -0.5, 1.0)}, r"sample_weight\[4\] = -0.5 is negative"),
        ({"sample_weight": np.where(np.arange(N) == 4, np.nan, 1.0)}, r"sample_weight\[4\] is nan"),
        ({"sample_weight": (GROUPS != "b") * 1.0}, "all rows of group b have a sample_weight of zero"),
        ({"loss": "logistic"}, r"y\[0\] = .*labels -1 and \+1"),
        ({"y": np.arange(N) % 2, "loss": "logistic"}, r"y\[0\] = 0.*2 \* y - 1"),
    ],
)
def test_bad_data_are_refused_with_their_place(arguments, fragment):
    with pytest.raises(InvalidProblem, match=fragment):
        GroupLoss(**({"X": X, "y": Y, "groups": GROUPS} | arguments))


@pytest.mark.parametrize(
    ("matrix", "fragment"),
    [
        (damaged(indices=[0, 1, 2, 0]), r"X.indices\[2\] = 2 in row 1 is no column of the 2"),
        (damaged(indices=[0, -1, 1, 0]), r"X.indices\[1\] = -1 in row 0.*int64"),
        (damaged(indptr=[0, 3, 2, 4]), "X.indptr falls from 3 to 2 at row 1"),
        (damaged(indptr=[0, 2, 3, -(2**31)]), "X.indptr falls from 3 to -2147483648 at row 2.*2.*31"),
        (damaged(indptr=[0, 2, 3, 5]), "X.indptr ends at 5, but there are 4 indices and 4 data"),
        (damaged(indptr=[0, 2, 3, 3]), r"ends at 3.*prune\(\)"),
        (damaged(indptr=[1, 2, 3, 4]), r"start with \[1\]"),
        (damaged(indptr=[0, 2, 4]), "needs 4 entries"),
        (damaged(indptr=np.empty(0, dtype=int)), "has 0 entries"),
        (damaged(data=[1.0, 2.0, 3.0]), "4 indices and 3 data"),
        (damaged(data=np.ones((4, 1))), r"4 data of shape \(4, 1\)"),
        (damaged(indices=[0.0, 1.0, 1.0, 0.0]), "X.indices has dtype float64"),
        (damaged(data=np.array([1, 2, 3, 4], dtype=complex)), "dtype complex128"),
        (sparse.coo_array(np.ones(3)), r"shape \(3,\)"),
    ],
)
def test_damaged_sparse_matrices_are_refused_with_the_place_of_the_damage(matrix, fragment):
    with pytest.raises(InvalidProblem, match=fragment):
        GroupLoss(matrix, np.zeros(3))


def test_an_unknown_loss_is_refused_with_a_suggestion():
    with pytest.raises(InvalidParameter, match="did you mean 'huber'"):
        GroupLoss(X, Y, loss="hubert")


def test_numbers_so_large_that_their_sum_overflows_are_taken():
    assert GroupLoss(np.full((3, 2), 1.7e308), np.zeros(3)).n_samples == 3
    assert GroupLoss(np.full((3, 2), 3e38, dtype=np.float32), np.zeros(3)).n_samples == 3
