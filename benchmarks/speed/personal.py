"""Personal models: coordinate descent among 10^5 agents, and learning whom to learn from, against
plain loops."""

from __future__ import annotations

import math
import resource
from dataclasses import dataclass, field

import numpy as np
from numba import njit

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.algorithms.course import Course
from bruit.algorithms.messages import Links
from bruit.algorithms.personal.personalized import Personalized, State
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array, Ints
from bruit.graphs import Graph, regular
from bruit.graphs.learn import Collaboration
from bruit.personal.learn import learn_graph
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.tasks import Logistic, Records
from bruit.tasks.personal import Personal

DIM, RECORDS, DEGREE, COUPLING, SMOOTH, RIDGE = 10, 5, 10, 1.0, 3.0, 0.1
AGENTS, SWEEPS = 10_000, 25


@njit(nogil=True)  # type: ignore[untyped-decorator,unused-ignore]
def hand_written(
    woken: Ints,
    start: Ints,
    near: Ints,
    models: Array,
    first: Ints,
    features: Array,
    targets: Array,
) -> None:
    """Coordinate descent as one writes it with numba: equal weights, logistic losses, nothing
    else."""
    d = models.shape[1]
    goal, share = np.empty(d), COUPLING / (COUPLING + SMOOTH)
    for u in woken:
        goal[:] = 0.0
        for k in range(start[u], start[u + 1]):
            for j in range(d):
                goal[j] += models[near[k], j]
        for j in range(d):
            goal[j] = goal[j] / (start[u + 1] - start[u]) - RIDGE * models[u, j] / COUPLING
        for r in range(first[u], first[u + 1]):
            score = 0.0
            for j in range(d):
                score += features[r, j] * models[u, j]
            slope = (
                -targets[r]
                / (1.0 + math.exp(targets[r] * score))
                / (first[u + 1] - first[u])
                / COUPLING
            )
            for j in range(d):
                goal[j] -= slope * features[r, j]
        for j in range(d):
            models[u, j] = (1.0 - share) * models[u, j] + share * goal[j]


@dataclass
class Agent:
    """One Python object per agent: its records, its model, and the last model of each neighbor."""

    features: Array
    targets: Array
    model: Array
    heard: dict[int, Array] = field(default_factory=dict)

    def receive(self, sender: int, said: Array) -> None:
        self.heard[sender] = said.copy()

    def wake(self) -> Array:
        slopes = (np.tanh(self.features @ self.model / 2) - self.targets) / 2
        gradient = slopes @ self.features / len(self.targets) + RIDGE * self.model
        mean, share = sum(self.heard.values()) / len(self.heard), COUPLING / (COUPLING + SMOOTH)
        self.model = (1 - share) * self.model + share * (mean - gradient / COUPLING)
        return self.model


def agents_of(graph: Graph, features: Array, targets: Array) -> list[Agent]:
    """Agents that know their neighbors."""
    people = [
        Agent(
            features[u * RECORDS : (u + 1) * RECORDS],
            targets[u * RECORDS : (u + 1) * RECORDS],
            np.zeros(DIM),
        )
        for u in range(graph.n)
    ]
    for u, agent in enumerate(people):
        agent.heard = {int(v): np.zeros(DIM) for v in graph.neighbors(u)}
    return people


def one_by_one(people: list[Agent], woken: list[int]) -> None:
    """Agents wake one after the other and tell their neighbors."""
    for u in woken:
        said = people[u].wake()
        for v in people[u].heard:
            people[v].receive(u, said)


