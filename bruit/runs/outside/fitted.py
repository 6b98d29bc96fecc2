"""A learned model as an estimator of scikit-learn that is fitted already: for pipelines, scorers
and plots that ask for one. `coef_` and `intercept_` are of the prepared rows (`Model.prepared`),
whose inputs are `prepared_names_`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from bruit.arrays import Array
from bruit.errors import ConfigError

if TYPE_CHECKING:
    from bruit.runs.model import Model


class FittedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Of boosted models, whose stumps scikit-learn has no part for; the model is its only
    parameter."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> Any:
        raise ConfigError(
            "this estimator was learned by peers and is not fitted again;"
            " make a new run, or use the estimators of bruit.sklearn"
        )

    @property
    def coef_(self) -> Array:
        return self.model.coefficients

    @property
    def intercept_(self) -> Array:
        return self.model.intercept

    @property
    def n_features_in_(self) -> int:
        return 0 if self.model.recipe is None else len(self.model.recipe.columns)

    @property
    def feature_names_in_(self) -> Any:
        return np.array([] if self.model.recipe is None else self.model.recipe.names, dtype=object)

    @property
    def prepared_names_(self) -> Any:
        return np.array([] if self.model.recipe is None else self.model.recipe.inputs, dtype=object)

    def predict(self, X: Any) -> Any:
        return self.model.predict(X)

    @property
    def classes_(self) -> Any:
        return self.model.labels()

    def decision_function(self, X: Any) -> Array:
        scores = self.model.scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Array:
        return self.model.predict_proba(X)
