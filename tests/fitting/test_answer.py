"""Fits that are tested: what is held out, what the model that is written was fitted to, and what tables show."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import stoic
from stoic.fitting.answer_tables import legend, page_tables, short_tables
from stoic.fitting.files import fit_rows, read_file
from stoic.fitting.plain_text import text_of
from stoic.fitting.schemas import Schema
from stoic.fitting.trial import fit_and_hold_out, fit_and_test_on, fit_untested

N = 1200
SCHEMA = Schema("y", "region")
LOSS = {"protect": "loss", "temperature": 1.0}


def columns(seed, n=N, n_groups=3):
    rng = np.random.default_rng(seed)
    x, region = rng.standard_normal((2, n)), np.arange(n) % n_groups
    y = 10.0 + x[0] + np.where(region == 2, 4.0, 0.0) * x[1] + 0.5 * rng.standard_normal(n)
    return {"y": y, "a": x[0], "b": x[1], "region": np.array([f"r{i}" for i in range(n_groups)])[region]}


@pytest.fixture
def read(tmp_path):
    def read(classifies=None, schema=SCHEMA, **how):
        return read_file(write(tmp_path, "data", **how), schema, classifies=classifies)

    return read


def write(folder, name, seed=0, changes=None, **how):
    path = folder / f"{name}.parquet"
    parquet.write_table(pa.table({**columns(seed, **how), **(changes or {})}), path)
    return path


def test_the_model_is_fitted_to_all_rows_and_the_numbers_to_four_fifths(read):
    rows = read()
    tried = fit_and_hold_out(rows, LOSS, 0)
    np.testing.assert_array_equal(tried.fitted.model.coef_, fit_rows(rows, LOSS).model.coef_)
    assert (tried.fitted.answer.model.coef_ != tried.fitted.model.coef_).any()
    assert tried.fitted.answer.errors[0].whole.rows[0] == N / 5
    assert "the model is fitted to all 1,200 of them" in tried.belongs


@pytest.mark.parametrize(("seed", "kinds"), [(1, ("the average over rows", "regret DRO")), (5, None), (3, ())])
def test_a_model_of_another_kind_than_the_one_tested_is_said(seed, kinds, read):
    one, rng = columns(seed, 240), np.random.default_rng(seed + 1000)
    y = one["a"] + 0.9 * (one["region"] == "r2") * one["b"] + rng.standard_normal(240)
    tried = fit_and_hold_out(read(seed=seed, n=240, changes={"y": y}), {"temperature": 1.0}, 0)
    tested, written = kinds or ("regret DRO", "the average over rows")
    said = f"The fit that was tested is {tested}; the one to all rows is {written}."
    assert tried.belongs.endswith(said) == (kinds != ())


def test_the_test_rows_may_be_another_file(read, tmp_path):
    rows = read()
    tried = fit_and_test_on(rows, LOSS, write(tmp_path, "test", seed=1, n=300))
    errors, other = tried.fitted.answer.errors[0], columns(1, 300)
    X = np.stack([other["a"], other["b"]], axis=1)
    np.testing.assert_allclose(errors.of_rows[0], np.abs(other["y"] - tried.fitted.model.predict(X)))
    assert errors.labels.tolist() == ["r0", "r1", "r2"]
    assert tried.fitted.answer.tested_on == "the 300 rows of test.parquet"
    assert tried.belongs == "The numbers belong to the model that was written."


def test_a_file_to_test_on_must_have_the_columns_of_the_fit(read, tmp_path):
    bare = tmp_path / "bare.parquet"
    for missing, message in (("y", "target='y' is not a column"), ("region", "group='region' is not a column")):
        parquet.write_table(pa.table({k: v for k, v in columns(1).items() if k != missing}), bare)
        with pytest.raises(stoic.InvalidParameter, match=message):
            fit_and_test_on(read(), {}, bare)


def test_a_class_that_only_the_test_has_is_said_and_counts_as_wrong(read, tmp_path):
    y = np.where(columns(0)["y"] > 10.0, 1, 0)
    strange = np.array(["zebra" if i < 7 else "1" for i in range(N)])
    rows = read(classifies=True, changes={"y": y})
    tried = fit_and_test_on(rows, LOSS, write(tmp_path, "test", changes={"y": strange}))
    assert any("test.parquet has rows of the class '1' and 1 other" in note for note in tried.notes)
    assert tried.fitted.answer.errors[0].of_rows.all()
    tried = fit_and_test_on(rows, LOSS, write(tmp_path, "test", changes={"y": np.where(y == 1, 2, 0)}))
    assert any("rows of the class '2', which the fit has not seen" in note for note in tried.notes)


def test_rows_without_weight_are_not_tested(read, tmp_path):
    weight = (np.arange(N) % 3 != 1).astype(float)
    rows = read(schema=Schema("y", "region", "weight"), changes={"weight": np.ones(N)})
    tried = fit_and_test_on(rows, LOSS, write(tmp_path, "test", changes={"weight": weight}))
    assert tried.fitted.answer.errors[0].labels.tolist() == ["r0", "r2"]


def test_what_was_chosen_in_the_file_to_test_on_is_said_of_that_file(read, tmp_path):
    gaps = np.where(np.arange(N) < 7, np.nan, columns(0)["y"])
    rows = read(schema=Schema("y", "region", missing="drop"), changes={"y": gaps})
    tried = fit_and_test_on(rows, LOSS, write(tmp_path, "test", changes={"y": gaps}))
    dropped = "7 of 1,200 rows are dropped, as they lack a value ('y': 7)."
    assert tried.notes == (dropped, f"In test.parquet: {dropped}")


def test_libsvm_files_are_tested_on_libsvm_files(tmp_path):
    data, test = tmp_path / "a.svm", tmp_path / "b.svm"
    data.write_text("\n".join(f"{i % 5} 1:{i % 5} 3:{i % 3}" for i in range(60)), encoding="utf-8")
    test.write_text("\n".join(f"{i % 5} 1:{i % 5}" for i in range(20)), encoding="utf-8")
    tried = fit_and_test_on(read_file(data, Schema()), {}, test)
    assert tried.fitted.answer.errors[0].whole.rows[0] == 20
    assert any("without --group" in note for note in tried.notes)


def test_a_group_with_its_own_slope_is_found_to_gain(read):
    said = fit_and_hold_out(read(), LOSS, 0).fitted.answer.verdict()
    assert said.startswith("Group DRO on the loss takes the worst group (r2) from")


def test_noise_alone_is_found_to_be_chance(read):
    rng = np.random.default_rng(5)
    y = columns(0)["a"] + (1 + np.arange(N) % 3) * rng.standard_normal(N)
    said = fit_and_hold_out(read(changes={"y": y}), LOSS, 0).fitted.answer.verdict()
    assert said.endswith("the average over rows serves as well.")


def test_groups_are_said_to_differ_in_noise_only_where_no_own_model_is_better(read):
    rng = np.random.default_rng(5)
    y = columns(0)["a"] + (1 + np.arange(N) % 3) * rng.standard_normal(N)
    rows = read(changes={"y": y})
    assert "differ in noise" in fit_and_hold_out(rows, {}, 0).fitted.answer.verdict()
    assert "noise" not in fit_and_hold_out(rows, LOSS, 0).fitted.answer.verdict()  # nobody looked for own models
    even = read(changes={"y": columns(0)["a"] + rng.standard_normal(N)})
    assert "noise" not in fit_and_hold_out(even, {}, 0).fitted.answer.verdict()


def test_columns_that_explain_nothing_are_found_out(read):
    y = np.random.default_rng(5).standard_normal(N)
    said = fit_and_hold_out(read(changes={"y": y}), LOSS, 0).fitted.answer.verdict()
    assert said.startswith("No better than a constant")


def test_a_fit_without_regret_is_called_the_average(read):
    rng = np.random.default_rng(5)
    y = columns(0)["a"] + rng.standard_normal(N)
    rows = read(changes={"y": y})
    answer = fit_and_hold_out(rows, {"protect": "regret", "temperature": 4.0}, 0).fitted.answer
    assert answer.errors[0].rivals == ("fit", "equal", "constant")
    assert legend(answer)[0] == ("fit", "the average over rows")
    assert answer.verdict().startswith("No group would do better beyond chance with a model of its own")
    asked = fit_and_hold_out(rows, {"protect": "regret", "temperature": np.inf}, 0).fitted.answer
    assert asked.verdict().startswith("The fit is the average over rows, as asked")


def test_an_average_that_was_chosen_by_cross_validation_is_said_to_be_so(read):
    answer = fit_and_hold_out(read(), {"max_cost": 0.0}, 0).fitted.answer
    assert legend(answer)[0] == ("fit", "the average over rows, by cross-validation")


def test_too_few_rows_are_not_tested(read):
    tried = fit_and_hold_out(read(n=4), LOSS, 0)
    assert tried.fitted.answer is None
    assert any("4 rows are too few" in note for note in tried.notes)


def test_many_groups_are_folded_into_one_line_that_counts_their_rows(read):
    answer = fit_and_hold_out(read(n_groups=30), LOSS, 0).fitted.answer
    (table,) = short_tables(answer, 9)
    assert len(table.rows) == 11
    assert table.rows[-1][0] == "and 21 other groups"
    counts = [int(row[1].replace(",", "")) for row in table.rows]
    assert counts[0] == sum(counts[1:])
    worst = answer.errors[0].groups.names[0]
    assert table.rows[1][0] == worst


def test_small_groups_are_judged_together_and_said(read):
    changes = {"region": np.array([f"s{i}" if i < 40 else "large" for i in range(N)])}
    tried = fit_and_hold_out(read(changes=changes), LOSS, 0)
    (table,) = short_tables(tried.fitted.answer, 9)
    assert [row[0] for row in table.rows][:2] == ["all rows", "large"]
    assert "40 groups of fewer than 5 rows gave a fifth together." in tried.notes


def test_numbers_stand_under_each_other(read):
    answer = fit_and_hold_out(read(), LOSS, 0).fitted.answer
    lines = list(text_of(short_tables(answer, 9)))[1:-1]
    assert lines[0].endswith("fit − average")
    ends = {line.index("±") for line in lines[1:]}
    assert len(ends) == 1
    points = {line.index(".") for line in lines[1:]}
    assert len(points) == 1


def test_tables_of_classes_are_in_percent_and_have_a_log_loss(read):
    y = np.where(columns(0)["y"] > 10.0, "high", "low")
    answer = fit_and_hold_out(read(changes={"y": y}), LOSS, 0).fitted.answer
    wrong, surprise = page_tables(answer, 9)
    assert (wrong.title, surprise.title) == ("Share of wrong classes in %", "Log loss")
    errors = answer.errors[0]
    assert wrong.rows[0][2].startswith(f"{100 * errors.of_rows[0].mean():.1f} ± ")
    assert wrong.head == ["", "rows", "fit", "average", "fit − average", "equal", "fit − equal", "constant",
                          "fit − constant"]  # fmt: skip


def test_without_a_test_nothing_is_held_out(read):
    rows = read()
    tried = fit_untested(rows, LOSS)
    assert tried.fitted.answer is None
    np.testing.assert_array_equal(tried.fitted.model.coef_, fit_rows(rows, LOSS).model.coef_)
