"""Gossip SGD through the whole library against a bare vectorized numpy loop that does the same
arithmetic."""

from __future__ import annotations

import numpy as np

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.arrays import Array
from bruit.graphs import Graph, regular
from bruit.tasks import Softmax

RATE = 0.5


def bare_loop(graph: Graph, task: Softmax, rounds: int) -> Array:
    """x <- W (x - rate * gradient), softmax regression on padded records: no ledger, no messages,
    no checks."""
    (block,) = task.records.blocks
    features, weights = block.features, np.ascontiguousarray(block.weights)
    truth = np.zeros((*block.targets.shape, task.outputs))
    np.put_along_axis(truth, block.targets.astype(np.int64)[:, :, None], 1.0, axis=2)
    x: Array = np.zeros((graph.n, task.dim))
    for _ in range(rounds):
        scores = features @ x.reshape(graph.n, task.outputs, -1).swapaxes(1, 2)
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        scores -= truth
        scores *= weights[:, :, None]
        x -= RATE * (scores.swapaxes(1, 2) @ features).reshape(x.shape)
        x = np.asarray(graph.weights @ x)
    return x


def measure(quick: bool = False) -> Answer:
    answer = Answer(
        "Gossip SGD, softmax on digits, degree 4: what does the library add to the arithmetic?",
        quick,
    )
    for peers, split, rounds, goal in (
        (100, "iid", 100, 3.0),
        (1000 if quick else 10_000, "replicate:15", 10, 2.0),
    ):
        graph = regular(peers, 4, seed=1)
        task = Softmax.load("digits", peers=peers, split=split)

        def library(graph: Graph = graph, task: Softmax = task, rounds: int = rounds) -> Array:
            return br.run(br.GossipSGD(RATE), graph, task, steps=rounds, evaluate_every=0).estimates

        def bare(graph: Graph = graph, task: Softmax = task, rounds: int = rounds) -> Array:
            return bare_loop(graph, task, rounds)

        difference = float(np.abs(library() - bare()).max())
        seconds = interleaved({"bare": bare, "library": library, "describe": task.describe}, 5)
        ratio = seconds["library"] / seconds["bare"]
        answer.add(f"{peers} peers: bare numpy", seconds["bare"] / rounds * 1e3, "CPU ms a round")
        answer.add(f"{peers} peers: br.run", seconds["library"] / rounds * 1e3, "CPU ms a round")
        answer.add(
            f"{peers} peers: of which digest of the records",
            seconds["describe"] * 1e3,
            "CPU ms a run",
        )
        answer.add(f"{peers} peers: largest difference", difference, "")
        answer.goals.append(
            Goal(f"{peers} peers, {rounds} rounds: times the bare loop", ratio, goal)
        )
    return answer


if __name__ == "__main__":
    main(measure)
