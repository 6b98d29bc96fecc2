"""Four ways to a private mean, run for real in one process: what each costs, sends, hides, and how
it bears dropouts.

All keep (epsilon, delta) for values that move by at most B in L2, in the view of `colluders` of the
n peers and of whoever sums. Own noise is chosen for nobody leaving, so epsilon after dropouts is
higher than asked wherever the noise of those who left is missing: it is computed, not hoped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Words
from bruit.graphs import Graph, complete, from_edges, k_out
from bruit.privacy.theorems.gopa import thetas
from bruit.privacy.toolbox.gaussian import epsilon_of, mu_of
from bruit.randomness import Replay, Secure
from bruit.statistics.average.canceling.calibration import Noises, noises
from bruit.statistics.average.canceling.fixed_point import FixedPoint
from bruit.statistics.average.canceling.simulation import SimulatedAverage
from bruit.statistics.average.canceling.terms import Terms
from papers.baselines.canceling.board import Board
from papers.baselines.canceling.participant import Participant
from papers.baselines.canceling.picks import picked
from papers.baselines.canceling.rehearsal import BOARD, rehearse
from papers.baselines.canceling.secure_aggregation import Client, unmasked_sum
from papers.figures.sections import Section, section

EPSILON, DELTA, CLIP, MOVE, BITS = 1.0, 1e-6, 1.0, 2.0, 24
ZERO = np.zeros(1, np.int64)


@dataclass(frozen=True)
class Setting:
    """n peers with `width` numbers each; the first `colluders` collude, the last `leaving` drop
    out, k picks each."""

    peers: int = 100
    width: int = 1000
    colluders: int = 10
    leaving: int = 10
    k: int = 15

    @property
    def stay(self) -> range:
        return range(self.peers - self.leaving)

    @property
    def honest(self) -> range:
        return range(self.colluders, self.peers)

    def values(self) -> Array:
        rows = np.random.default_rng(1).normal(size=(self.peers, self.width))
        return np.asarray(CLIP * rows / np.linalg.norm(rows, axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One protocol: errors are standard deviations of a number of the mean; milliseconds of CPU;
    bytes sent."""

    name: str
    sees: str
    error: float
    epsilon: float
    user_ms: float
    sum_ms: float
    user_bytes: float
    error_after: float
    epsilon_after: float
    sum_ms_after: float


def comparison(setting: Setting) -> Section:
    """The table."""
    Secure().normal(
        "noise", ZERO, 0, 0, setting.width
    )  # loads what noise needs, on nobody's account
    sparse = k_out(setting.peers, setting.k, seed=1)
    rows = [
        curator(setting),
        secure_aggregation(setting, complete(setting.peers)),
        gopa(setting, drawn=False),
        secure_aggregation(setting, sparse),
        gopa(setting, drawn=True),
        local_dp(setting),
    ]
    header = (
        "protocol",
        "trust",
        "error",
        "epsilon",
        "CPU ms/user",
        "CPU ms, sum",
        "bytes/user",
        "error, dropouts",
        "epsilon, dropouts",
        "CPU ms, sum, dropouts",
    )
    cells = [
        (
            row.name,
            row.sees,
            row.error,
            row.epsilon,
            row.user_ms,
            row.sum_ms,
            round(row.user_bytes),
            row.error_after,
            row.epsilon_after,
            row.sum_ms_after,
        )
        for row in rows
    ]
    title = (
        f"mean of {setting.peers} peers, {setting.width} numbers each, norm <= 1;"
        f" {setting.colluders} collude, then {setting.leaving} leave; delta = {DELTA:g}"
    )
    return section("comparison", title, header, cells)


