"""`Result`: what `minimize` returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stoic.engines.engine import Status
from stoic.errors import SolveFailed
from stoic.protocols import Vector
from stoic.solve.hindsight import Outlook

if TYPE_CHECKING:
    from stoic.certificate.certificate import Certificate

Record = Mapping[str, float]
"""One line of a history: samples, evaluations, seconds, stage, truncated shares, the observers' values, and the
duality gap of the answer where a method goes through all data."""


@dataclass(frozen=True)
class Result:
    """The result of `minimize`: the answer, how the solve ended, and its history.

    Attributes
    ----------
    w : ndarray of shape (d,)
        The answer, by the output rule of the solver (average or last iterate).
    status : Status
        Why the solve stopped.
    message : str
        The same in words, with what to change where something went wrong, and how far the objective can still fall
        where that is seen to be a hundredth of the way or more.
    samples : int
        Data points drawn: the pilot, reference batches and every step included.
    evaluations : int
        Data points times the points w at which the pilot and the steps evaluated them; what observers evaluate,
        and a look back from the answer, is not counted.
    seconds : float
        Wall time of pilot, start and steps; observers are outside this clock.
    n_steps : int
        Steps taken.
    truncated_y, truncated_z : float
        Shares of the batches, or of the samples where these are truncated one by one, in which y and z were
        truncated, (4) and (5).
    history : list of dict
        One record per evaluation; ``pandas.DataFrame(result.history)`` makes a table of it.
    solver : Solver
        The settings that ran, with everything that was chosen from the pilot filled in; with
        ``metric.scale`` and ``metric.center`` where the problem was solved in scaled variables.
    outlook : Outlook
        What a look back tells, on draws that were kept aside or on all data: whether F is above the start, and how
        far it can still fall.
    certificate : Certificate
        A bound on F(w) − F*.

    Examples
    --------
    >>> import numpy as np
    >>> import stoic
    >>> problem = stoic.Problem(stoic.GroupLoss(np.eye(4, 2), np.ones(4)), stoic.Linear())
    >>> result = stoic.minimize(problem, "mscg", budget=10_000, seed=0)
    >>> result.raise_for_status().success
    True
    """

    w: Vector
    status: Status
    message: str
    samples: int
    evaluations: int
    seconds: float
    n_steps: int
    truncated_y: float
    truncated_z: float
    history: list[Record]
    solver: object
    outlook: Outlook = field(default_factory=Outlook)
    certifier: "Callable[[], Certificate] | None" = field(default=None, repr=False, compare=False)

    @cached_property
    def certificate(self) -> "Certificate":
        """A bound on F(w) − F*, over all data or from as many samples again; computed when first asked for.

        A result that was copied to another process has none: see `certify`.
        """
        if self.certifier is None:
            raise SolveFailed(
                "this copy of the result does not have the problem; use stoic.certify(problem, result.w)."
            )
        return self.certifier()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"certifier": None}

    @property
    def success(self) -> bool:
        """Whether the answer is what the settings promise."""
        return self.status.is_success

    @property
    def became_infinite(self) -> bool:
        """Whether the iterates became infinite or NaN: DIVERGED, and not by an answer above the start alone."""
        return self.status is Status.DIVERGED and self.outlook.risen == 0.0

    def raise_for_status(self) -> "Result":
        """Return the result itself, or raise `SolveFailed` if the solve did not succeed."""
        if not self.success:
            raise SolveFailed(self.message)
        return self
