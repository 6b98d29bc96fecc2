"""Classifiers and regressors: what labels mean, and how scores become predictions."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from bruit.arrays import Array
from bruit.sklearn.estimator import PeerEstimator
from bruit.sklearn.holders import EstimatorError, Labels, Peers, refuse
from bruit.tasks import Logistic, Ridge, Softmax


class PeerClassifier(ClassifierMixin, PeerEstimator):  # type: ignore[misc]
    """Logistic regression for two classes, softmax regression for more; the set of classes is
    public."""

    def fit(self, X: ArrayLike, y: ArrayLike, peers: Peers = None, **unknown: Any) -> Self:
        """Learn from rows that peers hold: one label a row, a number of peers to deal them to, or
        None (`n_peers`)."""
        refuse(unknown)
        rows, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        count = len(self.classes_)
        if count < 2:
            raise EstimatorError(
                f"all labels are {self.classes_.tolist()[0]!r}: one class leaves nothing to learn"
            )
        names = tuple(str(name) for name in self.classes_.tolist())
        if count == 2:
            self._learn(rows, np.where(codes == 1, 1.0, -1.0), peers, Logistic, names)
        else:
            self._learn(rows, codes.astype(np.float64), peers, Softmax, names)
        self.coef_, self.intercept_ = self._parts(self._model)
        return self

    def decision_function(self, X: ArrayLike, peers: ArrayLike | None = None) -> Array:
        """Scores by the model of each row's peer, the shared one without `peers`: (r,) for two
        classes, else (r, c)."""
        scores = self._scores(X, peers)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: ArrayLike, peers: ArrayLike | None = None) -> Labels:
        """The class each row's peer would say; one label names the peer of all rows."""
        scores = self._scores(X, peers)
        found: Labels = self.classes_[
            (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(1)
        ]
        return found

    def predict_proba(self, X: ArrayLike, peers: ArrayLike | None = None) -> Array:
        """The probability of each class  # (r, c)."""
        scores = self._scores(X, peers)
        if scores.shape[1] > 1:
            return np.asarray(softmax(scores, axis=1))
        return np.column_stack((expit(-scores[:, 0]), expit(scores[:, 0])))

    def predict_log_proba(self, X: ArrayLike, peers: ArrayLike | None = None) -> Array:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X, peers)))

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None, peers: ArrayLike | None = None
    ) -> float:
        """The accuracy of `predict(X, peers)`."""
        return float(accuracy_score(y, self.predict(X, peers), sample_weight=sample_weight))


class PeerRegressor(RegressorMixin, PeerEstimator):  # type: ignore[misc]
    """Ridge regression; with `derivative_clip` the Huber loss, whose gradients are bounded."""

    def fit(self, X: ArrayLike, y: ArrayLike, peers: Peers = None, **unknown: Any) -> Self:
        """Learn from rows that peers hold: one label a row, a number of peers to deal them to, or
        None (`n_peers`)."""
        refuse(unknown)
        rows, targets = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
        )
        self._learn(rows, np.asarray(targets, np.float64), peers, Ridge)
        coef, intercept = self._parts(self._model)
        self.coef_, self.intercept_ = coef[0], float(intercept[0])
        return self

    def predict(self, X: ArrayLike, peers: ArrayLike | None = None) -> Array:
        """The number each row's peer would say; one label names the peer of all rows."""
        return self._scores(X, peers)[:, 0]

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None, peers: ArrayLike | None = None
    ) -> float:
        """R^2 of `predict(X, peers)`."""
        return float(r2_score(y, self.predict(X, peers), sample_weight=sample_weight))
