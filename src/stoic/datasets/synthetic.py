"""A seeded regression data set in the shape of E2006-tfidf: sparse text features, a planted linear model."""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from stoic.checks import check_count, check_positive
from stoic.datasets.parsed_cache import CSR
from stoic.errors import InvalidParameter
from stoic.protocols import Vector

_SPREAD, _SHORT = 0.6, 0.05  # of the logarithm of row lengths; the share of rows that are far shorter
_DENSEST = 0.25  # mean_row_length / d: beyond this, Zipf's law would need too many words for a row
_SHARE_OF_MODEL = 0.1  # of the columns that the planted model uses
_LABEL_MEAN, _SIGNAL, _NOISE = -3.9, 0.59, 0.1  # of log volatility; signal and noise make a deviation of 0.6
_BLOCK_ROWS = 256


class SparseRegression(NamedTuple):
    """Rows, labels and the planted model: labels are ``X @ w_true + b_true`` and a little noise."""

    X_train: CSR
    y_train: Vector
    X_test: CSR
    y_test: Vector
    w_true: Vector
    b_true: float


def e2006_like(
    seed: int | Generator = 0,
    *,
    n_train: int = 16_087,
    n_test: int = 3_308,
    d: int = 150_360,
    mean_row_length: float = 1_240.0,
    size: float = 1.0,
    dtype: Literal["float64", "float32"] = "float64",
) -> SparseRegression:
    r"""Return a regression data set in the shape of E2006-tfidf, whose real files need no download this way.

    A row is a text: words are drawn by Zipf's law, :math:`P(\text{rank} \ge j)` falling like :math:`-\log j`,
    and counted; a value is :math:`(1 + \log \text{count}) \log(e (1 + n) / (1 + \text{texts with the word}))`,
    and rows have norm 1. Row lengths are log-normal, one in twenty far shorter. Columns are numbered at random.
    The planted model uses a tenth of the columns; labels have mean −3.9 and deviation 0.6, of which 0.1 is
    normal noise.

    Parameters
    ----------
    seed : int or Generator, default 0
        Same seed, same bits (on the same version of NumPy and kind of processor).
    n_train, n_test, d : int
        Rows and columns; ``n_test=0`` makes training rows only.
    mean_row_length : float
        Non-zeros in a row, on average; at most d/4.
    size : float, default 1.0
        Multiplies `n_train`, `n_test` and `d`, and its square root `mean_row_length`.
    dtype : "float64" or "float32"
        Of the values in X; labels are float64.

    Returns
    -------
    SparseRegression
        ``(X_train, y_train, X_test, y_test, w_true, b_true)``; column indices are int32, sorted, each once.

    Examples
    --------
    >>> data = e2006_like(seed=0, size=0.01)
    >>> data.X_train.shape, data.X_test.shape
    ((161, 1504), (33, 1504))
    >>> float(abs(data.X_test @ data.w_true + data.b_true - data.y_test).max()) < 0.5
    True
    """
    size = check_positive("size", size)
    n_train, d = (max(1, round(size * check_count(*count))) for count in (("n_train", n_train), ("d", d)))
    n_test = round(size * check_count("n_test", n_test, low=0))
    mean = math.sqrt(size) * check_positive("mean_row_length", mean_row_length)
    if not 1.0 <= mean <= _DENSEST * d or d >= 2**31:
        raise InvalidParameter(
            f"mean_row_length={mean:g} is not from 1 to d/4 for d={d}, or d is not below 2**31; "
            f"use a smaller mean_row_length or another d."
        )
    if dtype not in {"float64", "float32"}:
        raise InvalidParameter(f'dtype={dtype!r} is neither "float64" nor "float32".')
    rng = np.random.default_rng(seed)
    texts = _Texts(d, rng)
    lengths = _row_lengths(n_train + n_test, mean, d, rng)
    X_train = texts.count(lengths[:n_train], rng, dtype)
    X_test = texts.count(lengths[n_train:], rng, dtype)
    used = np.bincount(X_train.indices, minlength=d)
    idf = (1.0 + np.log((1.0 + n_train) / (1.0 + used))).astype(dtype)
    for X in (X_train, X_test):
        _weigh(X, idf)
    return _labelled(X_train, X_test, rng)


