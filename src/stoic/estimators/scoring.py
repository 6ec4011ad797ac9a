"""Scores for groups and for wild labels: the worst group, and medians of means."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_consistent_length, column_or_1d

from stoic.checks import check_one_of, check_probability, refuse_masks
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.estimators.frames import labels_of
from stoic.inners.blocks import IntArray, sums_by
from stoic.inners.groups import rows_by_group
from stoic.inners.labels import encode_groups
from stoic.inners.validation import check_weight
from stoic.means import MedianOfMeans, median_of_means
from stoic.protocols import Vector

ERRORS: dict[str, Callable[[Any, Any], Vector]] = {
    "absolute": lambda y, prediction: np.abs(y - prediction),
    "squared": lambda y, prediction: np.square(y - prediction),
    "zero-one": lambda y, prediction: (np.asarray(y) != np.asarray(prediction)).astype(float),
}


def worst_group_score(
    y_true: Any,
    y_pred: Any,
    *,
    groups: Any,
    error: str | Callable[[Any, Any], Vector] = "absolute",
    sample_weight: Any = None,
    delta: float | None = None,
) -> float:
    r"""Return minus the mean error of the group where it is largest: greater is better.

    Parameters
    ----------
    y_true, y_pred : array of shape (n,)
    groups : array of shape (n,)
    error : {"absolute", "squared", "zero-one"} or function, default "absolute"
        The error of each row; a function of y_true and y_pred gives them all.
    sample_weight : array of shape (n,), optional
    delta : float, optional
        If given, the mean of a group is a median of means that is wrong with this probability at most, so that a
        few wild labels do not decide which model is best; see `robust_score`.

    Returns
    -------
    float

    Examples
    --------
    >>> worst_group_score([1.0, 2.0, 3.0], [1.0, 2.0, 5.0], groups=["a", "a", "b"])
    -2.0
    """
    errors = errors_of(y_true, y_pred, error)
    labels, codes = encode_groups(groups, len(errors))
    weight = None if sample_weight is None else check_weight(sample_weight, codes, labels)
    return -largest_mean(errors, codes, weight, delta)


def worst_group_r2(y_true: Any, y_pred: Any, groups: Any, sample_weight: Any = None) -> float:
    """Return one minus the largest mean squared error of a group over the variance in all rows.

    Examples
    --------
    >>> worst_group_r2([0.0, 2.0, 4.0, 2.0], [0.0, 2.0, 3.0, 2.0], groups=["a", "a", "b", "b"])
    0.75
    """
    y_true = column_or_1d(y_true)
    worst = worst_group_score(y_true, y_pred, groups=groups, error="squared", sample_weight=sample_weight)
    center = np.average(y_true, weights=sample_weight)
    variance = float(np.average(np.square(y_true - center), weights=sample_weight))
    return 1.0 + worst / variance if variance > 0.0 else float(worst == 0.0)


def largest_mean(errors: Vector, codes: IntArray, weight: Vector | None, delta: float | None) -> float:
    """Return the largest mean of a group, or median of means; see `worst_group_score`."""
    _, codes = np.unique(codes, return_inverse=True)
    n_groups = int(codes.max()) + 1
    if delta is None:
        weight = np.ones(len(errors)) if weight is None else weight
        return float((sums_by(codes, errors * weight, n_groups) / sums_by(codes, weight, n_groups)).max())
    groups = rows_by_group(codes, n_groups)
    return max(_mean(errors[rows], None if weight is None else weight[rows], delta) for rows in groups)


def robust_score(
    y_true: Any,
    y_pred: Any,
    *,
    error: str | Callable[[Any, Any], Vector] = "absolute",
    sample_weight: Any = None,
    delta: float = 0.05,
) -> float:
    r"""Return minus the median of means of the errors: a score for validation rows with wild labels.

    With k = ⌈8 log(1/δ)⌉ blocks its error is at most 2σ√(k/n) with probability 1 − δ, whatever the tails
    (Algorithm 1). Which rows share a block is drawn once and for all, by their number.

    Parameters
    ----------
    y_true, y_pred, error, sample_weight
        As for `worst_group_score`.
    delta : float, default 0.05

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> y = np.r_[np.ones(99), 1e9]
    >>> robust_score(y, np.zeros(100))
    -1.0
    """
    errors = errors_of(y_true, y_pred, error)
    labels, codes = encode_groups(None, len(errors))
    weight = None if sample_weight is None else check_weight(sample_weight, codes, labels)
    return -_mean(errors, weight, delta)


@dataclass(frozen=True)
class GroupScorer:
    """`worst_group_score` as a scorer for scikit-learn, which asks for `groups` by metadata routing.

    Parameters
    ----------
    error, delta
        As for `worst_group_score`.
    groups : str, optional
        The column of a data frame that names the groups, where none are routed to the scorer.

    Examples
    --------
    >>> import numpy as np
    >>> import sklearn
    >>> from sklearn.model_selection import GridSearchCV
    >>> from stoic import GroupDRORegressor, GroupScorer
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.standard_normal((300, 2)), np.arange(300) % 3
    >>> y = X @ [1.0, 2.0] + rng.standard_t(2.0, 300)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(GroupDRORegressor(), {"temperature": [1.0, 4.0]}, scoring=GroupScorer())
    ...     best = search.fit(X, y, groups=groups).best_params_
    """

    error: str | Callable[[Any, Any], Vector] = "absolute"
    delta: float | None = None
    groups: str | None = None
    _requests: dict[str, Any] = field(
        default_factory=lambda: {"groups": True}, init=False, repr=False, compare=False
    )

    def __call__(self, estimator: Any, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Return the score of a fitted estimator; `groups` are labels, or name a column of X."""
        groups = self.groups if groups is None else groups
        if groups is None:
            raise InvalidProblem(
                "GroupScorer got no groups; enable metadata routing (sklearn.set_config("
                "enable_metadata_routing=True)) and give groups to fit, or as params={'groups': groups}; or name "
                "a column of the data frame: GroupScorer(groups='region')."
            )
        settings: dict[str, Any] = {"error": self.error, "sample_weight": sample_weight, "delta": self.delta}
        return worst_group_score(y, estimator.predict(X), groups=labels_of(X, groups), **settings)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Set under which names `groups` and `sample_weight` are asked for, as scikit-learn's scorers do.

        Parameters
        ----------
        requests : str, bool or None by name
            ``groups="region"`` takes the groups from what is given to `fit` as `region`.

        Returns
        -------
        self
        """
        unknown = sorted(set(requests) - {"groups", "sample_weight"})
        if unknown:
            raise InvalidParameter(
                f"{unknown[0]} is nothing that GroupScorer asks for; groups and sample_weight are."
            )
        self._requests.update(requests)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the requests for groups and, if it was set, for weights."""
        request = MetadataRequest(owner=self)
        for name, alias in self._requests.items():
            request.score.add_request(param=name, alias=alias)
        return request


def errors_of(y_true: Any, y_pred: Any, error: str | Callable[[Any, Any], Vector]) -> Vector:
    """Return the error of each row; see `worst_group_score`."""
    refuse_masks(y_true=y_true, y_pred=y_pred)
    y_true, y_pred = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(y_true, y_pred)
    if isinstance(error, str):
        check_one_of("error", error, tuple(ERRORS))
        error = ERRORS[error]
    errors = np.asarray(error(y_true, y_pred), dtype=float)
    if errors.shape != y_true.shape:
        raise InvalidParameter(
            f"error={error!r} gives shape {errors.shape}; one number for each of {len(y_true)} rows is needed."
        )
    return errors


def _mean(errors: Vector, weight: Vector | None, delta: float) -> float:
    wanted = MedianOfMeans(check_probability("delta", delta)).blocks
    order = np.random.default_rng(0).permutation(len(errors))
    terms = errors if weight is None else errors * weight / weight.mean()
    return float(median_of_means(terms[order], n_blocks=min(wanted, max(1, len(errors) // 2))))
