"""Who can reconstruct whom, decided exactly: every attacker of a graph, one among many, against
plain row reduction."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.adversary.attacks import all_attackers, knowledge, reconstructible
from bruit.errors import ConfigError
from bruit.graphs import Graph, erdos_renyi, from_ego, watts_strogatz
from bruit.privacy.exact import PRIMES


def social() -> Graph:
    """The ego-Facebook graph of the papers, or one of its size and density when the data are not
    here."""
    try:
        return from_ego(414)
    except ConfigError:
        return watts_strogatz(148, k=22, p=0.1)


def plain_reduction(rows: list[list[int]], prime: int) -> list[int]:
    """What one writes first: Gauss-Jordan with Python loops, exactly; the peers whose unit rows it
    leaves."""
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        inverse = pow(rows[rank][column], -1, prime)
        rows[rank] = [x * inverse % prime for x in rows[rank]]
        for i in range(len(rows)):
            factor = rows[i][column]
            if i != rank and factor:
                rows[i] = [
                    (x - factor * y) % prime for x, y in zip(rows[i], rows[rank], strict=True)
                ]
        rank += 1
    units = [[v for v, x in enumerate(row) if x] for row in rows[:rank]]
    return sorted(places[0] for places in units if len(places) == 1)


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one turn, all threads together: at least the wall seconds of an idle
    machine."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measure(quick: bool = False) -> Answer:
    answer = Answer("How fast is it decided who can reconstruct whom?", quick)
    ego, steps = social(), 10
    attacker = int(ego.degrees.argmax())
    rows = knowledge(ego, [attacker], steps).modulo(PRIMES[0]).tolist()
    mine, plain = (
        reconstructible(ego, [attacker], steps).peers.tolist(),
        plain_reduction([*rows], PRIMES[0]),
    )
    if mine != plain:
        raise SystemExit("the two reductions disagree")
    seconds = interleaved(
        {
            "plain": lambda: plain_reduction([*rows], PRIMES[0]),
            "bruit": lambda: reconstructible(ego, [attacker], steps),
        },
        3,
    )
    answer.add(
        f"one attacker of {ego.name}, {steps} steps, Python loops, one prime",
        seconds["plain"],
        "CPU s",
    )
    answer.add("the same, bruit, two primes", seconds["bruit"], "CPU s")
    everyone = cpu(lambda: all_attackers(ego, steps))
    answer.add(f"all {ego.n} attackers", everyone, "CPU s")
    answer.goals.append(
        Goal(
            "times faster than Python loops", seconds["plain"] / seconds["bruit"], 50, at_least=True
        )
    )
    answer.goals.append(Goal(f"all attackers of {ego.name}: CPU s", everyone, 60))
    crowd, large = (100, 400) if quick else (500, 2000)
    graph, big = erdos_renyi(crowd, c=1.5, seed=1), erdos_renyi(large, c=1.5, seed=1)
    for horizon in (steps, crowd):
        found = cpu(lambda horizon=horizon: all_attackers(graph, horizon))  # type: ignore[misc]
        answer.add(f"all attackers, {graph.name}, {horizon} steps", found, "CPU s")
        answer.goals.append(Goal(f"all {crowd} attackers, {horizon} steps: CPU s", found, 60))
    for horizon in (steps, large):
        found = cpu(lambda horizon=horizon: reconstructible(big, [0], horizon))  # type: ignore[misc]
        answer.add(f"one attacker, {big.name}, {horizon} steps", found, "CPU s")
        answer.goals.append(Goal(f"one attacker among {large}, {horizon} steps: CPU s", found, 60))
    return answer


if __name__ == "__main__":
    main(measure)
