"""The page about a fit: what it shows, in which colors, how large it is, and that it is the same bytes twice."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from stoic.fitting.files import Rows
from stoic.fitting.schemas import FileRows, Schema
from stoic.fitting.summary import summary_html
from stoic.fitting.trial import fit_and_hold_out, fit_untested

RNG = np.random.default_rng(0)
LOSS = {"protect": "loss", "temperature": 1.0}


def made(n, groups, **more):
    X = RNG.standard_normal((n, 3))
    y = X @ [1.0, 2.0, 0.1] + RNG.standard_t(2.5, n)
    return Rows(Schema("rent", "town"), FileRows(X, y, groups, None, **more), False)


def page_of(tried):
    return summary_html(tried, Path("flats.csv"))


@pytest.fixture(scope="module")
def tried():
    return fit_and_hold_out(made(900, np.array(["Ulm", "Bonn", "<Köln>"])[np.arange(900) % 3]), LOSS, 0)


@pytest.fixture(scope="module")
def page(tried):
    return page_of(tried)


def test_the_page_has_the_verdict_the_errors_and_what_they_belong_to(tried, page):
    assert tried.fitted.answer.verdict().replace("<", "&lt;").replace(">", "&gt;") in page
    assert tried.belongs in page
    assert "Mean absolute error in units of rent" in page
    assert "fit − average" in page


def test_pictures_have_the_colors_and_the_fonts_of_the_page(page):
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert drawn.count("<svg") == 4
    assert set(re.findall(r"#[0-9a-f]{6}", drawn)) == set()
    assert "font-family" not in drawn
    used = set(re.findall(r"var\((--[a-z0-9-]+)\)", drawn))
    assert used >= {"--ink", "--color-0", "--color-1"}
    light, dark = re.findall(r":root \{ (--color-0.*?) \}", page)
    assert light != dark
    for name in used:
        assert f"{name}:" in page


def test_each_picture_has_one_objective(page):
    assert page.count("objective, on a sample of the rows") == 1


def test_pictures_have_ids_that_no_other_has(page):
    found = re.findall(r'id="([^"]+)"', page)
    assert len(found) == len(set(found))


def test_numbers_are_flush_right(page):
    assert '<td class="number">' in page
    assert '<th scope="col" class="number">rows</th>' in page
    assert re.search(r"\.number[^{]*\{ text-align: right", page)


def test_text_from_the_file_is_only_text(page):
    assert "<Köln>" not in page
    assert "&lt;Köln&gt;" in page


def test_without_matplotlib_the_page_has_no_pictures(tried, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = page_of(tried)
    assert "<svg" not in page
    assert "How the fit went" not in page
    assert "fit − average" in page


def test_names_in_labels_of_pictures_stay_in_their_quotation_marks():
    rows = made(300, np.arange(300) % 2)
    odd = rows._replace(schema=Schema('λ_reg" onload="alert(1)', "town"))
    page = page_of(fit_untested(odd, LOSS))
    assert (
        'aria-label="Mean absolute error in units of λ_reg&quot; onload=&quot;alert(1) in training of each' in page
    )


def test_the_effect_that_orders_the_weights_is_shown(tried, page):
    model = tried.fitted.model
    effects = model.coef_ * model.memory_.frame.scaling.scale
    shown = [f"{effects[j]:+#.4g}" for j in np.argsort(-np.abs(effects))]
    places = [page.index(f">{effect}<") for effect in shown]
    assert places == sorted(places)
    assert '<th scope="col" class="number">effect</th>' in page


def test_the_same_fit_is_the_same_page(tried, page):
    assert page_of(tried) == page


def test_without_a_test_the_page_says_that_the_errors_are_in_training(tried):
    untested = fit_untested(made(900, tried.fitted.table.groups), LOSS)
    page = page_of(untested)
    assert "Nothing was tested" in page
    assert "Mean absolute error in units of rent in training" in page


def test_thousands_of_groups_of_one_row_make_a_small_page():
    tried = fit_and_hold_out(made(3000, np.array([f"household number {i}" for i in range(3000)])), LOSS, 0)
    page = page_of(tried)
    assert len(page.encode()) < 300_000
    assert "And 2,970 more." in page


def test_many_rows_make_a_small_page():
    tried = fit_untested(made(50_000, np.arange(50_000) % 12), LOSS)
    assert len(page_of(tried).encode()) < 500_000


def test_rows_watched_for_early_stopping_have_a_picture_of_their_own():
    tried = fit_untested(made(600, np.arange(600) % 2), LOSS | {"early_stopping": True})
    page = page_of(tried)
    assert page.count("loss of the worst group, on rows held out") == 1
