"""Masked consensus: gossip gradient descent with an account on any graph.

    x_i <- x_i - rate * g_i;   `mixing` times:  x_i <- W_ii x_i + sum_j W_ij (x_j + copy noise);   x_i <- x_i + mask

Every message copy carries fresh noise of tau, and after `mixing` exchanges the masked model, noise
omega, replaces the model: no un-masked copy is kept. Both are in units of the noise of a release
(times the rate). All of it is on a grid.
Learns: one model everywhere, with omega^2 and some percent for tau more variance a round.
Shows: noisy models to each neighbor; the account gives the masked models to everybody, last ones
included, so others' next gradients are fixed given the view, and rounds add up, adaptively.
Spec: gossip:MUF-X3, fp:FP-1. Local DP charges one unit a round; a stranger here loses a small part.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.exchange import Arithmetic, ExchangeFacts, exchange_of
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.arrays import Array
from bruit.domains import counts, nonnegative, positive
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.renoised import MaskedDescent


class State(NamedTuple):
    model: Array  # (n, d) the mixed model, masked where a round has ended
    spoken: Slots  # (copies, d) what is said to each neighbor next


class Public(NamedTuple):
    exchange: ExchangeFacts
    memory: float  # how often a rounding counts within a round


@dataclass(frozen=True)
class MaskedConsensus(Algorithm[State]):
    asks: ClassVar[str | None] = "gradients"
    rate: float = 0.1
    mixing: int = 1
    tau: float = 0.2
    omega: float = 0.2
    batch: int | None = None
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, "rate")
        nonnegative(self, "tau", "omega")
        counts(self, "mixing", "batch")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        rounds = max(1, -(-horizon // self.mixing))
        facts = exchange_of(graph, horizon, rounds, self.mixing)._replace(radices=())
        most = facts.noise + self.tau * horizon + self.omega * rounds
        heaviest = float(graph.self_weights().max(initial=0.0)) if isinstance(graph, Graph) else 1.0
        memory = min(float(self.mixing), 1 / (1 - heaviest) if heaviest < 1 else math.inf)
        return Public(facts._replace(data=float(rounds), noise=most), memory)

    def check_peers(self, graph: Graph | GraphSequence, steps: int) -> None:
        if steps % self.mixing:
            raise ConfigError(
                f"{steps} rounds end in the middle of the {self.mixing} exchanges of a gradient;"
                f" make steps a multiple of mixing = {self.mixing}"
            )

    def start(self, home: Home) -> State:
        return self._begun(home.beginning(), home)

    def resume(self, state: State, home: Home) -> State:
        """Nobody was to hear the last message, so it holds no gradient: now one is read, at the
        masked model."""
        if home.before % self.mixing:
            raise ConfigError(
                f"the earlier phase stopped after {home.before} rounds, in the middle of the"
                f" {self.mixing} exchanges of a gradient; stop after a multiple of {self.mixing}"
            )
        return self._begun(state.model, home)

    def _begun(self, begin: Array, home: Home) -> State:
        arithmetic = self._arithmetic(home)
        arithmetic.check_begun(begin)
        return self._stepped(home.snap(begin, arithmetic.grid), home, arithmetic)

    def _arithmetic(self, home: Home) -> Arithmetic:
        """A cell more than plain mixing: a message holds a mask and a gradient, both rounded."""
        return Arithmetic(home.public.exchange, home, self.rate, 1.0, 1.0)

    def _stepped(self, model: Array, home: Home, arithmetic: Arithmetic) -> State:
        """A gradient step at a public or masked model; none where nobody hears of it."""
        on = OnGrid(arithmetic.grid)
        step = home.gradient(model, ~home.last, self.batch, self.rate, on)
        return self._speak(model, model - step, home, arithmetic)

    def _speak(self, model: Array, said: Array, home: Home, arithmetic: Arithmetic) -> State:
        """Each copy with noise of its own; what is mixed next is what was said, without it."""
        form = arithmetic.form(home.public.memory, copies=True)
        level = np.where(home.last, 0.0, self._scale(arithmetic) * self.tau * home.sigma)
        noise = home.copy_noise(level, said.shape[1], form)
        kept = model if bool(home.last.all()) else said
        return State(kept, noise.replace(home.edges.expand(said).rows + noise.rows))

    def _scale(self, arithmetic: Arithmetic) -> float:
        """On a grid the form knows the rate; real numbers are told it."""
        return 1.0 if arithmetic.grid else self.rate

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.each(state.spoken)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        arithmetic = self._arithmetic(home)
        model = home.snap(inbox.mix(state.model), arithmetic.grid)
        if home.step[0] % self.mixing:
            return self._speak(model, model, home, arithmetic)
        form = arithmetic.form(home.public.memory)
        sigma = self._scale(arithmetic) * self.omega * home.sigma
        return self._stepped(home.mask(model, sigma, None, form), home, arithmetic)

    def estimate(self, state: State) -> Array:
        return state.model

    def guarantees(self) -> tuple[Theorem, ...]:
        return (MaskedDescent(self.mixing, self.tau, self.omega),)
