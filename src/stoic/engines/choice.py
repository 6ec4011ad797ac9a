"""Which engine runs a solve."""

import logging
from collections.abc import Callable

from numpy.random import Generator

from stoic.engines.plain import Chunk, Limits, run_chunk
from stoic.errors import IncompatibleParts
from stoic.inners.metered import Metered
from stoic.problem import Problem
from stoic.solvers.base import AnySolver

_log = logging.getLogger("stoic")

_WORTH_COMPILING = 50_000  # samples: below, loading the kernels takes longer than the plain engine

RunChunk = Callable[[AnySolver, Problem, Metered, Chunk, Generator, Limits], Chunk]


def choose_engine(engine: str, solver: AnySolver, problem: Problem, meter: Metered) -> RunChunk:
    """Return the function that runs chunks: "plain", "compiled", or for "auto" what is possible and pays.

    Raises
    ------
    IncompatibleParts
        If "compiled" is asked for and the kernels lack a part.
    """
    if engine == "plain" or (engine == "auto" and meter.left < _WORTH_COMPILING):
        return run_chunk
    from stoic.engines.compiled import CompiledEngine, missing  # noqa: PLC0415 - loads numba

    lacking = missing(solver, problem, meter)
    if not lacking:
        return CompiledEngine(problem, meter).run_chunk
    if engine == "compiled":
        raise IncompatibleParts(f"engine='compiled' lacks {', '.join(lacking)}; use engine='auto' or 'plain'.")
    _log.info("plain engine: the compiled one lacks %s", ", ".join(lacking))
    return run_chunk
