"""The page about a fit in a browser without a network: light, dark, and on a small screen."""

from pathlib import Path

import numpy as np
import pytest

from browser import errors, narrow, needs_chromium, opened, scheme, widen
from stoic.fitting.files import Rows
from stoic.fitting.schemas import FileRows, Schema
from stoic.fitting.summary import write_summary
from stoic.fitting.trial import fit_and_hold_out

pytestmark = needs_chromium

COLORS = """
return [...document.querySelectorAll('svg text')].map((text) => getComputedStyle(text).fill);
"""
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"
INK = "return getComputedStyle(document.body).color"
PICTURE_GROUND = "return [...document.querySelectorAll('svg')].map((svg) => getComputedStyle(svg).backgroundColor)"
FITS = """
const pictures = [...document.querySelectorAll('svg')];
return pictures.every((one) => one.getBoundingClientRect().right <= innerWidth)
    && document.documentElement.scrollWidth <= innerWidth;
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = opened(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    rng, n = np.random.default_rng(0), 600
    X = rng.standard_normal((n, 3))
    groups = np.array(["Ulm", "Bonn", "a rather long name of a town"])[np.arange(n) % 3]
    table = FileRows(X, X @ [1.0, 2.0, 0.1] + rng.standard_t(2.5, n), groups, None)
    path = tmp_path_factory.mktemp("page") / "flats.html"
    write_summary(fit_and_hold_out(Rows(Schema("rent", "town"), table, False), {}, 0), Path("flats.csv"), path)
    return path.as_uri()


@pytest.fixture
def page(driver, address):
    widen(driver)
    scheme(driver, "light")
    driver.get(address)
    yield driver
    assert errors(driver) == []


def test_text_in_pictures_has_the_color_of_the_page_in_light_and_in_dark(page):
    seen = []
    for mode in ("light", "dark"):
        scheme(page, mode)
        colors = set(page.execute_script(COLORS))
        assert page.execute_script(INK) in colors
        assert set(page.execute_script(PICTURE_GROUND)) == {"rgba(0, 0, 0, 0)"}
        seen.append((colors, page.execute_script(BACKGROUND)))
    (light, light_ground), (dark, dark_ground) = seen
    assert not light & dark
    assert light_ground != dark_ground


def test_nothing_runs_over_the_edge_of_a_small_screen(page):
    narrow(page, 390)
    assert page.execute_script(FITS)
