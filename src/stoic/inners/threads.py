"""Threads that share work which is cut by the data alone: the same bits for any number of them."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from stoic.inners.blocks import block_bounds
from stoic.protocols import Array

_MOST_THREADS = 4
_TERMS, _MOST_SHARES = 1 << 16, 16  # terms that a thread has at least, one for each row; shares of them at most


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # which looks through the libraries of the process: once


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread: more would wait for each other, or sum in another order."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _pool(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a forked process has none of the threads
    return ThreadPoolExecutor(min(_processors(), _MOST_THREADS))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each_of(work: Callable[[Any], Any], things: Iterable[Any]) -> list[Any]:
    """Return what is made of each of several things, by threads, in their order."""
    errors: Any = np.geterr()  # which a thread does not know of

    def heedful(thing: Any) -> Any:
        with np.errstate(**errors):
            return work(thing)

    return list(_pool(os.getpid()).map(heedful, things))


def by_shares(n: int, work: Callable[[slice], Any]) -> list[Any]:
    """Return what is made of each share of n rows, by threads where there are many; n alone fixes the shares."""
    bounds = block_bounds(n, min(_MOST_SHARES, n // _TERMS) or 1)
    shares = [slice(*pair) for pair in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
    return [work(shares[0])] if len(shares) == 1 else each_of(work, shares)


def filled(n: int, work: Callable[[slice], Array]) -> Array:
    """Return n terms, made share by share."""
    if n < 2 * _TERMS:
        return work(slice(0, n))
    terms = np.empty(n)

    def fill(rows: slice) -> None:
        terms[rows] = work(rows)

    by_shares(n, fill)
    return terms


def added(n: int, work: Callable[[slice], Array]) -> Array:
    """Return the sum over the shares of n rows, in their order."""
    first, *others = by_shares(n, work)
    for other in others:
        first += other
    return np.asarray(first)
