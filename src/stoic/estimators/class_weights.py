"""Weights of classes, multiplied into those of the rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stoic.checks import check_one_of, check_real
from stoic.errors import InvalidParameter
from stoic.inners.blocks import sums_by
from stoic.protocols import Vector

_LARGEST = 1e9  # of a weight; 1e-9 is the smallest


def check_class_weight(class_weight: Any) -> None:
    """Raise `InvalidParameter` unless `class_weight` is None, "balanced" or a mapping of positive weights."""
    if not isinstance(class_weight, Mapping):
        check_one_of("class_weight", class_weight, (None, "balanced"))
        return
    for name, weight in class_weight.items():
        check_real(f"class_weight[{name!r}]", weight, low=1.0 / _LARGEST, high=_LARGEST)


def with_class_weights(
    class_weight: Any, classes: NDArray[Any], numbers: NDArray[np.intp], weight: Vector | None
) -> Vector | None:
    """Return the weights of rows times those of their classes.

    Parameters
    ----------
    class_weight : None, "balanced" or mapping
        "balanced" gives all classes the same total weight over all rows; a class that a mapping lacks has 1.
    classes : array
    numbers : array of int of shape (n,)
        Of the classes of the rows.
    weight : array of shape (n,), optional

    Returns
    -------
    array of shape (n,), or None

    Examples
    --------
    >>> import numpy as np
    >>> with_class_weights("balanced", np.array(["no", "yes"]), np.array([0, 0, 0, 1]), None).round(2).tolist()
    [0.67, 0.67, 0.67, 2.0]
    """
    if class_weight is None:
        return weight
    rows = np.ones(len(numbers)) if weight is None else weight
    if isinstance(class_weight, str):
        totals = sums_by(numbers, rows, len(classes))
        counts = totals > 0.0  # a class whose rows all weigh nothing has no weight to share out
        of_class = np.zeros(len(classes))
        of_class[counts] = totals.sum() / (counts.sum() * totals[counts])
    else:
        names = classes.tolist()
        unknown = [name for name in class_weight if name not in names]
        if unknown and any(name not in class_weight for name in names):  # else a fold lacks a class
            raise InvalidParameter(f"class_weight has the class {unknown[0]!r}, which is not among {names}.")
        of_class = np.array([float(class_weight.get(name, 1.0)) for name in names])
    return np.asarray(rows * of_class[numbers])
