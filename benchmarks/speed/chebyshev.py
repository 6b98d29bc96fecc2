"""G5: twenty Chebyshev steps on many peers, by the fused path, against scipy in single and double
precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.algorithms.course import Course
from bruit.algorithms.gossip.chebyshev import Chebyshev, Public, State
from bruit.algorithms.gossip.exchange import exchange_of
from bruit.algorithms.task_door import TaskDoor
from bruit.graphs import Graph, erdos_renyi, torus
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.tasks import Mean

STEPS, GAMMA = 20, 1.3


def scipy_steps(matrix: Any, x: Any, gamma: Any) -> Any:
    """x^1 = W x^0, x^{t+1} = gamma W x^t + (1 - gamma) x^{t-1}: the two lines everybody writes."""
    before, now = x, matrix @ x
    for _ in range(1, STEPS):
        before, now = now, gamma * (matrix @ now) + (1 - gamma) * before
    return now


def compare(answer: Answer, graph: Graph, d: int, repeats: int) -> float:
    """Adds the rows of one case; the ratio of scipy in single precision to the fused path."""
    x = np.random.default_rng(0).normal(size=(graph.n, d))
    single, narrow = graph.weights.astype(np.float32), x.astype(np.float32)
    public, dice = Public(0.0, GAMMA, exchange_of(graph, STEPS)), Replay(0)
    door = TaskDoor(task=Mean(x), mechanism=None, dice=dice, ledger=Ledger(peers=graph.n))
    course = Course(graph=graph, steps=STEPS, public=public, door=door, dice=dice)
    seconds = interleaved(
        {
            "scipy, double": lambda: scipy_steps(graph.weights, x, GAMMA),
            "scipy, single": lambda: scipy_steps(single, narrow, np.float32(GAMMA)),
            "fused": lambda: Chebyshev().fused(State(x, x, x), course),
        },
        repeats,
    )
    exact = scipy_steps(graph.weights, x, GAMMA)
    fused = Chebyshev().fused(State(x, x, x), course)[0].value
    for name, found in seconds.items():
        answer.add(f"{graph.name}, d = {d}: {name}", found, "CPU s")
    error = np.abs(fused - exact).max() / np.abs(exact).max()
    answer.add(f"{graph.name}, d = {d}: error relative to the largest", float(error), "")
    return seconds["scipy, single"] / seconds["fused"]


def measure(quick: bool = False) -> Answer:
    answer = Answer("G5: how fast are 20 Chebyshev steps?", quick)
    size = 10_000 if quick else 100_000
    side = 100 if quick else 316
    for graph in (erdos_renyi(size, c=1, seed=1), torus(side, side)):
        ratio = compare(answer, graph, 64, 5)
        answer.goals.append(
            Goal(f"{graph.name}, d = 64: times faster than scipy float32", ratio, 3, at_least=True)
        )
    return answer


if __name__ == "__main__":
    main(measure)
