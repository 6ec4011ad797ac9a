"""The choice of an engine: kernels where they can run a solve and are worth loading, else the plain one."""

import logging

from stoic.engines.engine import Engine
from stoic.engines.plain import PlainEngine
from stoic.engines.support import missing, missing_parts
from stoic.errors import IncompatibleParts
from stoic.inners.metered import Metered
from stoic.problem import Problem
from stoic.solvers.base import AnySolver

_log = logging.getLogger("stoic")

ENGINES = ("auto", "plain", "compiled", "renumbered")
_KERNELS = ("compiled", "renumbered")  # the second is an old name of the first
# Samples, and samples times columns, since a plain step passes over all of these: a solve with fewer of both
# should not have to wait for kernels to load.
_MANY, _MANY_ENTRIES = 50_000, 100_000_000


def check_engine(engine: str, problem: Problem, meter: Metered) -> None:
    """Raise `IncompatibleParts`, before anything is drawn, if kernels are asked for and lack a part."""
    if engine in _KERNELS:
        _refuse(engine, missing_parts(problem, meter.inner))


def _refuse(engine: str, lacking: list[str]) -> None:
    if lacking:
        raise IncompatibleParts(f"{engine=} lacks {', '.join(lacking)}; use engine='auto' or 'plain'.")


def choose_engine(engine: str, solver: AnySolver, problem: Problem, meter: Metered) -> Engine:
    """Return the engine that was asked for; for "auto" kernels, where they can run and are worth loading.

    Raises
    ------
    IncompatibleParts
        If "compiled" is asked for and the kernels lack a part.
    """
    is_short = meter.left < _MANY and meter.left * problem.dimension < _MANY_ENTRIES
    if engine == "plain" or (engine == "auto" and is_short):
        return PlainEngine()
    lacking = missing(solver, problem, meter.inner)
    if not lacking:
        from stoic.engines.compiled.engine import CompiledEngine  # noqa: PLC0415 - loads numba

        return CompiledEngine(problem, meter)
    if engine in _KERNELS:
        _refuse(engine, lacking)
    _log.info("plain engine: the compiled one lacks %s", ", ".join(lacking))
    return PlainEngine()
