"""The figures show what is finite, say what diverged, and are the same bytes every time."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from made_results import made_results
from stoic.errors import InvalidParameter, MissingDependency
from stoic.studies.paper.figures import error_bars, write_figures
from stoic.studies.shared.statistics import averages

KINDS = ("png", "svg", "pdf")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return made_results(tmp_path_factory.mktemp("made"))


def means(axes):
    """Return the means that are drawn, by the text of the legend."""
    return {bars.get_label(): bars.lines[0].get_ydata() for bars in axes.containers}


def scaled(results, factor):
    """Return results whose later errors are smaller by a factor."""
    curves = []
    for curve in results.curves["plain"]:
        n_points = curve.scores["mse"].shape[1]
        scores = {name: values * np.geomspace(1.0, factor, n_points) for name, values in curve.scores.items()}
        curves.append(curve._replace(scores=scores))
    return results._replace(curves={**results.curves, "plain": curves})


def test_means_are_drawn_with_a_method_each(results):
    drawn = means(error_bars(results, "l1"))
    assert list(drawn) == ["RROSC", "RMSCG", "ASC-PG", "RCIVR"]
    curve = next(curve for curve in results.main if curve.setting.method == "rrosc")
    np.testing.assert_allclose(drawn["RROSC"], averages(curve.scores["mse"]).mean)


def test_points_that_are_not_finite_are_left_out_and_the_legend_says_why(results):
    drawn = means(error_bars(results, "l2"))
    assert "ASC-PG, diverged in 1 of 3" in drawn
    assert len(drawn["ASC-PG, diverged in 1 of 3"]) == 5
    assert all(np.isfinite(values).all() for values in drawn.values())


def test_bars_are_deviations_at_every_fourth_point_of_four_methods(results):
    axes = error_bars(results, "l1")
    curve = next(curve for curve in results.main if curve.setting.method == "rrosc")
    found = averages(curve.scores["mse"])
    (segments,) = axes.containers[0].lines[2]
    heights = [np.ptp(segment[:, 1]) / 2.0 for segment in segments.get_segments()]
    np.testing.assert_allclose(heights, found.deviation[::4])


def test_methods_differ_in_color_and_marker(results):
    lines = [bars.lines[0] for bars in error_bars(results, "l1").containers]
    assert len({line.get_color() for line in lines}) == len({line.get_marker() for line in lines}) == 4


@pytest.mark.parametrize(("factor", "scale"), [(1.0, "linear"), (1e-3, "log")])
def test_the_scale_is_logarithmic_where_errors_span_more_than_a_decade(results, factor, scale):
    flat = scaled(results, factor)
    flat = flat._replace(
        curves={
            **flat.curves,
            "plain": [curve for curve in flat.curves["plain"] if curve.setting.method == "rrosc"],
        }
    )
    assert error_bars(flat, "l1").get_yscale() == scale


def test_it_draws_where_it_is_told_to(results):
    axes = Figure().subplots()
    assert error_bars(results, "l1", ax=axes) is axes


def test_a_regularizer_that_was_not_run_is_refused(results):
    with pytest.raises(InvalidParameter, match="'l3' is not among the regularizers l1, l2"):
        error_bars(results, "l3")


@pytest.mark.slow
def test_figures_come_in_three_formats_without_dates_and_with_the_same_bytes(results, tmp_path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
        write_figures(results, folder)
    names = {path.name for path in folders[0].iterdir()}
    assert names == {f"figure_{regularizer}.{kind}" for regularizer in ("l1", "l2") for kind in KINDS}
    for name in names:
        content = (folders[0] / name).read_bytes()
        assert content == (folders[1] / name).read_bytes()
        assert b"dc:date" not in content
        assert b"CreationDate" not in content


@pytest.mark.slow
def test_a_png_has_two_hundred_dots_an_inch(results, tmp_path):
    write_figures(results, tmp_path)
    header = (tmp_path / "figure_l1.png").read_bytes()[16:24]
    assert [int.from_bytes(part, "big") for part in (header[:4], header[4:])] == [700, 580]


@pytest.mark.slow
def test_settings_of_matplotlib_stay_as_they_were(results, tmp_path):
    before = dict(mpl.rcParams)
    write_figures(results, tmp_path)
    assert dict(mpl.rcParams) == before


@pytest.mark.slow
def test_only_the_regularizers_of_the_experiment_are_drawn(tmp_path):
    write_figures(made_results(tmp_path, regularizers=("l2",)), tmp_path)
    assert sorted(path.suffix for path in tmp_path.glob("figure_*")) == [".pdf", ".png", ".svg"]


@pytest.mark.slow
def test_without_trials_a_figure_says_so(tmp_path):
    results = made_results(tmp_path, with_trials=False)
    write_figures(results, tmp_path)
    assert [text.get_text() for text in error_bars(results, "l1").texts] == ["no trial has ended yet"]


def test_with_nothing_finite_a_figure_says_so(results):
    curves = [
        curve._replace(scores={name: np.full_like(values, np.inf) for name, values in curve.scores.items()})
        for curve in results.curves["plain"]
    ]
    axes = error_bars(results._replace(curves={**results.curves, "plain": curves}), "l1")
    assert [text.get_text() for text in axes.texts] == ["no finite mean to show"]


def test_one_trial_has_no_bars(tmp_path):
    axes = error_bars(made_results(tmp_path, trials=1), "l1")
    (segments,) = axes.containers[0].lines[2]
    assert all(np.ptp(segment[:, 1]) == 0.0 for segment in segments.get_segments())


def test_without_matplotlib_the_command_that_installs_it_is_named(results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (lambda: write_figures(results, tmp_path), lambda: error_bars(results, "l1")):
        with pytest.raises(MissingDependency, match=r"needs matplotlib.*stoic\[experiments\]"):
            draw()
