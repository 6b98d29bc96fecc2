"""Loss of re-noised gossip: every message copy carries a little fresh noise (gossip:MUF-X1).

    m(u -> V) <= e_u^T K^T (K K^T + R)^{-1} K e_u,   rows (W_TT^t)_{w,.} for each copy (t, w -> v), R = diag(tau_t^2)

with T = everybody but V: the observers are given all message noises not addressed to them, and
subtract what they said themselves. tau is the message noise in units of sigma. All tau > 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.domains import counts, nonnegative
from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.graphs.sequence import ListedGraphs
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem, one_release


@dataclass(frozen=True)
class RenoisedGossip(Theorem):
    """`taper(public)` gives tau_t, the noise of round t's messages in units of the release's sigma
    # (steps,)."""

    taper: Callable[[Any], Array]
    title: ClassVar[str] = "re-noised gossip"
    spec: ClassVar[str] = "gossip:MUF-X1"
    about: tuple[str, ...] = field(default=("renoised",), kw_only=True)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        once = one_release(facts)
        tau = self.taper(facts.public)[: facts.steps]
        if not facts.sigma > 0 or not np.all(tau > 0):
            raise PrivacyError(
                f"re-noised gossip needs noise in every message; found sigma = {facts.sigma:g} and "
                f"message noise"
                f" {tau.min(initial=np.inf):g} sigma; raise `tau` or use plain averaging"
            )
        own = Hypothesis(
            "one independent noise per message copy, as drawn by the algorithm", checked=True
        )
        return (once, own, *STANDING)

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        graph = facts.fixed_graph()
        if graph is None or graph.group is None:
            return super().matrix(facts, progress)
        one = self.losses(facts, (0,))
        m = np.stack([one[graph.translate(v)] for v in range(graph.n)], axis=1)
        np.fill_diagonal(m, np.nan)
        return m

    def rounding(self, facts: Facts) -> float:
        """A peer whose links are all down says nothing and draws nothing. Dead links give their
        weight to its state, so that a rounding may count in every round, and not `memory` times as
        the lines say."""
        if facts.fixed_graph() is not None:
            return facts.mixed_rounding(facts.steps * int(np.count_nonzero(facts.at(0).degrees)))
        spoken = sum(int(np.count_nonzero(facts.at(t).degrees)) for t in range(facts.steps))
        longer = max(1.0, facts.steps / facts.public.memory) if len(facts.faults.round) else 1.0
        return longer**2 * facts.mixed_rounding(spoken)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        from bruit.privacy.exact import noisy_rows_loss, one_blas_thread

        tau = self.taper(facts.public)[: facts.steps]
        others = np.setdiff1d(np.arange(facts.n), observers)
        losses = np.ones(facts.n)
        with one_blas_thread():
            losses[others] = noisy_rows_loss(*_heard_rows(facts, observers, others, tau))
        return losses


def _heard_rows(
    facts: Facts, observers: tuple[int, ...], others: Ints, tau: Array
) -> tuple[Array, Array]:
    """The rows heard by the observers, each once, and the noise of each  # (k, others), (k,).

    Row w of a product of matrices is pulled back from its own step, so that only as many columns as
    there are senders are multiplied; on one graph each step goes on from the last. What c observers
    hear of the same sender, each through its own noise, says as much as their mean: noise tau /
    sqrt(c).
    """
    fixed, place = facts.fixed_graph(), np.full(facts.n, -1)
    place[others] = np.arange(len(others))
    within: dict[int, Any] = {}

    def pulled(graph: Graph, columns: Array) -> Array:
        if id(graph) not in within:
            within[id(graph)] = graph.weights[others][:, others].T.tocsr()
        return np.asarray(within[id(graph)] @ columns)

    used = [facts.at(t) for t in range(facts.steps)] if fixed is None else [fixed] * facts.steps
    rows, noise = [np.zeros((0, len(others)))], [np.zeros(0)]
    columns = np.zeros((len(others), 0))
    for t, graph in enumerate(used):
        heard_senders = place[np.concatenate([graph.neighbors(v) for v in observers])]
        senders, copies = np.unique(heard_senders[heard_senders >= 0], return_counts=True)
        if t and fixed is not None:
            columns = pulled(graph, columns)
        else:
            columns = np.zeros((len(others), len(senders)))
            columns[senders, np.arange(len(senders))] = 1.0
            for earlier in reversed(used[:t]):
                columns = pulled(earlier, columns)
        rows.append(columns.T)
        noise.append(tau[t] / np.sqrt(copies))
    return np.concatenate(rows), np.concatenate(noise)


