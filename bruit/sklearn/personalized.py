"""Everyone's own model, pulled toward those of its neighbors: personalized learning as an estimator
(perso:PERSO-2)."""

from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.personal.neighborhood import per_peer
from bruit.algorithms.personal.personalized import Personalized
from bruit.arrays import Array
from bruit.graphs import Graph, GraphSequence
from bruit.personal.objective import Joint, confidences
from bruit.runs.result import Run
from bruit.sklearn.convergence import curvatures, warn_if_unfinished, zero_losses
from bruit.sklearn.estimator import PeerEstimator
from bruit.sklearn.holders import EstimatorError, Labels
from bruit.sklearn.predictors import PeerClassifier, PeerRegressor
from bruit.tasks import Logistic
from bruit.tasks.linear import LinearTask


class PersonalizedEstimator(PeerEstimator):
    """The parameters, of classifier and regressor alike.

    coupling: how strongly neighbors' models are pulled together. steps: units of time; a peer wakes
    once in each, on average. updates: how often a peer may read its rows. confidences: "sizes" (a
    peer's share of the rows of the largest, public), one number a peer in the order of `peers_`, or
    None for 1. smoothness: a bound on the curvature of the losses, by default that of `row_bound`.
    All other parameters: see the how-to.
    """

    def __init__(
        self,
        *,
        graph: Graph | str | None = None,
        n_peers: int = 8,
        coupling: float = 1.0,
        steps: int = 100,
        updates: int | None = None,
        confidences: Any = "sizes",
        smoothness: float | None = None,
        l2: float = 1e-3,
        fit_intercept: bool = True,
        row_bound: float | None = None,
        derivative_clip: float | None = None,
        epsilon: float | None = None,
        delta: float = 1e-6,
        sigma: float | None = None,
        clip: float | None = None,
        level: str = "user",
        unknown_peers: str = "error",
        random_state: Any = None,
    ) -> None:
        self.graph, self.n_peers, self.coupling, self.steps = graph, n_peers, coupling, steps
        self.updates, self.confidences, self.smoothness, self.l2 = (
            updates,
            confidences,
            smoothness,
            l2,
        )
        self.fit_intercept, self.row_bound, self.derivative_clip = (
            fit_intercept,
            row_bound,
            derivative_clip,
        )
        self.epsilon, self.delta, self.sigma, self.clip, self.level = (
            epsilon,
            delta,
            sigma,
            clip,
            level,
        )
        self.unknown_peers, self.random_state = unknown_peers, random_state

    def _algorithm(self, task: LinearTask) -> Algorithm[Any]:
        trust = self.confidences
        if isinstance(trust, str):
            if trust != "sizes":
                raise EstimatorError(
                    f"confidences is 'sizes', one number a peer, or None, found {trust!r}"
                )
            trust = confidences(task.records.sizes)
        elif trust is not None:
            trust = tuple(np.asarray(trust, np.float64).tolist())
        curved = (
            self._smoothness(task, "smoothness") if self.smoothness is None else self.smoothness
        )
        return Personalized(self.coupling, curved, trust, self.updates)

    def _shared(self, done: Run) -> Array:
        """The mean of all peers' models."""
        return np.asarray(done.estimates.mean(axis=0))

    def _warn_if_unfinished(self, task: LinearTask, done: Run) -> None:
        """By the joint objective (perso:PERSO-1), unless peers stopped reading before its minimum
        on purpose."""
        if self.updates is not None or not (
            isinstance(done.graph, Graph) and isinstance(done.algorithm, Personalized)
        ):
            return
        trust = per_peer("confidences", done.algorithm.confidences, task.peers, 1.0)
        joint = Joint(done.graph.weights, trust, self.coupling)
        ids = np.arange(task.peers)
        gradients = joint.gradient(done.estimates, task.gradient(ids, done.estimates))
        curved = joint.degrees[:, None] * (self.coupling + trust[:, None] * curvatures(task))
        warn_if_unfinished(
            gradients,
            curved,
            joint.degrees * trust * zero_losses(task),
            self.steps,
            "units of time",
        )

    def _compiled(self, task: LinearTask) -> bool:
        return isinstance(task, Logistic)

    def _check_graph(self, graph: Graph | GraphSequence, labels: Labels) -> None:
        if not isinstance(graph, Graph):
            raise EstimatorError(
                f"personal models have fixed neighbors, found the changing graph {graph.name}"
            )
        alone = np.flatnonzero(graph.degrees == 0)
        if len(alone):
            lonely = labels[alone].tolist()[0]
            raise EstimatorError(
                f"peer {lonely!r} has no neighbor in the graph {graph.name}, so it would never"
                " learn; give it one, or leave its rows out"
            )


class PersonalizedClassifier(PeerClassifier, PersonalizedEstimator):
    """A personal logistic or softmax model for every peer; `predict(X, peers=...)` uses the one of
    each row's peer."""


class PersonalizedRegressor(PeerRegressor, PersonalizedEstimator):
    """A personal ridge model for every peer; `predict(X, peers=...)` uses the one of each row's
    peer."""
