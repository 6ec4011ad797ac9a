"""Tables of a confidence study: every quantile for programs, a summary for people."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from stoic.reports.text_tables import Row, as_csv, in_columns, markdown_table
from stoic.reports.words import counted, label, listed, percent
from stoic.storage.atomic import replace_file
from stoic.studies.confidence.methods import PLAIN_RIVALS
from stoic.studies.confidence.quantiles import Band
from stoic.studies.confidence.results import SHOWN, MethodRuns, TailsResults
from stoic.studies.confidence.runs import LawSetting
from stoic.studies.confidence.words import in_words, name_of, short, unfinished, what_was_run
from stoic.studies.shared.methods import UNTUNED

QUANTILE_COLUMNS = (
    "noise", "place", "samples", "method", "step", "runs", "diverged", "failed", "truncated_y", "truncated_z",
    "delta", "quantile", "low", "high",
)  # fmt: skip
RATE_COLUMNS = (
    "noise", "method", "samples", "runs", "median", "low", "high", "slope", "slope_low", "slope_high",
)  # fmt: skip
FAILURE_HEAD = ("method", "part", "setting", "runs", "reason")
NOTE = (
    "Gaps F(w) − F* at the end of independent runs; a run that diverged counts as infinite. In brackets: 95 % "
    "bands, from order statistics for quantiles and ratios, from resampled runs for growth and slopes; ∞ where "
    "there are too few runs for an upper end, a dash where there are too few for the number. Growth: the exponent "
    "k of log(1/δ)^k along the quantiles from 0.9 on. Efficiency: the mean gap over the least that so many samples "
    "allow, tr(H⁻¹Σ)/(2n); a dash where that needs moments which the noise does not have."
)


def write_tails_tables(results: TailsResults, folder: Path) -> None:
    """Write ``tails.csv``, ``tails_rates.csv`` and ``tails.md`` into a folder."""
    replace_file(folder / "tails.csv", as_csv(QUANTILE_COLUMNS, quantile_rows(results)))
    replace_file(folder / "tails_rates.csv", as_csv(RATE_COLUMNS, rate_rows(results)))
    replace_file(folder / "tails.md", tails_text(results))


def quantile_rows(results: TailsResults) -> Iterator[Row]:
    """Yield a row for each quantile; see `QUANTILE_COLUMNS`. A step of 0 stands for the method's own choice."""
    for samples in results.settings.values():
        for one in samples:
            counts = len(one.gaps), one.diverged, one.failed, one.truncated_y, one.truncated_z
            for delta, band in one.quantiles.items():
                yield (*one.setting, *one.cell, *counts, delta, *band)


def rate_rows(results: TailsResults) -> Iterator[Row]:
    """Yield a row for each median gap; see `RATE_COLUMNS`."""
    for found in results.rates:
        slope = found.slope or ("", "", "")
        for n, runs, median in zip(found.samples, found.runs, found.medians, strict=True):
            yield (found.noise, found.method, n, runs, *median, *slope)


class Summary:
    """The summary of a setting: a line for each method, in words.

    Parameters
    ----------
    results : TailsResults
    setting : LawSetting
        One that has runs.
    """

    def __init__(self, results: TailsResults, setting: LawSetting) -> None:
        self.spec, self.samples = results.spec, results.settings[setting]
        self.compared_with = results.baseline_method
        self.deepest = results.deepest(setting)
        self.baseline = results.baseline(setting)
        self.deltas = [delta for delta in SHOWN if any(delta in one.quantiles for one in self.samples)]

    @property
    def head(self) -> list[str]:
        """The columns."""
        last = name_of(self.deepest)
        return [
            "method",
            "step",
            *map(name_of, self.deltas),
            f"{last} / median",
            f"{last} / {label(self.compared_with)}'s",
            "growth",
            "efficiency",
            "truncated y, z",
            "diverged",
        ]

    def rows(self) -> list[list[str]]:
        """Return the lines, with all bands."""
        return [self._row(one, in_words) for one in self.samples]

    def narrow_rows(self) -> list[list[str]]:
        """Return the lines, with bands only for the last of the quantiles and what comes after it."""
        return [self._row(one, lambda band: short(band.value) if band else "–") for one in self.samples]

    def _row(self, one: MethodRuns, brief: Callable[[Band | None], str]) -> list[str]:
        quantiles, last = one.quantiles, self.deepest
        there = last in quantiles
        words = [(in_words if delta == last else brief)(quantiles.get(delta)) for delta in self.deltas]
        return [
            label(one.method),
            self._step(one.cell.step),
            *words,
            in_words(one.over(one, last, 0.5)) if there and last < 0.5 else "–",
            self._over_baseline(one) if there else "–",
            in_words(one.growth),
            _efficiency(one.efficiency(self.spec)),
            f"{percent(one.truncated_y)}, {percent(one.truncated_z)}",
            _diverged(one),
        ]

    def _step(self, step: float) -> str:
        if step == UNTUNED:
            return "–"
        ends = {min(self.spec.steps), max(self.spec.steps)}
        return f"{step:g}" + (" (end of the grid)" if step in ends and len(ends) > 1 else "")

    def _over_baseline(self, one: MethodRuns) -> str:
        if self.baseline is None or self.deepest not in self.baseline.quantiles:
            return "–"
        return "1" if one is self.baseline else in_words(one.over(self.baseline, self.deepest))


