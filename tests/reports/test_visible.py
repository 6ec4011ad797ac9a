"""Names of strangers are shown, and steer neither a terminal, nor a page, nor a picture."""

import pytest

from stoic.reports.html import element, inert
from stoic.reports.picture_labels import picture_label
from stoic.reports.text_tables import in_columns, markdown_table
from stoic.reports.visible import shortened, visible

STEERING = {
    "escape": "\x1b[31mred",
    "bell": "\x07",
    "carriage return": "good\rbad",
    "line end": "one\ntwo",
    "second control set": "\x9b2J",
    "right to left": "\u202egnp.exe",
    "isolate": "\u2066a\u2069",
    "mark": "a\u200fb",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "half of a sign": "\udce9",
    "null": "a\0b",
}


@pytest.mark.parametrize("name", STEERING.values(), ids=STEERING)
def test_signs_that_steer_are_written_out_in_text_tables_pages_and_pictures(name):
    steering = next(sign for sign in name if not sign.isprintable())
    shown = [visible(name), in_columns([["a", name]]), markdown_table(["a"], [[name]]), picture_label(name)]
    assert all(len(text.splitlines()) == 1 for text in (shown[0], shown[1], shown[3]))
    shown += [element("p", "x", title=name)] + ([] if steering == "\n" else [inert(name)])
    assert all(steering not in text.replace("\n|", "|") for text in shown)
    assert steering.encode("unicode_escape").decode() in shown[0]


@pytest.mark.parametrize("name", ["Köln", "東京", "مرحبا", "می‌خواهم", "👩‍🚀", "1 000", "a\\b", "x=$3"])
def test_words_of_any_language_stay_as_they_are(name):
    assert visible(name) == name


def test_lines_stay_lines_where_they_are_asked_for():
    assert visible("one\ntwo\x1b", kept="\n") == "one\ntwo\\x1b"


def test_a_long_name_keeps_both_ends():
    assert shortened("abcdefghij", 7) == "abc…hij"
    assert shortened("abcdefg", 7) == "abcdefg"
    assert len(picture_label("x" * 1000)) == 40


@pytest.mark.parametrize(
    "name", ["$10k-$20k", "$\\frac$", "$", "_hidden", "a\nb", "x_$y_{$", "\\$5", "𝒳" * 300, "^_^"]
)
def test_any_name_is_drawn_as_text_and_kept_in_a_legend(name):
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    (line,) = axes.plot([0, 1], label=picture_label(name))
    axes.set_yticks([0.0], [picture_label(name)])
    axes.set_title(picture_label(name))
    legend = axes.legend()
    assert [text.get_text() for text in legend.get_texts()] == [line.get_label()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *args, **options: None)  # a sign that the font lacks is a box
        figure.canvas.draw()
    shown = legend.get_texts()[0]
    assert not shown._preprocess_math(shown.get_text())[1]
