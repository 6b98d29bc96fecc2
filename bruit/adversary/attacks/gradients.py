"""Other peers' gradients from the messages of decentralized gradient descent (gossip:REC-7).

    observations Y = K g + noise,  noise of covariance sigma^2 Sigma           (bruit.adversary.attacks.descent)

    gls: g = (K^T Sigma^-1 K)^-1 K^T Sigma^-1 Y,  variance sigma^2 (K^T Sigma^-1 K)^-1
    ols: g = K^+ Y,                               variance sigma^2 K^+ Sigma K^+^T

Where K has not full rank the answer is the one of least norm. A peer is *estimable* when its unit
vector lies in the row space of K, decided modulo primes: it depends on the graph only, floating
point cannot decide it, and it is the set that gossip averaging with as many exchanges reveals
(gossip:REC-5). Who it is, is exact; how well it is estimated is `variance` (noise) and `resolution`
(double precision: 1 when peers are told apart).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from bruit.adversary.attacks.descent import (
    KnownDescent,
    Start,
    covariance,
    knowledge_matrix,
    knowledge_modulo,
    observations,
)
from bruit.adversary.attacks.dithers import Grid, grid_of
from bruit.adversary.attacks.own_words import own_messages
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.files import to_json
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.exact import PRIMES, Echelon, centered
from bruit.tasks.task import Task
from bruit.trace import Faults, View

if TYPE_CHECKING:
    from bruit.runs.result import Run

Method = Literal["ols", "gls"]

NOISELESS = 1e-12
"""Combinations of observations with less than this share of the largest variance count as nearly
exact."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Gradients:
    """One row a target; rows that are not estimable mix several peers and mean nothing alone.

    variance: of each coordinate when every released gradient carries noise of variance 1 (and messages their dithers);
    infinite when not estimable.
    resolution: diagonal of K^+ K in double precision, 1 when the peer is told apart from all others.
    residual: what the constant-update model leaves unexplained, ||Y - K g|| / ||Y||.
    """

    peers: Ints  # (k,)
    values: Array  # (k, d)
    estimable: Bools  # (k,)
    variance: Array  # (k,)
    resolution: Array  # (k,)
    residual: float
    method: Method

    def of(self, peer: int) -> Array:
        """The estimated gradient of one peer; refused when what was heard does not determine it."""
        place = np.flatnonzero(self.peers == peer)
        if not len(place):
            raise ConfigError(
                f"peer {peer} is no target of this attack; targets are {self.peers.tolist()}"
            )
        if not self.estimable[place[0]]:
            raise ConfigError(
                f"the gradient of peer {peer} is not determined by what was heard; "
                f"estimable are {self.peers[self.estimable].tolist()}"
            )
        row: Array = self.values[place[0]]
        return row


def estimate(
    descent: KnownDescent, heard: Array, rate: float = 1.0, method: Method = "ols"
) -> Gradients:
    """The targets' gradients from cleaned observations; rate 1 and a sign less give the updates
    themselves."""
    if method not in ("ols", "gls"):
        raise ConfigError(f"gradients are estimated by 'ols' or 'gls', found {method!r}")
    if not rate > 0:
        raise ConfigError(f"the learning rate of the descent must be positive, found {rate}")
    matrix, spread = knowledge_matrix(descent), covariance(descent)
    if method == "gls":
        whiten = _whitening(spread)
        matrix, seen, spread = whiten @ matrix, whiten @ heard, np.eye(len(spread))
    else:
        seen = heard
    updates: Array = np.linalg.lstsq(matrix, seen, rcond=None)[0].astype(np.float64)
    inverse = np.linalg.pinv(matrix, rcond=np.finfo(float).eps * max(matrix.shape))
    known = estimable(descent)
    variance = np.einsum("ij,jk,ik->i", inverse, spread, inverse)
    size = float(np.linalg.norm(seen))
    residual = float(np.linalg.norm(seen - matrix @ updates)) / size if size else 0.0
    return Gradients(
        peers=descent.targets,
        values=-updates / rate,
        estimable=known,
        variance=np.where(known, variance, np.inf),
        resolution=np.einsum("ij,ji->i", inverse, matrix),
        residual=residual,
        method=method,
    )


def estimable(descent: KnownDescent) -> Bools:
    """Which targets' updates follow from what is heard, in exact arithmetic modulo two primes
    (gossip:REC-5, REC-7)."""
    found = [_eliminated(knowledge_modulo(descent, prime), prime) for prime in PRIMES]
    rank = max(form.rank for form in found)
    # An unlucky prime can only lose rank: of two primes, the one that lost is not believed.
    agreed: Bools = np.all([form.exposed() for form in found if form.rank == rank], axis=0)
    return agreed


def _eliminated(residues: Ints, prime: int) -> Echelon:
    most = min(residues.shape)
    form = Echelon.empty(prime, residues.shape[1], most)
    form.insert(centered(residues.astype(np.float64), prime), most)
    return form


