"""The base class of the estimators: settings, checks, training, and fitted attributes."""

import math
import warnings
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from stoic.certificate.certificate import Certificate
from stoic.certificate.certifying import certify
from stoic.checks import check_count, check_one_of, check_positive, check_probability, check_real, refuse_masks
from stoic.engines.engine import Status
from stoic.errors import InvalidParameter, InvalidProblem
from stoic.estimators.convergence import Convergence, convergence
from stoic.estimators.early_stopping import EarlyStopping, split_by_group
from stoic.estimators.frames import split_groups, without_column
from stoic.estimators.online import Memory, group_sizes, learn, mean_curvature
from stoic.estimators.protection import PROTECTIONS, LossProtection, Protection, RegretProtection, given_baselines
from stoic.estimators.rows import TrainingRows
from stoic.estimators.scales import Frame, Scaling, TargetScale, canonical
from stoic.estimators.sparsify import with_zeros
from stoic.estimators.temperatures import has_residuals
from stoic.estimators.training import Trained, Trainer
from stoic.estimators.watching import Watch
from stoic.inners.blocks import IntArray
from stoic.inners.labels import encode_groups
from stoic.inners.sparse_indices import trusted
from stoic.inners.validation import check_sizes, check_weight
from stoic.losses import Loss
from stoic.protocols import Regularizer, Vector
from stoic.regularizers import L1, L2, ElasticNet, Zero
from stoic.solve.result import Record, Result
from stoic.solvers import METHODS
from stoic.solvers.newton import Newton

FLOATS = (np.float64, np.float32)
PENALTIES = ("none", "l1", "l2", "elasticnet")
_LARGEST = 1e100  # of a weight or an entry of a column: squares of sums stay finite
_SEED_OF_FOLDS = 0  # where random_state is None: two fits of small data agree
_RIDGE, _LASSO = 0.1, 1.0  # of a penalty that is chosen: ‖x‖²/n, and the noise of a slope


class MissingGroupsWarning(UserWarning):
    """No groups were given, so that the plain average over all rows is fitted."""


class CheckedRows(NamedTuple):
    """Checked rows as they were given, with the numbers of their groups."""

    X: Any
    y: Any
    labels: NDArray[Any]
    codes: IntArray
    weight: Vector | None