def _efficiency(value: float) -> str:
    return "–" if math.isnan(value) else short(value)


def _diverged(one: MethodRuns) -> str:
    words = f"{one.diverged:,} of {len(one.gaps):,}"
    return words + (f", and {one.failed:,} failed" if one.failed else "")


def rival_caption(results: TailsResults) -> str:
    """Return the caption of the table of rivals."""
    names = listed([label(name) for name in results.spec.methods if name in PLAIN_RIVALS])
    return f"The best of {names}, by its last quantile: quantiles over those of {label(results.baseline_method)}"


def rival_head(results: TailsResults) -> list[str]:
    """Return the columns of the table of rivals."""
    return ["setting", "best rival", *map(name_of, _rival_deltas(results))]


def rival_lines(results: TailsResults) -> list[list[str]]:
    """Return a line for each setting that has both the method to compare with and rivals without a defense."""
    lines = []
    for setting in results.settings:
        best, baseline = results.best_rival(setting), results.baseline(setting)
        if best and baseline:
            there = [delta in best.quantiles and delta in baseline.quantiles for delta in _rival_deltas(results)]
            pairs = zip(there, _rival_deltas(results), strict=True)
            words = [in_words(best.over(baseline, delta)) if is_there else "–" for is_there, delta in pairs]
            lines.append([setting.name, label(best.method), *words])
    return lines


def _rival_deltas(results: TailsResults) -> list[float]:
    found = {delta for samples in results.settings.values() for one in samples for delta in one.quantiles}
    return [delta for delta in SHOWN if delta in found]


def rate_head(results: TailsResults) -> list[str]:
    """Return the columns of the table of rates."""
    return ["method", "noise of the labels", "slope", *(f"median, {n:,} samples" for n in _lengths(results))]


def rate_lines(results: TailsResults) -> list[list[str]]:
    """Return a line for each slope, with the medians behind it."""
    lines = []
    for found in results.rates:
        medians = dict(zip(found.samples, found.medians, strict=True))
        words = [in_words(medians.get(n)) for n in _lengths(results)]
        lines.append([label(found.method), found.noise, in_words(found.slope), *words])
    return lines


def _lengths(results: TailsResults) -> list[int]:
    return sorted({n for found in results.rates for n in found.samples})


def failure_rows(results: TailsResults) -> list[list[str]]:
    """Return the runs that failed, those alike in one row; see `FAILURE_HEAD`."""
    return [
        [label(one.method), one.part, one.setting.name, counted(one.n_runs, "run"), one.message]
        for one in results.failures
    ]


def tails_text(results: TailsResults) -> str:
    """Return the summary as Markdown."""
    parts = ["# Confidence", what_was_run(results), NOTE, *filter(None, [unfinished(results)])]
    for setting in results.settings:
        summary = Summary(results, setting)
        parts += [f"## {setting.name}", markdown_table(summary.head, summary.rows())]
    if lines := rival_lines(results):
        parts += [f"## {rival_caption(results)}", markdown_table(rival_head(results), lines)]
    if results.rates:
        parts += ["## Median gap against samples", markdown_table(rate_head(results), rate_lines(results))]
    if results.failures:
        parts += ["## Failed runs", markdown_table(FAILURE_HEAD, failure_rows(results))]
    return "\n\n".join(parts) + "\n"


def tails_summary(results: TailsResults) -> str:
    """Return the tables in columns of plain text."""
    parts = []
    for setting in results.settings:
        summary = Summary(results, setting)
        name = f"\n{setting.name}, {setting.samples:,} samples of each group"
        parts += [name, _columns_without("truncated y, z", [summary.head, *summary.narrow_rows()])]
    if lines := rival_lines(results):
        parts += [f"\n{rival_caption(results)}", in_columns([rival_head(results), *lines])]
    if results.rates:
        parts += ["\nMedian gap against samples", in_columns([rate_head(results), *rate_lines(results)])]
    return "\n".join([*parts, *filter(None, [unfinished(results)])])


def _columns_without(column: str, rows: Sequence[Sequence[str]]) -> str:
    place = rows[0].index(column)
    return in_columns([[*row[:place], *row[place + 1 :]] for row in rows])
