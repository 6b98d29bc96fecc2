"""GOPA: 10,000 users with k = 20 and 1000 numbers each, and what real keys cost per neighbor."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.timing import Answer, Goal, main
from bruit.graphs import k_out
from bruit.statistics.average.canceling.seeds import KeyPair, pair_noise, round_key
from bruit.statistics.average.canceling.simulation import simulate
from bruit.statistics.average.canceling.terms import Terms
from papers.baselines.canceling.board import Board
from papers.baselines.canceling.participant import Participant
from papers.baselines.canceling.rehearsal import rehearse


def simulated(peers: int, k: int, width: int) -> tuple[float, bool]:
    """Seconds of a whole round, and whether the exchanged noise left the sum to the bit."""
    graph = k_out(peers, k, seed=1)
    degree = int(graph.degrees.max())
    terms = Terms(
        number=0, peers=peers, width=width, clip=1.0, own_sigma=0.6, pair_sigma=35.0, degree=degree
    )
    values = np.zeros((peers, width))
    begin = time.perf_counter()
    found = simulate(graph, values, terms, seed=1)
    seconds = time.perf_counter() - begin
    alone = simulate(k_out(peers, 0, connected=False), values, terms, seed=1)
    return seconds, bool(np.array_equal(found.total, alone.total))


def per_neighbor(width: int, repeats: int) -> tuple[float, float]:
    """Median milliseconds to agree on a seed with one neighbor, and to derive the noise of a round
    from it."""
    terms = Terms(
        number=0, peers=100, width=width, clip=1.0, own_sigma=0.6, pair_sigma=35.0, degree=40
    )
    mine, theirs = KeyPair(), KeyPair().public
    agree, stream = [], []
    for _ in range(repeats):
        begin = time.perf_counter()
        key = round_key(mine.agree(0, 1, theirs, terms.digest), 0)
        middle = time.perf_counter()
        pair_noise(key, 0, 1, terms)
        agree.append(middle - begin)
        stream.append(time.perf_counter() - middle)
    return 1e3 * float(np.median(agree)), 1e3 * float(np.median(stream))


def whole_protocol(peers: int, width: int) -> float:
    """Milliseconds of CPU per neighbor of a participant: keys, confirmation, stream, masked value,
    all included."""
    terms = Terms(
        number=0,
        peers=peers,
        width=width,
        clip=1.0,
        own_sigma=0.6,
        pair_sigma=35.0,
        degree=peers - 1,
    )
    people = {
        u: Participant(u, (v for v in range(peers) if v != u), np.zeros(width), terms)
        for u in range(peers)
    }
    found = rehearse(people, Board(terms))
    return 1e3 * sum(found.seconds[u] for u in people) / (peers * (peers - 1))


def measure(quick: bool = False) -> Answer:
    answer = Answer("GOPA: how fast are a large simulated round and real keys?", quick)
    peers, k, width = (500, 10, 100) if quick else (10_000, 20, 1000)
    simulated(100, 3, 10)  # compiles
    seconds, exact = simulated(peers, k, width)
    agree, stream = per_neighbor(width, 20 if quick else 200)
    answer.add(f"{peers} users, k = {k}, d = {width}", seconds, "s")
    answer.add("agreeing on a seed, per neighbor", agree, "ms")
    answer.add(f"noise of {width} numbers from it, per neighbor", stream, "ms")
    together = whole_protocol(10 if quick else 40, width)
    answer.add(f"whole protocol with {width} numbers, per neighbor", together, "ms")
    answer.goals.append(Goal("a simulated round: s", seconds, 60))
    answer.goals.append(Goal("keys per neighbor, without the stream: ms", agree, 1))
    answer.goals.append(
        Goal("the whole protocol per neighbor, the stream too: ms", together, 1 + stream)
    )
    answer.goals.append(Goal("noise cancels to the bit (1: yes)", float(exact), 1, at_least=True))
    return answer


if __name__ == "__main__":
    main(measure)
