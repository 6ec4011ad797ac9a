"""Columns that are centered and scaled without being formed: every product is that of the columns formed."""

import numpy as np
import pytest
from scipy import sparse

import stoic
from stoic.certificate.duality import duality_gap
from stoic.errors import InvalidProblem
from stoic.inners import GroupLoss, GroupSoftmax, designs
from stoic.inners.designs import RowBatch
from stoic.pilot.fixed_sample import make_sample

RNG = np.random.default_rng(3)
N, D = 60, 5
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.6) + [3.0, 0.0, 0.0, -1.0, 0.0]
Y, GROUPS = RNG.normal(size=N), np.arange(N) % 3
CENTER, SCALE = np.array([3.0, 0.5, -0.2, 0.0, 1.0]), np.array([2.0, 0.1, 1.0, 5.0, 1e3])
FORMED = (X - CENTER) / SCALE
W, Q = RNG.normal(size=D + 1), np.array([0.2, 0.5, 0.3])
kinds = pytest.mark.parametrize(
    "kind",
    [np.asarray, sparse.csr_array, sparse.csr_matrix, lambda A: sparse.csr_array(A.astype(np.float32))],
    ids=["array", "CSR", "CSR matrix", "CSR float32"],
)
intercepts = pytest.mark.parametrize("intercept", [False, True])


def pair(kind, intercept=True, **more):
    """Return the inner part that forms nothing, and the one over what would be formed."""
    given = kind(X)
    single = given.dtype == np.float32
    formed = (X.astype(np.float32).astype(float) - CENTER) / SCALE if single else FORMED
    how = {"loss": "huber", "intercept": intercept, "sample_weight": RNG.uniform(size=N), **more}
    return GroupLoss(given, Y, GROUPS, center=CENTER, scale=SCALE, **how), GroupLoss(formed, Y, GROUPS, **how)


@kinds
@intercepts
def test_values_and_slopes_are_those_of_columns_that_are_formed(kind, intercept):
    inner, formed = pair(kind, intercept)
    w = W[: D + intercept]
    assert inner.shape == formed.shape
    for batch in (inner.everything(), inner.draw(12, np.random.default_rng(0))):
        for name, extra in (("value", 1), ("jacobian", 1), ("vjp", Q), ("predict", None)):
            arguments = (w, batch) if extra is None else (w, batch, extra)
            ours = getattr(inner, name)(*arguments)
            theirs = getattr(formed, name)(w, RowBatch(batch.rows), *arguments[2:])
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
    drawn = inner.draw(12, np.random.default_rng(0))
    np.testing.assert_allclose(
        inner.jacobian(w, drawn, 4), formed.jacobian(w, RowBatch(drawn.rows), 4), atol=1e-11
    )


@kinds
@intercepts
def test_curvatures_are_those_of_columns_that_are_formed(kind, intercept):
    inner, formed = pair(kind, intercept)
    w, v, rows = W[: D + intercept], W[::-1][: D + intercept].copy(), RowBatch(None)
    for name, extra in (("hessian", ()), ("hessian_diagonal", ()), ("hessian_product", (v,))):
        ours, theirs = getattr(inner, name)(w, rows, Q, *extra), getattr(formed, name)(w, rows, Q, *extra)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)
    hessian = inner.hessian(w, rows, Q)
    np.testing.assert_array_equal(np.diag(hessian) >= 0.0, True)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-12)


def test_large_batches_are_evaluated_in_parts_to_the_same_answers(monkeypatch):
    inner, formed = pair(sparse.csr_array)
    monkeypatch.setattr(designs, "_MAX_ENTRIES", 5 * D)
    rows = inner.draw(11, np.random.default_rng(0)).rows
    ours, theirs = pair(sparse.csr_array)[0].jacobian(W, RowBatch(rows), 4), formed.jacobian(W, RowBatch(rows), 4)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


def test_softmax_models_have_the_same_columns():
    how = {"n_classes": 3, "intercept": True}
    classes, W3 = np.arange(N) % 3, RNG.normal(size=3 * (D + 1))
    inner = GroupSoftmax(sparse.csr_array(X), classes, GROUPS, center=CENTER, scale=SCALE, **how)
    formed, rows = GroupSoftmax(FORMED, classes, GROUPS, **how), RowBatch(None)
    np.testing.assert_allclose(inner.value(W3, rows), formed.value(W3, rows), rtol=1e-9)
    np.testing.assert_allclose(inner.hessian(W3, rows, Q), formed.hessian(W3, rows, Q), rtol=1e-8, atol=1e-11)


def test_the_center_alone_or_the_scale_alone_may_be_given():
    for how, formed in (({"center": CENTER}, X - CENTER), ({"scale": SCALE}, X / SCALE)):
        inner = GroupLoss(sparse.csr_array(X), Y, GROUPS, **how)
        np.testing.assert_allclose(inner.predict(W[:D], RowBatch(None)), formed @ W[:D], rtol=1e-10)


@pytest.mark.parametrize("method", ["newton", "rosc", "civr"])
def test_a_solve_is_that_of_columns_that_are_formed(method):
    ours, theirs = (stoic.Problem(inner, stoic.LogSumExp(1.0), stoic.L2(0.1)) for inner in pair(sparse.csr_array))
    one, other = (stoic.minimize(problem, method, 3000, seed=0, scale=None) for problem in (ours, theirs))
    np.testing.assert_allclose(one.w, other.w, rtol=1e-5, atol=1e-7)
    assert duality_gap(ours, one.w) == pytest.approx(duality_gap(theirs, other.w), rel=1e-3, abs=1e-10)


def test_nothing_is_copied_or_changed():
    given = sparse.csr_array(X)
    before = given.copy()
    inner = GroupLoss(given, Y, GROUPS, intercept=True, center=CENTER, scale=SCALE)
    assert np.shares_memory(inner.X.data, given.data)
    inner.hessian_product(W, inner.everything(), Q, W)
    inner.jacobian(W, inner.draw(5, np.random.default_rng(0)))
    assert (given != before).nnz == 0


def test_kernels_are_told_that_they_lack_them():
    inner, _ = pair(sparse.csr_array)
    assert "CSR, standardized" in repr(inner)
    with pytest.raises(stoic.IncompatibleParts, match="centered and scaled without being formed"):
        stoic.minimize(stoic.Problem(inner, stoic.Linear()), "mscg", 1000, engine="compiled")


def test_a_sample_of_them_is_not_treated_as_rows_of_x():
    """Distances of block means of sparse rows are read from X itself."""
    inner, formed = pair(sparse.csr_array)
    plain = GroupLoss(sparse.csr_array(X), Y, GROUPS)
    kinds = []
    for part in (inner, formed, plain):
        problem = stoic.Problem(part, stoic.Linear())
        kinds.append(make_sample(problem, part.draw(5, np.random.default_rng(0)), 5).is_sparse)
    assert kinds == [False, False, True]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"center": [1.0, 2.0]}, "center has shape .2,., but X has 5 columns"),
        ({"center": [0.0, 0.0, np.nan, 0.0, 0.0]}, r"center\[2\] is nan, but a finite number"),
        ({"scale": [1.0, 1.0, 1.0, 0.0, 1.0]}, r"scale\[3\] = 0; scales must be > 0"),
        ({"scale": [1.0, -2.0, 1.0, 1.0, 1.0]}, r"scale\[1\] = -2; scales must be > 0"),
        ({"scale": "abc"}, "scale"),
    ],
)
def test_wrong_centers_and_scales_are_refused(how, message):
    with pytest.raises(InvalidProblem, match=message):
        GroupLoss(X, Y, GROUPS, **how)
