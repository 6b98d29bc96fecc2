"""G9: one definition of an algorithm, as a row of the simulator and as a real peer, against a
hand-written peer."""

from __future__ import annotations

import numpy as np

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.algorithms.schedules.machine import Envelope
from bruit.algorithms.schedules.peer import Seat, peer_machine
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array
from bruit.graphs import Graph, regular
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.tasks import Logistic, Records
from bruit.trace import Faults

RATE, D, RECORDS = 0.1, 8, 8
NOISE = br.Gaussian(clip=1.0, sigma=1.0)


def task_of(peers: int) -> Logistic:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(peers * RECORDS, D))
    targets = np.where(rng.random(len(features)) < 0.5, 1.0, -1.0)
    return Logistic(
        Records.of(features, targets, np.repeat(np.arange(peers), RECORDS), rows="unit")
    )


def machine_peer(graph: Graph, task: Logistic, rounds: int) -> Array:
    """Peer 0 as a machine, fed with the rounds of its neighbors; everything but the network."""
    algorithm, dice, nobody = br.GossipSGD(RATE), Replay(0), np.zeros(0)
    door = TaskDoor(task=task, mechanism=NOISE, dice=dice, ledger=Ledger(peers=graph.n))
    public = algorithm.prepare(graph, rounds)
    seat = Seat(
        me=0,
        algorithm=algorithm,
        graph=graph,
        door=door,
        dice=dice,
        steps=rounds,
        public=public,
        faults=Faults.none(),
        calls=nobody,
        partners=nobody.astype(np.int64),
    )
    machine, row = peer_machine(seat), np.ones((1, D))
    neighbors = graph.neighbors(0).tolist()
    machine.begin(0.0)
    for number in range(rounds):
        for sender in neighbors:
            machine.receive(0.0, sender, Envelope("round", number, row))
    return algorithm.estimate(machine.state)


def hand_written_peer(graph: Graph, task: Logistic, rounds: int) -> Array:
    """What one writes for one peer: mix what arrived, gradient, clip, noise (not cryptographic)."""
    block, rng = task.records.blocks[0], np.random.default_rng(0)
    features, targets = block.features[0], block.targets[0]
    weights = graph.weights.data[graph.weights.indptr[0] : graph.weights.indptr[1]]
    inbox, x = np.ones((len(weights), D)), np.zeros(D)
    for _ in range(rounds):
        slopes = (np.tanh(features @ x / 2) - targets) / 2
        gradient = slopes @ features / len(targets)
        gradient *= min(1.0, NOISE.clip / float(np.sqrt(gradient @ gradient)))
        inbox[0] = x - RATE * (gradient + NOISE.sigma * rng.standard_normal(D))
        x = weights @ inbox
    return x


def measure(quick: bool = False) -> Answer:
    answer = Answer(
        f"G9: what does one source cost? Private gossip SGD, logistic, d = {D}, {RECORDS} records",
        quick,
    )
    peers, rounds = 2048, 20
    graph, task = regular(peers, 4, seed=1), task_of(peers)
    few, alone = 50 if quick else 200, task_of(20)
    small = regular(20, 4, seed=1)

    def simulator(steps: int) -> br.Run:
        return br.run(br.GossipSGD(RATE), graph, task, privacy=NOISE, steps=steps, evaluate_every=0)

    seconds = interleaved(
        {
            "start": lambda: simulator(0),
            "simulator": lambda: simulator(rounds),
            "machine": lambda: machine_peer(small, alone, few),
            "hand": lambda: hand_written_peer(small, alone, few),
        },
        5,
    )
    row = (seconds["simulator"] - seconds["start"]) / rounds / peers
    machine, hand = seconds["machine"] / few, seconds["hand"] / few
    answer.add("a row of the simulator", row * 1e6, "CPU us a peer step")
    answer.add("a peer machine, network left out", machine * 1e6, "CPU us a peer step")
    answer.add("a peer written by hand in numpy", hand * 1e6, "CPU us a peer step")
    answer.goals += [
        Goal("peer machine: CPU us a step", machine * 1e6, 2.0),
        Goal(
            "peer machine against the hand-written peer: times faster",
            hand / machine,
            8,
            at_least=True,
        ),
        Goal(
            "simulator row against the hand-written peer: times faster",
            hand / row,
            8,
            at_least=True,
        ),
    ]
    return answer


if __name__ == "__main__":
    main(measure)
