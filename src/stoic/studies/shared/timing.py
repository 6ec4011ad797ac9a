"""Timing of competitors, which take turns within a repetition so that a drift of the machine cancels."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

Measure: TypeAlias = Callable[[], float]
PACKAGES = ("stoic", "numpy", "scipy", "numba", "scikit-learn")


class Range(NamedTuple):
    """The median of repeated measurements, the smallest and the largest."""

    median: float
    smallest: float
    largest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Range":
        """Summarize at least one value."""
        return cls(statistics.median(values), min(values), max(values))


def take_turns(
    competitors: Mapping[str, Measure], repetitions: int, tick: Callable[[], None]
) -> dict[str, list[float]]:
    """Return one value per repetition of each competitor, after one uncounted round for compilers and caches."""
    names = list(competitors)
    values: dict[str, list[float]] = {name: [] for name in names}
    for measure in competitors.values():
        measure()
    for repetition in range(repetitions):
        first = repetition % len(names)
        for name in (*names[first:], *names[:first]):  # nobody is always first
            values[name].append(competitors[name]())
        tick()
    return values


def seconds_of(work: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of log y against log x by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def versions() -> dict[str, str]:
    """Return Python's version and those of the packages that are measured."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, object]:
    """Return facts on the machine that a reader of measurements should know."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "load": load,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
