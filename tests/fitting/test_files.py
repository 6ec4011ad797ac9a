"""Models from files, and predictions for others: what fits, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet

import stoic
from stoic.fitting.files import fit_file, load_fitted, predict_file, save_fitted, write_columns
from stoic.fitting.schemas import Schema

RNG = np.random.default_rng(0)
N = 300
COLUMNS = {
    "y": 5.0 + RNG.standard_t(2.5, N),
    "x": RNG.standard_normal(N),
    "town": np.array(["Ulm", "Bonn", "Köln"])[RNG.integers(0, 3, N)],
    "new": RNG.random(N) < 0.5,
    "region": np.array(["north", "south"])[np.arange(N) % 2],
    "count": RNG.integers(1, 4, N),
    "id": np.arange(N),
}
COLUMNS["y"] += 2.0 * COLUMNS["x"] + (COLUMNS["town"] == "Ulm")
SCHEMA = Schema("y", "region", leave_out=("id", "count"))


@pytest.fixture
def write(tmp_path):
    def write(name="data.parquet", **changes):
        path, columns = tmp_path / name, {k: v for k, v in {**COLUMNS, **changes}.items() if v is not None}
        if name.endswith(".parquet"):
            parquet.write_table(pa.table(columns), path)
        else:
            pa.csv.write_csv(pa.table(columns), path)
        return path

    return write


@pytest.fixture
def model_path(write, tmp_path):
    path = tmp_path / "model.stoic"
    save_fitted(fit_file(write(), SCHEMA, {}), path)
    return path


@pytest.mark.parametrize("name", ["data.parquet", "data.csv"])
def test_a_file_is_fitted_as_its_matrix_would_be(write, name):
    fitted = fit_file(write(name), SCHEMA, {"temperature": 2.0})
    towns = [(COLUMNS["town"] == town).astype(float) for town in ("Bonn", "Köln", "Ulm")]
    X = np.stack([COLUMNS["x"], *towns, COLUMNS["new"].astype(float)], axis=1)
    direct = stoic.GroupDRORegressor(temperature=2.0).fit(X, COLUMNS["y"], groups=COLUMNS["region"])
    np.testing.assert_allclose(fitted.model.predict(fitted.table.X), direct.predict(X), rtol=1e-9)
    assert fitted.schema.names == ("x", "town=Bonn", "town=Köln", "town=Ulm", "new")


def test_predictions_do_not_depend_on_the_order_of_columns_or_on_the_target(write, model_path):
    whole = predict_file(model_path, write())["prediction"]
    bare = write("bare.parquet", y=None, region=None, id=None, count=None)
    np.testing.assert_array_equal(predict_file(model_path, bare)["prediction"], whole)
    turned = write("turned.csv", **dict(reversed(COLUMNS.items())))
    np.testing.assert_allclose(predict_file(model_path, turned)["prediction"], whole, rtol=1e-12)


def test_targets_of_text_are_classes_and_have_probabilities(write, tmp_path):
    data = write(y=np.where(COLUMNS["y"] > 5, "high", "low"))
    save_fitted(fit_file(data, SCHEMA, {}), tmp_path / "model.stoic")
    columns = predict_file(tmp_path / "model.stoic", data, probabilities=True)
    assert list(columns) == ["prediction", "probability=high", "probability=low"]
    assert set(columns["prediction"]) <= {"high", "low"}


def test_numbers_may_be_told_to_be_classes(write):
    fitted = fit_file(write(y=(COLUMNS["y"] > 5).astype(int)), SCHEMA, {}, classifies=True)
    assert fitted.model.classes_.tolist() == [0, 1]


def test_weights_come_from_a_column(write):
    schema = Schema("y", "region", "count", ("id",))
    fitted = fit_file(write(), schema, {})
    np.testing.assert_array_equal(fitted.table.weight, COLUMNS["count"])


def test_libsvm_files_have_their_groups_in_a_file_of_labels(tmp_path):
    data, labels, model = tmp_path / "a.svm", tmp_path / "groups.txt", tmp_path / "model.stoic"
    data.write_text("\n".join(f"{i % 5} 1:{i % 7} 3:{i % 3}" for i in range(60)), encoding="utf-8")
    labels.write_text("\n".join("ab"[i % 2] for i in range(60)), encoding="utf-8")
    fitted = fit_file(data, Schema(), {}, labels=labels)
    assert fitted.model.groups_.tolist() == ["a", "b"]
    save_fitted(fitted, model)
    assert len(predict_file(model, data)["prediction"]) == 60
    narrow = tmp_path / "b.svm"
    narrow.write_text("0 1:2\n", encoding="utf-8")
    assert predict_file(model, narrow)["prediction"] == fitted.model.predict([[2.0, 0.0, 0.0]])
    narrow.write_text("0 9:2\n", encoding="utf-8")
    with pytest.raises(stoic.InvalidProblem, match="has 9 columns, but the model was fitted with 3"):
        predict_file(model, narrow)
    labels.write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(stoic.InvalidProblem, match="has 2 lines, but there are 60 rows"):
        fit_file(data, Schema(), {}, labels=labels)
    with pytest.raises(stoic.InvalidParameter, match="without named columns; leave out target='y'"):
        fit_file(data, Schema("y"), {})


def test_missing_features_are_refused_or_filled_in_as_told(write, tmp_path):
    holes = [None if i == 7 else x for i, x in enumerate(COLUMNS["x"].tolist())]
    with pytest.raises(stoic.InvalidProblem, match=r"1 of 300 rows lack a value \('x': 1\); the first is row 8"):
        fit_file(write(x=holes), SCHEMA, {})
    schema = Schema("y", "region", leave_out=("id", "count"), missing="impute")
    save_fitted(fit_file(write(x=holes), schema, {}), tmp_path / "model.stoic")
    predicted = predict_file(tmp_path / "model.stoic", write("again.parquet", x=holes))["prediction"]
    assert np.isfinite(predicted).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "lacks the column: 'x'"),
        ({"surplus": np.ones(N)}, "has a column that the model was not fitted with: 'surplus'"),
        ({"town": np.array(["Paris"] * N)}, r"column 'town', row 1 \('Paris'\): is none of the categories"),
        ({"x": np.array(["a"] * N)}, "column 'x' holds string, but numbers are required"),
        ({"region": np.array(["west"] * N)}, "row 1 is of the group west, which the model has not seen"),
    ],
)
def test_rows_that_do_not_fit_the_model_are_refused_by_name(write, model_path, changes, message):
    with pytest.raises(stoic.InvalidProblem, match=message):
        predict_file(model_path, write("other.parquet", **changes))


def test_columns_that_the_model_does_not_know_may_be_kept_and_others_may_not_be_there(write, model_path):
    data = write("other.parquet", surplus=np.array(["007", None] * (N // 2)))
    columns = predict_file(model_path, data, keep=["surplus", "x"])
    assert list(columns) == ["surplus", "x", "prediction"]
    assert columns["surplus"].tolist() == ["007", None] * (N // 2)
    assert columns["x"].tolist() == COLUMNS["x"].tolist()
    with pytest.raises(stoic.InvalidProblem, match="has a column that the model was not fitted with: 'surplus'"):
        predict_file(model_path, data, keep=["x"])
    named = write("named.parquet", prediction=np.ones(N))
    with pytest.raises(stoic.InvalidParameter, match="keep='prediction' is the name of a column of predictions"):
        predict_file(model_path, named, keep=["prediction"])


def test_kept_columns_are_written_as_they_were(write, model_path, tmp_path):
    data = write("other.parquet", surplus=np.array(["007", None] * (N // 2)))
    columns = predict_file(model_path, data, keep=["surplus"])
    write_columns(columns, tmp_path / "out.csv")
    first, second, *_ = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert (first[:4], second[0]) == ("007,", ",")
    write_columns(columns, tmp_path / "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet")["surplus"].to_pylist() == ["007", None] * (N // 2)


def test_new_groups_may_be_allowed(write, model_path):
    data = write("other.parquet", region=np.array(["west"] * N))
    assert len(predict_file(model_path, data, new_groups=True)["prediction"]) == N


def test_columns_that_are_asked_for_must_be_there(write):
    for schema in (Schema("price"), Schema("y", "area"), Schema("y", weight="w"), Schema("y", leave_out=("z",))):
        with pytest.raises(stoic.InvalidParameter, match="is not a column of"):
            fit_file(write(), schema, {})
    with pytest.raises(stoic.InvalidProblem, match="no column left for features"):
        fit_file(write(), Schema("y", leave_out=tuple(name for name in COLUMNS if name != "y")), {})


def test_predictions_are_written_in_one_move(write, model_path, tmp_path):
    columns = predict_file(model_path, write())
    for name in ("out.csv", "out.parquet"):
        write_columns(columns, tmp_path / name)
    assert parquet.read_table(tmp_path / "out.parquet")["prediction"].to_pylist() == columns["prediction"].tolist()
    lines = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert [float(line) for line in lines[1:]] == columns["prediction"].tolist()
    with pytest.raises(stoic.InvalidParameter, match=r"ends in neither \.csv nor \.parquet"):
        write_columns(columns, tmp_path / "out.xlsx")


def test_a_model_without_columns_says_so(tmp_path):
    model = stoic.GroupDRORegressor().fit(np.eye(4), np.arange(4.0), groups=[0, 0, 1, 1])
    stoic.save_model(model, tmp_path / "model.stoic")
    with pytest.raises(stoic.DamagedFile, match=r"load it with stoic\.load_model"):
        load_fitted(tmp_path / "model.stoic")
