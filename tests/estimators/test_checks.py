"""scikit-learn's own checks, none of which is expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import stoic

DEFAULTS = [stoic.GroupDRORegressor(), stoic.GroupDROClassifier()]
OTHERS = [
    stoic.GroupDRORegressor("squared", penalty="none", standardize=False),
    stoic.GroupDRORegressor("absolute", penalty="elasticnet"),
    stoic.GroupDRORegressor("quantile", penalty="l1", standardize=True),
    stoic.GroupDROClassifier(penalty="elasticnet", standardize=False),
]


pytestmark = [
    pytest.mark.filterwarnings("ignore::stoic.MissingGroupsWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@parametrize_with_checks(DEFAULTS)
def test_a_model_is_as_scikit_learn_has_it(estimator, check):
    check(estimator)


@pytest.mark.sampled(4)
@parametrize_with_checks(OTHERS)
def test_a_model_of_other_settings_is_as_scikit_learn_has_it(estimator, check):
    check(estimator)
