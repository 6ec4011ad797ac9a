"""Words of the paper's experiment: grids, problems and noises."""

import math
from collections.abc import Mapping

from stoic.studies.paper.runs import Setting
from stoic.studies.shared.methods import UNTUNED

SELECTED_BY = {"plain": "mean", "robust": "median of means"}
"""The number that the validation errors of a cell are reduced to, by way of selection."""


def power(value: float) -> str:
    """Return a number of a grid, powers of ten as such.

    Examples
    --------
    >>> power(1e-05), power(1.0), power(0.3), power(UNTUNED)
    ('10⁻⁵', '1', '0.3', 'untuned')
    """
    if value == UNTUNED:
        return "untuned"
    exponent = round(math.log10(value))
    if float(f"1e{exponent}") != value or exponent == 0:
        return f"{value:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def problem_name(setting: Setting) -> str:
    """Return the loss and the temperature of a setting in words."""
    return f"{setting.loss} loss, temperature {setting.temperature:g}"


_NOISES: Mapping[str, str] = {
    "pareto": "Pareto with tail {}, shifted to mean 0",
    "student": "Student's t with {} degrees of freedom",
    "sparse": "uniform on [−{0}, {0}] in a share of the rows, plus a standard normal in all",
    "gaussian": "normal with standard deviation {}",
}


def noise_in_words(name: str) -> str:
    """Describe a kind of noise.

    Examples
    --------
    >>> noise_in_words("student-2.5")
    "Student's t with 2.5 degrees of freedom"
    """
    kind, _, value = name.partition("-")
    return _NOISES.get(kind, name).format(value)
