"""Estimators for scikit-learn whose `fit` is a decentralized, private run among peers that hold the
rows.

    PersonalizedClassifier().fit(X, y, peers=whose_row).predict(X, peers=whose_row)

Everything runs in one process: a simulation of what the peers would do, with the account they would
have.
"""

from bruit.sklearn.gossip import GossipClassifier, GossipRegressor
from bruit.sklearn.holders import EstimatorError
from bruit.sklearn.personalized import PersonalizedClassifier, PersonalizedRegressor
from bruit.sklearn.privacy import Privacy, PrivacyWarning
from bruit.sklearn.walk import WalkClassifier, WalkRegressor

__all__ = [
    "EstimatorError",
    "GossipClassifier",
    "GossipRegressor",
    "PersonalizedClassifier",
    "PersonalizedRegressor",
    "Privacy",
    "PrivacyWarning",
    "WalkClassifier",
    "WalkRegressor",
]
