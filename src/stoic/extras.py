"""Optional packages: which are missing, and the command that installs them."""

from importlib.util import find_spec

from stoic.errors import MissingDependency

INSTALL = "pip install 'stoic[experiments]'"
OF_STUDIES = ("matplotlib", "plotly", "pydantic")  # joblib comes with scikit-learn


def not_installed(*packages: str) -> list[str]:
    """Return those of some packages that are not installed; none of them is imported.

    Examples
    --------
    >>> not_installed("numpy", "no_such_package")
    ['no_such_package']
    """
    return [name for name in packages if find_spec(name) is None]


def need(what: str, *packages: str) -> None:
    """Raise `MissingDependency` if a package is not installed that something needs.

    Examples
    --------
    >>> need("a figure", "numpy", "scipy")
    """
    lacking = not_installed(*packages)
    if lacking:
        *others, last = lacking
        names = f"{', '.join(others)} and {last}" if others else last
        raise MissingDependency(f"{what} needs {names}, not installed here; run {INSTALL}.")
