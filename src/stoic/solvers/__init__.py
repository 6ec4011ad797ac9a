"""The solvers, a file a family; every module of this package registers its method strings."""

from importlib import import_module
from pkgutil import iter_modules

from stoic.solvers.base import METHODS, AnySolver, Method

__all__ = ["METHODS", "AnySolver", "Method"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
