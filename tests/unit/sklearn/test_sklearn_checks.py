"""scikit-learn's own checks: shapes, dtypes, missing values, cloning, pickling, idempotence and
some hundred more.

None is expected to fail. Two are skipped by scikit-learn itself where pandas or the array API
switch are missing.
"""

from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from bruit.sklearn import (
    GossipClassifier,
    GossipRegressor,
    PersonalizedClassifier,
    PersonalizedRegressor,
    WalkClassifier,
    WalkRegressor,
)

pytestmark = pytest.mark.slow

ESTIMATORS = [
    PersonalizedClassifier(n_peers=3, steps=50),
    PersonalizedRegressor(n_peers=3, steps=50),
    GossipClassifier(n_peers=3),
    GossipRegressor(n_peers=3),
    WalkClassifier(n_peers=3, steps=300),
    WalkRegressor(n_peers=3, steps=300),
]
PRIVATE = [  # with so little noise that checks of accuracy mean something
    PersonalizedClassifier(n_peers=3, steps=50, sigma=1e-3, row_bound=4.0, level="record"),
    GossipRegressor(n_peers=3, steps=100, sigma=1e-3, clip=5.0, row_bound=5.0, derivative_clip=3.0),
    GossipClassifier(n_peers=3, sigma=1e-3, row_bound=4.0, level="record"),
]


@pytest.mark.filterwarnings(
    "ignore::bruit.sklearn.PrivacyWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.parametrize("estimator", [*ESTIMATORS, *PRIVATE], ids=repr)
def test_every_check_of_scikit_learn(estimator):
    failed, ran = [], 0
    for one, check in estimator_checks_generator(estimator):
        try:
            check(one)
            ran += 1
        except SkipTest:
            continue
        except Exception as error:
            failed.append(f"{check.func.__name__}: {error!r}")
    assert failed == []
    assert ran >= 45
