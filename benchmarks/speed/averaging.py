"""Averaging among a million peers: a round against one pass over the memory an exchange must
touch."""

from __future__ import annotations

import numpy as np

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.algorithms.course import Course
from bruit.algorithms.gossip.averaging import Averaging, State
from bruit.algorithms.task_door import TaskDoor
from bruit.graphs import Graph, regular, torus
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.tasks import Mean

D, ROUNDS = 10, 10


def touched(graph: Graph) -> int:
    """Bytes of one exchange: every message and every weight is read once, every new value written
    once."""
    return graph.weights.nnz * (8 * D + 8 + 4) + 8 * D * graph.n


def distinct(graph: Graph) -> int:
    """The same if every value stayed in cache between its readers: values are read once and written
    once."""
    return graph.weights.nnz * (8 + 4) + 2 * 8 * D * graph.n


def compare(answer: Answer, graph: Graph, repeats: int) -> None:
    """Adds the rows of one graph, and what a fused round costs against the copy of as many
    bytes."""
    task = Mean.uniform(graph.n, D, 1)
    source, target = np.ones(16 << 20), np.empty(16 << 20)
    x, dice = task.values, Replay(0)
    door = TaskDoor(task=task, mechanism=None, dice=dice, ledger=Ledger(peers=graph.n))
    course = Course(graph=graph, steps=ROUNDS, public=None, door=door, dice=dice)
    seconds = interleaved(
        {
            "copy": lambda: np.copyto(target, source),
            "scipy": lambda: graph.weights @ x,
            "generic": lambda: br.run(br.Averaging(), graph, task, steps=ROUNDS, evaluate_every=0),
            "start": lambda: br.run(br.Averaging(), graph, task, steps=0, evaluate_every=0),
            "fused": lambda: Averaging().fused(State(x, x), course),
        },
        repeats,
    )
    bandwidth = 16 * len(source) / seconds["copy"]
    floor, least, fused = (
        touched(graph) / bandwidth,
        distinct(graph) / bandwidth,
        seconds["fused"] / ROUNDS,
    )
    answer.add(f"{graph.name}: copy bandwidth", bandwidth / 1e9, "GB/s")
    answer.add(
        f"{graph.name}: floor, {touched(graph) / 1e6:.0f} MB at that speed",
        floor * 1e3,
        "CPU ms a round",
    )
    answer.add(
        f"{graph.name}: the {distinct(graph) / 1e6:.0f} MB that are distinct",
        least * 1e3,
        "CPU ms a round",
    )
    answer.add(f"{graph.name}: scipy product alone", seconds["scipy"] * 1e3, "CPU ms a round")
    answer.add(
        f"{graph.name}: br.run",
        (seconds["generic"] - seconds["start"]) / ROUNDS * 1e3,
        "CPU ms a round",
    )
    answer.add(f"{graph.name}: fused, {ROUNDS} rounds", fused * 1e3, "CPU ms a round")
    answer.goals.append(
        Goal(f"{graph.name}: times a pass over every message of an exchange", fused / floor, 4)
    )
    answer.goals.append(
        Goal(f"{graph.name}: times a pass over the distinct memory", fused / least, 4)
    )


def measure(quick: bool = False) -> Answer:
    answer = Answer(f"Averaging, d = {D}, degree 6: how near is a round to memory speed?", quick)
    side = 30 if quick else 100
    for graph in (regular(side**3, 6, seed=1), torus(side, side, side)):
        compare(answer, graph, 3)
    return answer


if __name__ == "__main__":
    main(measure)
