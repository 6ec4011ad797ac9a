"""GroupDROClassifier: two classes and more, beside scikit-learn's logistic regression."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import stoic
from stoic import GroupDROClassifier

N, D = 600, 4


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((N, D)), np.arange(N) % 3
    scores = X @ rng.standard_normal((D, 3)) + (1 + groups)[:, None] * rng.gumbel(size=(N, 3))
    return X, np.array(["one", "three", "two"])[scores.argmax(axis=1)], groups


@pytest.mark.filterwarnings("ignore::stoic.MissingGroupsWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_group_is_logistic_regression(data, n_classes):
    X, y, _ = data
    y = y if n_classes == 3 else y == "one"
    ours = GroupDROClassifier(alpha=0.01, standardize=False).fit(X, y)
    theirs = LogisticRegression(C=1 / (0.01 * N), tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_colder_is_kinder_to_the_worst_group(data, n_classes):
    X, y, groups = data
    y = y if n_classes == 3 else y == "one"
    models = [
        GroupDROClassifier(protect="loss", temperature=t).fit(X, y, groups=groups) for t in (0.0, 1.0, np.inf)
    ]
    worst = [model.group_losses_.max() for model in models]
    assert worst == sorted(worst)
    assert worst[0] < worst[2]
    np.testing.assert_allclose(models[2].group_weights_, 1 / 3)


@pytest.mark.parametrize("penalty", ["none", "l1", "elasticnet"])
def test_penalties_are_those_of_minimize(data, penalty):
    X, y, groups = data
    model = GroupDROClassifier(penalty=penalty, alpha=0.05, standardize=False).fit(X, y, groups=groups)
    problem = model._certifier.problem
    W = np.vstack([model.coef_.T, model.intercept_])
    assert problem.objective(W.ravel()) == pytest.approx(problem.objective(model._certifier.w), rel=1e-9)
    if penalty == "l1":
        assert np.count_nonzero(model.coef_) < model.coef_.size


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
@pytest.mark.slow
def test_two_classes_may_be_drawn(data):
    X, y, groups = data
    by_loss = {"protect": "loss", "temperature": 4.0, "random_state": 0}
    exact = GroupDROClassifier(**by_loss).fit(X, y == "one", groups=groups)
    drawn = GroupDROClassifier(method="rrosc-tracked", **by_loss).fit(X, y == "one", groups=groups)
    np.testing.assert_allclose(drawn.predict_proba(X), exact.predict_proba(X), atol=0.02)


@pytest.mark.filterwarnings("ignore:the fit did not converge")  # draws, and no leave to go on from them
@pytest.mark.slow
def test_many_classes_may_be_drawn_too(data):
    X, y, groups = data
    exact = GroupDROClassifier().fit(X, y, groups=groups)
    drawn = GroupDROClassifier(method="scsc", budget=15_000, random_state=0).fit(X, y, groups=groups)
    np.testing.assert_allclose(drawn.predict_proba(X), exact.predict_proba(X), atol=0.1)


def test_a_warm_start_goes_on_from_the_last_fit(data):
    X, y, groups = data
    model = GroupDROClassifier(temperature=np.inf, warm_start=True).fit(X, y, groups=groups)
    first = model.n_iter_
    assert model.fit(X, y, groups=groups).n_iter_ < first


def test_early_stopping_watches_rows_held_out(data):
    X, y, groups = data
    model = GroupDROClassifier(early_stopping=True, random_state=0).fit(X, y, groups=groups)
    assert any("validation_loss" in record for record in model.history_)


def test_one_class_is_refused(data):
    X, _, groups = data
    with pytest.raises(stoic.InvalidProblem, match=r"one class, 1\.0;"):
        GroupDROClassifier().fit(X, np.ones(N), groups=groups)
