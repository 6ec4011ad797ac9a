"""A method with the step size of a grid cell and the settings that all methods share."""

from dataclasses import fields, replace
from typing import Any, cast

from stoic.experiments.spec import UNTUNED, Spec
from stoic.pilot import Pilot
from stoic.solvers import METHODS, Method
from stoic.solvers.base import AnySolver, PowerLaw


def solver_for(method: str, step: float, spec: Spec, pilot: Pilot) -> Method:
    """Return the solver of a cell; what neither the cell nor the spec says is chosen as in ``minimize``.

    An untuned method is left to ``minimize`` as a whole. A method with restarts takes K stages that fill the
    budget. SCGD and ASC-PG take the sequences of their theorems for optimally strongly convex problems, with the
    step size as the first.
    """
    if step == UNTUNED:
        return METHODS[method]()
    recipe = with_step(method, step)
    names = {field.name for field in fields(recipe)}
    settings = {"batch_size": spec.batch_size, "n_stages": spec.n_stages, "radius": spec.radius}
    if method == "rcivr":
        settings |= {"n_stages": recipe.n_stages}  # epochs, of which the budget pays for as many as it can
    chosen = {name: value for name, value in settings.items() if name in names}
    return cast("AnySolver", replace(recipe, **chosen).tuned(pilot.within(spec.budget)))


def with_step(method: str, step: float) -> Any:
    """Return a method with a step size, or with sequences that start at it; all else is open."""
    recipe: Any = METHODS[method]()
    if "steps" in {field.name for field in fields(recipe)}:
        return replace(recipe, steps=PowerLaw(step, 1.0), weights=_weights(method), answer="last")
    return replace(recipe, step_size=step)


def _weights(method: str) -> PowerLaw:
    """Return b_k ~ k^(−4/5) of ASC-PG, or k^(−2/3) of SCGD, for optimally strongly convex problems."""
    return PowerLaw(1.0, 0.8 if method == "asc-pg" else 2.0 / 3.0)
