"""Models in files: one archive without pickle, whose checksum and version are checked when it is read."""

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from stoic import __version__
from stoic.errors import DamagedFile, InvalidParameter
from stoic.estimators.base import GroupDROModel
from stoic.estimators.classifier import GroupDROClassifier
from stoic.estimators.online import Memory
from stoic.estimators.protection import Levels
from stoic.estimators.regressor import GroupDRORegressor
from stoic.estimators.saved_models import NotAModelError, brought_up, check_saved, labels_of
from stoic.estimators.scales import Frame, Scaling, TargetScale
from stoic.losses import Absolute, Huber, Logistic, Quantile, Squared
from stoic.regularizers import L1, L2, ElasticNet, Zero
from stoic.reports.visible import shortened
from stoic.solve.result import Record
from stoic.storage.archive import read_archive, write_archive

FORMAT = 1
"""The version of the files that are written; older ones stay readable."""

_MODELS = {kind.__name__: kind for kind in (GroupDRORegressor, GroupDROClassifier)}
_LOSSES = {kind.__name__: kind for kind in (Squared, Huber, Absolute, Quantile, Logistic)}
_PENALTIES = {kind.__name__: kind for kind in (Zero, L1, L2, ElasticNet)}
_MARK = "stoic model"
_NOT_SAVED = {"callbacks", "random_state"}  # settings that are not kept: functions, and generators
_FACTS = ("n_iter_", "n_samples_drawn_", "truncation_", "history_", "converged_", "n_features_in_", "temperature_")


