"""Descriptions of a model, or of the rows of a file, as tables of words and numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stoic.errors import InvalidProblem
from stoic.estimators.base import GroupDROModel
from stoic.estimators.scales import spread
from stoic.estimators.tail_index import TailIndex, advice, tail_index
from stoic.fitting.amounts import Amounts
from stoic.fitting.files import load_fitted
from stoic.fitting.schemas import FileRows, Schema
from stoic.inners.labels import encode_groups
from stoic.protocols import Vector
from stoic.reports.words import counted

_MOST_WEIGHTS = 20
_MOST_GAPS = 10
_FEW_ROWS = 50
_ROUNDING = 1e-9  # of the largest effect: that of a column without a spread


@dataclass(frozen=True)
class Section:
    """A table with a title, and a sentence or two below it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()


def inspect_model(path: Path) -> list[Section]:
    """Return a description of a saved model: its settings, its groups, its largest weights."""
    model, schema = load_fitted(path)
    return model_sections(model, schema)


def model_sections(model: GroupDROModel, schema: Schema) -> list[Section]:
    """Return a description of a fitted model."""
    return [groups_of(model), _settings(model, schema), _weights(model, schema)]


def _settings(model: GroupDROModel, schema: Schema) -> Section:
    memory = model.memory_
    average = "average over groups" if model.protect == "loss" else "average over rows"
    rows = [
        ("model", type(model).__name__),
        ("target", schema.target or "the label of a LIBSVM file"),
        ("group", schema.group or "–"),
        ("columns", model.n_features_in_),
        ("loss", _short(memory.loss)),
        ("penalty", _short(memory.regularizer)),
        ("protect", model.protect),
        ("temperature", average if memory.levels.temperature is None else f"{model.temperature_:g}"),
        ("steps, rows drawn", f"{model.n_iter_:,}, {model.n_samples_drawn_:,}"),
        ("converged", "yes" if model.converged_ else "no"),
    ]
    unit = memory.frame.target.unit
    notes = [f"Thresholds and penalties are for targets in units of {unit:.4g}."] if unit != 1.0 else []
    return Section("Model", ("", ""), rows, notes)


def _short(part: Any) -> str:
    """Return a loss or a penalty with a few digits of its settings."""
    settings = (f"{field.name}={getattr(part, field.name):.4g}" for field in fields(part))
    return f"{type(part).__name__}({', '.join(settings)})"


def groups_of(model: GroupDROModel) -> Section:
    """Return the groups of a model, the one with the largest loss first."""
    order = np.argsort(-model.group_losses_, kind="stable")
    amounts = Amounts.like(float(np.abs(model.group_losses_).mean()))
    rows = [
        (
            str(model.groups_[i]),
            f"{model.memory_.counts[i]:,.0f}",
            amounts.bare(float(model.group_losses_[i])),
            f"{model.group_weights_[i]:.3f}",
        )
        for i in order
    ]
    return Section("Groups", ("group", "rows", "mean loss", "weight"), rows)


def _weights(model: GroupDROModel, schema: Schema) -> Section:
    coef, scale = np.atleast_2d(model.coef_), model.memory_.frame.scaling.scale
    names = schema.names or [f"column {j + 1}" for j in range(coef.shape[1])]
    effects = coef * scale
    size = np.abs(effects).max(axis=0)
    is_used = size > _ROUNDING * size.max(initial=0.0)
    largest = np.argsort(-size, kind="stable")[:_MOST_WEIGHTS]
    rows = [(names[j], *map(_signed, effects[:, j]), *map(_signed, coef[:, j])) for j in largest if is_used[j]]
    classes = [str(name) for name in getattr(model, "classes_", ())] if len(coef) > 1 else [""]
    head = ("column", *(f"{what} {name}".strip() for what in ("effect", "weight") for name in classes))
    n_used = int(np.count_nonzero(is_used))
    notes = [
        f"{n_used:,} of {len(size):,} columns have a weight; those with the largest effect are shown: the weight "
        f"times the scale of the column{_unit_of_effects(model, scale)}."
    ]
    return Section("Weights", head, rows, notes)


