"""Weights of classes: those of rows, times what their classes count."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import stoic
from stoic import GroupDROClassifier, load_model, save_model
from stoic.estimators.class_weights import check_class_weight, with_class_weights

N, D = 600, 3
RNG = np.random.default_rng(0)
X, GROUPS = RNG.standard_normal((N, D)), np.arange(N) % 3
SCORES = X @ RNG.standard_normal((D, 3)) + [2.0, 0.0, 0.0] + RNG.gumbel(size=(N, 3))
CLASSES = {2: np.where(SCORES[:, 0] > SCORES[:, 1], "often", "rare"), 3: SCORES.argmax(axis=1)}


@pytest.mark.filterwarnings("ignore::stoic.MissingGroupsWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_balanced", [True, False], ids=["balanced", "mapping"])
def test_one_group_is_logistic_regression_with_these_weights(n_classes, is_balanced):
    y = CLASSES[n_classes]
    names = np.unique(y).tolist()
    class_weight = "balanced" if is_balanced else {names[0]: 0.5, names[1]: 4.0}
    rows = RNG.uniform(0.5, 2.0, N)
    ours = GroupDROClassifier(penalty="none", standardize=False, class_weight=class_weight)
    ours.fit(X, y, sample_weight=None if is_balanced else rows)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000, class_weight=class_weight)
    theirs.fit(X, y, sample_weight=None if is_balanced else rows)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("protect", ["loss", "regret"])
def test_weights_of_classes_are_weights_of_their_rows(protect):
    y = CLASSES[2]
    settings = {"protect": protect, "random_state": 0}
    weighted = GroupDROClassifier(class_weight={"rare": 3.0}, **settings).fit(X, y, groups=GROUPS)
    rows = np.where(y == "rare", 3.0, 1.0)
    same = GroupDROClassifier(**settings).fit(X, y, groups=GROUPS, sample_weight=rows)
    np.testing.assert_allclose(weighted.coef_, same.coef_)


def test_balanced_classes_have_the_same_weight_with_those_of_the_rows():
    rows = RNG.uniform(0.5, 2.0, N)
    y = CLASSES[3]
    balanced = GroupDROClassifier(class_weight="balanced").fit(X, y, groups=GROUPS, sample_weight=rows)
    totals = np.bincount(y, rows)
    same = GroupDROClassifier().fit(X, y, groups=GROUPS, sample_weight=rows * (totals.mean() / totals)[y])
    np.testing.assert_allclose(balanced.coef_, same.coef_, atol=1e-9)


def test_a_rare_class_of_a_real_table_is_found_more_often():
    table, y = load_breast_cancer(return_X_y=True)
    y = np.where(y == 0, "malignant", "benign")
    groups = table[:, 1] > np.median(table[:, 1])
    plain = GroupDROClassifier().fit(table, y, groups=groups)
    heavy = GroupDROClassifier(class_weight={"malignant": 20.0}).fit(table, y, groups=groups)
    found = [(model.predict(table) == y)[y == "malignant"].mean() for model in (plain, heavy)]
    assert found[1] > found[0]


def test_a_fold_may_lack_a_class_that_has_a_weight():
    model = GroupDROClassifier(class_weight={"often": 1.0, "rare": 2.0, "never": 5.0})
    model.fit(X, CLASSES[2], groups=GROUPS)
    assert model.classes_.tolist() == ["often", "rare"]


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("even", "class_weight='even' is not one of None, 'balanced'"),
        ({"rare": 0.0}, r"class_weight\['rare'\]=0.0 is not a number in"),
        ({"rare": np.nan}, r"class_weight\['rare'\]=nan is not a number in"),
        ({"rare": 1.5e9}, r"class_weight\['rare'\]=1500000000.0 is not a number in"),
        ({"often": 1.0, "seldom": 2.0}, "class_weight has the class 'seldom'"),
        ({"seldom": 2.0}, r"class_weight has the class 'seldom', which is not among \['often', 'rare'\]"),
    ],
)
def test_weights_that_cannot_be_meant_are_refused(class_weight, message):
    with pytest.raises(stoic.InvalidParameter, match=message):
        GroupDROClassifier(class_weight=class_weight).fit(X, CLASSES[2], groups=GROUPS)


def test_weights_may_differ_by_many_orders():
    check_class_weight({"rare": 9e8, "often": 1.5e-9})


def test_a_class_without_weighted_rows_takes_nothing_from_the_balance():
    classes, numbers = np.array(["a", "b", "c"]), np.array([0, 0, 1, 2])
    weight = with_class_weights("balanced", classes, numbers, np.array([0.25, 0.75, 0.5, 0.0]))
    np.testing.assert_allclose(weight, [0.1875, 0.5625, 0.75, 0.0])


def test_batches_take_weights_by_class():
    models = GroupDROClassifier(class_weight={"rare": 3.0}), GroupDROClassifier()
    for part in (slice(0, 300), slice(300, N)):
        y = CLASSES[2][part]
        how = {"classes": ["often", "rare"], "groups": GROUPS[part]}
        models[0].partial_fit(X[part], y, **how)
        models[1].partial_fit(X[part], y, sample_weight=np.where(y == "rare", 3.0, 1.0), **how)
    np.testing.assert_allclose(models[0].coef_, models[1].coef_)


def test_batches_cannot_be_balanced():
    with pytest.raises(stoic.InvalidParameter, match="needs all rows at once"):
        GroupDROClassifier(class_weight="balanced").partial_fit(X, CLASSES[2], classes=["often", "rare"])


def test_weights_of_classes_come_back_from_a_file(tmp_path):
    model = GroupDROClassifier(class_weight={0: 1.0, np.int64(1): 2.0, 2: 3.0}).fit(X, CLASSES[3], groups=GROUPS)
    save_model(model, tmp_path / "model.stoic")
    assert load_model(tmp_path / "model.stoic").class_weight == {0: 1.0, 1: 2.0, 2: 3.0}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logarithms_of_probabilities_stay_finite_far_out(n_classes):
    model = GroupDROClassifier().fit(X, CLASSES[n_classes], groups=GROUPS)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    far = model.predict_log_proba(1e4 * X)
    assert np.isfinite(far).all()
    assert far.min() < -1000.0
    assert (model.predict_proba(1e4 * X) == 0.0).any()
    np.testing.assert_allclose(logsumexp(far, axis=1), 0.0, atol=1e-9)
