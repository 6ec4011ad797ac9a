"""The report in a browser without a network: charts, switches, themes, small screens, and hostile text."""

import json

import pytest

from browser import (
    By,
    Keys,
    NoAlertPresentException,
    WebDriverWait,
    errors,
    narrow,
    needs_chromium,
    opened,
    scheme,
    webdriver,
    widen,
)
from made_results import HOSTILE, made_results
from made_tails import made_tails
from stoic.reports.page import write_page
from stoic.studies.confidence.chapter import tails_chapter
from stoic.studies.paper.chapter import chapter_of

pytestmark = needs_chromium

IS_DRAWN = """
const charts = JSON.parse(document.getElementById("chart-data").textContent).charts;
return charts.every((chart) => document.querySelector(`[id="${chart.id}"].js-plotly-plot .main-svg path`));
"""
FITS = """
const charts = [...document.querySelectorAll('.js-plotly-plot .main-svg')];
return charts.every((chart) => chart.getBoundingClientRect().right <= innerWidth)
    && document.documentElement.scrollWidth <= innerWidth;
"""
DRAWN = "return [...document.querySelectorAll('.js-plotly-plot')].map((chart) => [chart.id, chart.innerHTML])"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = opened(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_page([chapter_of(made_results(folder), "stoic report .")], folder)
    return (folder / "report.html").as_uri()


@pytest.fixture
def page(driver, address):
    """Open the report as it comes, on a light desktop; an error in the console fails the test."""
    show(driver, address)
    yield driver
    assert errors(driver) == []


def show(driver, address):
    """Open a page and wait until its charts are drawn."""
    widen(driver)
    scheme(driver, "light")
    driver.get(address)
    WebDriverWait(driver, 30).until(lambda found: found.execute_script(IS_DRAWN))


def drawn(driver):
    return dict(driver.execute_script(DRAWN))


def traces(driver, chart):
    """Return which methods of a chart are visible."""
    script = "return document.getElementById(arguments[0]).data.map((trace) => [trace.method, trace.visible])"
    return dict(driver.execute_script(script, chart))


def wait_for_change(driver, before, chart):
    WebDriverWait(driver, 10).until(lambda found: drawn(found)[chart] != before[chart])


def test_every_chart_is_drawn_and_nothing_is_loaded(page):
    ids = [
        chart["id"]
        for chart in json.loads(page.execute_script("return document.getElementById('chart-data').textContent"))[
            "charts"
        ]
    ]
    assert sorted(drawn(page)) == sorted(ids)
    assert len(ids) == 2 + 8 + 2 + 2
    loaded = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    assert [name for name in page.execute_script(loaded) if not name.startswith(("data:", "blob:"))] == []


def test_a_click_on_the_legend_hides_a_method_and_another_shows_it_again(page):
    button = '.legend[data-for="curve-l1"] button[data-key="rmscg"]'
    page.find_element(By.CSS_SELECTOR, button).click()
    assert traces(page, "curve-l1") == {"rrosc": True, "rmscg": False, "asc-pg": True, "rcivr": True}
    assert all(traces(page, "curve-l2").values())
    assert page.find_element(By.CSS_SELECTOR, button).get_attribute("aria-pressed") == "false"
    page.switch_to.active_element.send_keys(Keys.ENTER)
    assert all(traces(page, "curve-l1").values())


@pytest.mark.parametrize(
    ("name", "chart"),
    [
        ("score", "curve-l1"),
        ("average", "curve-l1"),
        ("x", "curve-l2"),
        ("yscale", "curve-l1"),
        ("xscale", "curve-l2"),
        ("selection", "curve-l1"),
        ("grid_selection", "grid-l1-rmscg"),
    ],
)
def test_a_switch_changes_the_chart_and_back(page, name, chart):
    first = drawn(page)
    inputs = page.find_elements(By.CSS_SELECTOR, f'input[name="{name}"]')
    for button in (*inputs[1:], inputs[0]):
        before = drawn(page)
        page.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.find_element(By.XPATH, "..").click()
        wait_for_change(page, before, chart)
    assert page.execute_script("return arguments[0].checked", inputs[0])
    assert set(first) == set(drawn(page))


@pytest.mark.parametrize(("name", "chart"), [("problem", "curve-l1"), ("grid_problem", "grid-l1-rrosc")])
def test_another_problem_changes_the_chart(page, name, chart):
    before = drawn(page)
    page.find_element(By.CSS_SELECTOR, f'select[name="{name}"] option:last-child').click()
    wait_for_change(page, before, chart)


def test_switches_obey_the_keyboard(page):
    before = drawn(page)
    page.execute_script("document.querySelector('input[name=\"yscale\"]').focus()")
    page.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    wait_for_change(page, before, "curve-l1")
    assert page.execute_script("return document.getElementById('curve-l1').layout.yaxis.type") == "log"


def test_a_chart_can_be_zoomed_and_reset(page):
    chart = page.find_element(By.CSS_SELECTOR, "#curve-l1 .nsewdrag")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    width = "const range = document.getElementById('curve-l1').layout.xaxis.range; return range[1] - range[0]"
    whole = page.execute_script(width)
    drag = webdriver.ActionChains(page).move_to_element_with_offset(chart, -100, -60).click_and_hold()
    drag.move_by_offset(120, 80).release().perform()
    WebDriverWait(page, 10).until(lambda found: found.execute_script(width) < 0.9 * whole)
    page.find_element(By.CSS_SELECTOR, '#curve-l1 [data-title="Reset axes"]').click()
    WebDriverWait(page, 10).until(lambda found: found.execute_script(width) == pytest.approx(whole))


def test_no_button_sends_data_anywhere(page):
    buttons = page.find_elements(By.CSS_SELECTOR, ".modebar-btn")
    titles = {button.get_attribute("data-title").lower() for button in buttons}
    assert titles == {"download plot as a png", "zoom", "pan", "reset axes"}


def test_hostile_text_is_shown_as_text(page):
    assert HOSTILE in page.find_element(By.ID, "data").text
    assert HOSTILE in page.find_element(By.ID, "failures").text
    assert page.find_elements(By.CSS_SELECTOR, "img") == []
    with pytest.raises(NoAlertPresentException):
        _ = page.switch_to.alert.text


def test_a_hostile_message_is_text_in_a_hover_label_as_well(page):
    chart = page.find_element(By.CSS_SELECTOR, "#grid-l1-rrosc .nsewdrag")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    right, top = chart.size["width"] // 2 - 8, 8 - chart.size["height"] // 2  # the cell that failed
    webdriver.ActionChains(page).move_to_element_with_offset(chart, right, top).perform()
    text = "return document.querySelector('#grid-l1-rrosc .hoverlayer').textContent"
    WebDriverWait(page, 10).until(lambda found: "failed" in found.execute_script(text))
    assert "<imgsrc=xonerror=alert(1)>" in "".join(page.execute_script(text).split())
    assert page.find_elements(By.CSS_SELECTOR, "img, .hoverlayer a") == []


def test_the_policy_keeps_other_scripts_from_running(page):
    page.execute_script(
        "const script = document.createElement('script'); script.textContent = 'window.ran = true';"
        "document.body.append(script);"
    )
    assert page.execute_script("return window.ran === undefined")
    refused = errors(page)
    assert refused
    assert all("Content Security Policy" in message for message in refused)


@pytest.mark.parametrize("width", [360, 390, 768])
def test_a_small_screen_does_not_scroll_sideways(page, width):
    narrow(page, width)
    page.execute_script("for (const part of document.querySelectorAll('details')) part.open = true;")
    assert page.execute_script("return innerWidth") == width
    WebDriverWait(page, 10).until(lambda found: found.execute_script(FITS))


def test_the_dark_scheme_changes_page_and_charts(page):
    colors = """
    const chart = document.getElementById('curve-l1');
    const tick = getComputedStyle(chart.querySelector('.xtick text')).fill;
    return [getComputedStyle(document.body).backgroundColor, tick, chart.data[0].line.color,
            document.getElementById('grid-l1-rrosc').data[0].colorscale[0][1]];
    """
    light = page.execute_script(colors)
    scheme(page, "dark")
    WebDriverWait(page, 10).until(lambda found: found.execute_script(colors)[2] != light[2])
    assert all(one != other for one, other in zip(light, page.execute_script(colors), strict=True))


def test_long_names_many_methods_and_one_trial_fit_and_draw_as_well(driver, tmp_path):
    settings = {
        "data": f"/data/{HOSTILE}{'a' * 120}<img src=x onerror=alert(1)>.csv",
        "methods": ("rrosc", "scgd", "alexr", "rmscg-robust", "clipped-sgd", "scsc", "civr", "mscg", "rosc"),
        "losses": ("squared", "huber"),
        "temperatures": (10.0,),
        "regularizers": ("l1",),
        "noise": (),
        "trials": 1,
    }
    write_page([chapter_of(made_results(tmp_path, **settings), f"stoic report {'b' * 200}")], tmp_path)
    show(driver, (tmp_path / "report.html").as_uri())
    narrow(driver, 360)
    WebDriverWait(driver, 10).until(lambda found: found.execute_script(FITS))
    assert "<img src=x onerror=alert(1)>.csv" in driver.find_element(By.TAG_NAME, "h1").text
    assert HOSTILE in driver.find_element(By.ID, "data").text
    assert driver.find_elements(By.CSS_SELECTOR, "img") == []
    assert errors(driver) == []


def test_without_trials_the_grid_is_drawn(driver, tmp_path):
    write_page([chapter_of(made_results(tmp_path, with_trials=False), "stoic report .")], tmp_path)
    show(driver, (tmp_path / "report.html").as_uri())
    assert all(name.startswith("grid-") for name in drawn(driver))
    assert errors(driver) == []


def test_both_experiments_are_drawn_in_one_report(driver, tmp_path):
    chapters = chapter_of(made_results(tmp_path), ""), tails_chapter(made_tails(tmp_path), "")
    write_page(chapters, tmp_path)
    show(driver, (tmp_path / "report.html").as_uri())
    assert {"curve-l1", "tails-0", "tails-1", "tails-2", "rates-t2.5"} <= set(drawn(driver))
    before = drawn(driver)
    driver.find_element(By.CSS_SELECTOR, '.legend[data-for="tails"] button[data-key="rmscg"]').click()
    for chart in ("tails-0", "tails-2"):
        assert [name for name, visible in traces(driver, chart).items() if not visible] == ["rmscg"]
    switch = driver.find_element(By.CSS_SELECTOR, 'input[name="tails_scale"][value="ratio"]')
    driver.execute_script("arguments[0].click()", switch)
    wait_for_change(driver, before, "tails-1")
    assert drawn(driver)["curve-l1"] == before["curve-l1"]
    narrow(driver, 360)
    WebDriverWait(driver, 10).until(lambda found: found.execute_script(FITS))
    assert driver.find_elements(By.CSS_SELECTOR, "img") == []
    assert errors(driver) == []
