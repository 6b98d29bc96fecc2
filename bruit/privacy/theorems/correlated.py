"""Gossip gradient descent under correlated noise, accounted as if every message were published
(gossip:COR-1).

    y_i(t) = x_i - rate * (clipped answer + eta_i + sum_k taps_k w_i(t-k)),   w_i = own noise + noise that cancels
    m(u -> V) = max over j < cycle of the sum of |[(I + B B^T x (own^2 I + pair^2 L))^-1]_u|_st,  s, t = j modulo cycle

L the Laplacian of the peers outside of V, by parts of edges where these are chosen by degree
(gossip:COR-2), B the Toeplitz matrix of the taps, in units of the noise of
a release. Given all messages of earlier rounds every model is known, so that only u's own answers
differ, by at most twice the clip each: Gaussian noise of a covariance that is known, with shifts
chosen as one goes (gossip:DP-5). Without taps rounds are independent: m = rounds / cycle times the
view of GOPA. Everybody may be given all messages; V knows its own noise and what it shares.
Hypotheses: a public start; clipped answers; linear mixing by public weights; no link fails; with
turns, records that are replaced in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array
from bruit.domains import counts
from bruit.errors import PrivacyError
from bruit.privacy.events import Mask
from bruit.privacy.exact import CorrelatedNoise
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem
from bruit.privacy.theorems.gopa import CLOSED

ADVICE = (
    "a denser graph of shared noise, or masked-sgd: masks between everybody leave the noise of a"
    " trusted curator",
)


@dataclass(frozen=True)
class PublishedMessages(Theorem):
    """`noise` is what is drawn beside that of the release; `mixing` exchanges follow each answer."""

    noise: CorrelatedNoise
    mixing: int = 1
    title: ClassVar[str] = "correlated noise, all messages published"
    spec: ClassVar[str] = "gossip:COR-1"
    about: tuple[str, ...] = field(default=("decor", "mafalda"), kw_only=True)

    def __post_init__(self) -> None:
        counts(self, "mixing", error=PrivacyError)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        facts.noise_multiplier()
        if len(facts.faults.round):
            raise PrivacyError(
                "links failed, and correlated noise is accounted for where all exchanges took place"
            )
        if facts.steps % self.mixing:
            raise PrivacyError(
                f"{facts.steps} exchanges are no whole number of rounds of {self.mixing}"
            )
        self._check_lines(facts)
        self._check_graph(facts)
        found = [
            Hypothesis("one release a peer and round, each under all of its noise", True),
            Hypothesis(
                "the models peers start from are public, or charged to an earlier protocol",
                checked=True,
            ),
            Hypothesis("answers are clipped before the noise", checked=True),
            Hypothesis("messages are linear in answers and noise, by public weights", True),
        ]
        if self.noise.cycle > 1:
            self._check_turns(facts)
            found.append(
                Hypothesis("records take turns, and one that is replaced keeps its place", True)
            )
        shared = (CLOSED,) if self.noise.pair else ()
        return (*found, *shared, *STANDING)

    def _check_lines(self, facts: Facts) -> None:
        """At most one release a peer and round, at its beginning, and every noise in each."""
        ledger, data = facts.ledger, facts.data_lines()
        peers, clocks = ledger.column("peer"), ledger.column("clock")
        places = peers * (facts.steps + 1) + clocks
        if np.any(clocks[data] % self.mixing) or len(np.unique(places[data])) < data.sum():
            raise PrivacyError(
                "some peer released more than once a round, or in the middle of one; that is not"
                " this protocol"
            )
        kinds = np.array([isinstance(event, Mask) and event.sigma > 0 for event in ledger.events])
        masks = kinds[ledger.column("event")] if len(data) else data
        wanted = int(self.noise.own > 0) + int(self.noise.pair > 0)
        drawn = np.bincount(places[masks], minlength=facts.n * (facts.steps + 1))
        rounds = np.arange(0, facts.steps, self.mixing)
        each = (np.arange(facts.n)[:, None] * (facts.steps + 1) + rounds).ravel()
        if np.any(drawn[each] < wanted):
            lacking = int(each[np.argmax(drawn[each] < wanted)]) // (facts.steps + 1)
            raise PrivacyError(
                f"peer {lacking} has too few lines of noise beside its releases in the ledger; only"
                " the releases protect it"
            )

    def _check_graph(self, facts: Facts) -> None:
        if facts.fixed_graph() is not None:
            return
        if self.noise.pair and self.noise.by_degree:
            raise PrivacyError(
                "noise by degree is accounted for on one graph; use by_degree = false, or a graph"
                " that stays"
            )
        if self.noise.pair and not self.noise.fresh:
            raise PrivacyError(
                "noise between neighbors that comes back in later rounds is accounted for on one"
                " graph; use taps of one number, or a graph that stays"
            )

    def _check_turns(self, facts: Facts) -> None:
        if facts.level != "record" or facts.adjacency != "replace":
            raise PrivacyError(
                'turns of records need level = "record" and the adjacency "replace": with a'
                " record more or less all others would change their turn"
            )

    def rounding(self, facts: Facts) -> float:
        return facts.all_rounding()

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        from bruit.privacy.exact import correlated_losses, one_blas_thread

        rounds, graph = facts.steps // self.mixing, facts.fixed_graph()
        with one_blas_thread():
            if graph is not None or not self.noise.pair:
                return correlated_losses(facts.at(0), self.noise, rounds, observers)
            each = [
                correlated_losses(facts.at(t * self.mixing), self.noise, 1, observers)
                for t in range(rounds)
            ]
        cycle = self.noise.cycle
        turns = [np.sum(each[j::cycle], axis=0) for j in range(min(cycle, rounds))]
        return np.asarray(np.max(turns, axis=0)) if each else np.zeros(facts.n)

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        graph = facts.fixed_graph()
        if self.noise.pair and (graph is None or graph.group is None):
            return super().matrix(facts, progress)
        one = self.losses(facts, (0,))
        if self.noise.pair and graph is not None:
            m = np.stack([one[graph.translate(v)] for v in range(graph.n)], axis=1)
        else:
            m = np.full((facts.n, facts.n), one[1:].max(initial=0.0))
        np.fill_diagonal(m, np.nan)
        return m

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return ("computed as if all messages of all rounds were published",)

    def seen(self, facts: Facts, observers: tuple[int, ...]) -> str:
        rounds = facts.steps // self.mixing
        return f"all messages of {rounds} rounds, and the observers' own values and noises"

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return ADVICE

    def ends_known(self, facts: Facts) -> bool:
        return True
