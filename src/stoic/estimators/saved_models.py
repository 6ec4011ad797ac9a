"""What the file of a model holds, piece by piece, and the check of it: a checksum is no signature."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_LARGEST = 1 << 28  # bytes of the labels as an array
KINDS = ("GroupDRORegressor", "GroupDROClassifier")
_SHOWN = 60  # signs of a wrong value in a message


class NotAModelError(ValueError):
    """What is wrong with the content of a file."""


class _Piece(NamedTuple):
    """A value of the JSON part: how it is told to be right, and what is wanted in words."""

    is_right: Callable[[Any], bool]
    wanted: str


class _Numbers(NamedTuple):
    """An array: the sizes of its axes by name, what its entries must be, and whether it may be missing."""

    axes: tuple[str, ...]
    are_right: Callable[[NDArray[Any]], Any]
    wanted: str
    is_optional: bool = False


def _is_real(value: Any) -> bool:
    return type(value) in {int, float}


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_mapping_of(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(is_right, value.values()))


def _is_list_of(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(is_right, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _is_positive(value: Any) -> bool:
    return _is_real(value) and 0.0 < value < math.inf


def _or_none(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_right(value)


_PIECES = {
    "kind": _Piece(lambda value: value in KINDS, f"one of {', '.join(KINDS)}"),
    "settings": _Piece(_is_mapping, "a mapping"),
    "labels": _Piece(_is_mapping_of(_is_mapping), "a mapping of mappings"),
    "group_column": _Piece(_or_none(_is_text), "null or text"),
    "names": _Piece(_or_none(_is_list_of(_is_text)), "null or a list of text"),
    "facts": _Piece(_is_mapping, "a mapping"),
    "loss": _Piece(_is_mapping, "a mapping"),
    "penalty": _Piece(_is_mapping, "a mapping"),
    "target": _Piece(_is_mapping_of(_is_real), "a mapping of numbers"),
    "curvature": _Piece(_is_positive, "a positive number"),
    "temperature": _Piece(_or_none(_is_positive), "null or a positive number"),
    "columns": _Piece(_or_none(_is_mapping), "null or a mapping"),
}
_FACTS = {
    "n_iter_": _Piece(_is_count, "a count"),
    "n_samples_drawn_": _Piece(_is_count, "a count"),
    "n_features_in_": _Piece(lambda value: _is_count(value) and value > 0, "a count above 0"),
    "converged_": _Piece(lambda value: isinstance(value, bool), "true or false"),
    "truncation_": _Piece(_is_mapping_of(_is_real), "a mapping of numbers"),
    "temperature_": _Piece(lambda value: _is_real(value) and value >= 0.0, "a number >= 0"),
    "history_": _Piece(_is_list_of(_is_mapping_of(_is_real)), "a list of mappings of numbers"),
}
_TARGET = {
    "location": _Piece(lambda value: _is_real(value) and math.isfinite(value), "a finite number"),
    "unit": _Piece(_is_positive, "a positive number"),
    "power": _Piece(lambda value: _is_count(value) and value <= 2, "0, 1 or 2"),
}
_KINDS_OF_LABEL: dict[str, Any] = {
    "b": bool,
    "i": int,
    "u": int,
    "f": (int, float),
    "U": str,
    "O": (bool, int, float, str),
    "m": int,
    "M": int,
}


def _are_positive(array: NDArray[Any]) -> Any:
    return np.isfinite(array) & (array > 0.0)


_ARRAYS = {
    "coef": _Numbers(("outputs", "columns"), np.isfinite, "finite"),
    "intercept": _Numbers(("outputs",), np.isfinite, "finite"),
    "center": _Numbers(("columns",), np.isfinite, "finite"),
    "scale": _Numbers(("columns",), _are_positive, "positive and finite"),
    "losses": _Numbers(("groups",), lambda array: ~np.isnan(array), "no NaN"),
    "counts": _Numbers(("groups",), lambda array: np.isfinite(array) & (array >= 0.0), "finite and >= 0"),
    "baselines": _Numbers(("groups",), lambda array: ~np.isnan(array), "no NaN", is_optional=True),
    "group_scales": _Numbers(("groups",), _are_positive, "positive and finite", is_optional=True),
}


def brought_up(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON part with what older files lack: they protect the groups with the largest losses."""
    settings, facts = meta.get("settings"), meta.get("facts")
    if not (isinstance(settings, dict) and isinstance(facts, dict)):
        return dict(meta)
    older = {"protect": "loss", "max_cost": 0.01}
    temperature = settings.get("temperature", math.inf)
    return {
        "group_column": None,
        **meta,
        "settings": {**{name: one for name, one in older.items() if "protect" not in settings}, **settings},
        "facts": {"temperature_": temperature, **facts},
    }


