"""The methods of the confidence study: ours at their defaults, rivals with a step size chosen for them."""

from collections.abc import Callable
from typing import Any

from stoic.solvers import METHODS
from stoic.solvers.mscg import MSCG
from stoic.solvers.prox_boost import ProxBoost
from stoic.solvers.rrosc import RROSC
from stoic.studies.confidence.laws import MU
from stoic.studies.shared.methods import with_step

ALONE = "rrosc-m1"
"""RROSC with one sample of each group in a step."""

OURS: dict[str, Callable[[], Any]] = {
    "auto": METHODS["auto"],
    "rrosc-tracked": METHODS["rrosc-tracked"],
    "rrosc-growing": METHODS["rrosc-growing"],
    "rrosc": METHODS["rrosc"],
    "rmscg-robust": METHODS["rmscg-robust"],
    ALONE: lambda: RROSC(batch_size=1),
}
"""Methods that run at their defaults."""

RIVALS = ("rmscg", "asc-pg", "rcivr", "scgd", "clipped-sgd", "prox-boost")
"""Methods whose step size is chosen in each setting."""

PLAIN_RIVALS = ("asc-pg", "rcivr", "scgd", "rmscg")
"""Rivals that have no defense against heavy tails."""

BASELINES = ("auto", "rrosc-tracked")
"""The method that the others are compared with: the first of these that was run."""


def method_of(name: str, step: float) -> Any:
    """Return a method; `step` is for rivals, and what is not given is chosen by the pilot of each run.

    Examples
    --------
    >>> method_of("rmscg", 0.1).step_size, method_of("asc-pg", 0.1).steps.start
    (0.1, 0.1)
    """
    if name in OURS:
        return OURS[name]()
    if name == "prox-boost":
        return ProxBoost(solver=MSCG(step_size=step), mu=MU)
    return with_step(name, step)