def save_model(
    model: GroupDROModel, path: str | os.PathLike[str], *, columns: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted model to one file, in one move.

    The file is a ``.npz`` archive of arrays and JSON with a checksum over all of it: no pickle, nothing that runs
    when it is read. Callbacks and `random_state` are not kept, nor `path_`, the certificate, which needs the data,
    and the seconds in the history: the same model is the same bytes.

    Parameters
    ----------
    model : GroupDRORegressor or GroupDROClassifier
        After `fit`.
    path : path
    columns : mapping, optional
        How the columns of X were made from a table, as values that JSON can hold; see `load_columns`.

    Raises
    ------
    InvalidParameter
        If the model is of another kind, its method is not one with a name, or its numbers are not finite.
    OSError
        If the file cannot be written; an old one is left as it was.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from stoic import GroupDRORegressor, load_model, save_model
    >>> X, y = np.arange(8.0).reshape(-1, 1), np.arange(8.0)
    >>> model = GroupDRORegressor().fit(X, y, groups=[0, 1] * 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/model.stoic")
    ...     again = load_model(f"{folder}/model.stoic")
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    if type(model).__name__ not in _MODELS:
        raise InvalidParameter(f"model={model!r} is not one of {', '.join(_MODELS)}.")
    check_is_fitted(model)
    settings = {name: value for name, value in model.get_params().items() if name not in _NOT_SAVED}
    if not isinstance(settings["method"], str):
        raise InvalidParameter(f"method={settings['method']!r} cannot be saved; only methods with a name can.")
    memory = model.memory_
    labels = {"groups": model.groups_, "classes": getattr(model, "classes_", None)}
    names = getattr(model, "feature_names_in_", None)
    facts = {name: _as_python(getattr(model, name)) for name in _FACTS}
    meta = {
        "what": _MARK,
        "format": FORMAT,
        "stoic": __version__,
        "kind": type(model).__name__,
        "settings": {name: _setting_to_json(value) for name, value in settings.items()},
        "labels": {name: _labels_to_json(values) for name, values in labels.items() if values is not None},
        "group_column": getattr(model, "group_column_", None),
        "names": None if names is None else [str(name) for name in names],
        "facts": {**facts, "history_": _timeless(model.history_)},
        "loss": _to_json(memory.loss),
        "penalty": _to_json(memory.regularizer),
        "target": _fields(memory.frame.target),
        "curvature": memory.curvature,
        "temperature": memory.levels.temperature,
        "columns": None if columns is None else dict(columns),
    }
    arrays = {
        "coef": model.coef_,
        "intercept": np.atleast_1d(model.intercept_),
        "center": memory.frame.scaling.center,
        "scale": memory.frame.scaling.scale,
        "losses": memory.losses,
        "counts": memory.counts,
    }
    if memory.levels.baselines is not None and memory.levels.scales is not None:
        arrays |= {"baselines": memory.levels.baselines, "group_scales": memory.levels.scales}
    try:
        check_saved(arrays, json.loads(json.dumps(meta)))
    except (NotAModelError, TypeError) as error:
        raise InvalidParameter(f"the model cannot be saved: {error}; fit it again.") from error
    write_archive(path, arrays, meta)


def load_model(path: str | os.PathLike[str]) -> GroupDROModel:
    """Return a model that `save_model` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    GroupDRORegressor or GroupDROClassifier
        It predicts what the saved one did, bit for bit, and goes on with `partial_fit`.

    Raises
    ------
    DamagedFile
        If the file is not just as `save_model` left it, is something else, or was written by a newer version; the
        message says what is wrong. The checksum finds damage; it is no signature.
    OSError
        If there is no such file, or it cannot be read.
    """
    arrays, meta = _read(path)
    try:
        meta = brought_up(meta)
        check_saved(arrays, meta)
        return _model_from(arrays, meta)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        why = shortened(str(error), 200)
        raise DamagedFile(
            f"{os.fspath(path)} has the right checksum but is no model as stoic writes it: {why}; write it again."
        ) from error


def load_columns(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the argument `columns` of `save_model`, if there was one."""
    columns: dict[str, Any] | None = _read(path)[1].get("columns")
    return columns


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    arrays, meta = read_archive(path)
    if meta.get("what") != _MARK:
        raise DamagedFile(
            f"{os.fspath(path)} is a file of stoic's, but holds no model; give one that save_model wrote."
        )
    written: Any = meta.get("format")
    if type(written) is not int or not 0 < written <= FORMAT:
        by, form = (shortened(str(one), 20) for one in (meta.get("stoic"), written))
        raise DamagedFile(
            f"{os.fspath(path)} was written by stoic {by} in format {form}, but this version "
            f"reads formats up to {FORMAT}; install a newer stoic."
        )
    return arrays, meta


def _model_from(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> GroupDROModel:
    settings = {name: _setting_from_json(value) for name, value in meta["settings"].items()}
    model: Any = _MODELS[meta["kind"]](**settings)
    model.group_column_ = meta["group_column"]
    is_regressor = meta["kind"] == GroupDRORegressor.__name__
    model._check_settings()  # noqa: SLF001 - of our own kind
    if not is_regressor:
        model.classes_ = labels_of(meta, "classes")
    if (meta["loss"]["kind"] == Logistic.__name__) is is_regressor:
        raise NotAModelError(f"{meta['loss']['kind']} is no loss of a {meta['kind']}")
    if meta["names"] is not None:
        model.feature_names_in_ = np.array(meta["names"], dtype=object)
    for name in _FACTS:
        setattr(model, name, meta["facts"][name])
    model.path_ = []
    frame = Frame(
        Scaling(arrays["center"], arrays["scale"]),
        TargetScale(**meta["target"]),
        bool(settings["fit_intercept"]),
    )
    memory = Memory(
        frame,
        _from_json(meta["loss"], _LOSSES),
        _from_json(meta["penalty"], _PENALTIES),
        labels_of(meta, "groups"),
        arrays["losses"],
        arrays["counts"],
        meta["curvature"],
        Levels(meta["temperature"], arrays.get("baselines"), arrays.get("group_scales")),
    )
    model.memory_ = memory
    model._keep_groups()  # noqa: SLF001 - of our own kind
    model.coef_ = arrays["coef"]
    model.intercept_ = arrays["intercept"][0] if is_regressor else arrays["intercept"]
    return cast("GroupDROModel", model)


def _labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    """Return labels as values that JSON can hold."""
    if labels.dtype.kind in "mM":  # dates and spans of time
        return {"dtype": labels.dtype.str, "values": labels.astype(np.int64).tolist()}
    values = labels.tolist()
    if not all(isinstance(value, str | int | float | bool) for value in values):
        raise InvalidParameter(f"groups or classes {values[:5]!r} cannot be saved; use text or numbers.")
    return {"dtype": "object" if labels.dtype == object else labels.dtype.str, "values": values}


def _setting_to_json(value: Any) -> Any:
    """Return a setting as JSON can hold it; a mapping as pairs, since its keys may be numbers."""
    if isinstance(value, Mapping):
        return {"pairs": [[_as_python(name), _as_python(one)] for name, one in value.items()]}
    return _as_python(value)


def _setting_from_json(saved: Any) -> Any:
    return dict(saved["pairs"]) if isinstance(saved, Mapping) else saved


def _to_json(part: Any) -> dict[str, Any]:
    return {"kind": type(part).__name__, **_fields(part)}


def _fields(part: Any) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in fields(part) if field.init}


def _from_json(saved: Mapping[str, Any], kinds: Mapping[str, Any]) -> Any:
    return kinds[saved["kind"]](**{name: value for name, value in saved.items() if name != "kind"})


def _timeless(history: list[Record]) -> list[Record]:
    """Return records without their seconds, so that the same fit is the same file."""
    return [{name: _as_python(value) for name, value in record.items() if name != "seconds"} for record in history]


def _as_python(value: Any) -> Any:
    """Return a value with NumPy's numbers as Python's, in mappings and lists too."""
    if isinstance(value, Mapping):
        return {name: _as_python(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_python(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value