def descent(answer: Answer, peers: int, each: int) -> None:
    """Adds the rows and goals of coordinate descent."""
    graph, rng = regular(peers, DEGREE, seed=1), np.random.default_rng(0)
    owners = np.repeat(np.arange(peers), RECORDS)
    features, targets = rng.uniform(-1, 1, (len(owners), DIM)), rng.choice([-1.0, 1.0], len(owners))
    task = Personal(Logistic(Records.of(features, targets, owners)), np.full(peers, RIDGE))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    woken, few = rng.integers(0, peers, peers * each), 20_000
    links, ours, first = (
        Links.of_graph(graph),
        Personalized(COUPLING, SMOOTH),
        np.arange(peers + 1) * RECORDS,
    )
    plain = np.zeros((peers, DIM))
    hand_written(woken[:1], links.start, links.senders, plain.copy(), first, features, targets)
    people, kept = agents_of(regular(AGENTS, DEGREE, seed=1), features, targets), {}

    def fused() -> None:
        begin = State(np.zeros((peers, DIM)), np.zeros(peers, np.int64))
        door = TaskDoor(task=task, mechanism=None, dice=Replay(0), ledger=Ledger(peers=peers))
        kept["models"] = ours.fused(
            begin,
            Course(graph=graph, steps=0, public=None, door=door, dice=door.dice, acting=woken),
        )[0].model

    def by_hand() -> None:
        kept["plain"] = np.zeros((peers, DIM))
        hand_written(woken, links.start, links.senders, kept["plain"], first, features, targets)

    def whole() -> None:
        br.run(ours, graph, task, steps=each, evaluate_every=0, engine=br.Bulk(fused=True))

    seconds = interleaved(
        {
            "objects": lambda: one_by_one(people, (woken[:few] % AGENTS).tolist()),
            "hand": by_hand,
            "fused": fused,
            "run": whole,
        },
        1,
    )
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    total = peers * each
    labels = {
        "objects": (f"one Python object per agent ({AGENTS} of them)", few),
        "hand": ("numba loop by hand", total),
        "fused": ("fused path, order given", total),
        "run": ("br.run, order drawn from clocks", total),
    }
    for name, (label, count) in labels.items():
        answer.add(label, seconds[name] / count * 1e9, "CPU ns an update")
    answer.add(
        "largest difference to the loop by hand",
        float(np.abs(kept["models"] - kept["plain"]).max()),
        "",
    )
    answer.add("more memory than data and graph, at most", peak, "MiB")
    needed = (total * (1 + 8 + 8 + 8 + 8 + 24) + 8 * 2 * peers * DIM) / 2**20
    answer.add("of that: the order of the updates and their ledger lines", needed, "MiB")
    answer.goals += [
        Goal("br.run against the loop by hand: times slower", seconds["run"] / seconds["hand"], 5),
        Goal(
            "the fused path against the loop by hand: times slower",
            seconds["fused"] / seconds["hand"],
            5,
        ),
        Goal(
            "br.run against Python objects: times faster",
            seconds["objects"] / few / (seconds["run"] / total),
            50,
            at_least=True,
        ),
    ]


def graph_learning(answer: Answer, peers: int) -> None:
    """Adds the rows of the graph step: four kinds of peers, 25 wake-ups each."""
    rng, wakes = np.random.default_rng(0), SWEEPS * peers
    models = 3 * np.eye(20)[np.arange(peers) % 4] + 0.1 * rng.standard_normal((peers, 20))
    costs, aim, kept = rng.uniform(0, 0.1, peers), Collaboration(), {}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def learn() -> None:
        kept["graph"] = learn_graph(aim, models, costs, wakes=wakes, dice=Replay(0))

    seconds = interleaved({"graph": learn}, 3)["graph"]
    answer.add(
        f"graph among {peers} peers, d = 20, 5 sampled", seconds / wakes * 1e6, "CPU us a wake-up"
    )
    found = kept["graph"]
    a, b = found.pairs.T
    inside = float(found.weights[a % 4 == b % 4].sum() / found.weights.sum())
    answer.add("weights it found, for each peer", 2 * len(a) / peers, "")
    answer.add("part of the weight between peers of a kind", inside, "")
    answer.add(
        "more memory, at most",
        (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
        "MiB",
    )
    if peers == 2000:
        answer.goals.append(
            Goal("graph among 2000 peers: CPU s for 1000 wake-ups", seconds / wakes * 1000, 2)
        )


def measure(quick: bool = False) -> Answer:
    answer = Answer(
        f"Personal models, degree {DEGREE}, d = {DIM}, {RECORDS} records: how fast do they learn?",
        quick,
    )
    descent(answer, 10**4 if quick else 10**5, 10 if quick else 100)
    graph_learning(answer, 2000)
    if not quick:
        graph_learning(answer, 10**5)
    return answer


if __name__ == "__main__":
    main(measure)
