"""A method with the step size of a grid cell and the settings that all methods share."""

from dataclasses import fields, replace
from typing import cast

from stoic.pilot import Pilot
from stoic.solvers import METHODS, Method
from stoic.solvers.base import AnySolver
from stoic.studies.paper.spec import Spec
from stoic.studies.shared.methods import UNTUNED, with_step


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
