"""Tables as people have them: what is left out, filled in or taken for a class, and what is said of it."""

import gzip

import numpy as np
import pandas as pd
import pytest

import stoic
from stoic.fitting.schemas import Schema

N = 40
RNG = np.random.default_rng(0)


def table(**changes):
    """Return a frame of a target, a feature and a group, with changes."""
    columns = {
        "y": RNG.standard_normal(N).round(3),
        "x": RNG.standard_normal(N).round(3),
        "g": ["a", "b"] * (N // 2),
    }
    return pd.DataFrame({name: values for name, values in (columns | changes).items() if values is not None})


@pytest.fixture
def read(tmp_path):
    """Return a function that writes a frame or text and reads it by a schema."""

    def read(content, classifies=None, name="data.csv", **roles):
        path = tmp_path / name
        if isinstance(content, pd.DataFrame):
            content.to_csv(path, index=False)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return Schema(**{"target": "y", **roles}).read(path, classifies=classifies)

    return read


@pytest.fixture
def again(read, tmp_path):
    """Return a function that fits a schema to one table, sends it through JSON, and reads another by it."""

    def again(first, second, **roles):
        schema, _ = read(first, **roles)
        second.to_csv(tmp_path / "new.csv", index=False)
        told = Schema.from_json(schema.as_json())
        assert told == schema
        return told.read_features(tmp_path / "new.csv", len(schema.names))

    return again


def said(rows, part):
    return [note for note in rows.notes if part in note]


# Columns that are left out


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("odd", ["same"] * N, "all rows have the same value"),
        ("odd", [3.0] * N, "all rows have the same value"),
        ("odd", [None] * N, "no row has a value"),
        ("odd", [f"name {i}" for i in range(N)], "every row has a text of its own"),
        (
            "odd",
            [f"name {i // 2}" for i in range(N - 4)] + [f"only {i}" for i in range(4)],
            "more than 30% of the rows",
        ),
        ("odd", range(N), "its values only count or name the rows"),
        ("odd", [i + i // 5 for i in range(1, N + 1)], "its values only count or name the rows"),
        ("customer_id", RNG.permutation(10_000)[:N], "its values only count or name the rows"),
        ("CustomerID", RNG.permutation(10_000)[:N], "its values only count or name the rows"),
    ],
)
def test_columns_of_no_use_are_left_out_loudly_unless_they_are_to_be_kept(name, values, reason, read):
    schema, rows = read(table(**{name: values}))
    assert schema.names == ("x", "g=a", "g=b")
    (note,) = said(rows, reason)
    assert note.endswith(f"{name!r}. --keep-column keeps a column.")
    if reason != "no row has a value":
        schema, rows = read(table(**{name: values}), keep_columns=(name,))
        assert any(one.startswith(name) for one in schema.names)
        assert not said(rows, reason)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("year", range(1980, 1980 + N)),
        ("income", RNG.permutation(10_000)[:N]),
        ("rank", RNG.permutation(N)),
        ("town", [f"t{i % 12}" for i in range(N)]),
        ("paid", RNG.standard_normal(N)),
    ],
)
def test_columns_that_may_be_of_use_stay(name, values, read):
    schema, rows = read(table(**{name: values}))
    assert len(schema.names) > 3
    assert not said(rows, name)


def test_a_few_rows_may_all_differ(read):
    assert len(read("y,x,t\n1.5,1,a\n2,5,b\n3,2,c\n")[0].names) == 4


def test_many_categories_are_named(read):
    frame = pd.concat([table(t=[f"t{i}" for i in range(k, k + N)]) for k in range(0, 120, N)] * 4)
    assert said(read(frame)[1], "Column 't' has 120 categories")


def test_left_out_columns_may_be_there_or_not_when_rows_are_predicted(again):
    first = table(id=range(N))
    for second in (first, first.drop(columns="id"), table(id=["x"] * N)):
        assert again(first, second, group="g").X.shape == (N, 1)


def test_a_table_with_nothing_to_use_says_why(read):
    with pytest.raises(
        stoic.InvalidProblem, match=r"no column left for features.*all rows have the same value: 'x'"
    ):
        read(table(x=[1] * N), group="g")


