"""Decentralized gradient descent as attackers see it: everything they hear is linear in the updates
of the others.

A round adds an update g_v + N_v (minus the rate times the gradient) to each model, then makes K
exchanges:

    message of exchange t     theta_t = x_t + [t mod K = 0] (g + N_(t/K))          x_0 = common start, known
    mixing                    x_(t+1) = W_t theta_t                                (gossip:REC-4, REC-9)
    accelerated, t mod K > 0  x_(t+1) = gamma W_t theta_t + (1 - gamma) theta_(t-1)

Split peers into attackers A and targets T. Attackers said theta_A themselves, so that only W_TT
carries the unknown:

    theta_T,t = (start and attackers' part, known) + S_t g_T + (noise),    S_t = W_TT S_(t-1) + [t mod K = 0] I

with K = 1: S_t = sum_(j <= t) W_TT^j. Attackers hear the rows of their neighbors N(A): these rows
of S_t are the knowledge matrix (gossip:REC-5), the messages minus their known part the observations
(gossip:REC-6). Hypotheses: public weights, a common start known to the attackers, updates that are
constant up to centered noise (Assumption 4.7). On a grid every message carries a dither besides
(fp:FP-1), known to who says it: noise of the exchange, not of the round.
Cost: O(exchanges * edges * d) for observations over d coordinates at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph

Start = Array | None
"""The model every peer starts from (d,), or one row a peer (n, d); None is zero."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownDescent:
    """What attackers know beforehand: the graph of every exchange, who they are, exchanges per
    gradient, acceleration.

    `own_known` = False: nobody kept what the attackers said, so their updates are unknowns like
    those of the others. `dither` is the deviation of what every message carries besides, in units
    of an update's noise.
    """

    graphs: tuple[Graph, ...]
    attackers: Ints
    mixing: int = 1
    gamma: float = 1.0
    own_known: bool = True
    dither: float = 0.0

    def __post_init__(self) -> None:
        if not self.graphs:
            raise ConfigError(
                "an attack on gradient descent needs at least one exchange of messages, found 0 "
                "steps"
            )
        n = self.graphs[0].n
        if not len(self.attackers):
            raise ConfigError("an attack needs at least one attacker; name one with seen_by")
        for attacker in self.attackers.tolist():
            if not 0 <= attacker < n:
                raise ConfigError(
                    f"attacker {attacker} is not in {self.graphs[0].name}, whose peers are "
                    f"0..{n - 1}"
                )
        if self.mixing < 1:
            raise ConfigError(
                f"a round has at least one exchange of messages, found mixing = {self.mixing}"
            )
        if self.own_known and len(self.attackers) == n:
            raise ConfigError("every peer is an attacker, so nobody is left to be attacked")

    @classmethod
    def on(
        cls,
        graph: Graph,
        attackers: int | Sequence[int] | Ints,
        exchanges: int,
        mixing: int = 1,
        gamma: float = 1.0,
        own_known: bool = True,
    ) -> KnownDescent:
        """The same graph in every exchange."""
        chosen = np.unique(np.atleast_1d(np.asarray(attackers, dtype=np.int64)))
        return cls(
            graphs=(graph,) * exchanges,
            attackers=chosen,
            mixing=mixing,
            gamma=gamma,
            own_known=own_known,
        )

    @property
    def n(self) -> int:
        return self.graphs[0].n

    @property
    def exchanges(self) -> int:
        return len(self.graphs)

    @property
    def rounds(self) -> int:
        """How many updates each peer has made."""
        return -(-self.exchanges // self.mixing)

    @cached_property
    def targets(self) -> Ints:
        """The peers whose updates are unknown: the columns of the knowledge matrix."""
        everyone = np.arange(self.n)
        return everyone[~np.isin(everyone, self.attackers)] if self.own_known else everyone

    def heard(self, t: int) -> Ints:
        """The peers outside the coalition that some attacker hears in exchange t, in increasing
        order."""
        around = np.concatenate(
            [self.graphs[t].neighbors(int(attacker)) for attacker in self.attackers]
        )
        return np.setdiff1d(around, self.attackers)

    def places(self, t: int) -> Ints:
        """Where the heard peers lie among the targets."""
        return np.searchsorted(self.targets, self.heard(t))

    @cached_property
    def fixed(self) -> bool:
        """Whether the graph is the same in every exchange."""
        return all(graph is self.graphs[0] for graph in self.graphs)

    @cached_property
    def _blocks(self) -> dict[int, csr_array]:
        return {id(graph): graph.weights[self.targets][:, self.targets] for graph in self.graphs}

    def gain(self, t: int) -> float:
        """What the mixing of exchange t is multiplied by: gamma inside a round, 1 after an
        update."""
        return self.gamma if t % self.mixing else 1.0

    def mix(self, t: int, now: Array, before: Array) -> Array:
        """What the targets hold after exchange t, as far as it comes from the targets."""
        mixed: Array = self._blocks[id(self.graphs[t])] @ now
        gain = self.gain(t)
        return mixed if gain == 1.0 else gain * mixed + (1.0 - gain) * before

    def evolve(self, start: Array, force: Callable[[int], Array | None]) -> Iterator[Array]:
        """theta_t = x_t + force(t) for t = 0, 1, ...: the targets' messages from any start and any
        additions."""
        now, before = start, start
        for t in range(self.exchanges):
            added = force(t)
            now = now if added is None else now + added
            yield now
            if t + 1 < self.exchanges:
                now, before = self.mix(t, now, before), now

    def inflow(self, t: int, own: Array | None) -> Array | None:
        """What the attackers' messages of the exchange before add to the targets' models: gain *
        W_TA theta_A."""
        if t == 0 or own is None or not self.own_known:
            return None
        across = self.graphs[t - 1].weights[self.targets][:, self.attackers]
        flowed: Array = self.gain(t - 1) * (across @ own[t - 1])
        return flowed


def half_steps(
    descent: KnownDescent,
    updates: Array,
    noise: Array | None = None,
    own: Array | None = None,
    start: Start = None,
) -> Array:
    """The targets' messages of every exchange in closed form (gossip:REC-4, with its theta_0 term).

    updates (targets, d); noise (rounds, targets, d); own: what the attackers said (exchanges,
    attackers, d).
    """
    if updates.ndim != 2 or len(updates) != len(descent.targets):
        raise ConfigError(
            f"updates are {updates.shape}; give one row for each of the {len(descent.targets)} "
            f"targets"
        )
    _check_own(descent, own, updates.shape[1])

    def force(t: int) -> Array | None:
        inflow = descent.inflow(t, own)
        if t % descent.mixing:
            return inflow
        update = updates if noise is None else updates + noise[t // descent.mixing]
        return update if inflow is None else update + inflow

    return np.stack(list(descent.evolve(_start_rows(descent, start, updates.shape[1]), force)))


def knowledge_matrix(descent: KnownDescent) -> Array:
    """Rows of S_t for the peers heard in exchange t = 0, 1, ..., one column a target (gossip:REC-5,
    REC-9)."""
    size = len(descent.targets)
    unit = np.eye(size)
    sums = descent.evolve(np.zeros((size, size)), lambda t: None if t % descent.mixing else unit)
    return np.concatenate(
        [matrix[descent.places(t)] for t, matrix in enumerate(sums)]
    )  # (m, targets)


def round_blocks(descent: KnownDescent) -> Array:
    """How each observation depends on the updates of each round (gossip:REC-9); their sum is the
    knowledge matrix.

    For one graph and no acceleration, the message of exchange t = K j + k depends on round s <= j
    by the rows of W_TT^(K (j - s) + k).
    """
    places = [descent.places(t) for t in range(descent.exchanges)]
    blocks = np.zeros((sum(map(len, places)), descent.rounds, len(descent.targets)))
    ends = np.cumsum([0, *map(len, places)])
    pulses = _pulses(descent, 0) if descent.fixed else []
    for s in range(descent.rounds):
        first = s * descent.mixing
        # On one graph a later update travels as the first one did.
        rows = pulses if descent.fixed else _pulses(descent, first)
        for t in range(first, descent.exchanges):
            blocks[ends[t] : ends[t + 1], s] = rows[t - first]
    return blocks  # (m, rounds, targets)


def _pulses(descent: KnownDescent, first: int) -> list[Array]:
    """What is heard in exchanges first, first + 1, ... of unit updates (or dithers) made in
    exchange `first` only."""
    size = len(descent.targets)
    unit = np.eye(size)
    states = descent.evolve(np.zeros((size, size)), lambda t: unit if t == first else None)
    return [state[descent.places(t)] for t, state in enumerate(states) if t >= first]


def covariance(descent: KnownDescent) -> Array:
    """Covariance of the observations when every update carries centered noise of variance 1
    (gossip:REC-7).

        Sigma_((t,w),(t',w')) = sum over rounds s of <block of (t, w), block of (t', w')>

    which for one symmetric W and K = 1 is sum_(l <= min(t, t')) (W_TT^(t + t' - 2 l))_(w, w').
    Dithers add the same sum over exchanges s, times their variance.
    """
    blocks = round_blocks(descent)
    flat = blocks.reshape(len(blocks), -1)
    product: Array = flat @ flat.T
    ends = np.cumsum([0, *(len(descent.places(t)) for t in range(descent.exchanges))])
    for s in range(descent.exchanges if descent.dither else 0):
        pulse = np.concatenate(_pulses(descent, s))
        product[ends[s] :, ends[s] :] += descent.dither**2 * (pulse @ pulse.T)
    return product  # (m, m)


def observations(
    descent: KnownDescent, messages: Sequence[Array], own: Array | None = None, start: Start = None
) -> Array:
    """What attackers heard minus what they know already: their own part and the start
    (gossip:REC-6).

    messages[t]: one row for each peer of `descent.heard(t)`; own: (exchanges, attackers, d).
    """
    if len(messages) != descent.exchanges:
        raise ConfigError(
            f"messages of {len(messages)} exchanges were given, the attack speaks of "
            f"{descent.exchanges}"
        )
    width = int(messages[0].shape[1])
    for t, rows in enumerate(messages):
        if rows.shape != (len(descent.heard(t)), width):
            raise ConfigError(
                f"the messages of exchange {t} are {rows.shape}; "
                f"the attackers hear {len(descent.heard(t))} peers of {width} numbers each"
            )
    _check_own(descent, own, width)
    known = descent.evolve(_start_rows(descent, start, width), lambda t: descent.inflow(t, own))
    return np.concatenate(
        [
            rows - part[descent.places(t)]
            for t, (rows, part) in enumerate(zip(messages, known, strict=True))
        ]
    )  # (m, d)


def knowledge_modulo(descent: KnownDescent, prime: int) -> Ints:
    """The knowledge matrix in exact arithmetic modulo a prime below 2^24: weights are rational, so
    is gamma."""
    size = len(descent.targets)
    blocks = {id(graph): _residues(graph, descent.targets, prime) for graph in descent.graphs}
    share = Fraction(descent.gamma)
    gamma = share.numerator * pow(share.denominator, -1, prime) % prime
    now, before = np.zeros((size, size), dtype=np.int64), np.zeros((size, size), dtype=np.int64)
    rows = []
    for t in range(descent.exchanges):
        if t % descent.mixing == 0:
            now = (now + np.eye(size, dtype=np.int64)) % prime
        rows.append(now[descent.places(t)])
        mixed = np.asarray(blocks[id(descent.graphs[t])] @ now) % prime
        if t % descent.mixing and descent.gamma != 1.0:
            mixed = (gamma * mixed + (1 - gamma) * before) % prime
        now, before = mixed, now
    return np.concatenate(rows)  # (m, targets)


def _residues(graph: Graph, targets: Ints, prime: int) -> csr_array:
    weights = graph.weights
    whole = csr_array((graph.residues(prime), weights.indices, weights.indptr), shape=weights.shape)
    part: csr_array = whole[targets][:, targets]
    return part


def _start_rows(descent: KnownDescent, start: Start, width: int) -> Array:
    if start is None:
        return np.zeros((len(descent.targets), width))
    given = np.asarray(start, dtype=np.float64)
    if given.shape == (width,):
        return np.tile(given, (len(descent.targets), 1))
    if given.shape == (descent.n, width):
        return given[descent.targets]
    raise ConfigError(
        f"the start is {given.shape}; give one model of {width} numbers, or one for each of "
        f"{descent.n} peers"
    )


def _check_own(descent: KnownDescent, own: Array | None, width: int) -> None:
    wanted = (descent.exchanges, len(descent.attackers), width)
    if descent.own_known and own is None:
        raise ConfigError(
            "what the attackers said is missing; give own, or say own_known=False to make their"
            " updates unknowns too"
        )
    if own is not None and own.shape != wanted:
        raise ConfigError(
            f"the attackers' own messages are {own.shape}; give {wanted}: exchange, attacker, "
            f"coordinate"
        )
