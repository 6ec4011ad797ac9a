"""`GroupDRORegressor`: robust regression over groups."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from stoic.checks import check_one_of, check_positive, check_probability, refuse_masks
from stoic.errors import InvalidProblem
from stoic.estimators.base import CheckedRows, GroupDROModel
from stoic.estimators.frames import labels_of
from stoic.estimators.rows import TrainingRows
from stoic.estimators.scales import Frame, TargetScale, group_medians, spread, weighted_quantile
from stoic.estimators.scoring import worst_group_r2
from stoic.losses import Absolute, Huber, Loss, Quantile, Squared
from stoic.solvers import Method

REGRESSION_LOSSES = ("squared", "huber", "absolute", "quantile")
_SMOOTHING = 0.1  # of the residuals' scale
_LARGEST_UNIT = 1e140  # of targets: squares stay finite


class GroupDRORegressor(RegressorMixin, GroupDROModel):  # type: ignore[misc]
    r"""Linear regression that protects the groups which it would fail (KL group DRO), robust to heavy tails.

    With the mean loss :math:`g_i(w)` of the model :math:`x^\top w + b` in group i, and the loss :math:`b_i` that
    the group's own model would have, it minimizes

    .. math:: \tau \log \sum_i \pi_i e^{(g_i(w) - b_i) / (s_i \tau)} + r(w),

    which lies between the average over the rows (large τ) and the largest regret of a group (small τ). τ is chosen
    by cross-validation: as much protection as costs the average 1 % at most, and none where chance explains the
    differences between the groups. Columns and targets are put on one scale, and the scale of the residuals and
    the weight of the penalty follow from the data. Data in memory get their optimum by Newton's method: few
    rows to the last digit, more of them up to `tol`.

    Parameters
    ----------
    loss : {"huber", "squared", "absolute", "quantile"}, default "huber"
        The loss of a row. Huber's loss is squared up to `epsilon` times the scale of the residuals, and grows like
        their size beyond; "absolute" and "quantile" are smoothed within a tenth of that scale. The scale is 1.4826
        times the median size of the residuals of the average fit, about their median.
    quantile : float, default 0.5
        The level of loss="quantile".
    epsilon : float, default 1.0
        Of loss="huber": 1.0 loses 10 % where noise is normal, 1.345 loses 5 %; smaller is more robust.
    penalty : {"l2", "l1", "elasticnet", "none"}, default "l2"
        r; the intercept is left alone.
    alpha : float or "auto"
        Its weight, for columns and targets on their scales; "auto" follows the number and variance of the rows.
    l1_ratio : float, default 0.5
        The share of the L1 term in penalty="elasticnet".
    protect : {"regret", "loss"}, default "regret"
        Which groups: those that the model fails, by how far their loss is above that of their own model (see the
        notes); or those with the largest loss, which mostly are the noisiest: then all b are 0 and all s 1, and π
        is 1/p.
    baseline : mapping of group to number, optional
        With protect="regret": the losses to compare with, in the units of the loss; by default those that the own
        models of the groups reach, by cross-fitting with folds from `random_state`.
    temperature : float or "auto", default "auto"
        τ. With protect="regret" in units of the largest regret of the average fit; inf is the average over the
        rows, 0 the largest regret. With protect="loss" in units of the standard deviation of the group losses
        under the average fit: group weights then differ by about 1/temperature, and less where chance explains
        the differences; inf is the average over the groups, 0 the worst group (to within 1 % of the loss).
        "auto": the one of inf, 8, 4, 2, 1, 0.5, 0.25, 0.1 and 0 with the lowest largest regret (or error) of a
        group by five-fold cross-validation, among those that `max_cost` allows; then the first from the average
        on that is within a standard error of it. With more than 1,000 columns it is 1.
    max_cost : float, default 0.01
        With temperature="auto": by how much protection may raise the mean error over the average fit's, as a
        share of it; inf for any price.
    method : str or solver, default "auto"
        "auto": "newton"; where `budget`, `max_epochs` or `early_stopping` is given and rows are many, the default
        of `stoic.minimize`. Or any method of it.
    fit_intercept : bool, default True
    standardize : bool or "auto"
        Whether columns are centered and scaled to unit variance, as "auto" does too; without an intercept to unit
        mean square. Where a share q < 1/3 of the rows has another value than the rest, the mean square is 3q. A
        CSR matrix stays one, and gives the model of the array with its numbers.
    budget : int, optional
        Rows to draw in all; where a method that draws is named, by default as many as hold 10⁸ entries (10⁹ with
        square loss or a temperature below 1), between 1 and 300 epochs.
    max_epochs : float, optional
        The same in passes over the rows; the smaller of the two counts.
    tol : float, default 1e-4
        The fit has converged where its duality gap, a bound on how far the objective is above its minimum, is at
        most this part of the objective at the start. Newton's method ends there where rows are many. A
        solve by draws ends when the weights move by less, in proportion to their size.
    early_stopping : bool, default False
        Hold out rows of each group, and end when the largest group loss on them, a median of means, has not
        improved at `n_iter_no_change` records; the best weights are kept.
    validation_fraction : float, default 0.1
    n_iter_no_change : int, default 5
    warm_start : bool, default False
        Start from the last fit.
    random_state : int, RandomState or None
        Of draws, of folds and of held-out rows; None takes the same folds each time.
    verbose : bool, default False
        Show a progress bar.
    callbacks : sequence of functions of a record, optional
        Called at each record of the history; raising StopIteration ends the fit.
    groups : str, optional
        The column of a data frame that names the groups, where `fit` gets none: pipelines and searches then need
        no metadata routing. It is no feature.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    groups_ : ndarray of shape (p,)
        The sorted labels of the groups.
    group_weights_, group_losses_ : ndarray of shape (p,)
        The weight of each group at the answer, and its mean loss on the training rows, in the units of the loss;
        wild targets are moved as in the notes.
    group_baselines_, group_regrets_ : ndarray of shape (p,)
        With protect="regret": what the losses are compared with, and how far they are above it.
    temperature_ : float
        The temperature that was used.
    path_ : list of dict
        With temperature="auto" a record for each temperature, measured on rows that were held out: "mean_error",
        its "cost" over the average fit, the "worst" regret (or error), its "worst_group", the standard error of
        the difference from the one "chosen" as "worst_deviation". Errors are sizes of residuals, in the units of
        y; with loss="squared" and "quantile" they are losses. Empty where no temperature was to be chosen, as
        where chance explains all regrets. `GroupTradeoffDisplay` draws it.
    n_iter_, n_samples_drawn_ : int
        Steps taken and rows drawn; each step of Newton's method counts all rows.
    truncation_ : dict
        The shares of samples whose loss ("y") or slope ("z") was truncated.
    history_ : list of dict
        A record for each look at the fit; ``pandas.DataFrame(model.history_)`` makes a table of it. "objective" is
        what is minimized, on a sample of 2,000 rows; in phase 0 for the average.
    converged_ : bool
        Whether the duality gap is at most `tol` times the objective at the start, for certain; else a
        ConvergenceWarning says by how much it is larger, and what to set.
    group_column_ : str or None
        The column that named the groups; rows to predict may have it or not.
    certificate_ : Certificate
        A bound on the distance to the best value on the training rows; computed when it is asked for.
    memory_ : Memory
        The state that `partial_fit` continues from.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    GroupDROClassifier : The same for classes.
    stoic.minimize : The function that fits it.

    Notes
    -----
    Rows without `groups` are one group, and a warning says so. Within a group rows count in proportion to
    `sample_weight`; groups count alike with protect="loss", in proportion to their rows with protect="regret".

    The loss :math:`b_i` is that of the average fit over all rows less what the group's own model, a shrunk
    correction of that fit, gains on rows that it has not seen, as far as chance does not explain the gain. So
    :math:`b_i = g_i` where chance explains all of it, and where it does so in all groups, the answer is the
    average fit. The unit :math:`s_i` is what an error costs in group i (the gain in loss over that in error, or
    the mean size of the slopes of its losses), and :math:`\pi_i` makes the rows count alike where regrets are
    equal. See ``docs/estimators.md``.

    A target farther from what the average fit predicts than ten times the 90 % quantile of these distances, in its
    group and over all rows, is moved to that distance, except with square loss. Its slope is the same, and it
    does not dominate the loss of its group: a target of 1e300 moves a fit no more than an ordinary outlier.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic import GroupDRORegressor
    >>> rng = np.random.default_rng(0)
    >>> X, region = rng.standard_normal((3000, 2)), np.arange(3000) % 3
    >>> y = X @ [1.0, 2.0] + (1 + region) * rng.standard_t(1.5, 3000)
    >>> model = GroupDRORegressor().fit(X, y, groups=region)
    >>> model.coef_.round(1), model.group_weights_.round(2), model.temperature_
    (array([1. , 1.9]), array([0.33, 0.33, 0.33]), inf)
    """

    def __init__(
        self,
        loss: str = "huber",
        *,
        quantile: float = 0.5,
        epsilon: float = 1.0,
        penalty: str = "l2",
        alpha: float | Literal["auto"] = "auto",
        l1_ratio: float = 0.5,
        protect: str = "regret",
        baseline: Any = None,
        temperature: float | Literal["auto"] = "auto",
        max_cost: float = 0.01,
        method: str | Method = "auto",
        fit_intercept: bool = True,
        standardize: bool | Literal["auto"] = "auto",
        budget: int | None = None,
        max_epochs: float | None = None,
        tol: float = 1e-4,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
        callbacks: Any = None,
        groups: str | None = None,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.epsilon = epsilon
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.protect = protect
        self.baseline = baseline
        self.temperature = temperature
        self.max_cost = max_cost
        self.method = method
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.budget = budget
        self.max_epochs = max_epochs
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks
        self.groups = groups

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n, d)
        y : array of shape (n,)
        groups : array of shape (n,), or str
            Labels of any sortable kind, or the name of a column of a data frame that holds them and is then no
            feature (give ``X["region"]`` itself to keep it as one). None stands for the setting `groups`; without
            that, all rows are one group, and a warning says so.
        sample_weight : array of shape (n,), optional
            Weights of the rows within their groups.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If data or settings cannot be used; the message names them.
        KeyboardInterrupt
            By Ctrl-C; the fit so far is kept.
        """
        checked = self._checked_rows(X, y, groups, sample_weight, reset=True)
        self._train(checked, self._target(checked))
        return self

    def partial_fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Continue with more rows, without those before; it may be the first call, or follow `fit`.

        The scales of columns, targets and residuals, the penalty and τ stay those of the first call. Groups that
        are new join with their first rows; those that are absent keep the loss that they had. See
        ``docs/estimators.md``.

        Parameters
        ----------
        X, y, groups, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        if not hasattr(self, "coef_"):
            return self.fit(X, y, groups, sample_weight)
        self._learn(self._checked_rows(X, y, groups, sample_weight, reset=False))
        return self

    def _checked_rows(self, X: Any, y: Any, groups: Any, sample_weight: Any, *, reset: bool) -> CheckedRows:
        self._check_settings()
        checked = self._checked(X, y, groups, sample_weight, y_numeric=True, reset=reset)
        return checked._replace(y=np.asarray(checked.y, dtype=np.float64))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted targets, of shape (n,)."""
        return np.asarray(self._columns(X) @ self.coef_ + self.intercept_)

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Return R², the share of the variance of y that is explained; with groups that of the worst one.

        In a group it is one minus the mean squared error over the variance of y in all rows: R² is the mean of
        that over the rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        groups : array of shape (n,) or str, optional

        Returns
        -------
        float
        """
        refuse_masks(y=y, sample_weight=sample_weight)
        if groups is None:
            return float(super().score(X, y, sample_weight))
        return worst_group_r2(y, self.predict(X), labels_of(X, groups), sample_weight)

    def _check_settings(self) -> None:
        check_one_of("loss", self.loss, REGRESSION_LOSSES)
        check_probability("quantile", self.quantile)
        check_positive("epsilon", self.epsilon)
        super()._check_settings()

    @property
    def _has_scale(self) -> bool:  # type: ignore[override]
        return self.loss != "squared"

    def _loss_at(self, scale: float) -> Loss:
        if self.loss == "squared":
            return Squared()
        if self.loss == "huber":
            return Huber(self.epsilon * scale)
        if self.loss == "absolute":
            return Absolute(_SMOOTHING * scale)
        return Quantile(self.quantile, _SMOOTHING * scale)

    def _target(self, checked: CheckedRows) -> TargetScale:
        """Return targets about their median, in units of their spread within groups."""
        y, weight, p = checked.y, checked.weight, len(checked.labels)
        location = weighted_quantile(y, weight, 0.5) if self.fit_intercept else 0.0
        centers = group_medians(y, checked.codes, p, weight) if self.fit_intercept else np.zeros(p)
        with np.errstate(over="ignore"):
            unit = spread(y - centers[checked.codes], weight) or spread(y - location, weight) or 1.0
        if not 1.0 / _LARGEST_UNIT <= unit <= _LARGEST_UNIT:
            raise InvalidProblem(
                f"the targets spread by {unit:g}, and the squares of such numbers overflow or vanish; give "
                f"them in another unit."
            )
        return TargetScale(location, unit, 2 if self.loss in {"squared", "huber"} else 1)

    def _rows(self, checked: CheckedRows, frame: Frame) -> TrainingRows:
        if self.loss == "squared":
            frame.target.check_squares(checked.y)
        return super()._rows(checked, frame)

    def _shaped(self, coef: NDArray[Any], intercept: NDArray[Any]) -> tuple[Any, Any]:
        return coef[0], intercept[0]
