"""What all estimators share: rows to peers, a run, models back, and predictions by peer.

    scores of a row x = W_p [x, 1],      W_p: the model of peer p, or the shared one

Rows longer than `row_bound` (the intercept's 1 included) are scaled down to it, in fit and in
predict alike. Nothing is centered or scaled otherwise: put a scaler with public constants in front.
A fit without noise chooses its step from the rows and warns when it did not converge; a private fit
reads nothing off the rows, not even for a warning.
"""

import secrets
import warnings
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from bruit.algorithms.algorithm import Algorithm
from bruit.arrays import Array
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms.clip import clip_rows
from bruit.runs.engines.bulk import Bulk
from bruit.runs.entrance import check_schedule
from bruit.runs.result import Run
from bruit.runs.run import run
from bruit.sklearn.convergence import measured_smoothness
from bruit.sklearn.holders import EstimatorError, Labels, Peers, hold, places_of, settle
from bruit.sklearn.noise import Wish
from bruit.sklearn.privacy import Privacy, PrivacyWarning
from bruit.tasks import Records
from bruit.tasks.data.public import Fact, listed
from bruit.tasks.linear import LinearTask
from bruit.trace import Trace


class PeerEstimator(BaseEstimator):  # type: ignore[misc]
    """Abstract: an algorithm's estimator says which algorithm, and what the shared model is."""

    graph: Graph | GraphSequence | str | None
    n_peers: int
    steps: Any
    l2: float
    fit_intercept: bool
    row_bound: float | None
    derivative_clip: float | None
    epsilon: float | None
    delta: float
    sigma: float | None
    clip: float | None
    level: str
    unknown_peers: str
    random_state: Any

    @abstractmethod
    def _algorithm(self, task: LinearTask) -> Algorithm[Any]:
        """The algorithm with this estimator's parameters."""

    @abstractmethod
    def _check_graph(self, graph: Graph | GraphSequence, labels: Labels) -> None:
        """Refuse graphs on which this algorithm would leave peers without a model."""

    @abstractmethod
    def _shared(self, done: Run) -> Array:
        """The model of rows whose peer is not named."""

    @abstractmethod
    def _warn_if_unfinished(self, task: LinearTask, done: Run) -> None:
        """Warn when a fit without noise is far from the minimum of its objective."""

    @abstractmethod
    def _compiled(self, task: LinearTask) -> bool:
        """Whether the algorithm has a compiled path for this task."""

    def _learn(
        self,
        X: Array,
        targets: Array,
        peers: Peers,
        kind: type[LinearTask],
        classes: tuple[str, ...] = (),
    ) -> Self:
        wish, seed = self._checked_wish(), _seed(self.random_state)
        if wish.private and self.random_state is not None:
            warnings.warn(
                f"random_state = {self.random_state!r} is known, so the noise of this private fit"
                " can be drawn again by whoever guesses the rows; leave it None on real data",
                PrivacyWarning,
                stacklevel=3,
            )
        graph, holders = settle(self.graph, hold(peers, len(X), self.n_peers, seed))
        self._check_graph(graph, holders.labels)
        records = replace(Records.of(self._rows(X), targets, holders.owners), classes=classes)
        if len(classes) == 2:  # more are listed by the task
            occur = Fact(f"the classes: {listed(classes)}", "private rows").describe()
            facts = [*cast(list[object], records.manifest["public"]), occur]
            records = replace(records, manifest={**records.manifest, "public": facts})
        if self.row_bound is not None:
            records = replace(records, row_bound=float(self.row_bound))
        task = kind(records, self.l2, self.derivative_clip)
        algorithm, engine = self._algorithm(task), Bulk(fused=self._compiled(task))
        check_schedule(algorithm, graph, self.steps)
        noise = wish.mechanism(
            task, partial(run, algorithm, graph, steps=self.steps, seed=seed, engine=engine)
        )
        done = run(
            algorithm,
            graph,
            task,
            privacy=noise,
            steps=self.steps,
            seed=seed,
            engine=engine,
            evaluate_every=0,
        )
        done.trace = _only_meetings(done.trace)
        wish.check_kept(done)
        shape = (task.outputs, records.columns)
        self._models = done.estimates.reshape(-1, *shape)
        self._model = self._shared(done).reshape(shape)
        self.run_, self.graph_, self.peers_ = done, graph, holders.labels
        self.privacy_ = Privacy(done, holders.labels, self.delta)
        self.n_iter_ = self.steps
        if not wish.private:
            self._warn_if_unfinished(task, done)
        self.peer_coef_, self.peer_intercept_ = self._parts(self._models)
        return self

    def _checked_wish(self) -> Wish:
        if self.unknown_peers not in ("error", "mean"):
            raise EstimatorError(
                f"unknown_peers is 'error' or 'mean', found {self.unknown_peers!r}"
            )
        if not isinstance(self.steps, Integral) or self.steps < 1:
            raise EstimatorError(f"steps is a whole number >= 1, found {self.steps!r}")
        wish = Wish(
            epsilon=self.epsilon,
            delta=self.delta,
            sigma=self.sigma,
            clip=self.clip,
            level=self.level,
            **self._of_records(),
        )
        wish.check()
        return wish

    def _of_records(self) -> dict[str, Any]:
        """What is asked of noise on single rows, by estimators that add up the gradients of rows."""
        return {}

    def _smoothness(self, task: LinearTask, instead: str) -> float:
        """A bound on the curvature of every peer's loss; a private fit must not read it off the
        rows."""
        known = task.constants()
        if self.epsilon is None and self.sigma is None:
            curved = measured_smoothness(task)
        elif known.source == "declared":
            curved = known.smoothness
        else:
            raise EstimatorError(
                f"a private fit does not choose its step from the rows: give {instead}, or"
                " row_bound, the largest norm of a row"
            )
        return curved if curved > 0 else 1.0

    def _rows(self, X: Array) -> Array:
        """Rows as the models see them: the intercept's 1 appended, cut to the declared norm  # (r,
        columns)."""
        rows = (
            np.column_stack((X, np.ones(len(X))))
            if self.fit_intercept
            else np.asarray(X, np.float64)
        )
        return rows if self.row_bound is None else clip_rows(rows, self.row_bound)

    def _parts(self, models: Array) -> tuple[Array, Array]:
        if self.fit_intercept:
            return models[..., :-1], models[..., -1]
        return models, np.zeros(models.shape[:-1])

    def _scores(self, X: ArrayLike, peers: ArrayLike | None) -> Array:
        check_is_fitted(self, "run_")
        rows = self._rows(validate_data(self, X, reset=False, dtype=np.float64))
        if peers is None:
            return np.asarray(rows @ self._model.T)
        places = places_of(self.peers_, peers, len(rows), self.unknown_peers)
        scores = np.empty((len(rows), self._model.shape[0]))
        for place in np.unique(places).tolist():
            here = places == place
            scores[here] = rows[here] @ (self._model if place < 0 else self._models[place]).T
        return scores  # (r, outputs)


def _only_meetings(trace: Trace) -> Trace:
    """The meetings themselves: a trace that could draw them again holds on to the rows."""
    return Trace(
        peers=trace.peers,
        steps=trace.steps,
        meetings=trace.meetings,
        messages=trace.messages,
        bytes=trace.bytes,
    )


def _seed(random_state: Any) -> int:
    """A seed nobody knows for None, else the given one: who knows the seed can take the noise
    away."""
    if random_state is None:
        return secrets.randbits(62)
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**62, dtype=np.int64))