class GroupDROModel(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A linear model for the groups at risk; see `GroupDRORegressor` and `GroupDROClassifier`."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"groups": False}  # so that searches score the mean

    coef_: Any
    intercept_: Any
    group_column_: str | None
    n_iter_: int
    n_samples_drawn_: int
    history_: list[Record]
    memory_: Memory
    temperature_: float
    path_: list[dict[str, Any]]
    _certifier: Trained | None

    # --- what a kind of model says ---

    def _loss_at(self, scale: float) -> Loss:
        """Return the loss for residuals of that scale."""
        raise NotImplementedError

    _has_scale: bool = False

    # --- checks ---

    def _check_settings(self) -> None:
        check_one_of("penalty", self.penalty, PENALTIES)
        check_one_of("protect", self.protect, PROTECTIONS)
        check_one_of("standardize", self.standardize, ("auto", True, False))
        if self.groups is not None and not isinstance(self.groups, str):
            raise InvalidParameter(
                f"groups={self.groups!r} is not the name of a column; give the group of each row to fit."
            )
        if isinstance(self.method, str):
            check_one_of("method", self.method, sorted(METHODS))
        if self.alpha != "auto":
            check_real("alpha", self.alpha, low=0.0)
        check_real("l1_ratio", self.l1_ratio, low=0.0, high=1.0)
        if self.temperature != "auto":
            if isinstance(self.temperature, str):
                raise InvalidParameter(f"temperature={self.temperature!r} is neither 'auto' nor a number >= 0.")
            check_real("temperature", self.temperature, low=0.0)
        check_real("max_cost", self.max_cost, low=0.0)
        check_positive("tol", self.tol)
        check_probability("validation_fraction", self.validation_fraction)
        check_count("n_iter_no_change", self.n_iter_no_change)
        if self.budget is not None:
            check_count("budget", self.budget)
        if self.max_epochs is not None:
            check_positive("max_epochs", self.max_epochs)

    def _checked(self, X: Any, y: Any, groups: Any, sample_weight: Any, *, reset: bool, **how: Any) -> CheckedRows:
        refuse_masks(X=X, y=y, groups=groups, sample_weight=sample_weight)
        known = None if reset else getattr(self, "group_column_", None)
        X, groups, column = split_groups(X, self.groups if groups is None else groups, known)
        X, y = validate_data(self, trusted("X", X), y, accept_sparse="csr", dtype=FLOATS, reset=reset, **how)
        if groups is None:
            warnings.warn(  # from this line, whoever calls: a process is told once
                "groups=None: all rows are one group, so that the plain average loss is minimized and no group is "
                "protected. Give fit(X, y, groups=...); in GridSearchCV and the like, enable metadata routing, or "
                "name a column of the data frame in the settings: groups='region'.",
                MissingGroupsWarning,
                stacklevel=1,
            )
        labels, codes = encode_groups(groups, X.shape[0])
        weight = None if sample_weight is None else check_weight(sample_weight, codes, labels)
        if weight is not None and not 1.0 / _LARGEST <= (heaviest := weight.max()) <= _LARGEST:
            raise InvalidProblem(
                f"sample_weight[{int(weight.argmax())}] = {heaviest:g} is the largest weight, and sums of such "
                f"numbers overflow or vanish; divide all weights by {heaviest:g}: only their ratios matter."
            )
        self.group_column_ = column
        return CheckedRows(X, y, labels, codes, weight)

    def _columns(self, X: Any) -> Any:
        """Return checked columns of rows to predict."""
        check_is_fitted(self)
        refuse_masks(X=X)
        X = without_column(X, getattr(self, "group_column_", None))
        return validate_data(self, trusted("X", X), accept_sparse="csr", dtype=FLOATS, reset=False)

    # --- training ---

    def _train(self, checked: CheckedRows, target: TargetScale) -> None:
        """Fit checked rows, and set the fitted attributes."""
        rng = _generator(self.random_state)
        frame = Frame(self._scaling(checked.X, checked.weight), target, bool(self.fit_intercept))
        rows = self._rows(checked, frame)
        stopping = None
        if self.early_stopping:
            rows, held_out = split_by_group(rows, self.validation_fraction, rng)
            stopping = EarlyStopping(held_out, self.n_iter_no_change, self.tol)
        trainer = self._trainer(rows, target.loss_unit, rng, stopping)
        start = self._start(rows, frame)
        trained = trainer.train(start)
        if stopping is not None and stopping.best is not None:
            trained = replace(trained, w=stopping.best)
        if not trained.is_exact:
            trained = replace(trained, w=with_zeros(trained.problem, trained.w))
        last = trained.last
        gap = last.history[-1].get("duality_gap") if last.history and trained.w is last.w else None
        answer = trained.problem, trained.w, start, self.tol
        reached = convergence(*answer, is_exact=trained.is_exact, gap=gap)
        last.history[-1:] = [{**record, "duality_gap": reached.gap} for record in last.history[-1:]]
        self._keep_training(trained, trainer, frame, checked.X.dtype)
        self.truncation_ = {"y": last.truncated_y, "z": last.truncated_z}
        self._report_convergence(last, reached, has_stopped=stopping is not None and stopping.has_stopped)

    def _learn(self, checked: CheckedRows) -> None:
        """Continue from the fitted model with more checked rows."""
        memory = self.memory_
        rows = self._rows(checked, memory.frame)
        n_outputs = rows.n_outputs
        coef, intercept = np.reshape(self.coef_, (n_outputs, -1)), np.reshape(self.intercept_, -1)
        trainer = self._trainer(rows, memory.frame.target.loss_unit, _generator(self.random_state), None)
        self.memory_, w, result, reached = learn(memory, trainer, memory.frame.variable(coef, intercept))
        self._keep_model(w, checked.X.dtype)
        self.n_iter_ += result.n_steps
        self.n_samples_drawn_ += result.samples
        self.history_ += in_units(result.history, memory.frame.target.loss_unit)
        self._certifier = None
        self._report_convergence(result, reached)

    def _rows(self, checked: CheckedRows, frame: Frame) -> TrainingRows:
        X, scaling = frame.scaling.applied(canonical(checked.X), may_be_left=self._reads_all)
        y = frame.target.apply(checked.y)
        check_sizes("X", X, checked.X, _LARGEST)
        n_classes = len(getattr(self, "classes_", ()))
        parts = X, y, checked.codes, checked.labels, checked.weight
        return TrainingRows(*parts, frame.intercept, n_classes, scaling)

    @property
    def _reads_all(self) -> bool:
        """Whether steps are passes over all rows for certain, and none draws rows for kernels."""
        is_free = self.budget is None and self.max_epochs is None and not self.early_stopping
        return self.method == "newton" or isinstance(self.method, Newton) or (self.method == "auto" and is_free)

    def _scaling(self, X: Any, weight: Vector | None) -> Scaling:
        if not self.standardize:
            return Scaling.none(X.shape[1])
        return Scaling.of(canonical(X), weight, centered=bool(self.fit_intercept))

    def _trainer(self, rows: TrainingRows, unit: float, rng: Generator, stopping: EarlyStopping | None) -> Trainer:
        return Trainer(
            rows,
            self._loss_at,
            self._has_scale,
            self._regularizer(rows),
            self._protection(rows, unit),
            self.temperature if self.temperature == "auto" else float(self.temperature),
            float(self.max_cost),
            self.method,
            self._budget(rows),
            rng,
            np.random.default_rng(_SEED_OF_FOLDS) if self.random_state is None else rng,
            Watch(self.tol, bool(self.verbose), tuple(self.callbacks or ()), stopping),
        )

    def _protection(self, rows: TrainingRows, unit: float) -> Protection:
        if self.protect == "loss":
            return LossProtection()
        return RegretProtection(self._given_baselines(rows, unit))

    def _given_baselines(self, rows: TrainingRows, unit: float) -> Vector | None:
        """Return the baselines that the user gave, by group and on the scale of training."""
        if self.baseline is None:
            return None
        return given_baselines(self.baseline, rows.labels.tolist()) / unit

    def _budget(self, rows: TrainingRows) -> int | None:
        n = rows.X.shape[0]
        given = [self.budget, None if self.max_epochs is None else math.ceil(self.max_epochs * n)]
        return min((number for number in given if number is not None), default=None)

    def _regularizer(self, rows: TrainingRows) -> Regularizer:
        if self.penalty == "none":
            return Zero()
        ridge, lasso = (self.alpha, self.alpha) if self.alpha != "auto" else _chosen_alphas(rows)
        if self.penalty == "l2":
            return L2(ridge)
        return L1(lasso) if self.penalty == "l1" else ElasticNet(lasso, self.l1_ratio)

    def _start(self, rows: TrainingRows, frame: Frame) -> Vector:
        d, n_outputs = rows.X.shape[1], rows.n_outputs
        if self.warm_start and hasattr(self, "coef_") and np.size(self.coef_) == d * n_outputs:
            return frame.variable(np.reshape(self.coef_, (n_outputs, d)), np.reshape(self.intercept_, -1))
        return np.zeros((d + rows.intercept) * n_outputs)

    # --- fitted attributes ---

    def _keep_training(self, trained: Trained, trainer: Trainer, frame: Frame, dtype: Any) -> None:
        rows = trained.rows
        inner = rows.inner(trained.loss)
        losses = inner.value(trained.w, inner.everything())[0]
        self.memory_ = Memory(
            frame,
            trained.loss,
            trainer.regularizer,
            rows.labels,
            losses,
            group_sizes(rows),
            mean_curvature(rows, trained.loss, trained.w),
            trained.levels,
        )
        self._keep_model(trained.w, dtype)
        self.temperature_, self.path_ = trained.temperature, []
        if trained.path is not None:
            unit = frame.target.unit if has_residuals(trained.loss) else frame.target.loss_unit
            self.path_ = trained.path.records(trained.temperature, rows.labels, unit)
        self.n_iter_ = sum(result.n_steps for result in trained.results)
        self.n_samples_drawn_ = sum(result.samples for result in trained.results)
        self.history_ = in_units(trained.history, frame.target.loss_unit)
        self._certifier = trained

    def _keep_model(self, w: Vector, dtype: Any) -> None:
        memory = self.memory_
        coef, intercept = memory.frame.model(w)
        self.coef_, self.intercept_ = self._shaped(coef.astype(dtype), intercept.astype(dtype))
        self._keep_groups()

    def _keep_groups(self) -> None:
        """Set the fitted attributes of the groups from the memory."""
        memory, unit = self.memory_, self.memory_.frame.target.loss_unit
        self.groups_, self.group_weights_, self.group_losses_ = memory.labels, memory.weights, memory.losses * unit
        if memory.levels.baselines is not None:
            self.group_baselines_ = memory.levels.baselines * unit
            self.group_regrets_ = self.group_losses_ - self.group_baselines_

    def _shaped(self, coef: NDArray[Any], intercept: NDArray[Any]) -> tuple[Any, Any]:
        """Return coef_ and intercept_ in the shapes of their kind of model; given (outputs, d) and (outputs,)."""
        return coef, intercept

    def _report_convergence(self, result: Result, reached: Convergence, *, has_stopped: bool = False) -> None:
        """Set `converged_`, and warn unless the fit has converged or was stopped early."""
        self.converged_ = reached.is_reached
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # what was reached is kept, and the program may end
        if result.status is Status.DIVERGED:
            warnings.warn(f"the fit did not converge: {result.message}", ConvergenceWarning, stacklevel=4)
        elif not (self.converged_ or has_stopped or result.status is Status.STOPPED):
            warnings.warn(reached.message, ConvergenceWarning, stacklevel=4)

    @property
    def certificate_(self) -> Certificate:
        """A bound on F(w) − F* on the training rows, in the units of the loss; computed when asked for."""
        check_is_fitted(self)
        trained = self.__dict__.get("_certifier")
        if trained is None:
            raise AttributeError(
                "certificate_ needs the rows of the fit; a model that was saved or fitted in parts has none."
            )
        unit, n = self.memory_.frame.target.loss_unit, trained.problem.inner.n_samples or 0
        found = certify(trained.problem, trained.w, samples=n)
        return replace(found, bound=found.bound * unit, estimate=found.estimate * unit)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_certifier", None)  # it holds on to the training data
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def in_units(history: list[Record], unit: float) -> list[Record]:
    """Return records with losses in the units of the targets."""
    losses = ("objective", "validation_loss", "duality_gap")
    return [{**record, **{name: record[name] * unit for name in losses if name in record}} for record in history]


def _generator(random_state: Any) -> Generator:
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))


def _chosen_alphas(rows: TrainingRows) -> tuple[float, float]:
    """Return weights of an L2 and of an L1 penalty for targets of unit spread.

    A ridge that a row in n outweighs ten times; a lasso at about the noise of the largest of d slopes.
    """
    n, d = rows.n_effective, rows.X.shape[1]
    column = math.sqrt(rows.mean_square / d)
    return _RIDGE * rows.mean_square / n, _LASSO * column * math.sqrt(2.0 * math.log(2.0 * d) / n)
