"""The previous point of a state in the form that kernels keep it in, and back."""

import numpy as np

from stoic.engines.compiled.problem import Translated
from stoic.engines.compiled.vectors import Form
from stoic.engines.kernels.vectors.previous import ALL, N_SCALARS, SCALE, SHIFT, TAIL, Previous, previous_point
from stoic.engines.kernels.vectors.scaled import Scaled
from stoic.protocols import Vector


def before(form: Form, problem: Translated, point: Vector, shape: tuple[int, int]) -> Previous:
    """Return the previous point, set everywhere, as kept beside a form; `shape` is that of a batch."""
    scalars, last = np.zeros(N_SCALARS), point[: form.size].copy()
    scalars[SCALE], scalars[ALL] = 1.0, 1.0
    if isinstance(form.vector, Scaled) and problem.anchor.center is not None:
        last -= form.vector.c
        scalars[SHIFT] = 1.0
    if form.has_tail:
        scalars[TAIL] = point[-1]
    return Previous(last, np.zeros(shape, dtype=np.int64), scalars)


def previous_of(form: Form, kept: Previous) -> Vector:
    """Return the previous point."""
    point = np.empty(form.size + form.has_tail)
    previous_point(form.vector, kept, point[: form.size])
    if form.has_tail:
        point[-1] = kept.scalars[TAIL]
    return point