@dataclass(frozen=True)
class MaskedDescent(Theorem):
    """Descent with masked consensus, adaptive and on any graph: each round is re-noised gossip whose
    masked models are given to everybody besides (gossip:MUF-X3).

        m(u -> V) <= rounds * e_u^T K^T (K K^T + R)^{-1} K e_u

    K: the rows of every copy heard in a round (noise tau), then of all masked models (noise omega).
    Given these everybody's next gradient is fixed but u's, which moves by at most twice the clip:
    energies add. `mixing` exchanges follow each gradient; tau and omega in units of the release's
    noise. See bruit.privacy.exact.masked_rounds."""

    mixing: int
    tau: float
    omega: float
    title: ClassVar[str] = "gradient descent with masked consensus"
    spec: ClassVar[str] = "gossip:MUF-X3"
    about: tuple[str, ...] = field(default=("masked-consensus",), kw_only=True)

    def __post_init__(self) -> None:
        counts(self, "mixing", error=PrivacyError)
        nonnegative(self, "tau", "omega", error=PrivacyError)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        facts.noise_multiplier()
        if not (self.tau > 0 and self.omega > 0):
            raise PrivacyError(
                f"masked consensus needs noise in every message and in every mask, found tau ="
                f" {self.tau:g} and omega = {self.omega:g}; raise both above 0"
            )
        if facts.steps % self.mixing:
            raise PrivacyError(
                f"{facts.steps} exchanges are no whole number of rounds of {self.mixing}, so a"
                " model was not masked; make steps a multiple of mixing"
            )
        if len(facts.faults.round):
            raise PrivacyError(
                "links failed, and masked consensus is proven for exchanges that all took place"
            )
        if int(facts.releases().max(initial=0)) > self._rounds(facts):
            raise PrivacyError(
                "some peer released more than once a round; that is not this protocol"
            )
        if np.any(facts.ledger.column("clock")[facts.data_lines()] % self.mixing):
            raise PrivacyError(
                "some peer released in the middle of a round; that is not this protocol"
            )
        return (
            Hypothesis("one release a peer and round, before the round's first message", True),
            Hypothesis("the masked model replaced the model after every round", True),
            Hypothesis("one independent noise per message copy, no acceleration", True),
            Hypothesis(
                "the models peers start from are public, or charged to an earlier protocol",
                checked=True,
            ),
            Hypothesis("gradients are clipped before the noise", checked=True),
            *STANDING,
        )

    def _rounds(self, facts: Facts) -> int:
        return facts.steps // self.mixing

    def rounding(self, facts: Facts) -> float:
        """A noise on every copy of every message, and on every masked model."""
        spoken = sum(int(np.count_nonzero(facts.at(t).degrees)) for t in range(facts.steps))
        return facts.mixed_rounding(spoken + self._rounds(facts) * facts.n)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        from bruit.privacy.exact import MaskedRound, masked_losses, one_blas_thread

        rounds, fixed = self._rounds(facts), facts.fixed_graph()
        if rounds == 0:
            return np.zeros(facts.n)
        with one_blas_thread():
            if fixed is not None:
                one = MaskedRound(self.mixing, self.tau, self.omega)
                return rounds * masked_losses(fixed, [one], observers)
            each = [
                MaskedRound(self.mixing, self.tau, self.omega, first=k * self.mixing)
                for k in range(rounds)
            ]
            used = tuple(facts.at(t) for t in range(facts.steps))
            listed = ListedGraphs(graphs=used, n=facts.n, name="of this run")
            return masked_losses(listed, each, observers)

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        graph = facts.fixed_graph()
        if graph is None or graph.group is None:
            return super().matrix(facts, progress)
        one = self.losses(facts, (0,))
        m = np.stack([one[graph.translate(v)] for v in range(graph.n)], axis=1)
        np.fill_diagonal(m, np.nan)
        return m

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return ("computed as if all masked models were published after every round",)

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return ("more mixing and a larger mask (omega), on a graph that mixes fast",)

    def ends_known(self, facts: Facts) -> bool:
        return True
