"""Rows and vectors for kernels, made by hand, and what they stand for."""

import functools

import numpy as np
import scipy.sparse as sp

import stoic
from stoic.engines.kernels.rows import CSR, Dense
from stoic.engines.kernels.vectors import any as forms, scaled, thresholded as th
from stoic.engines.kernels.vectors.scaled import Held, Scaled
from stoic.engines.kernels.vectors.thresholded import Thresholded
from stoic.regularizers import Anchored, LeavingLast

# --- rows ---


def read_only(array):
    view = np.array(array, order="C")  # as in the engine: another order is compiled anew
    view.flags.writeable = False
    return view


def as_dense(X):
    return Dense(read_only(np.ascontiguousarray(X)))


def as_csr(X, *, doubled=False):
    matrix = sp.csr_array(X)
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    if doubled:  # entries in two parts, which are to count as their sum
        indptr, indices = 2 * indptr, np.repeat(indices, 2)
        data = np.repeat(data, 2) * np.tile([0.25, 0.75], matrix.nnz)
    parts = read_only(indptr.astype(np.int32)), read_only(indices.astype(np.uint32)), read_only(data)
    return CSR(*parts, not doubled)


STORAGE = {"dense": as_dense, "csr": as_csr, "doubled": functools.partial(as_csr, doubled=True)}


def matrix_of(d, n=6):
    """Return rows of every kind: generated, empty, all ones, one entry."""
    rng = np.random.default_rng(d)
    X = np.where(rng.random((n, d)) < 0.6, rng.standard_normal((n, d)), 0.0)
    X[1], X[2], X[3] = 0.0, 1.0, np.eye(d)[d - 1]
    return X


# --- vectors; where there is an intercept, it is the last entry of w, c and the anchor ---


def make_held(Z, n_rows):
    """Return Z (d, p) to be held; nothing where it is None."""
    Z, n_rows = (np.zeros((0, 0)), 0) if Z is None else (Z, n_rows)
    p = Z.shape[1]
    return Held(read_only(Z), *(np.zeros(p) for _ in range(4)), np.zeros((p, p)), np.full((n_rows, p), np.nan))


def make_scaled(w, c=None, *, a=1.0, b=None, weight=0.0, n_rows=6, has_tail=False, Z=None):
    """Return w as a·u + b·c, and Z held."""
    center = np.zeros_like(w) if c is None else c
    size, b = len(w) - has_tail, (0.0 if c is None else 1.0) if b is None else b
    u, c = (w - b * center)[:size] / a, center[:size]
    scalars = np.zeros(scaled.N_SCALARS)
    scalars[:5] = a, b, u @ u, u @ c, c @ c
    scalars[scaled.WEIGHT] = weight
    if has_tail:
        scalars[scaled.TAIL], scalars[scaled.TAIL_C] = w[-1], center[-1]
    unknown, held = np.full(n_rows, np.nan), make_held(Z, n_rows)
    return Scaled(u, read_only(c), np.zeros(size), np.zeros(n_rows), unknown, scalars, held)


def make_thresholded(w, c=None, *, anchor=None, weight=0.0, n_rows=6, has_tail=False):
    """Return w as potentials under a threshold of 0."""
    size = len(w) - has_tail
    center = np.zeros_like(w) if c is None else c
    anchor = center if anchor is None else anchor
    table, scalars = np.zeros((th.N_LINES + 1, 4)), np.zeros(th.N_SCALARS)
    table[0, th.P] = 1.0
    scalars[th.NORM_C], scalars[th.WEIGHT] = np.linalg.norm(center[:size]), weight
    scalars[th.SIZE] = np.abs(w[:size]).max(initial=0.0)
    if has_tail:
        scalars[th.TAIL], scalars[th.TAIL_C], scalars[th.TAIL_ANCHOR] = w[-1], center[-1], anchor[-1]
    form = Thresholded(
        v=w[:size].copy(),
        c=read_only(center[:size]),
        anchor=read_only(anchor[:size]),
        past=np.zeros(size),
        shares=np.zeros(n_rows),
        table=table,
        lines=np.full(th.N_BUCKETS, th.N_LINES, dtype=np.uint16),
        later=np.empty(2 * size + 1, dtype=np.uint32),
        scalars=scalars,
    )
    th.measure(form)
    return form


def copied(form):
    """Return a form that moves apart from the one given."""
    parts = (copied(part) if isinstance(part, tuple) else part for part in form)
    return type(form)(
        *(part.copy() if isinstance(part, np.ndarray) and part.flags.writeable else part for part in parts)
    )


def explicit(form, *, has_tail=False):
    """Return w."""
    out = np.empty(form.past.size)
    forms.current(form, out)
    return np.append(out, forms.intercept(form)) if has_tail else out


def summed(X, form):
    """Return the sum of all values, without the intercept."""
    out = np.empty(form.past.size)
    forms.total(X, form, out)
    return out


def regularizer_of(l1=0.0, l2=0.0, *, has_tail=False, anchor=None, weight=0.0):
    """Return l1‖·‖₁ + (l2/2)‖·‖² but for an intercept, plus (weight/2)‖· − anchor‖²."""
    regularizer = stoic.L2(l2) if l1 == 0.0 else stoic.ElasticNet(l1 + l2, l1 / (l1 + l2))
    regularizer = LeavingLast(regularizer, 1) if has_tail else regularizer
    return Anchored(regularizer, anchor, weight) if weight > 0.0 else regularizer
