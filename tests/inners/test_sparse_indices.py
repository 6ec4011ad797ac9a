"""Sparse matrices whose index arrays are wrong: an error at every door, never another process's memory."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import stoic
from stoic import GroupDROClassifier, GroupDRORegressor
from stoic.inners import GroupLoss, GroupSoftmax, Moments

RNG = np.random.default_rng(0)
N, D = 60, 8
X = np.where(RNG.random((N, D)) < 0.3, RNG.standard_normal((N, D)), 0.0)
Y, GROUPS = X @ RNG.standard_normal(D) + RNG.standard_normal(N), np.arange(N) % 3

DOORS = {
    "fit": lambda X: GroupDRORegressor().fit(X, Y, groups=GROUPS),
    "partial_fit": lambda X: GroupDRORegressor().partial_fit(X, Y, groups=GROUPS),
    "classify": lambda X: GroupDROClassifier().fit(X, Y > 0, groups=GROUPS),
    "predict": lambda X: FITTED.predict(X),  # noqa: PLW0108 - not made yet
    "GroupLoss": lambda X: GroupLoss(X, Y, GROUPS),
    "GroupSoftmax": lambda X: GroupSoftmax(X, GROUPS, n_classes=3),
    "Moments": Moments,
}
FITTED = GroupDRORegressor().fit(X, Y, groups=GROUPS)


def put(part, place, value):
    def damage(matrix):
        getattr(matrix, part)[place] = value
        return matrix

    return damage


def cut(part):
    def damage(matrix):
        setattr(matrix, part, getattr(matrix, part)[:-3])
        return matrix

    return damage


COMPRESSED = {
    "indptr far beyond": put("indptr", 4, 10**9),
    "indptr below zero": put("indptr", 4, -5),
    "indptr that falls": lambda matrix: put("indptr", 4, matrix.indptr[6])(matrix),
    "indptr that starts late": put("indptr", 0, 1),
    "indptr that ends late": lambda matrix: put("indptr", -1, matrix.nnz + 5)(matrix),
    "index below zero": put("indices", 5, -1),
    "index beyond": put("indices", 5, N),
    "index far beyond": put("indices", 5, 2**31 - 1),
    "short data": cut("data"),
    "short indices": cut("indices"),
    "short indptr": cut("indptr"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("damage", COMPRESSED)
def test_a_damaged_matrix_is_refused_at_every_door(damage, form, door):
    matrix = COMPRESSED[damage](sparse.csr_array(X).asformat(form))
    with pytest.raises(stoic.InvalidProblem, match=r"^X\.ind"):
        DOORS[door](matrix)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("value", [-1, N, 2**31 - 1])
def test_coordinates_outside_are_refused(axis, value):
    matrix = sparse.coo_array(X)
    matrix.coords[axis][3] = value
    for door in DOORS.values():
        with pytest.raises(stoic.InvalidProblem, match=rf"X\.coords\[{axis}\]\[3\] = {value} is not one of"):
            door(matrix)


def test_blocks_outside_are_refused():
    matrix = sparse.bsr_array(X, blocksize=(2, 4))
    matrix.indices[3] = 99
    with pytest.raises(stoic.InvalidProblem, match=r"X\.indices\[3\] = 99"):
        GroupLoss(matrix, Y)


def in_any_order(matrix):
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        for part in (matrix.indices, matrix.data):
            part[start:stop] = part[start:stop][::-1].copy()
    return matrix


def in_halves(matrix):
    indices, halves = np.repeat(matrix.indices, 2), np.repeat(matrix.data / 2.0, 2)
    return sparse.csr_array((halves, indices, 2 * matrix.indptr), shape=matrix.shape)


@pytest.mark.parametrize("change", [in_any_order, in_halves])
@pytest.mark.parametrize("says_so", [True, False])
def test_entries_in_any_order_or_in_parts_are_the_same_matrix(change, says_so):
    matrix = change(sparse.csr_array(X))
    if not says_so:  # SciPy's note is of before
        matrix.has_sorted_indices = matrix.has_canonical_format = True
    before = [part.copy() for part in (matrix.data, matrix.indices, matrix.indptr)]
    for standardize in ("auto", True):
        plain, fitted = (
            GroupDRORegressor(standardize=standardize).fit(one, Y, groups=GROUPS)
            for one in (sparse.csr_array(X), matrix)
        )
        np.testing.assert_allclose(fitted.coef_, plain.coef_, rtol=1e-9)
        np.testing.assert_allclose(fitted.predict(matrix), plain.predict(X), rtol=1e-9)
    for part, was in zip((matrix.data, matrix.indices, matrix.indptr), before, strict=True):
        np.testing.assert_array_equal(part, was)


# Masks

MASKED = {
    "w0": lambda mask: stoic.minimize(PROBLEM, "newton", 100, w0=mask(np.zeros(D))),
    "w": lambda mask: PROBLEM.objective(mask(np.zeros(D))),
    "weights": lambda mask: stoic.Linear(mask(np.ones(3))),
    "prior": lambda mask: stoic.LogSumExp(1.0, prior=mask(np.ones(3))),
    "baseline": lambda mask: stoic.SmoothCVaR(0.5, 0.5, baseline=mask(np.ones(3))),
    "low": lambda mask: stoic.Box(mask(np.zeros(3)), 1.0),
    "x": lambda mask: stoic.robust_mean(mask(Y), delta=0.1),
    "X": lambda mask: GroupLoss([mask(X[0]), X[1]], Y[:2]),
    "y": lambda mask: FITTED.score(X, mask(Y)),
    "sample_weight": lambda mask: FITTED.score(X, Y, sample_weight=mask(np.ones(N))),
    "data": lambda mask: stoic.FunctionInner(len, len, shape=(1, 1), data=mask(Y)),
}
PROBLEM = stoic.Problem(GroupLoss(X, Y, GROUPS), stoic.LogSumExp(1.0))


@pytest.mark.parametrize("name", MASKED)
def test_masks_are_refused_at_every_door(name):
    def mask(array):
        return np.ma.array(array, mask=np.arange(array.size) == 1)

    with pytest.raises(stoic.InvalidProblem, match=f"{name} has masked entries"):
        MASKED[name](mask)


def test_an_array_that_could_be_masked_and_is_not_is_taken():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = GroupDRORegressor().fit(np.ma.array(X), np.ma.array(Y), groups=np.ma.array(GROUPS))
    np.testing.assert_array_equal(fitted.coef_, FITTED.coef_)