def _spent(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return 1e3 * (time.process_time() - begin)


def _deviation(found: Array, setting: Setting, peers: Sequence[int]) -> float:
    return float((found - setting.values()[list(peers)].mean(axis=0)).std())


def curator(setting: Setting) -> Measured:
    """Everybody sends its value as it is; the curator adds all the noise."""
    sigma, values, dice = MOVE / mu_of(EPSILON, DELTA), setting.values(), Secure()
    means = []
    spent = []
    for k, peers in enumerate((range(setting.peers), setting.stay)):
        begin = time.process_time()
        total = (
            values[list(peers)].sum(axis=0)
            + sigma * dice.normal("noise", ZERO, k, 0, setting.width)[0]
        )
        spent.append(1e3 * (time.process_time() - begin))
        means.append(_deviation(total / len(peers), setting, peers))
    return Measured(
        name="trusted curator",
        sees="curator sees all",
        error=means[0],
        epsilon=EPSILON,
        user_ms=0.0,
        sum_ms=spent[0],
        user_bytes=8.0 * setting.width,
        error_after=means[1],
        epsilon_after=EPSILON,
        sum_ms_after=spent[1],
    )


def local_dp(setting: Setting) -> Measured:
    """Everybody adds enough noise for itself alone."""
    sigma, values, dice = MOVE / mu_of(EPSILON, DELTA), setting.values(), Secure()
    begin = time.process_time()
    rows = np.stack(
        [
            row + sigma * dice.normal("noise", ZERO + u, 0, 0, setting.width)[0]
            for u, row in enumerate(values)
        ]
    )
    spent = 1e3 * (time.process_time() - begin) / setting.peers
    everybody, stay = range(setting.peers), setting.stay
    left = rows[list(stay)]
    return Measured(
        name="local DP",
        sees="nobody",
        error=_deviation(rows.mean(axis=0), setting, everybody),
        epsilon=EPSILON,
        user_ms=spent,
        sum_ms=_spent(lambda: rows.mean(axis=0)),
        user_bytes=8.0 * setting.width,
        error_after=_deviation(left.mean(axis=0), setting, stay),
        epsilon_after=EPSILON,
        sum_ms_after=_spent(lambda: left.mean(axis=0)),
    )


def gopa(setting: Setting, drawn: bool) -> Measured:
    """Participants and board on a virtual clock, on a complete graph or on a k-out graph drawn in
    the run."""
    n, dice = setting.peers, Replay(3)
    picks = {
        u: picked(u, setting.k, n, 0, dice) if drawn else tuple(v for v in range(n) if v != u)
        for u in range(n)
    }
    graph = (
        from_edges(n, sorted({(min(u, v), max(u, v)) for u in picks for v in picks[u]}))
        if drawn
        else complete(n)
    )
    chosen = noises(graph, EPSILON, DELTA, MOVE, range(setting.colluders))
    terms = Terms(
        number=0,
        peers=n,
        width=setting.width,
        clip=CLIP,
        own_sigma=chosen.own_sigma,
        pair_sigma=chosen.pair_sigma,
        degree=n - 1,
        bits=BITS,
    )
    silent = {
        u: 2 * len(graph.neighbors(u)) + drawn for u in range(n) if u not in setting.stay
    }  # from the roster on
    runs = []
    for leaving in ({}, silent):
        people = {
            u: Participant(u, picks[u], row, terms, 10.0, open=drawn)
            for u, row in enumerate(setting.values())
        }
        found = rehearse(people, Board(terms, 30.0), leaving=leaving)
        if not isinstance(found.outcome, SimulatedAverage) or len(found.outcome.online) != n - len(
            leaving
        ):
            raise RuntimeError(f"the rehearsal went another way than planned: {found.outcome}")
        runs.append((found, found.outcome))
    (whole, result), (after, left) = runs
    return Measured(
        name=f"GOPA, {'k-out, k = ' + str(setting.k) if drawn else 'complete'}",
        sees=f"{setting.colluders} collude",
        error=_deviation(result.mean, setting, result.online),
        epsilon=_exact(graph, chosen, setting, range(n)),
        user_ms=1e3 * sum(whole.seconds[u] for u in range(n)) / n,
        sum_ms=1e3 * whole.seconds[BOARD],
        user_bytes=sum(whole.sent_bytes(u) for u in range(n)) / n,
        error_after=_deviation(left.mean, setting, left.online),
        epsilon_after=_exact(graph, chosen, setting, left.online),
        sum_ms_after=1e3 * after.seconds[BOARD],
    )


def _exact(graph: Graph, chosen: Noises, setting: Setting, online: Sequence[int]) -> float:
    """Epsilon of the worst honest peer that stayed, in the view of the colluders (perso:GOPA-3)."""
    honest = sorted(set(online) & set(setting.honest))
    worst = float(np.nanmax(thetas(graph, chosen.own_sigma, chosen.pair_sigma, honest)))
    return epsilon_of(MOVE * math.sqrt(worst), DELTA)


def secure_aggregation(setting: Setting, graph: Graph) -> Measured:
    """The standard protocol: more than half of the fewest neighbors anybody has restore a secret;
    shares of noise."""
    n, field, dice = setting.peers, FixedPoint(BITS), Secure()
    honest, threshold = len(setting.honest), int(graph.degrees.min()) // 2 + 1
    own = MOVE / (mu_of(EPSILON, DELTA) * math.sqrt(honest))
    noisy = [
        field.encode(row) + field.noise(dice.normal("noise", ZERO + u, 0, 0, setting.width)[0], own)
        for u, row in enumerate(setting.values())
    ]
    whole, after = (
        _aggregated(graph, threshold, noisy, range(n - gone)) for gone in (0, setting.leaving)
    )
    left = honest - len(set(setting.honest) - set(setting.stay))
    means = [field.decode(run.total) / len(run.online) for run in (whole, after)]
    stated = [epsilon_of(MOVE / (own * math.sqrt(many)), DELTA) for many in (honest, left)]
    name = "complete" if graph.edge_count == n * (n - 1) // 2 else f"k-out, k = {setting.k}"
    return Measured(
        name=f"secure aggregation, {name}",
        sees=f"{setting.colluders} collude, < {threshold} near",
        error=_deviation(means[0], setting, whole.online),
        epsilon=stated[0],
        user_ms=1e3 * whole.client_seconds / n,
        sum_ms=1e3 * whole.server_seconds,
        user_bytes=whole.sent / n,
        error_after=_deviation(means[1], setting, after.online),
        epsilon_after=stated[1],
        sum_ms_after=1e3 * after.server_seconds,
    )


@dataclass(frozen=True, eq=False)
class _Aggregated:
    total: Words
    online: Sequence[int]
    client_seconds: float
    server_seconds: float
    sent: int


def _aggregated(
    graph: Graph, threshold: int, noisy: Sequence[Words], online: Sequence[int]
) -> _Aggregated:
    """All four steps; whoever is not online falls silent after its shares."""
    n = graph.n
    begin = time.process_time()
    clients = {
        u: Client(
            me=u, neighbors=tuple(graph.neighbors(u).tolist()), threshold=threshold, words=noisy[u]
        )
        for u in range(n)
    }
    announced = {u: client.announce() for u, client in clients.items()}
    boxes: dict[int, dict[int, bytes]] = {u: {} for u in clients}
    sent = n * 64
    for u, client in clients.items():
        for v, sealed in client.share(announced).items():
            boxes[v][u] = sealed
            sent += len(sealed)
    masked = {u: clients[u].mask(boxes[u]) for u in online}
    gone = set(range(n)) - set(online)
    answers: Mapping[int, Mapping[int, bytes]] = {
        u: clients[u].unmask(online, gone) for u in online
    }
    sent += sum(words.nbytes for words in masked.values()) + sum(
        len(s) for a in answers.values() for s in a.values()
    )
    middle = time.process_time()
    neighbors = {u: client.neighbors for u, client in clients.items()}
    total = unmasked_sum(masked, neighbors, announced, answers, threshold)
    return _Aggregated(total, online, middle - begin, time.process_time() - middle, sent)
