"""Axes to draw in, and their labels."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from stoic.extras import need
from stoic.protocols import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_FARTHEST = 1e100


def pyplot_axes(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """Return the axes that were given, or those of a new pyplot figure."""
    if ax is not None:
        return ax
    need("a picture", "matplotlib")
    import matplotlib.pyplot as plt  # noqa: PLC0415 - optional, and slow to import

    return plt.subplots(figsize=size, layout="constrained")[1]


def drawable(values: ArrayLike) -> Vector:
    """Return numbers with those beyond 10¹⁰⁰ moved there: matplotlib's axes overflow at some more."""
    return np.asarray(np.clip(np.asarray(values, dtype=float), -_FARTHEST, _FARTHEST))


def tidy(ax: "Axes", **labels: Any) -> None:
    """Label axes, and hide the top and right sides of their frame."""
    ax.set(**labels)
    ax.spines[["top", "right"]].set_visible(False)
