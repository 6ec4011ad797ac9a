"""Metadata routing: rows are split by one column and groups of another are protected and scored."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import stoic
from stoic import GroupDROClassifier, GroupDRORegressor, GroupScorer

RNG = np.random.default_rng(0)
N = 240
X, PATIENT = RNG.standard_normal((N, 3)), np.arange(N) // 4
REGION = np.array(["north", "south"])[np.arange(N) % 2]
Y = X @ [1.0, 2.0, 0.0] + np.where(REGION == "south", 2.0, 1.0) * RNG.standard_normal(N)
GRID = {"temperature": [0.5, np.inf]}


@pytest.fixture(autouse=True)
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


class SeenSplitter(GroupKFold):
    """GroupKFold that keeps the groups it was given."""

    seen = None

    def split(self, X, y=None, groups=None):
        SeenSplitter.seen = np.asarray(groups)
        return super().split(X, y, groups)


def requesting(model=None):
    return (model or GroupDRORegressor()).set_fit_request(groups="region")


def scorer():
    return GroupScorer().set_score_request(groups="region")


def test_cross_validation_splits_by_one_column_and_protects_another():
    params = {"groups": PATIENT, "region": REGION}
    how = {"cv": SeenSplitter(4), "scoring": scorer(), "return_estimator": True}
    found = cross_validate(requesting(), X, Y, params=params, **how)
    np.testing.assert_array_equal(SeenSplitter.seen, PATIENT)
    assert [model.groups_.tolist() for model in found["estimator"]] == [["north", "south"]] * 4
    folds = [test for _, test in GroupKFold(4).split(X, Y, PATIENT)]
    for model, fold, score in zip(found["estimator"], folds, found["test_score"], strict=True):
        assert score == GroupScorer()(model, X[fold], Y[fold], groups=REGION[fold])


@pytest.mark.parametrize("as_column", [False, True], ids=["labels", "column"])
def test_a_search_splits_by_one_column_and_protects_another(as_column):
    rows = pd.DataFrame(X, columns=["a", "b", "c"]).assign(region=REGION) if as_column else X
    search = GridSearchCV(requesting(), GRID, cv=SeenSplitter(3), scoring=scorer())
    search.fit(rows, Y, groups=PATIENT, region="region" if as_column else REGION)
    np.testing.assert_array_equal(SeenSplitter.seen, PATIENT)
    assert search.best_estimator_.groups_.tolist() == ["north", "south"]
    assert search.best_estimator_.n_features_in_ == 3
    assert search.predict(rows).shape == (N,)


def test_scores_by_several_names_have_their_own_requests():
    scoring = {"worst": scorer(), "patients": GroupScorer(), "r2": "r2"}
    found = cross_validate(
        requesting(), X, Y, params={"groups": PATIENT, "region": REGION}, scoring=scoring, cv=GroupKFold(3)
    )
    assert (found["test_patients"] < found["test_worst"]).all()  # a patient has few rows: the worst is far off


def test_a_pipeline_hands_the_groups_on_under_their_name():
    pipeline = make_pipeline(StandardScaler(), requesting(GroupDROClassifier()))
    pipeline.fit(X, Y > 0.0, region=REGION)
    assert pipeline[-1].groups_.tolist() == ["north", "south"]


def test_partial_fit_and_score_have_requests_of_their_own():
    model = GroupDROClassifier().set_partial_fit_request(groups="region").set_score_request(groups="region")
    routing = model.get_metadata_routing()
    assert routing.partial_fit.requests["groups"] == routing.score.requests["groups"] == "region"
    assert routing.fit.requests["groups"] is True


def test_a_search_without_a_scorer_scores_the_worst_group_if_asked_to():
    searches = {}
    for is_asked in (False, True):
        model = requesting().set_score_request(groups="region" if is_asked else False)
        searches[is_asked] = GridSearchCV(model, {"temperature": [np.inf]}, cv=3).fit(X, Y, region=REGION)
    assert searches[True].best_score_ < searches[False].best_score_


def test_a_search_scores_the_mean_unless_told_otherwise():
    search = GridSearchCV(GroupDRORegressor(), {"temperature": [np.inf]}, cv=2).fit(X, Y, groups=REGION)
    halves = np.arange(N) < N // 2
    scores = [
        GroupDRORegressor(temperature=np.inf).fit(X[a], Y[a], groups=REGION[a]).score(X[~a], Y[~a])
        for a in (halves, ~halves)
    ]
    assert search.best_score_ == pytest.approx(np.mean(scores))


def test_clones_keep_the_requests():
    assert clone(requesting()).get_metadata_routing().fit.requests["groups"] == "region"
    copied = clone(scorer(), safe=False)
    assert copied.get_metadata_routing().score.requests == {"groups": "region"}
    assert GroupScorer().get_metadata_routing().score.requests == {"groups": True}


def test_weights_reach_the_scorer_where_it_asks_for_them():
    weight = np.where(REGION == "south", np.linspace(0.0, 2.0, N), 1.0)
    asking = GroupScorer().set_score_request(groups=True, sample_weight=True)
    how = {"return_estimator": True, "cv": 3, "scoring": asking}
    model = GroupDRORegressor().set_fit_request(sample_weight=False)
    found = cross_validate(model, X, Y, params={"groups": REGION, "sample_weight": weight}, **how)
    last = slice(160, N)
    score = GroupScorer()(found["estimator"][2], X[last], Y[last], REGION[last], weight[last])
    assert found["test_score"][2] == score


def test_a_scorer_is_asked_for_groups_and_weights_only():
    with pytest.raises(stoic.InvalidParameter, match="patients is nothing that GroupScorer asks for"):
        GroupScorer().set_score_request(patients=True)
