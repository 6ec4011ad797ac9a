"""Charts of the paper's chapter as plain data, in which numbers that are not finite are left empty."""

from collections.abc import Iterator, Sequence

import numpy as np

from stoic.reports.html import Chart, finite
from stoic.studies.paper.results import Curve, Results
from stoic.studies.paper.runs import Setting
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.store import Stored
from stoic.studies.paper.summary import selections
from stoic.studies.paper.words import power
from stoic.studies.shared.statistics import averages


def charts_of(results: Results) -> list[Chart]:
    """Return all charts."""
    return [*_curves(results), *_grids(results), *_truncations(results), *_variants(results)]


def problems(spec: Spec) -> list[tuple[str, float]]:
    """Return the pairs of a loss and a temperature, that of the figures first."""
    return [(loss, temperature) for loss in spec.losses for temperature in spec.temperatures]


def _curves(results: Results) -> Iterator[Chart]:
    """Yield a chart of test errors for each regularizer that has some."""
    for regularizer in results.spec.regularizers:
        curves = [
            {"selection": selection, "problem": _problem(results.spec, curve.setting), **_curve(curve)}
            for selection in selections(results.spec)
            for curve in results.curves[selection]
            if curve.setting.regularizer == regularizer
        ]
        if curves:
            yield {"id": f"curve-{regularizer}", "kind": "curve", "curves": curves}


def _curve(curve: Curve) -> Chart:
    diverged = curve.endings.get("diverged", 0)
    return {
        "method": curve.setting.method,
        "note": f"diverged in {diverged} of {len(curve.trials)}" if diverged else "",
        "samples": finite(curve.samples),
        "seconds": finite(curve.seconds),
        "scores": {
            name: {key: finite(values) for key, values in averages(scores)._asdict().items()}
            for name, scores in curve.scores.items()
        },
    }


def _problem(spec: Spec, setting: Setting) -> int:
    return problems(spec).index((setting.loss, setting.temperature))


def _grids(results: Results) -> Iterator[Chart]:
    """Yield a chart of validation errors for each regularizer and method of which cells are known."""
    spec, by_chart = results.spec, _cells(results)
    alphas = [power(value) for value in sorted(spec.alphas)]
    for (regularizer, method), cells in by_chart.items():
        yield {
            "id": f"grid-{regularizer}-{method}",
            "kind": "grid",
            "alphas": alphas,
            "steps": [power(step) for step in sorted(spec.steps_of(method))],
            "cells": cells,
            "chosen": _chosen(results, regularizer, method),
        }


def _cells(results: Results) -> dict[tuple[str, str], list[Chart]]:
    """Return the cells by regularizer and method, in the order of the spec."""
    spec = results.spec
    cells: dict[tuple[str, str], list[Chart]] = {
        (regularizer, method): [] for regularizer in spec.regularizers for method in spec.methods
    }
    for stored in results.grid:
        run, setting = stored.run, stored.run.setting
        chart = cells[setting.regularizer, setting.method]
        place = _place(spec, setting.method, run.alpha, run.step)
        chart.append({"problem": _problem(spec, setting), **place, **_cell(stored)})
    return {names: found for names, found in cells.items() if found}


def _cell(stored: Stored) -> Chart:
    outcome = stored.outcome
    last = outcome.points[-1] if outcome.points and outcome.ending == "finished" else {}
    errors = {name: finite([last.get(name, np.nan)])[0] for name in ("plain", "robust")}
    return {**errors, "ending": outcome.ending, "message": outcome.message if outcome.ending == "failed" else ""}


def _place(spec: Spec, method: str, alpha: float, step: float) -> dict[str, int]:
    return {"alpha": sorted(spec.alphas).index(alpha), "step": sorted(spec.steps_of(method)).index(step)}


def _chosen(results: Results, regularizer: str, method: str) -> list[Chart]:
    spec = results.spec
    return [
        {"selection": selection, "problem": _problem(spec, setting), **_place(spec, method, cell.alpha, cell.step)}
        for selection in selections(spec)
        for setting, cell in results.cells[selection].items()
        if (setting.regularizer, setting.method) == (regularizer, method)
    ]


def _truncations(results: Results) -> Iterator[Chart]:
    """Yield a chart of truncated steps by stage for each regularizer with which a method truncated some."""
    for regularizer in results.spec.regularizers:
        curves = [curve for curve in results.main if curve.setting.regularizer == regularizer]
        shares = [{"method": curve.setting.method, **_shares(curve)} for curve in curves]
        truncated = [found for found in shares if any(found["y"]) or any(found["z"])]
        if truncated:
            yield {"id": f"truncation-{regularizer}", "kind": "truncation", "methods": truncated}


def _shares(curve: Curve) -> Chart:
    """Return the shares of truncated steps by stage, over all trials; a point counts for the samples up to it."""
    points = [point for stored in curve.trials for point in _weighted(stored)]
    n_stages = 1 + max(int(point["stage"]) for point in points)
    weights, sums = np.zeros(n_stages), {"y": np.zeros(n_stages), "z": np.zeros(n_stages)}
    for point in points:
        stage = int(point["stage"])
        weights[stage] += point["weight"]
        for name, total in sums.items():
            total[stage] += point["weight"] * point[f"truncated_{name}"]
    return {name: finite(total / np.maximum(weights, 1e-300)) for name, total in sums.items()}


def _weighted(stored: Stored) -> list[dict[str, float]]:
    points = stored.outcome.points
    starts = [0.0, *(point["samples"] for point in points)]
    return [point | {"weight": point["samples"] - start} for point, start in zip(points, starts, strict=False)]


def _variants(results: Results) -> Iterator[Chart]:
    """Yield charts of the final error against the temperature, one per loss; or against the loss."""
    spec = results.spec
    if len(spec.temperatures) > 1:
        for regularizer in spec.regularizers:
            for loss in spec.losses:
                places = [(loss, temperature) for temperature in sorted(spec.temperatures)]
                yield from _variant(results, f"variant-{regularizer}-{loss}", regularizer, places)
    elif len(spec.losses) > 1:
        for regularizer in spec.regularizers:
            yield from _variant(results, f"variant-{regularizer}", regularizer, problems(spec))


def _variant(
    results: Results, name: str, regularizer: str, places: Sequence[tuple[str, float]]
) -> Iterator[Chart]:
    curves = {curve.setting: curve for curve in results.curves[results.spec.selection]}
    lines = []
    for method in results.spec.methods:
        settings = [Setting(loss, temperature, regularizer, method) for loss, temperature in places]
        finals = [averages(curves[key].final("mse") if key in curves else [np.nan]) for key in settings]
        means, deviations = (finite([getattr(found, key) for found in finals]) for key in ("mean", "deviation"))
        lines.append({"method": method, "mean": means, "deviation": deviations})
    if any(mean is not None for line in lines for mean in line["mean"]):
        by_loss = len(results.spec.temperatures) == 1
        x = [loss if by_loss else temperature for loss, temperature in places]
        yield {"id": name, "kind": "variant", "x": x, "by": "loss" if by_loss else "temperature", "lines": lines}
