"""One model for all by gossip SGD: step along the own gradient, mix with the neighbors
(gossip:DS-1)."""

from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.arrays import Array
from bruit.graphs import Graph, GraphSequence
from bruit.runs.entrance import check_graph
from bruit.runs.result import Run
from bruit.sklearn.convergence import warn_if_unfinished_together
from bruit.sklearn.estimator import PeerEstimator
from bruit.sklearn.holders import Labels
from bruit.sklearn.predictors import PeerClassifier, PeerRegressor
from bruit.tasks.linear import LinearTask


class GossipEstimator(PeerEstimator):
    """The parameters, of classifier and regressor alike.

    rate: the step, by default 1 / smoothness as `row_bound` declares it. steps: rounds. mixing:
    exchanges for each gradient. All other parameters: see the how-to.
    """

    def __init__(
        self,
        *,
        graph: Graph | GraphSequence | str | None = None,
        n_peers: int = 8,
        rate: float | None = None,
        steps: int = 200,
        mixing: int = 1,
        l2: float = 1e-3,
        fit_intercept: bool = True,
        row_bound: float | None = None,
        derivative_clip: float | None = None,
        epsilon: float | None = None,
        delta: float = 1e-6,
        sigma: float | None = None,
        clip: float | None = None,
        level: str = "user",
        sample_rate: float = 1.0,
        adjacency: str = "replace",
        divisor: float | None = None,
        unknown_peers: str = "error",
        random_state: Any = None,
    ) -> None:
        self.graph, self.n_peers, self.rate, self.steps, self.mixing = (
            graph,
            n_peers,
            rate,
            steps,
            mixing,
        )
        self.l2, self.fit_intercept = l2, fit_intercept
        self.row_bound, self.derivative_clip = row_bound, derivative_clip
        self.epsilon, self.delta, self.sigma, self.clip, self.level = (
            epsilon,
            delta,
            sigma,
            clip,
            level,
        )
        self.sample_rate, self.adjacency, self.divisor = sample_rate, adjacency, divisor
        self.unknown_peers, self.random_state = unknown_peers, random_state

    def _of_records(self) -> dict[str, Any]:
        return {
            "summed": True,
            "sample_rate": self.sample_rate,
            "adjacency": self.adjacency,
            "divisor": self.divisor,
        }

    def _algorithm(self, task: LinearTask) -> Algorithm[Any]:
        return GossipSGD(
            1.0 / self._smoothness(task, "rate") if self.rate is None else self.rate, self.mixing
        )

    def _shared(self, done: Run) -> Array:
        """The mean of all peers' models."""
        return np.asarray(done.estimates.mean(axis=0))

    def _warn_if_unfinished(self, task: LinearTask, done: Run) -> None:
        warn_if_unfinished_together(task, self._shared(done), self.steps, "rounds")

    def _compiled(self, task: LinearTask) -> bool:
        return False

    def _check_graph(self, graph: Graph | GraphSequence, labels: Labels) -> None:
        check_graph(graph)


class GossipClassifier(PeerClassifier, GossipEstimator):
    """One logistic or softmax model, learned by gossip; `peers=...` asks a peer's own copy, which
    is close to it."""


class GossipRegressor(PeerRegressor, GossipEstimator):
    """One ridge model, learned by gossip; `peers=...` asks a peer's own copy, which is close to
    it."""
