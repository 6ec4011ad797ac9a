"""What a fit is compared with: the average over rows, equal weights of the groups, and a constant."""

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stoic.estimators.base import GroupDROModel
from stoic.estimators.scales import weighted_quantile
from stoic.fitting.schemas import FileRows
from stoic.protocols import Array, Vector

FIT, AVERAGE, EQUAL, CONSTANT = "fit", "average", "equal", "constant"
_PROTECTED = {AVERAGE: "regret", EQUAL: "loss"}  # at temperature inf


class Predictor(Protocol):
    """What predicts rows; a classifier has `classes_` and `predict_proba`, too."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return a prediction for each row."""
        ...


class ConstantTarget:
    """The same number for all rows: the quantile of the training rows that the error asks for."""

    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, X: Any) -> Vector:
        """Return the number, once for each row."""
        return np.full(X.shape[0], self.value)


class ConstantClass:
    """The most frequent class of the training rows, and the share of each as its probability."""

    def __init__(self, classes: NDArray[Any], shares: Vector) -> None:
        self.classes_, self.shares = classes, shares

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class, once for each row."""
        return np.repeat(self.classes_[[int(self.shares.argmax())]], X.shape[0])

    def predict_proba(self, X: Any) -> Array:
        """Return the shares, once for each row."""
        return np.tile(self.shares, (X.shape[0], 1))


def kind_of_average(model: GroupDROModel) -> str | None:
    """Return which of the averages a fitted model is: `AVERAGE`, `EQUAL`, or None where it is neither."""
    if model.memory_.levels.temperature is not None:
        return None
    return AVERAGE if model.protect == "regret" else EQUAL


def rivals_of(model: GroupDROModel, train: FileRows) -> Mapping[str, Predictor]:
    """Return predictors by name, the model first; an average that the model is already is left out.

    Of one group all averages are the same.
    """
    rivals: dict[str, Predictor] = {FIT: model}
    own = kind_of_average(model)
    for name, protect in _PROTECTED.items():
        if name != own and len(model.groups_) > 1:
            rivals[name] = _average(model, protect).fit(
                train.X, train.y, groups=train.groups, sample_weight=train.weight
            )
    return rivals | {CONSTANT: _constant(model, train)}


def _average(model: GroupDROModel, protect: str) -> Any:
    """Return the same estimator for an average, to be fitted."""
    settings = model.get_params() | {"protect": protect, "temperature": math.inf, "baseline": None}
    if protect == "regret":  # an average asks for no own models, and numbers that are given need not be estimated
        settings["baseline"] = dict.fromkeys(model.groups_.tolist(), 0.0)
    return type(model)(**settings)


def _constant(model: GroupDROModel, train: FileRows) -> Predictor:
    y: Any = train.y
    if not hasattr(model, "classes_"):
        return ConstantTarget(weighted_quantile(y, train.weight, level_of(model)))
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes, weights=train.weight)
    return ConstantClass(classes, counts / counts.sum())


def level_of(model: GroupDROModel) -> float:
    """Return the quantile that predictions are judged as: the median, or the one that was fitted."""
    return float(model.quantile) if model.loss == "quantile" else 0.5
