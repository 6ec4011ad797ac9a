"""Methods with a step size that a study chose, or none."""

from dataclasses import fields, replace
from typing import Any

from stoic.solvers import METHODS
from stoic.solvers.base import PowerLaw

UNTUNED = 0.0
"""In the place of a step size: the method chooses it, and all its settings, by itself."""


def with_step(method: str, step: float) -> Any:
    """Return a method with a step size, or with sequences that start at it; all else is open."""
    recipe: Any = METHODS[method]()
    if "steps" in {field.name for field in fields(recipe)}:  # ASC-PG, SCGD: sequences for strong convexity
        weights = PowerLaw(1.0, 0.8 if method == "asc-pg" else 2.0 / 3.0)
        return replace(recipe, steps=PowerLaw(step, 1.0), weights=weights, answer="last")
    return replace(recipe, step_size=step)
