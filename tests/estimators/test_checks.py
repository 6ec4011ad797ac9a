"""scikit-learn's own checks, none of which is expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import stoic

MODELS = [
    stoic.GroupDRORegressor(),
    stoic.GroupDRORegressor("squared", penalty="none", standardize=False),
    stoic.GroupDRORegressor("absolute", penalty="elasticnet"),
    stoic.GroupDRORegressor("quantile", penalty="l1", standardize=True),
    stoic.GroupDROClassifier(),
    stoic.GroupDROClassifier(penalty="elasticnet", standardize=False),
]


@pytest.mark.filterwarnings("ignore::stoic.MissingGroupsWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(MODELS)
def test_a_model_is_as_scikit_learn_has_it(estimator, check):
    check(estimator)
