"""The root finder of `stoic.brackets`, compiled into the kernels that call it, and the θ of a ball under L2."""

import numpy as np

from stoic import brackets
from stoic.brackets import Bracket
from stoic.engines.kernels.jit import inlined, kernel

is_wide = inlined(brackets.is_wide)
next_point = inlined(brackets.next_point)
narrowed = inlined(brackets.narrowed)


@kernel
def ball_theta(far: float, tail: float, ridge: float) -> float:
    """Return the root θ in (0, 1) of (θ·far·(1 + ridge)/(1 + θ·ridge))² + (θ·tail)² = 1."""
    if tail == 0.0:
        return 1.0 / (far + (far - 1.0) * ridge)
    bracket = Bracket(0.0, 1.0, -1.0, np.sqrt(far * far + tail * tail) - 1.0, 0.0)
    while is_wide(bracket):
        theta = next_point(bracket)
        reach = theta * far * ((1.0 + ridge) / (1.0 + theta * ridge))
        bracket = narrowed(bracket, theta, np.sqrt(reach * reach + theta * tail * theta * tail) - 1.0)
    return bracket.low
