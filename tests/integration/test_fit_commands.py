"""``stoic fit``, ``predict`` and ``inspect`` as a user runs them."""

import csv
import os
import stat
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import stoic
from commands import refused, run
from stoic.cli.main import main

N = 240
RNG = np.random.default_rng(0)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A CSV file in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    rows = [
        (f"{2.0 * x + t + (town == 'Ulm'):.6f}", f"{x:.6f}", town, "ns"[i % 2], i)
        for i, (x, t, town) in enumerate(
            zip(RNG.standard_normal(N), RNG.standard_t(2.5, N), ["Ulm", "Bonn", "Köln"] * (N // 3), strict=True)
        )
    ]
    return write(tmp_path / "flats.csv", ("rent", "size", "town", "region", "id"), rows)


def write(path, head, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def done(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.stdout


FIT = ("fit", "flats.csv", "--target", "rent", "--group", "region", "--drop", "id")


@pytest.mark.slow
def test_a_fill_value_among_the_targets_moves_a_fit_no_more_than_an_ordinary_outlier(data, tmp_path):
    lines, models = data.read_text(encoding="utf-8").splitlines(), []
    for value in ("50", "1e20"):
        lines[4] = ",".join([value, *lines[4].split(",")[1:]])
        data.write_text("\n".join(lines), encoding="utf-8")
        done(*FIT, "--out", "flats.stoic")
        models.append(stoic.load_model(tmp_path / "flats.stoic"))
    calm, wild = models
    np.testing.assert_allclose(wild.coef_, calm.coef_, rtol=0.01, atol=0.01)


@pytest.mark.usefixtures("data")
@pytest.mark.slow
def test_fit_predict_and_inspect_go_together(tmp_path):
    said = done(*FIT, "--out", "flats.stoic")
    assert "Mean absolute error in units of rent, on 48 rows held out, a fifth of each group" in said
    assert "Verdict: " in said
    assert "The model: flats.stoic" in said
    page = (tmp_path / "flats.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "Hill" in page
    shown = done("inspect", "flats.stoic")
    assert "GroupDRORegressor" in shown
    assert "town=Ulm" in shown
    lines = done("predict", "flats.stoic", "flats.csv").splitlines()
    assert lines[0] == "prediction"
    assert len(lines) == N + 1
    assert "240 predictions: out.csv" in done("predict", "flats.stoic", "flats.csv", "--out", "out.csv")
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines() == lines


@pytest.mark.usefixtures("data")
def test_the_same_fit_is_the_same_model_and_page_byte_for_byte(tmp_path):
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        said = done(*FIT, "--out", f"{name}/flats.stoic")
        files = [(tmp_path / name / f"flats.{suffix}").read_bytes() for suffix in ("stoic", "html")]
        made.append([*files, said.replace(name, "")])
    assert made[0] == made[1]


@pytest.mark.usefixtures("data")
def test_a_file_to_test_on_takes_the_place_of_rows_held_out(tmp_path):
    lines = (tmp_path / "flats.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "new.csv").write_text("\n".join(lines[:61]), encoding="utf-8")
    said = done(*FIT, "--test", "new.csv")
    assert "on the 60 rows of new.csv" in said
    assert "The numbers belong to the model that was written." in said
    tested = (tmp_path / "model.stoic").read_bytes()
    said = done(*FIT, "--no-test")
    assert "Verdict" not in said
    assert "group  rows" in said
    assert (tmp_path / "model.stoic").read_bytes() == tested


@pytest.mark.usefixtures("data")
def test_key_columns_come_before_the_predictions_in_the_order_of_the_rows(tmp_path):
    done(*FIT, "--no-test")
    with (tmp_path / "flats.csv").open(encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    write(
        tmp_path / "new.csv",
        (*head, "day"),
        [(*row, f"2024-01-{1 + i % 28:02}") for i, row in enumerate(rows[::-1])],
    )
    lines = done("predict", "model.stoic", "new.csv", "--keep", "id,day,town").splitlines()
    assert lines[0] == "id,day,town,prediction"
    assert [line.split(",")[:3] for line in lines[1:]] == [
        [row[4], f"2024-01-{1 + i % 28:02}", row[2]] for i, row in enumerate(rows[::-1])
    ]
    plain = done("predict", "model.stoic", "flats.csv").splitlines()[1:]
    assert [line.split(",")[3] for line in lines[:0:-1]] == plain
    assert "keep='flat' is not a column of new.csv" in refused(
        "predict", "model.stoic", "new.csv", "--keep", "flat"
    )


@pytest.mark.usefixtures("data")
def test_without_matplotlib_a_note_says_that_the_page_has_no_pictures(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "Note: the page has no pictures, which matplotlib draws" in done(*FIT, "--no-test")


@pytest.mark.usefixtures("data")
def test_data_are_inspected_with_advice():
    said = done("inspect", "flats.csv", "--target", "rent", "--group", "region", "--drop", "id")
    assert "tail index" in said
    assert "loss=" in said


@pytest.mark.usefixtures("data")
def test_settings_reach_the_estimator():
    done(
        *FIT,
        "--loss",
        "quantile",
        "--quantile",
        "0.9",
        "--penalty",
        "l1",
        "--temperature",
        "inf",
        "--no-standardize",
        "--out",
        "m.stoic",
    )
    assert stoic.load_model("m.stoic").standardize is False
    shown = done("inspect", "m.stoic")
    assert "Quantile(level=0.9" in shown
    assert "L1(alpha=" in shown
    assert "average over" in shown


@pytest.mark.usefixtures("data")
@pytest.mark.slow
def test_without_groups_a_note_says_so():
    assert "Note: without --group all rows count alike" in done(
        "fit", "flats.csv", "--target", "rent", "--drop", "id,region"
    )


def test_classes_have_probabilities(data):
    with data.open(encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    write(data, head, [("high" if float(row[0]) > 0 else "low", *row[1:]) for row in rows])
    done(*FIT)
    lines = done("predict", "model.stoic", "flats.csv").splitlines()
    assert lines[0] == "prediction,probability=high,probability=low"
    assert done("predict", "model.stoic", "flats.csv", "--no-probabilities").startswith("prediction\n")
    assert "high" in done("inspect", "flats.csv", "--target", "rent", "--drop", "id,region")


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "flats.csv"), "--target names no column"),
        (("fit", "flats.csv", "--target", "price"), "target='price' is not a column"),
        (("fit", "nowhere.csv", "--target", "rent"), "nowhere.csv"),
        ((*FIT, "--loss", "cubic"), "loss='cubic' is not one of"),
        ((*FIT, "--temperature", "-1"), "temperature=-1.0"),
        ((*FIT, "--alpha", "x"), "'x' is not a valid float"),
        ((*FIT, "--drop", "nonsense"), "'nonsense' is not a column"),
        ((*FIT, "--missing", "guess"), "'guess' is not one of"),
        ((*FIT, "--test", "flats.csv", "--no-test"), "--test flats.csv and --no-test were both given"),
        ((*FIT, "--test", "nowhere.csv"), "nowhere.csv"),
        (("inspect", "flats.csv"), "--target names no column"),
        (("predict", "flats.stoic", "flats.csv"), "flats.stoic"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(arguments, message, tmp_path):
    assert message in refused(*arguments)
    assert {path.name for path in tmp_path.iterdir()} == {"flats.csv"}


BROKEN = {
    "a string among numbers": ("size", 7, "many", r"column 'size', row 8"),
    "a missing value": ("town", 3, "", "1 of 240 rows lack a value ('town': 1); the first is row 4."),
    "a missing target": ("rent", 3, "", "lack a value ('rent': 1); the first is row 4."),
    "a missing group": ("region", 3, "", "lack a value ('region': 1); the first is row 4."),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rows_are_named_and_nothing_is_written(name, data, tmp_path):
    column, row, value, message = BROKEN[name]
    with data.open(encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    rows[row][head.index(column)] = value
    write(data, head, rows)
    result = CliRunner().invoke(main, FIT)
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"flats.csv"}


@pytest.mark.usefixtures("data")
@pytest.mark.slow
def test_a_model_that_is_damaged_is_refused_and_nothing_is_overwritten(tmp_path):
    done(*FIT, "--out", "flats.stoic")
    done("predict", "flats.stoic", "flats.csv", "--out", "out.csv")
    before = (tmp_path / "out.csv").read_bytes()
    path = tmp_path / "flats.stoic"
    path.write_bytes(path.read_bytes()[:-10])
    result = CliRunner().invoke(main, ["predict", "flats.stoic", "flats.csv", "--out", "out.csv"])
    assert result.exit_code == 1
    assert "is cut off" in result.stderr
    assert (tmp_path / "out.csv").read_bytes() == before


IN_TURN = """
import ast, sys
from stoic.cli.main import main

for line in ast.literal_eval(sys.argv[1]):
    try:
        main(line)
    except SystemExit as end:
        if end.code:
            raise
"""


@pytest.mark.slow
def test_a_read_only_folder_without_a_cache_will_do(data, tmp_path):
    out = tmp_path.parent / f"{tmp_path.name}-out"
    out.mkdir()
    if os.geteuid() != 0:
        tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "STOIC_CACHE_DIR": "/proc/nowhere"}
        model = str(out / "m.stoic")
        lines = [(*FIT, "--out", model), ("inspect", model), ("predict", model, "flats.csv")]
        command = [sys.executable, "-c", IN_TURN, repr(lines)]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
        assert ended.returncode == 0, ended.stderr
        assert "prediction\n" in ended.stdout
    finally:
        tmp_path.chmod(stat.S_IRWXU)


@pytest.mark.usefixtures("data")
@pytest.mark.slow
def test_the_commands_run_as_processes():
    done(*FIT, "--out", "flats.stoic")
    assert run("inspect", "flats.stoic").returncode == 0
    ended = run("predict", "flats.stoic", "flats.csv", "--probabilities")
    assert ended.returncode == 2
    assert "holds a regression, which has no probabilities" in ended.stderr
