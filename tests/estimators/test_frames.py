"""Groups that a column of a data frame names: a role like that of the target, at fit and after."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

import stoic
from stoic import GroupDROClassifier, GroupDRORegressor, GroupScorer, load_model, save_model

RNG = np.random.default_rng(0)
N = 300
REGION = np.array(["north", "south", "west"])[np.arange(N) % 3]
COLUMNS = {"rooms": RNG.standard_normal(N), "region": REGION, "size": RNG.standard_normal(N)}
Y = COLUMNS["rooms"] + 2.0 * COLUMNS["size"] + (1 + np.arange(N) % 3) * RNG.standard_normal(N)
FEATURES = np.column_stack([COLUMNS["rooms"], COLUMNS["size"]])
FRAMES = [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS)]
FRAME = FRAMES[0]


@pytest.fixture(scope="module")
def by_labels():
    """The model that the labels themselves give."""
    return GroupDRORegressor().fit(FEATURES, Y, groups=REGION)


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars"])
def test_a_column_that_names_the_groups_is_no_feature(frame, by_labels):
    model = GroupDRORegressor().fit(frame, Y, groups="region")
    assert model.feature_names_in_.tolist() == ["rooms", "size"]
    assert model.n_features_in_ == 2
    assert model.groups_.tolist() == ["north", "south", "west"]
    assert model.group_column_ == "region"
    np.testing.assert_allclose(model.coef_, by_labels.coef_)


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars"])
def test_rows_to_predict_may_have_the_column_or_not(frame, by_labels):
    model = GroupDRORegressor().fit(frame, Y, groups="region")
    for rows in (frame, frame[["rooms", "size"]]):
        np.testing.assert_allclose(model.predict(rows), by_labels.predict(FEATURES), atol=1e-9)
        assert model.score(rows, Y) == pytest.approx(by_labels.score(FEATURES, Y))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rows_to_predict_may_be_an_array(by_labels):
    model = GroupDRORegressor().fit(FRAME, Y, groups="region")
    np.testing.assert_allclose(model.predict(FEATURES), by_labels.predict(FEATURES), atol=1e-9)


def test_a_column_that_is_given_by_its_values_stays_a_feature():
    frame = FRAME.assign(code=np.arange(N) % 3).drop(columns="region")
    model = GroupDRORegressor().fit(frame, Y, groups=frame["code"])
    assert model.feature_names_in_.tolist() == ["rooms", "size", "code"]
    assert model.group_column_ is None


def test_the_frame_that_was_given_is_left_alone():
    frame = FRAME.copy()
    GroupDRORegressor().fit(frame, Y, groups="region").predict(frame)
    pd.testing.assert_frame_equal(frame, FRAME)


def test_a_misspelled_column_is_guessed():
    with pytest.raises(stoic.InvalidParameter, match="did you mean 'region'"):
        GroupDRORegressor().fit(FRAME, Y, groups="Regoin")


def test_a_name_unlike_all_columns_lists_them():
    with pytest.raises(
        stoic.InvalidParameter, match="'town' is not a column of X; it has 'rooms', 'region', 'size'"
    ):
        GroupDRORegressor().fit(FRAME, Y, groups="town")


@pytest.mark.parametrize(("count", "end"), [(10, r"'c8', 'c9'\."), (11, r"'c8', 'c9', …\.")])
def test_a_message_lists_ten_columns_at_most(count, end):
    frame = pd.DataFrame(np.zeros((N, count)), columns=[f"c{i}" for i in range(count)])
    with pytest.raises(stoic.InvalidParameter, match=rf"it has 'c0', .*{end}"):
        GroupDRORegressor().fit(frame, Y, groups="town")


@pytest.mark.parametrize(
    "X", [FEATURES, FEATURES.tolist(), FRAME["size"], FRAMES[1].lazy()], ids=["array", "lists", "series", "lazy"]
)
def test_a_name_needs_a_data_frame(X):
    with pytest.raises(stoic.InvalidParameter, match=r"names a column, but X is of type .*; give a data frame"):
        GroupDRORegressor().fit(X, Y, groups="region")


def test_a_frame_of_groups_alone_has_no_feature():
    with pytest.raises(stoic.InvalidProblem, match="no column besides groups='region'"):
        GroupDRORegressor().fit(FRAME[["region"]], Y, groups="region")


def test_a_missing_label_is_named_by_its_row():
    frame = FRAME.assign(region=FRAME["region"].where(np.arange(N) != 7))
    with pytest.raises(stoic.InvalidProblem, match=r"groups\[7\]"):
        GroupDRORegressor().fit(frame, Y, groups="region")


@pytest.mark.parametrize("kind", ["category", "string", "object"])
def test_a_column_of_any_kind_of_text_names_groups(kind, by_labels):
    model = GroupDRORegressor().fit(FRAME.astype({"region": kind}), Y, groups="region")
    np.testing.assert_array_equal(model.groups_, by_labels.groups_)


@pytest.mark.parametrize(
    "frame", [FRAME.astype({"region": "category"}), FRAMES[1].cast({"region": pl.Categorical})], ids=["pd", "pl"]
)
def test_rows_without_some_category_are_fitted_for_the_groups_they_have(frame):
    rows = np.flatnonzero(REGION != "west")
    part, y = _safe_indexing(frame, rows), Y[rows]
    for groups in ("region", part["region"]):
        features = part if isinstance(groups, str) else part[["rooms", "size"]]
        assert GroupDRORegressor().fit(features, y, groups=groups).groups_.tolist() == ["north", "south"]


def test_partial_fit_takes_the_name_too(by_labels):
    parts = [GroupDRORegressor(), GroupDRORegressor()]
    for rows in (slice(0, 150), slice(150, N)):
        parts[0].partial_fit(FRAME[rows], Y[rows], groups="region")
        parts[1].partial_fit(FEATURES[rows], Y[rows], groups=REGION[rows])
    np.testing.assert_allclose(parts[0].coef_, parts[1].coef_)
    assert parts[0].group_column_ == "region"


def test_partial_fit_by_labels_leaves_out_the_column_of_the_first_rows():
    model = GroupDRORegressor().fit(FRAME[:150], Y[:150], groups="region")
    model.partial_fit(FRAME[150:], Y[150:], groups=REGION[150:])
    assert model.n_features_in_ == 2


def test_a_fit_by_labels_forgets_the_column():
    model = GroupDRORegressor().fit(FRAME, Y, groups="region").fit(FEATURES, Y, groups=REGION)
    assert model.group_column_ is None


def test_a_setting_names_the_column_for_a_fit_without_groups(by_labels):
    model = GroupDRORegressor(groups="region").fit(FRAME, Y)
    np.testing.assert_allclose(model.coef_, by_labels.coef_)
    assert clone(model).groups == "region"


def test_groups_that_are_given_outrank_the_setting():
    model = GroupDRORegressor(groups="region").fit(FEATURES, Y, groups=np.arange(N) % 2)
    assert model.groups_.tolist() == [0, 1]


def test_a_setting_that_is_no_name_is_refused():
    with pytest.raises(stoic.InvalidParameter, match="is not the name of a column; give the group of each row"):
        GroupDRORegressor(groups=REGION).fit(FEATURES, Y)


def test_a_classifier_takes_the_name_everywhere():
    classes = np.where(Y > 0, "dear", "cheap")
    model = GroupDROClassifier().partial_fit(FRAME, classes, classes=["cheap", "dear"], groups="region")
    assert model.predict_proba(FRAME).shape == model.predict_log_proba(FRAME).shape == (N, 2)
    worst = min((model.predict(FRAME) == classes)[name == REGION].mean() for name in model.groups_)
    assert model.score(FRAME, classes, groups="region") == pytest.approx(worst)
    assert GroupScorer("zero-one", groups="region")(model, FRAME, classes) == pytest.approx(worst - 1.0)


def test_the_score_with_groups_is_that_of_the_worst():
    model = GroupDRORegressor().fit(FRAME, Y, groups="region")
    errors = np.square(Y - model.predict(FRAME))
    worst = 1.0 - max(errors[name == REGION].mean() for name in model.groups_) / Y.var()
    assert model.score(FRAME, Y, groups="region") == pytest.approx(worst)


def test_the_score_of_one_group_is_that_without_groups(by_labels):
    weight = np.arange(1.0, N + 1.0)
    score = by_labels.score(FEATURES, Y, weight, groups=np.zeros(N))
    assert score == pytest.approx(by_labels.score(FEATURES, Y, weight))


def test_constant_targets_have_a_score_of_zero_or_one():
    model = GroupDRORegressor().fit(FRAME, np.ones(N), groups="region")
    assert model.score(FRAME, np.ones(N), groups="region") == 1.0
    assert model.score(FRAME, np.zeros(N), groups="region") == 0.0


def test_a_model_from_a_file_knows_the_column(tmp_path):
    model = GroupDRORegressor(groups="region").fit(FRAME, Y)
    save_model(model, tmp_path / "model.stoic")
    again = load_model(tmp_path / "model.stoic")
    assert (again.groups, again.group_column_) == ("region", "region")
    np.testing.assert_array_equal(again.predict(FRAME), model.predict(FRAME))


def test_searches_and_pipelines_need_no_routing_where_a_setting_names_the_column():
    model = make_pipeline(GroupDRORegressor(groups="region"))
    search = GridSearchCV(
        model,
        {"groupdroregressor__temperature": [1.0, np.inf]},
        scoring=GroupScorer(groups="region"),
        cv=GroupKFold(3),
    )
    search.fit(FRAME, Y, groups=np.arange(N) // 10)  # split by these, protect the regions
    assert search.best_estimator_[-1].groups_.tolist() == ["north", "south", "west"]
    assert search.best_score_ < 0.0


def test_a_column_transformer_before_the_model_may_pass_the_column_on():
    columns = make_column_transformer((StandardScaler(), ["rooms", "size"]), ("passthrough", ["region"]))
    columns.set_output(transform="pandas").verbose_feature_names_out = False
    model = make_pipeline(columns, GroupDRORegressor(groups="region")).fit(FRAME, Y)
    assert model[-1].feature_names_in_.tolist() == ["rooms", "size"]
    assert model.predict(FRAME).shape == (N,)


@pytest.mark.parametrize(("load", "groups"), [(load_diabetes, "sex"), (load_wine, "shade")])
def test_real_tables_are_fitted_and_scored_by_a_column(load, groups):
    X, y = load(as_frame=True, return_X_y=True)
    X = X.assign(shade=X.iloc[:, -4] > X.iloc[:, -4].median()) if groups == "shade" else X
    model = (GroupDROClassifier if groups == "shade" else GroupDRORegressor)(groups=groups)
    scores = cross_val_score(model, X, y, scoring=GroupScorer(groups=groups))
    assert np.isfinite(scores).all()
    assert groups not in model.fit(X, y).feature_names_in_