def from_view(
    view: View,
    graph: Graph | GraphSequence,
    *,
    rate: float,
    steps: int,
    own: Array | None = None,
    start: Start = None,
    mixing: int = 1,
    gamma: float = 1.0,
    faults: Faults | None = None,
    method: Method = "ols",
    grid: Grid | None = None,
) -> Gradients:
    """The gradients of all other peers, from what the observers of a gossip-SGD run received.

    own: what the observers sent (exchanges, observers, d), as `own_messages` finds it; without it
    their own updates are unknowns too, which needs a few more steps. start: the model all peers
    started from (zero by default). grid: where messages carry dithers or are sums of a butterfly
    (`grid_of`).
    """
    graphs = graphs_of(graph, steps, faults)
    dither = grid.dither / grid.noise if grid is not None else 0.0
    descent = KnownDescent(
        graphs=graphs,
        attackers=np.array(sorted(view.observers), dtype=np.int64),
        mixing=mixing,
        gamma=gamma,
        own_known=own is not None,
        dither=dither,
    )
    heard = _messages(view, descent)
    if grid is not None:
        heard = [rows / grid.terms(t) for t, rows in enumerate(heard)]
        own = (
            own
            if own is None
            else own / np.array([grid.terms(t) for t in range(steps)])[:, None, None]
        )
    return estimate(descent, observations(descent, heard, own, start), rate, method)


def from_run(
    run: Run,
    task: Task,
    seen_by: int | Iterable[int],
    *,
    method: Method = "ols",
    steps: int | None = None,
) -> Gradients:
    """The gradients of all other peers, from the view of attackers who took part in a run; `task`
    is the run's own.

    Of the task only the attackers' own records are read. `steps` uses the first exchanges only:
    gradients move as models do, so early messages are worth more; the first `mixing` exchanges hold
    the first gradients exactly.
    """
    algorithm = _descending(run, task)
    attackers = frozenset({seen_by} if isinstance(seen_by, int) else (int(v) for v in seen_by))
    for attacker in sorted(attackers):
        if not 0 <= attacker < run.n:
            raise ConfigError(
                f"attacker {attacker} is not in {run.graph.name}, whose peers are 0..{run.n - 1}"
            )
    used = run.steps if steps is None else steps
    if not 1 <= used <= run.steps:
        raise ConfigError(
            f"the attack uses between 1 and {run.steps} exchanges of this run, found steps = {used}"
        )
    view, graphs = run.view(set(attackers)), graphs_of(run.graph, run.steps, run.trace.faults)
    own = own_messages(run, task, view, graphs)[:used]
    early = [message for message in view.messages if message.clock < used]
    view = View(
        view.observers, early, [message for message in early if message.sender not in attackers]
    )
    return from_view(
        view,
        run.graph,
        rate=algorithm.rate,
        steps=used,
        own=own,
        start=task.start(),
        mixing=algorithm.mixing,
        gamma=algorithm.gamma,
        faults=run.trace.faults,
        method=method,
        grid=grid_of(run),
    )


def _descending(run: Run, task: Task) -> GossipSGD:
    """The algorithm of a run whose messages have a known linear form."""
    algorithm = run.algorithm
    if not isinstance(algorithm, GossipSGD):
        raise ConfigError(
            f"gradients are reconstructed from gossip-sgd, but this run is {algorithm.name()}"
        )
    if run.phase:
        raise ConfigError(
            f"this run is phase {run.phase} of a chain, so its peers did not start from a common"
            " model; attack the first phase"
        )
    if run.trace.missed:
        raise ConfigError(
            f"peers of this run went on without {run.trace.missed} messages, so what was heard has"
            " no known linear form; attack a run in which all messages came"
        )
    if to_json(run.task) != to_json(task.describe()):
        raise ConfigError(
            "the task given is not the one of this run: their data or preparation differ"
        )
    return algorithm


def graphs_of(
    graph: Graph | GraphSequence, steps: int, faults: Faults | None = None
) -> tuple[Graph, ...]:
    """The graph of every exchange, links that were down taken out."""
    used = [graph if isinstance(graph, Graph) else graph.at(t) for t in range(steps)]
    if faults is not None:
        for t in np.unique(faults.round[faults.round < steps]).tolist():
            used[t] = used[t].without_edges(*faults.in_round(t))
    return tuple(used)


def _messages(view: View, descent: KnownDescent) -> list[Array]:
    """What was heard from outside, by exchange and sender; anything missing or foreign is
    refused."""
    heard = {(message.clock, message.sender): message.row for message in view.foreign}
    late = max((clock for clock, _ in heard), default=-1)
    if late >= descent.exchanges:
        raise ConfigError(
            f"the view has a message of exchange {late}, but the attack was told of "
            f"{descent.exchanges} steps; give the steps of the run"
        )
    if not any(len(descent.heard(t)) for t in range(descent.exchanges)):
        raise ConfigError(
            f"attackers {descent.attackers.tolist()} have no neighbor outside the coalition, "
            "so they hear nobody"
        )
    width = {int(row.shape[-1]) for row in heard.values() if isinstance(row, np.ndarray)}
    rounds = []
    for t in range(descent.exchanges):
        rows = [_row(heard, t, int(w)) for w in descent.heard(t)]
        rounds.append(np.concatenate(rows) if rows else np.zeros((0, *width)))
    return rounds


def _row(heard: dict[tuple[int, int], Array], t: int, sender: int) -> Array:
    row = heard.get((t, sender))
    if row is None:
        raise ConfigError(
            f"the view holds no message of peer {sender} in exchange {t}; "
            "attack the run this view was taken from, with its own graph and steps"
        )
    if not isinstance(row, np.ndarray):
        raise ConfigError(
            f"the messages of this view are records ({type(row).__name__}), not models; "
            "gradients are reconstructed from gossip-sgd"
        )
    return row.reshape(1, -1)


def _whitening(spread: Array) -> Array:
    """A matrix V with V Sigma V^T = I; directions almost without noise are given a very small
    one."""
    values, vectors = np.linalg.eigh(spread)
    floor = NOISELESS * float(values[-1])
    scaled: Array = (vectors / np.sqrt(np.maximum(values, floor))).T
    return scaled
