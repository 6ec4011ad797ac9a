"""`GroupDROClassifier`: linear classification over groups."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from stoic.checks import check_one_of, refuse_masks
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.estimators.base import CheckedRows, GroupDROModel
from stoic.estimators.class_weights import check_class_weight, with_class_weights
from stoic.estimators.frames import labels_of
from stoic.estimators.scales import TargetScale
from stoic.estimators.scoring import worst_group_score
from stoic.losses import Logistic, Loss
from stoic.solvers import Method


class GroupDROClassifier(ClassifierMixin, GroupDROModel):  # type: ignore[misc]
    r"""Logistic regression that protects the groups which it would fail (KL group DRO), with two classes or more.

    It minimizes :math:`\tau \log \sum_i \pi_i e^{(g_i(w) - b_i) / \tau} + r(w)`, where :math:`g_i` is the mean
    logistic loss in group i, :math:`b_i` that of its own model and :math:`\pi_i` its share of the rows; with more
    than two classes the cross-entropy of a softmax model, by Newton's method.

    Parameters
    ----------
    loss : {"logistic"}
    penalty, alpha, l1_ratio, protect, baseline, temperature, max_cost, method, fit_intercept, standardize
        As for `GroupDRORegressor`.
    class_weight : mapping of class to weight, "balanced", or None
        Weights of the classes, by which those of the rows are multiplied; a class that is not named has 1.
        "balanced" gives the classes the same total weight over all rows. As weights of rows they count within the
        groups: a group's mean loss listens more to its rows of a heavy class, and with protect="loss" no group
        counts more for having many of them.
    budget, max_epochs, tol, early_stopping, validation_fraction, n_iter_no_change, warm_start
        As for `GroupDRORegressor`.
    random_state, verbose, callbacks, groups
        As for `GroupDRORegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    groups_, group_weights_, group_losses_, group_baselines_, group_regrets_
        As for `GroupDRORegressor`.
    temperature_, path_, n_iter_, n_samples_drawn_, truncation_, history_, converged_, group_column_
        As for `GroupDRORegressor`.
    certificate_ : Certificate
        A bound on the distance to the best value on the training rows; computed when it is asked for.

    See Also
    --------
    GroupDRORegressor : The same for numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from stoic import GroupDROClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((900, 2)), np.arange(900) % 3
    >>> y = np.where(X @ [1.0, 2.0] + (1 + site) * rng.logistic(size=900) > 0, "yes", "no")
    >>> model = GroupDROClassifier().fit(X, y, groups=site)
    >>> model.classes_.tolist(), model.predict_proba([[3.0, 3.0]]).shape
    (['no', 'yes'], (1, 2))
    """

    def __init__(
        self,
        loss: str = "logistic",
        *,
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
        class_weight: Any = None,
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
        self.class_weight = class_weight
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
        """Fit the model; see `GroupDRORegressor.fit`. y has the classes, of any kind."""
        checked = self._checked_rows(X, y, groups, sample_weight, reset=True)
        self.classes_ = np.unique(checked.y)
        self._train(self._encoded(checked), TargetScale())
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, groups: Any = None, sample_weight: Any = None
    ) -> Self:
        """Continue with more rows, without those before; see `GroupDRORegressor.partial_fit`.

        Parameters
        ----------
        X, y, groups, sample_weight
            As for `fit`.
        classes : array, optional
            All classes; required at the first call, whose rows may have only some of them.

        Returns
        -------
        self
        """
        if isinstance(self.class_weight, str):
            raise InvalidParameter(
                f"class_weight={self.class_weight!r} needs all rows at once, but partial_fit has a batch; give "
                f"the weights by class."
            )
        is_first = not hasattr(self, "coef_")
        checked = self._checked_rows(X, y, groups, sample_weight, reset=is_first)
        if is_first:
            if classes is None:
                raise InvalidParameter(
                    "classes=None at the first call of partial_fit; give all classes there are."
                )
            self.classes_ = np.unique(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InvalidParameter(f"classes={classes!r} differ from those of the first call, {self.classes_!r}.")
        checked = self._encoded(checked)
        if is_first:
            self._train(checked, TargetScale())
        else:
            self._learn(checked)
        return self

    def _checked_rows(self, X: Any, y: Any, groups: Any, sample_weight: Any, *, reset: bool) -> CheckedRows:
        self._check_settings()
        checked = self._checked(X, y, groups, sample_weight, reset=reset)
        check_classification_targets(checked.y)
        return checked

    def _encoded(self, checked: CheckedRows) -> CheckedRows:
        """Return the rows with numbers for classes: −1 and +1 for two, else 0, 1, …."""
        if len(self.classes_) < 2:
            raise InvalidProblem(
                f"y has one class, {self.classes_.tolist()[0]!r}; a classifier needs two at least."
            )
        unknown = np.setdiff1d(checked.y, self.classes_)
        if len(unknown):
            raise InvalidProblem(
                f"y has the class {unknown.tolist()[0]!r}, which is not among {self.classes_.tolist()}."
            )
        numbers = np.searchsorted(self.classes_, checked.y)
        weight = with_class_weights(self.class_weight, self.classes_, numbers, checked.weight)
        y = numbers.astype(float)
        return checked._replace(y=2.0 * y - 1.0 if len(self.classes_) == 2 else y, weight=weight)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the scores: of the second class, of shape (n,), or of all classes, of shape (n, n_classes)."""
        scores = np.asarray(self._columns(X) @ self.coef_.T + self.intercept_)
        return scores.ravel() if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probabilities of the classes, of shape (n, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([expit(-scores), expit(scores)], axis=1)
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of the probabilities, which stay finite where a probability is rounded to 0."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([log_expit(-scores), log_expit(scores)], axis=1)
        return np.asarray(log_softmax(scores, axis=1))

    def score(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
        """Return the share of rows whose class is right; with groups that of the worst one.

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
        how: dict[str, Any] = {"error": "zero-one", "sample_weight": sample_weight}
        return 1.0 + worst_group_score(y, self.predict(X), groups=labels_of(X, groups), **how)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely classes, of shape (n,)."""
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])

    def _check_settings(self) -> None:
        check_one_of("loss", self.loss, ("logistic",))
        check_class_weight(self.class_weight)
        super()._check_settings()

    def _loss_at(self, scale: float) -> Loss:  # noqa: ARG002
        return Logistic()

    def _shaped(self, coef: NDArray[Any], intercept: NDArray[Any]) -> tuple[Any, Any]:
        return coef, intercept - intercept.mean() if len(intercept) > 1 else intercept  # only differences count
