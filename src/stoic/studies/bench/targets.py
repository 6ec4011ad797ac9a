"""Targets of the compiled engine: the metrics of ``stoic bench`` and their ranges. Imports nothing heavy."""

import math
from typing import NamedTuple


class BenchTarget(NamedTuple):
    """A metric, the range that it must lie in, and what to aim for."""

    name: str
    what: str
    low: float
    high: float
    aim: str = ""

    @property
    def must(self) -> str:
        """The range in words."""
        if math.isinf(self.low):
            return f"≤ {self.high:g}"
        return f"≥ {self.low:g}" if math.isinf(self.high) else f"{self.low:g} to {self.high:g}"

    def holds(self, value: float) -> bool:
        """Whether a value lies in the range."""
        return self.low <= value <= self.high


def _at_most(name: str, what: str, high: float, aim: str = "") -> BenchTarget:
    return BenchTarget(name, what, -math.inf, high, aim)


TARGETS = {
    target.name: target
    for target in (
        _at_most("l2-m1", "time per row, ROSC with L2, m = 1, over SGDRegressor(average=True)", 0.8, "0.6"),
        _at_most("l2-m4", "time per row, ROSC with L2, m = 4, over SGDRegressor(average=True)", 0.8, "0.6"),
        _at_most("l1", 'time per row, ROSC with L1, m = 1, over SGDRegressor(penalty="l1")', 0.6, "0.4"),
        _at_most(
            "elastic-net",
            'time per row, ROSC with ElasticNet, m = 1, over SGDRegressor(penalty="elasticnet")',
            0.6,
            "0.4",
        ),
        _at_most("tracked", "time per row, TrackedROSC over ROSC, L2, m = 1", 1.1, "1"),
        _at_most("nonzero", "time per non-zero, ROSC with L2, m = 1, over SciPy's X @ w", 2.5, "1.7"),
        BenchTarget(
            "dense-step", "plain step with a dense Jacobian over compiled step, m = 1", 150.0, math.inf, "250"
        ),
        _at_most("truncated", "time per row with 15 % of the steps truncated over none truncated", 1.5, "1.1"),
        _at_most(
            "dense-data", "time per row of dense data, ROSC with L2, over SGDRegressor(average=True)", 0.8, "0.5"
        ),
        BenchTarget("growth-nonzeros", "exponent of the time per step in the non-zeros per row", 0.9, 1.1),
        _at_most("growth-d", "exponent of the time per non-zero in d, 10⁴ to 10⁶", 0.15),
        _at_most("growth-p", "exponent of the time per step in p, with p·m fixed", 0.1),
        _at_most("memory-rosc", "peak memory of ROSC beside the data, in vectors of length d, p = 6", 20.0),
        _at_most(
            "memory-rrosc", "peak memory of a whole rrosc call with its pilot, in vectors of length d, p = 6", 20.0
        ),
        _at_most("whole-call", "rrosc, the whole call, over its rows times the time per row of its steps", 1.15),
    )
}