class _Texts:
    """Words by Zipf's law: rank j has the probability log((j+2)/(j+1)) / log(d+1), and a random column."""

    def __init__(self, d: int, rng: Generator) -> None:
        self.d = d
        self.column_of_rank = rng.permutation(d).astype(np.int32)
        chance = np.log1p(1.0 / np.arange(1.0, d + 1.0)) / math.log1p(d)
        missing = np.log1p(-chance) if d > 1 else np.full(1, -np.inf)
        self._words = np.geomspace(1.0, 100.0 * d, 64)
        self._distinct = np.array([-np.expm1(words * missing).sum() for words in self._words])

    def count(self, lengths: Vector, rng: Generator, dtype: str) -> CSR:
        """Return word counts; row i has about ``lengths[i]`` different words."""
        n_words = np.ceil(np.interp(lengths, self._distinct, self._words)).astype(np.int64)
        rows = max(1, min(_BLOCK_ROWS, (2**31 - 1) // self.d))
        blocks = [self._block(n_words[i : i + rows], rng) for i in range(0, len(lengths), rows)]
        empty = np.empty(0, np.int32)
        indices = np.concatenate([empty, *(columns for columns, _, _ in blocks)])
        counts = np.concatenate([empty.astype(dtype), *(counts.astype(dtype) for _, counts, _ in blocks)])
        row_ends = np.cumsum(np.concatenate([empty, *(lengths for _, _, lengths in blocks)]))
        indptr = np.concatenate([[0], row_ends]).astype(np.int32 if len(indices) < 2**31 else np.int64)
        return sparse.csr_array((counts, indices, indptr), shape=(len(lengths), self.d))

    def _block(self, n_words: NDArray[np.int64], rng: Generator) -> tuple[Any, Any, Any]:
        """Draw some rows; return their columns in order, how often each was drawn, and the row lengths."""
        # The inverse of the distribution function in closed form: 68 million lookups in a table take far longer.
        ranks = np.expm1(rng.random(int(n_words.sum())) * math.log1p(self.d)).astype(np.int32)
        words = self.column_of_rank.take(np.minimum(ranks, self.d - 1))
        starts = np.arange(len(n_words), dtype=np.int32) * np.int32(self.d)
        words += np.repeat(starts, n_words)
        words.sort()
        firsts = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]]))
        distinct = words.take(firsts)
        counts = np.diff(np.append(firsts, len(words))).astype(np.int32)
        lengths = np.diff(np.append(np.searchsorted(distinct, starts), len(distinct)))
        return distinct - np.repeat(starts, lengths), counts, lengths


def _row_lengths(n: int, mean: float, d: int, rng: Generator) -> Vector:
    lengths: Vector = rng.lognormal(0.0, _SPREAD, n)
    short = rng.random(n) < _SHORT
    lengths[short] *= rng.uniform(0.02, 0.3, int(short.sum()))
    lengths *= mean / lengths.mean()
    return lengths.clip(1.0, 2.0 * _DENSEST * d)


def _weigh(X: CSR, idf: NDArray[Any]) -> None:
    """Turn counts into tf-idf values of rows with norm 1, in place."""
    np.log(X.data, out=X.data)
    X.data += 1.0
    X.data *= idf.take(X.indices)
    squares = np.add.reduceat(X.data**2, X.indptr[:-1]) if X.nnz else np.empty(0)
    X.data /= np.repeat(np.sqrt(squares).astype(X.dtype), np.diff(X.indptr))


def _labelled(X_train: CSR, X_test: CSR, rng: Generator) -> SparseRegression:
    d = X_train.shape[1]
    w = rng.standard_normal(d) * (rng.random(d) < max(_SHARE_OF_MODEL, 1.0 / d))
    signal = X_train @ w
    deviation = float(signal.std())
    w *= _SIGNAL / deviation if deviation > 0.0 else 1.0
    b = _LABEL_MEAN - float((X_train @ w).mean())
    y_train, y_test = (X @ w + b + _NOISE * rng.standard_normal(X.shape[0]) for X in (X_train, X_test))
    return SparseRegression(X_train, y_train, X_test, y_test, w, b)
