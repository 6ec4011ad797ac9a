"""Axes to draw in, and their labels."""

from typing import TYPE_CHECKING, Any

from stoic.extras import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def pyplot_axes(ax: "Axes | None", size: tuple[float, float]) -> "Axes":
    """Return the axes that were given, or those of a new pyplot figure."""
    if ax is not None:
        return ax
    need("a picture", "matplotlib")
    import matplotlib.pyplot as plt  # noqa: PLC0415 - optional, and slow to import

    return plt.subplots(figsize=size, layout="constrained")[1]


def tidy(ax: "Axes", **labels: Any) -> None:
    """Label axes, and hide the top and right sides of their frame."""
    ax.set(**labels)
    ax.spines[["top", "right"]].set_visible(False)
