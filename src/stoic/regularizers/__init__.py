"""Regularizers r of (1), their proximal maps, also in a ball, and their convex conjugates."""

from stoic.regularizers.ball import prox_in_ball
from stoic.regularizers.changed import Anchored, LeavingLast
from stoic.regularizers.constraints import Box, Simplex
from stoic.regularizers.penalties import L1, L2, ElasticNet, Zero
from stoic.regularizers.terms import Terms, terms_of
from stoic.regularizers.weighted import Weighted

__all__ = [
    "L1",
    "L2",
    "Anchored",
    "Box",
    "ElasticNet",
    "LeavingLast",
    "Simplex",
    "Terms",
    "Weighted",
    "Zero",
    "prox_in_ball",
    "terms_of",
]
