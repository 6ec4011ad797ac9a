"""Scores for groups and for wild labels."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_val_score

import stoic
from stoic import GroupDROClassifier, GroupDRORegressor, GroupScorer, robust_score, worst_group_score
from stoic.estimators.scoring import worst_group_r2

RNG = np.random.default_rng(0)
X, GROUPS = RNG.standard_normal((300, 2)), np.arange(300) % 3
Y = X @ [1.0, 2.0] + (1 + GROUPS) * RNG.standard_normal(300)


@pytest.mark.parametrize(
    ("error", "worst"), [("absolute", -1.5), ("squared", -2.5), (lambda y, p: np.full(len(y), 7.0), -7.0)]
)
def test_the_score_is_minus_the_largest_mean_error_of_a_group(error, worst):
    y, prediction = np.zeros(4), np.array([1.0, 1.0, 1.0, 2.0])
    assert worst_group_score(y, prediction, groups=["a", "a", "b", "b"], error=error) == worst


def test_labels_of_any_kind_may_be_compared():
    y, prediction = np.array(["x", "y", "x"]), np.array(["x", "x", "x"])
    assert worst_group_score(y, prediction, groups=[0, 1, 1], error="zero-one") == -0.5


def test_weights_of_rows_count():
    y, prediction = np.zeros(3), np.array([1.0, 3.0, 0.0])
    assert worst_group_score(y, prediction, groups=[0, 0, 1], sample_weight=[3.0, 1.0, 1.0]) == -1.5


def test_wild_labels_do_not_decide():
    y = np.zeros(300)
    y[::100] = 1e9
    assert robust_score(y, np.ones(300)) == -1.0
    assert worst_group_score(y, np.ones(300), groups=GROUPS, delta=0.05) == -1.0
    assert worst_group_score(y, np.ones(300), groups=GROUPS) < -1e6


def test_medians_of_means_of_light_tails_are_near_the_mean():
    errors = np.random.default_rng(1).exponential(size=20_000)
    assert robust_score(errors, np.zeros(20_000)) == pytest.approx(-1.0, abs=0.05)


@pytest.mark.slow
def test_the_scorer_gets_its_groups_by_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(GroupDRORegressor(), {"temperature": [0.5, np.inf]}, scoring=GroupScorer(), cv=3)
        search.fit(X, Y, groups=GROUPS)
        params = {"groups": GROUPS}
        scores = cross_val_score(GroupDRORegressor(), X, Y, params=params, scoring=GroupScorer(delta=0.1))
    model = GroupDRORegressor().fit(X, Y, groups=GROUPS)
    own = worst_group_score(Y, model.predict(X), groups=GROUPS)
    assert GroupScorer()(model, X, Y, groups=GROUPS) == own
    assert search.best_score_ < 0.0
    assert (scores < 0.0).all()


def test_a_classifier_is_scored_by_its_errors():
    labels = Y > 0
    model = GroupDROClassifier().fit(X, labels, groups=GROUPS)
    accuracy = min((model.predict(X) == labels)[g == GROUPS].mean() for g in range(3))
    assert GroupScorer("zero-one")(model, X, labels, groups=GROUPS) == pytest.approx(accuracy - 1.0)


def test_a_scorer_without_groups_says_what_to_do():
    model = GroupDRORegressor().fit(X, Y, groups=GROUPS)
    with pytest.raises(stoic.InvalidProblem, match="enable metadata routing"):
        GroupScorer()(model, X, Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"error": "cubic"}, "error='cubic' is not one of 'absolute'"),
        ({"error": lambda y, p: 0.0}, "gives shape"),
        ({"delta": 2.0}, "delta=2.0 is not strictly between"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(settings, message):
    with pytest.raises(stoic.InvalidParameter, match=message):
        worst_group_score(Y, Y, groups=GROUPS, **settings)


def test_many_groups_are_scored_as_one_by_one():
    rng = np.random.default_rng(0)
    y, groups, weight = rng.standard_normal(900), rng.integers(0, 100, 900), rng.random(900)
    for sample_weight in (None, weight):
        means = [
            np.average(np.abs(y[groups == g]), weights=None if sample_weight is None else weight[groups == g])
            for g in np.unique(groups)
        ]
        score = stoic.worst_group_score(y, np.zeros(900), groups=groups, sample_weight=sample_weight)
        assert score == pytest.approx(-max(means))


@pytest.mark.parametrize("name", ["y_true", "y_pred", "groups", "sample_weight"])
def test_masks_are_refused_by_name(name):
    given = {"y_true": [1.0, 2.0], "y_pred": [1.0, 2.0], "groups": [0, 1], "sample_weight": [1.0, 1.0]}
    given[name] = np.ma.array(given[name], mask=[False, True])
    with pytest.raises(stoic.InvalidProblem, match=f"{name}.* masked"):
        stoic.worst_group_score(given.pop("y_true"), given.pop("y_pred"), **given)


def test_weights_that_are_none_are_refused():
    for weight, said in (([0.0, 1.0], "sample_weight of zero"), ([-1.0, 1.0], "negative"), ([1.0], "entries")):
        with pytest.raises(stoic.InvalidProblem, match=said):
            stoic.worst_group_score([1.0, 2.0], [1.0, 2.0], groups=[0, 1], sample_weight=weight)


def test_absolute_errors_are_those_of_the_differences():
    assert worst_group_score([3.0, -1.0], [1.0, -2.0], groups=[0, 1]) == -2.0


@pytest.mark.parametrize("delta", [None, 0.5])
def test_weights_of_rows_count_in_proportion(delta):
    y, weight = np.array([1.0, 1.0, 9.0, 9.0] * 8), np.array([1.0, 3.0, 0.0, 0.0] * 8)
    score = worst_group_score(y, np.zeros(32), groups=np.zeros(32), sample_weight=5.0 * weight, delta=delta)
    if delta is None:
        assert score == -1.0
    else:
        in_blocks = robust_score(y * weight / weight.mean(), np.zeros(32), delta=delta)
        assert score == pytest.approx(in_blocks)


def test_a_block_has_two_rows_at_least():
    order = np.random.default_rng(0).permutation(5)
    y = np.arange(5.0)
    blocks = [y[order[:3]].mean(), y[order[3:]].mean()]
    assert robust_score(y, np.zeros(5), delta=1e-9) == pytest.approx(-np.mean(blocks))
    assert robust_score([7.0], [0.0]) == -7.0


def test_a_robust_score_is_wrong_once_in_twenty_unless_told_otherwise():
    y = RNG.exponential(size=500)
    assert robust_score(y, np.zeros(500)) == robust_score(y, np.zeros(500), delta=0.05)
    assert robust_score(y, np.zeros(500)) != robust_score(y, np.zeros(500), delta=0.1)


@pytest.mark.parametrize("how", [{"y_pred": np.zeros(3)}, {"sample_weight": np.ones(3)}])
def test_arrays_of_different_lengths_are_refused(how):
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples|has 3 entries, but X has 4 rows"):
        robust_score(**{"y_true": np.zeros(4), "y_pred": np.zeros(4), **how})


def test_r2_of_the_worst_group_has_the_units_of_all_targets():
    y, prediction = [[0.0], [0.2], [0.4], [0.2]], [0.0, 0.2, 0.3, 0.2]  # a column of targets, in small units
    for weight in (None, np.ones(4)):
        assert worst_group_r2(y, prediction, ["a", "a", "b", "b"], weight) == pytest.approx(0.75)


def test_scorers_are_alike_by_their_settings_and_show_no_more():
    with sklearn.config_context(enable_metadata_routing=True):
        asking = GroupScorer(groups="region").set_score_request(groups="protected")
    assert asking == GroupScorer(groups="region")
    assert repr(asking) == "GroupScorer(error='absolute', delta=None, groups='region')"
    with pytest.raises(TypeError):
        GroupScorer("absolute", None, None, {"groups": True})