# Targets


@pytest.mark.parametrize(
    ("values", "classes", "note"),
    [
        ([0, 1], [0, 1], "0 and 1"),
        ([-1, 1], [-1, 1], "-1 and 1"),
        ([0.0, 1.0], [0.0, 1.0], "0 and 1"),
        (["yes", "no"], ["no", "yes"], "no and yes"),
        ([True, False], ["False", "True"], "False and True"),
    ],
)
def test_marks_of_two_classes_are_classes_unless_told_otherwise(values, classes, note, read):
    frame = table(y=values * (N // 2))
    rows = read(frame)[1]
    assert rows.classifies
    assert np.unique(rows.y).tolist() == classes
    assert said(rows, f"The target 'y' holds {note}, which are taken as classes; --regress")
    told = read(frame, classifies=False)[1]
    assert not told.classifies
    assert told.y.dtype.kind == "f"
    assert not said(told, "target")


@pytest.mark.parametrize(("values", "note"), [([1, 2], "1 and 2"), ([0, 1, 2, 5], "0, 1, 2 and 5")])
def test_a_few_whole_numbers_are_numbers_and_said_to_be_taken_so(values, note, read):
    frame = table(y=values * (N // len(values)))
    rows = read(frame)[1]
    assert not rows.classifies
    assert said(rows, f"The target 'y' holds just {note}, which are taken as numbers; --classify")
    assert not said(read(frame, classifies=False)[1], "target")
    assert not said(read(table(y=[0.5, 1.0] * (N // 2)))[1], "target")
    assert not said(read(table(y=list(range(6)) * (N // 6) + [0] * (N % 6)))[1], "target")


def test_labels_of_libsvm_files_may_be_marks_too(read):
    content = "\n".join(f"{2 * (i % 2) - 1} 1:{i}" for i in range(10))
    rows = read(content, name="a.svm", target=None)[1]
    assert rows.classifies
    assert rows.y[:2].tolist() == [-1, 1]
    assert said(rows, "The target 'label' holds -1 and 1")
    assert read(content, name="a.svm", target=None, classifies=False)[1].y.dtype.kind == "f"


@pytest.mark.parametrize("values", [[0, 1, 2, 3], [1, 2], [0.5, 1.0]])
def test_other_numbers_are_no_classes(values, read):
    assert not read(table(y=values * (N // len(values))))[1].classifies


def test_money_is_a_target_of_numbers(read):
    rows = read(table(y=[f"${i},000.00" for i in range(1, N + 1)]))[1]
    assert rows.y[:2].tolist() == [1000.0, 2000.0]
    assert said(rows, "Column 'y': '$1,000.00' is read as the number 1000.")


def test_text_with_too_many_values_is_no_target_unless_told_so(read):
    frame = table(y=[f"name {i}" for i in range(N)])
    with pytest.raises(stoic.InvalidProblem, match=r"'y' is text with 40 different values.*--classify"):
        read(frame)
    assert read(frame, classifies=True)[1].classifies


def test_dates_are_no_target_unless_told_so(read):
    frame = table(y=[f"2024-01-{1 + i % 30}" for i in range(N)])
    with pytest.raises(
        stoic.InvalidProblem, match="column 'y' holds dates, which are no target; predict a number"
    ):
        read(frame)
    assert read(frame, classifies=False)[1].y[0] == 19_723.0


# Groups


def test_one_group_is_said_to_be_none(read):
    rows = read(table(g=["west"] * N), group="g")[1]
    assert said(rows, "All rows are of the one group 'west' of the column 'g': there is nothing to protect")


def test_groups_of_one_row_are_named(read):
    assert said(
        read(table(g=range(100, 100 + N)), group="g")[1], "Nearly every row is a group of its own: 'g' has 40"
    )
    assert not said(read(table(), group="g")[1], "group of its own")


def test_the_group_may_be_a_feature_too(read, again):
    assert read(table(), group="g")[0].names == ("x",)
    schema, rows = read(table(), group="g", group_feature=True)
    assert schema.names == ("x", "g=a", "g=b")
    assert rows.groups[:2].tolist() == ["a", "b"]
    assert again(table(), table(), group="g", group_feature=True).X.shape == (N, 3)


# Missing values


GAPPY = {"x": [None, 1.0, 5.0, *range(2, N - 1)], "t": ["a", "b", None, "b"] * (N // 4)}


def test_missing_values_are_refused_with_what_may_be_done(read):
    with pytest.raises(stoic.InvalidProblem) as error:
        read(table(**GAPPY))
    assert str(error.value).endswith(
        "data.csv: 11 of 40 rows lack a value ('t': 10, 'x': 1); the first is row 1. --missing drop leaves these "
        "rows out and keeps 29; --missing impute fills features in; --drop t leaves a column out."
    )


def test_rows_that_lack_a_value_may_be_dropped(read):
    rows = read(table(**GAPPY), missing="drop")[1]
    assert rows.X.shape == (29, 5)
    assert np.isfinite(rows.X).all()
    assert said(rows, "11 of 40 rows are dropped, as they lack a value ('t': 10, 'x': 1).")


def test_missing_values_may_be_filled_in_and_marked(read):
    schema, rows = read(table(**GAPPY), group="g", missing="impute")
    assert schema.names == ("x", "x is missing", "t=a", "t=b", "t is missing")
    median = np.median(GAPPY["x"][1:])
    assert rows.X[0].tolist() == [median, 1.0, 1.0, 0.0, 0.0]
    assert rows.X[2].tolist() == [5.0, 0.0, 0.0, 1.0, 1.0]
    assert said(rows, "fills in medians and most frequent categories ('t': 10, 'x': 1)")


@pytest.mark.parametrize("role", ["y", "g", "w"])
def test_rows_without_target_group_or_weight_are_dropped_before_features_are_filled_in(role, read):
    frame = table(w=np.ones(N), x=[None, *range(1, N)])
    frame.loc[0, role] = None
    roles = {"group": "g", "weight": "w"}
    schema, rows = read(frame, missing="impute", **roles)
    assert schema.names == ("x",)
    assert len(rows.y) == len(rows.groups) == len(rows.weight) == len(rows.X) == N - 1
    assert rows.notes == (f"1 of 40 rows are dropped, as they lack a value ('{role}': 1).",)
    with pytest.raises(stoic.InvalidProblem, match="--missing impute fills features in and drops the 1 without"):
        read(frame, **roles)


def test_a_table_without_a_whole_row_cannot_be_dropped(read):
    with pytest.raises(stoic.InvalidProblem, match=r"every row lacks a value \('x': 20, 't': 20\)"):
        read(table(x=[1.5, None] * (N // 2), t=[None, "a"] * (N // 2)), missing="drop")


def test_a_file_of_groups_goes_with_the_rows_that_are_left(read, tmp_path):
    (tmp_path / "groups.txt").write_text("\n".join(f"g{i}" for i in range(N)), encoding="utf-8")
    rows = read(table(x=[None, *range(1, N)]), missing="drop")[1].with_labels(tmp_path / "groups.txt")
    assert rows.groups.tolist() == [f"g{i}" for i in range(1, N)]
    rows = read(table())[1].with_labels(tmp_path / "groups.txt")
    assert len(rows.groups) == N


def test_columns_that_are_of_no_use_among_the_rows_that_are_left_are_left_out_too(read):
    gappy = [None if i % 2 else float(i % 7) for i in range(N)]
    schema, rows = read(table(y=gappy, empty=[1.5 if i % 2 else None for i in range(N)]), missing="impute")
    assert schema.names == ("x",)
    assert schema.leave_out == ("g", "empty")
    assert said(rows, "no row has a value: 'empty'")
    assert said(rows, "all rows have the same value: 'g'")


def test_a_table_without_any_target_is_refused(read):
    with pytest.raises(stoic.InvalidProblem, match=r"every row lacks target, group or weight \('y': 40\)"):
        read(table(y=[None] * N), missing="impute")


def test_missing_values_of_rows_to_predict_are_filled_in_as_at_the_fit(again):
    rows = again(table(x=[None, 5.0] * (N // 2)), table(x=[None, 1.0] * (N // 2)), missing="impute", group="g")
    assert rows.X[:2].tolist() == [[5.0, 1.0], [1.0, 0.0]]
    assert rows.notes == ()


def test_a_column_that_lacked_nothing_at_the_fit_is_filled_in_with_a_word(again):
    rows = again(table(x=[2.0, 4.0] * (N // 2)), table(x=[None, 1.0] * (N // 2)), missing="impute", group="g")
    assert rows.X[:2].tolist() == [[3.0], [1.0]]
    assert said(rows, "lacked no value at the fit lack some ('x': 20)")


@pytest.mark.parametrize("missing", ["refuse", "drop"])
def test_rows_that_lack_a_value_are_not_predicted_by_a_model_of_whole_rows(missing, again):
    with pytest.raises(
        stoic.InvalidProblem, match=r"1 of 40 rows lack a value \('x': 1\), but the model was fitted"
    ):
        again(table(), table(x=[None, *range(1, N)]), missing=missing, group="g")


def test_gaps_are_counted_for_those_who_ask(read):
    gaps = read(table(**GAPPY, z=[None] * N), missing="impute")[1].gaps
    assert gaps.counts == {"x": 1, "t": 10, "z": 40}
    assert gaps.n_rows == 11  # of the columns that are used


# How a file is written


def test_a_german_file_in_latin_1_is_read_as_the_same_table(read):
    content = "y;größe;tag\n" + "".join(f"1.{i:03},5;{i % 7},25;{1 + i % 28}.3.2024\n" for i in range(N))
    schema, rows = read(content.encode("cp1252"))
    assert schema.names == ("größe", "tag")
    assert rows.y[:2].tolist() == [1000.5, 1001.5]
    assert rows.X[1].tolist() == [1.25, 19_784.0]
    assert rows.notes[0] == (
        "data.csv is read as Windows-1252 text, with semicolons between the columns, with decimal commas."
    )


@pytest.mark.parametrize(
    ("name", "encode", "separator", "note"),
    [
        ("a.csv", str.encode, ",", ()),
        ("a.tsv", str.encode, "\t", ()),
        ("a.csv", lambda text: text.encode("utf-16"), ",", ("a.csv is read as UTF-16 text.",)),
        (
            "a.tsv.gz",
            lambda text: gzip.compress(text.encode()),
            "|",
            ("a.tsv.gz is read with bars between the columns.",),
        ),
    ],
)
def test_a_note_says_how_a_file_was_read_unless_that_is_usual(name, encode, separator, note, read):
    text = table().to_csv(index=False, sep=separator)
    assert read(encode(text), name=name)[1].notes == note


def test_feather_files_are_read_as_parquet_files_are(tmp_path):
    frame = table(when=pd.date_range("2024-01-31", periods=N))
    frame.to_feather(tmp_path / "a.feather")
    frame.to_parquet(tmp_path / "a.parquet")
    feather, parquet = (Schema("y", "g").read(tmp_path / f"a.{kind}")[1] for kind in ("feather", "parquet"))
    np.testing.assert_array_equal(feather.X, parquet.X)
    assert feather.X[0, 1] == 19_753.0
    assert said(feather, "Column 'when' holds dates: they are numbers of days since 1970-01-01.")
    (tmp_path / "a.feather").write_bytes((tmp_path / "a.feather").read_bytes()[:-100])
    with pytest.raises(stoic.InvalidProblem, match="damaged, or not a Feather file"):
        Schema("y").read(tmp_path / "a.feather")


def test_dates_may_be_told_to_have_the_day_first(read, again):
    frame = table(when=[f"0{1 + i % 9}/02/2024" for i in range(N)])
    first = [read(frame, told=(None, order))[1].X[0, -1] for order in ("day-first", "month-first")]
    assert first == [19_754.0, 19_724.0]
    assert again(frame, frame[:1], told=(None, "day-first")).X[0, -1] == 19_754.0


def test_more_than_ten_notes_on_columns_are_folded(read):
    frame = table(**{f"c{i}": [f"${k}" for k in range(N)] for i in range(15)})
    notes = said(read(frame)[1], "read as")
    assert len(notes) == 11
    assert notes[-1] == "5 more columns are read as numbers in such a way."
