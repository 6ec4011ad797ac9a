"""The root finder of `stoic.brackets`, compiled into the kernels that call it."""

from stoic import brackets
from stoic.engines.kernels.jit import inlined

is_wide = inlined(brackets.is_wide)
next_point = inlined(brackets.next_point)
narrowed = inlined(brackets.narrowed)