def _unit_of_effects(model: GroupDROModel, scale: Vector) -> str:
    """Return what the scales of the columns are."""
    if (scale == 1.0).all():
        return ", which is 1 for all"
    return ", its standard deviation" if model.memory_.frame.scaling.center.any() else ""


def _signed(number: float) -> str:
    return f"{number:+#.4g}".rstrip(".")


def inspect_rows(table: FileRows, schema: Schema) -> list[Section]:
    """Return a description of the rows of a file: targets, tails and groups, and which loss suits them."""
    y: Any = table.y
    sections = [_columns(table, schema), *_gaps(table)]
    if table.classifies:
        return [*sections, _classes(y)]
    labels, codes = encode_groups(table.groups, len(y))
    names = [str(label) for label in labels] if table.groups is not None else []
    parts = [("all", y), *((name, y[codes == i]) for i, name in enumerate(names))]
    return [*sections, Section("Targets", _TARGET_HEAD, [_target_row(*part) for part in parts], _advice(y, parts))]


_TARGET_HEAD = ("rows of", "rows", "median", "spread", "mean", "largest |y|", "tail index")


def _columns(table: FileRows, schema: Schema) -> Section:
    n, d = table.X.shape
    n_entries = int(getattr(table.X, "nnz", table.X.size))
    rows = [("rows", f"{n:,}"), ("columns of the matrix", f"{d:,}"), ("entries per row", f"{n_entries / n:.1f}")]
    if schema.encoding is not None:
        n_text = sum(code.categories is not None for code in schema.encoding.codes)
        rows.append(("columns of text", f"{n_text:,}"))
    return Section("Data", ("", ""), rows)


def _gaps(table: FileRows) -> list[Section]:
    """Return the columns that lack values, the emptiest first."""
    if table.gaps is None or not table.gaps.counts:
        return []
    n_rows = len(table.gaps.rows)
    worst = sorted(table.gaps.counts.items(), key=lambda pair: -pair[1])
    rows = [(name, f"{count:,}", f"{count / n_rows:.1%}") for name, count in worst[:_MOST_GAPS]]
    more = [f"And {counted(len(worst) - _MOST_GAPS, 'more column')}."] if len(worst) > _MOST_GAPS else []
    whole = f"{n_rows - table.gaps.n_rows:,} of {n_rows:,} rows lack no value of the columns to use."
    remedy = "stoic fit needs --missing drop to use just these, or --missing impute to fill the others in."
    return [Section("Missing values", ("column", "rows", "share"), rows, [*more, f"{whole} {remedy}"])]


def _classes(y: NDArray[Any]) -> Section:
    names, counts = np.unique(y, return_counts=True)
    rows = [(str(name), f"{count:,}", f"{count / len(y):.1%}") for name, count in zip(names, counts, strict=True)]
    return Section("Classes", ("class", "rows", "share"), rows)


def _target_row(name: str, y: Vector) -> tuple[str, ...]:
    center = float(np.median(y))
    numbers = (center, spread(y - center), float(y.mean()), float(np.abs(y).max()))
    index = _index(y)
    words = "–" if index is None else f"{index.value:.1f} [{index.low:.1f}, {index.high:.1f}]"
    return name, f"{len(y):,}", *(f"{number:.4g}" for number in numbers), words


def _index(y: Vector) -> TailIndex | None:
    try:
        return tail_index(y)
    except InvalidProblem:
        return None


def _advice(y: Vector, parts: Sequence[tuple[str, Vector]]) -> list[str]:
    index = _index(y)
    said = [advice(index)] if index is not None else ["More than half of the targets are equal, or nearly all."]
    small = [name for name, part in parts[1:] if len(part) < _FEW_ROWS]
    if small:
        more = f" and {len(small) - 1} more" if len(small) > 1 else ""
        said.append(
            f"The group {small[0]!r}{more} has fewer than {_FEW_ROWS} rows: its loss is a guess; join small ones."
        )
    if len(parts) == 1:
        said.append("No groups are given: a fit would protect none.")
    return said
