"""One model for all, carried from peer to peer by a token: walk SGD as an estimator (walk:RW-7)."""

from typing import Any

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.tokens.walk_sgd import WalkSGD
from bruit.arrays import Array
from bruit.graphs import Graph, GraphSequence
from bruit.runs.entrance import check_graph
from bruit.runs.result import Run
from bruit.runs.run import last_tokens
from bruit.sklearn.convergence import warn_if_unfinished_together
from bruit.sklearn.estimator import PeerEstimator
from bruit.sklearn.holders import EstimatorError, Labels
from bruit.sklearn.predictors import PeerClassifier, PeerRegressor
from bruit.tasks import Logistic
from bruit.tasks.linear import LinearTask


class WalkEstimator(PeerEstimator):
    """The parameters, of classifier and regressor alike.

    rate: the step, by default 1 / smoothness as `row_bound` declares it; it shrinks like (1 +
    hop)^-decay. steps: hops of the token. cap: how often a peer may contribute. l2 is 0 because the
    account of a walk needs it to be. The shared model is the last token, told to everybody, and the
    account says so. All other parameters: see the how-to.
    """

    def __init__(
        self,
        *,
        graph: Graph | str | None = None,
        n_peers: int = 8,
        rate: float | None = None,
        steps: int = 1000,
        cap: int | None = None,
        decay: float = 0.0,
        l2: float = 0.0,
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
        self.graph, self.n_peers, self.rate, self.steps, self.cap, self.decay = (
            graph,
            n_peers,
            rate,
            steps,
            cap,
            decay,
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
        rate = 1.0 / self._smoothness(task, "rate") if self.rate is None else self.rate
        return WalkSGD(rate=rate, cap=self.cap, decay=self.decay, published=True)

    def _shared(self, done: Run) -> Array:
        token: Array = last_tokens((done,))[0]
        return token

    def _warn_if_unfinished(self, task: LinearTask, done: Run) -> None:
        warn_if_unfinished_together(task, self._shared(done), self.steps, "hops")

    def _compiled(self, task: LinearTask) -> bool:
        return isinstance(task, Logistic) and self.level == "user"  # peers' noise is of one size

    def _check_graph(self, graph: Graph | GraphSequence, labels: Labels) -> None:
        if not isinstance(graph, Graph):
            raise EstimatorError(
                f"a token walks on a fixed graph, found the changing graph {graph.name}"
            )
        check_graph(graph)


class WalkClassifier(PeerClassifier, WalkEstimator):
    """One logistic or softmax model, learned by a walk; `peers=...` asks the token as that peer
    last held it."""


class WalkRegressor(PeerRegressor, WalkEstimator):
    """One ridge model, learned by a walk; `peers=...` asks the token as that peer last held it."""
