"""The exception tree."""


class StoicError(Exception):
    """Base class of every error that stoic raises on purpose."""


class InvalidParameter(StoicError, ValueError):  # noqa: N818 - named for what is wrong
    """A setting is outside its range."""


class InvalidProblem(StoicError, ValueError):  # noqa: N818
    """The data or the parts of a problem cannot be used."""


class IncompatibleParts(StoicError, TypeError):  # noqa: N818
    """Parts that are fine by themselves do not fit together."""


class MissingDependency(StoicError, ImportError):  # noqa: N818
    """An optional package is needed and not installed."""


class DamagedFile(StoicError, ValueError):  # noqa: N818
    """A file is not what stoic wrote: cut off, altered, or made by something else."""


class SolveFailed(StoicError, RuntimeError):  # noqa: N818
    """A solve ended without a usable answer, and the caller asked to be told."""