def check_saved(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
    """Raise `NotAModelError` unless arrays and JSON are, in kind, shape and range, what a model is saved as."""
    _check_pieces(meta, _PIECES, "")
    _check_pieces(meta["facts"], _FACTS, "facts.")
    _check_pieces(meta["target"], _TARGET, "target.")
    groups, n_classes = labels_of(meta, "groups"), 0
    if "classes" in meta["labels"]:
        n_classes = len(labels_of(meta, "classes"))
        _require(n_classes >= 2, f"it has {n_classes} class, but two are the least")
    sizes = {
        "outputs": n_classes if n_classes > 2 else 1,
        "columns": meta["facts"]["n_features_in_"],
        "groups": len(groups),
    }
    names = meta["names"]
    _require(names is None or len(names) == sizes["columns"], f"it has not {sizes['columns']} names of columns")
    _check_arrays(arrays, sizes, is_flat=not n_classes)


def labels_of(meta: Mapping[str, Any], name: str) -> NDArray[Any]:
    """Return the labels of groups or classes, each of which is there once."""
    saved = meta["labels"].get(name)
    _require(isinstance(saved, dict) and isinstance(saved.get("values"), list), f"it has no labels of {name}")
    dtype, values = np.dtype(saved["dtype"]), saved["values"]
    _require(dtype.kind in _KINDS_OF_LABEL, f"the labels of {name} are of dtype {dtype}")
    _require(dtype.itemsize * len(values) <= _LARGEST, f"the labels of {name} are to take too much memory")
    kinds = _KINDS_OF_LABEL[dtype.kind]
    wrong = [one for one in values if not isinstance(one, kinds) or one != one]  # noqa: PLR0124 - true of NaN
    _require(not wrong, f"a label of {name} is {_short(wrong[:1])}, but their dtype is {dtype}")
    _require(len(set(values)) == len(values) > 0, f"the labels of {name} are not there once each")
    return np.array(values, dtype=dtype)


def _check_pieces(found: Mapping[str, Any], pieces: Mapping[str, _Piece], where: str) -> None:
    for name, piece in pieces.items():
        _require(name in found, f"{where}{name} is missing")
        _require(piece.is_right(found[name]), f"{where}{name} is {_short(found[name])}, not {piece.wanted}")


def _check_arrays(arrays: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], *, is_flat: bool) -> None:
    for name, wanted in _ARRAYS.items():
        if name not in arrays:
            _require(wanted.is_optional, f"the array {name} is missing")
            continue
        axes = wanted.axes[1:] if is_flat and name == "coef" else wanted.axes
        shape, array = tuple(sizes[axis] for axis in axes), arrays[name]
        _require(array.dtype in (np.float64, np.float32), f"{name} is of dtype {array.dtype}, not of real numbers")
        _require(array.shape == shape, f"{name} has shape {array.shape}, not {shape}")
        _require(bool(np.all(wanted.are_right(array))), f"{name} has entries that are not: {wanted.wanted}")
    surplus = [name for name in arrays if name not in _ARRAYS]
    _require(not surplus, f"{_short(surplus[:1])} is no array of a model")
    _require(("baselines" in arrays) == ("group_scales" in arrays), "of baselines and group_scales one is missing")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise NotAModelError(what)


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
