"""The report is one file that loads nothing, says what came out, and shows hostile text as text."""

import base64
import hashlib
import json
import re
import sys
import tomllib
from html.parser import HTMLParser

import numpy as np
import pytest

from made_results import HOSTILE, made_results
from stoic.errors import InvalidParameter, MissingDependency
from stoic.reports.html import as_json
from stoic.reports.page import page_text, write_page
from stoic.studies.outputs import write_outputs
from stoic.studies.paper.chapter import chapter_of
from stoic.studies.paper.charts import charts_of
from stoic.studies.paper.results import load_results
from stoic.studies.paper.spec import Spec
from stoic.studies.paper.store import Store
from stoic.studies.shared.settings import as_toml, checked

VOID = {"meta", "link", "input", "img", "br"}


class Page(HTMLParser):
    """Elements with their attributes, texts, and whether every element is closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.open, self.scripts = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        else:
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return made_results(tmp_path_factory.mktemp("made"))


def report_text(results, command):
    return page_text([chapter_of(results, command)])


@pytest.fixture(scope="module")
def text(results):
    return report_text(results, "stoic report 'my results'")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def charts(results):
    return {chart["id"]: chart for chart in charts_of(results)}


def test_every_element_is_closed(page):
    assert page.open == []


def test_sections_come_in_order_and_are_linked(page):
    ids = [attrs["id"] for attrs in page.all("section")]
    assert ids == [
        "figures", "summary", "grid", "truncation", "variants", "data", "selection", "paper", "machine",
        "failures", "configuration",
    ]  # fmt: skip
    assert [attrs["href"] for attrs in page.all("a")] == [f"#{name}" for name in ids]


def test_ids_are_unique(page):
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_every_chart_has_a_place_and_a_label(results, page):
    places = {attrs["id"]: attrs for attrs in page.all("div") if "chart" in attrs.get("class", "").split()}
    assert set(places) == set(charts(results))
    assert all(attrs["role"] == "img" and len(attrs["aria-label"]) > 20 for attrs in places.values())


def test_table_heads_have_a_scope_and_scrolling_boxes_a_name(page):
    assert {attrs.get("scope") for attrs in page.all("th")} == {"col", "row"}
    boxes = [attrs for attrs in page.all("div") if attrs.get("class") == "scroll"]
    assert boxes
    assert all(attrs["tabindex"] == "0" and attrs["aria-label"] for attrs in boxes)


def test_nothing_is_loaded(page):
    assert not [attrs for _, attrs in page.elements if "src" in attrs]
    assert [attrs["href"] for attrs in page.all("link")] == ["data:,"]


def test_the_policy_allows_just_the_scripts_in_the_file(page):
    (policy,) = [attrs["content"] for attrs in page.all("meta") if "http-equiv" in attrs]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    scripts = [text for text, attrs in zip(page.scripts, page.all("script"), strict=True) if "type" not in attrs]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.findall(r"'sha256-([^']+)'", policy) == digests
    assert "http" not in policy
    assert "unsafe-eval" not in policy


def test_the_data_come_back_as_they_were(results, page):
    (index,) = [place for place, attrs in enumerate(page.all("script")) if attrs.get("type") == "application/json"]
    data = json.loads(page.scripts[index])
    assert data["charts"] == charts_of(results)
    assert list(data["methods"]) == list(results.spec.methods)


def test_hostile_text_is_text(text, page):
    assert "<img" not in text.split("<script>")[0]
    assert page.all("img") == []
    assert HOSTILE in page.text
    assert f"MemoryError: {HOSTILE}" in page.text


def test_json_has_no_sign_that_could_end_its_element():
    text = as_json({"a": HOSTILE, "b": "&\u2028\u2029", "c": "<!--"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": HOSTILE, "b": "&\u2028\u2029", "c": "<!--"}


def test_numbers_that_are_not_finite_are_empty(results):
    (curve,) = [
        curve
        for curve in charts(results)["curve-l2"]["curves"]
        if (curve["method"], curve["problem"], curve["selection"]) == ("asc-pg", 0, "plain")
    ]
    assert curve["note"] == "diverged in 1 of 3"
    assert None in curve["scores"]["mse"]["mean"]
    assert None not in curve["scores"]["mse"]["median"]
    assert "Infinity" not in json.dumps(charts(results), allow_nan=False)


def test_a_map_has_every_cell_with_its_ending_and_the_chosen_one(results):
    chart = charts(results)["grid-l1-rrosc"]
    endings = [cell["ending"] for cell in chart["cells"] if cell["problem"] == 0]
    assert len(endings) == 12
    assert set(endings) == {"finished", "diverged", "hopeless", "failed"}
    assert all(cell["plain"] is None for cell in chart["cells"] if cell["ending"] != "finished")
    assert {"selection": "plain", "problem": 0, "alpha": 1, "step": 1} in chart["chosen"]


def test_cells_of_another_grid_are_left_out(tmp_path):
    spec = made_results(tmp_path).spec.model_copy(update={"alphas": (0.001,), "temperatures": (10.0,)})
    with Store(tmp_path) as store:
        store.set_fact("spec", spec.model_dump(mode="json"))
    assert len(charts(load_results(tmp_path))["grid-l1-rrosc"]["cells"]) == 4


def test_truncation_is_averaged_over_the_steps_of_a_stage(results):
    (found,) = charts(results)["truncation-l1"]["methods"]
    assert found["method"] == "rrosc"
    assert found["y"] == pytest.approx([0.02, 0.04, 0.06])
    assert found["z"] == pytest.approx([0.01, 0.02, 0.03])


def test_variants_are_drawn_against_the_temperature(results):
    chart = charts(results)["variant-l1-squared"]
    assert (chart["by"], chart["x"]) == ("temperature", [1.0, 10.0])
    assert [line["method"] for line in chart["lines"]] == ["rrosc", "rmscg", "asc-pg", "rcivr"]


def test_with_one_temperature_variants_are_drawn_against_the_loss(tmp_path):
    settings = {"temperatures": (10.0,), "losses": ("squared", "huber"), "regularizers": ("l2",)}
    found = charts(made_results(tmp_path, **settings))
    assert found["variant-l2"]["x"] == ["squared", "huber"]


def test_without_variants_there_is_no_section_for_them(tmp_path):
    text = report_text(made_results(tmp_path, temperatures=(10.0,)), "stoic report .")
    assert 'id="variants"' not in text
    assert 'name="problem"' not in text


@pytest.mark.parametrize(("factor", "scale"), [(1.0, "linear"), (100.0, "log")])
def test_the_error_axis_starts_as_in_the_figures(results, factor, scale):
    curves = [
        curve._replace(scores={name: np.ones_like(values) for name, values in curve.scores.items()})
        for curve in results.curves["plain"]
    ]
    curves[0].scores["mse"][:, 0] = factor
    page = Page(report_text(results._replace(curves={**results.curves, "plain": curves}), "stoic report ."))
    assert [attrs["value"] for attrs in page.all("input") if attrs["name"] == "yscale" and "checked" in attrs] == [
        scale
    ]


def test_the_headline_and_the_commands_are_there(page):
    assert "has the lowest mean test MSE" in page.text
    assert "stoic report 'my results'" in page.text
    assert "stoic reproduce --out 'a folder' --trials 3" in page.text


def test_the_settings_make_the_same_spec_again(results, tmp_path):
    for spec in (results.spec, Spec(data='a "quoted" \\ Ünïcode 😀.csv', noise=(), group="g")):
        path = tmp_path / "spec.toml"
        path.write_text(as_toml(spec), encoding="utf-8")
        assert tomllib.loads(as_toml(spec))["trials"] == spec.trials
        assert checked(Spec, {}, path) == spec


def test_the_foot_says_how_large_the_file_is(text, page):
    (size,) = re.findall(r"This file is ([\d.]+) MB", page.text)
    assert float(size) == pytest.approx(len(text.encode()) / 1e6, abs=0.06)


def test_the_same_results_give_the_same_bytes(results, text):
    assert report_text(results, "stoic report 'my results'") == text


def test_without_trials_the_report_says_so(tmp_path):
    results = made_results(tmp_path, with_trials=False)
    page = Page(report_text(results, "stoic report ."))
    assert "This experiment is not complete: 0 of 48 trials have ended." in page.text
    assert "nothing to draw" in page.text
    assert {chart["kind"] for chart in charts(results).values()} == {"grid"}


def test_with_one_trial_the_report_has_no_deviations(tmp_path):
    text = report_text(made_results(tmp_path, trials=1), "stoic report .")
    assert "With a single trial there is no standard deviation." in text


def test_facts_that_were_never_noted_are_not_missed(results):
    page = Page(report_text(results._replace(facts={}), "stoic report ."))
    assert page.text.count("Not recorded.") == 3


def test_without_plotly_the_command_that_installs_it_is_named(results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(MissingDependency, match=r"needs plotly.*stoic\[experiments\]"):
        write_page([chapter_of(results, "stoic report .")], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_script_that_would_end_its_element_is_kept_from_it(results, monkeypatch):
    monkeypatch.setattr("plotly.offline.get_plotlyjs", lambda: 'a = "</script>";\r\nb')
    page = Page(report_text(results, "stoic report ."))
    assert page.scripts[1] == 'a = "<\\/script>";\nb'


@pytest.mark.slow
def test_outputs_are_written_beside_the_store_and_said_in_words(tmp_path):
    folder = tmp_path / "my results"
    folder.mkdir()
    made_results(folder)
    said = write_outputs(folder)
    assert {path.name for path in folder.iterdir()} >= {
        "results.csv", "results.parquet", "grid.csv", "summary.md", "report.html", "figure_l1.png",
        "figure_l1.svg", "figure_l1.pdf", "figure_l2.png", "figure_l2.svg", "figure_l2.pdf",
    }  # fmt: skip
    lines = said.splitlines()
    assert lines[1] == "L1, squared loss, temperature 10"
    assert lines[2].split()[:3] == ["method", "λ_reg", "step"]
    assert [line[:4] for line in lines if line.startswith(("L1: ", "L2: "))] == ["L1: ", "L2: "]
    assert f"stoic report &#x27;{folder}&#x27;" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_folder_without_an_experiment_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="has no"):
        write_outputs(tmp_path)


def test_an_untuned_method_has_one_column_of_cells(tmp_path):
    results = made_results(tmp_path, methods=("rrosc", "auto"))
    charts = {chart["id"]: chart for chart in charts_of(results)}
    assert charts["grid-l1-auto"]["steps"] == ["untuned"]
    assert {cell["step"] for cell in charts["grid-l1-auto"]["cells"]} == {0}
    assert len(charts["grid-l1-rrosc"]["steps"]) == len(results.spec.steps)
    text = report_text(results, "stoic report folder")
    assert "only, the rest is untuned)" in text
