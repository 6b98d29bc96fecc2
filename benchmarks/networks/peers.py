"""Gossip SGD of a small network, 64-32-10 on digits: against bare numpy, and against one object a
peer.

The floor is a vectorized numpy loop of the same arithmetic: batched products over the peer axis, no
ledger, no messages, no checks. The baseline is the way of simulators that keep one torch module and
one optimizer a peer and loop over peers; it is written here, and does fewer rounds, whose cost is
counted up.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.arrays import Array
from bruit.graphs import Graph, regular
from bruit.tasks import Torch

PEERS, DEGREE, ROUNDS, RATE, HIDDEN = 100, 4, 100, 0.5, 32
FEWER = 2  # rounds after which the baseline is compared; one round is timed, and counted up


def bare_loop(graph: Graph, task: Torch, rounds: int) -> Array:
    """x <- W (x - rate * gradient) of a tanh network on padded records."""
    (block,) = task.records.blocks
    rows, weights, peers = block.features, block.weights[:, :, None], graph.n
    inputs, outputs = rows.shape[2], task.outputs
    truth = np.zeros((*block.targets.shape, outputs))
    np.put_along_axis(truth, block.targets.astype(np.int64)[:, :, None], 1.0, axis=2)
    ends = np.cumsum([HIDDEN * inputs, HIDDEN, outputs * HIDDEN])
    x = np.tile(task.start(), (peers, 1))
    gradient = np.empty_like(x)
    for _ in range(rounds):
        first, bias, second, offset = np.split(x, ends, axis=1)
        hidden = rows @ first.reshape(peers, HIDDEN, inputs).swapaxes(1, 2)
        hidden += bias[:, None]
        np.tanh(hidden, out=hidden)
        second = second.reshape(peers, outputs, HIDDEN)
        scores = hidden @ second.swapaxes(1, 2)
        scores += offset[:, None]
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        scores -= truth
        scores *= weights
        back = scores @ second
        back *= 1.0 - hidden * hidden
        gradient[:, : ends[0]] = (back.swapaxes(1, 2) @ rows).reshape(peers, -1)
        gradient[:, ends[0] : ends[1]] = back.sum(axis=1)
        gradient[:, ends[1] : ends[2]] = (scores.swapaxes(1, 2) @ hidden).reshape(peers, -1)
        gradient[:, ends[2] :] = scores.sum(axis=1)
        x = np.asarray(graph.weights @ (x - RATE * gradient))
    return x


class Handler:
    """What a peer is there: a module, its optimizer, and how to train and to merge them."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
        self.criterion = nn.CrossEntropyLoss()

    def update(self, rows: Tensor, labels: Tensor) -> None:
        self.module.train()
        loss = self.criterion(self.module(rows), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def merge(self, others: list[Handler], weights: list[float]) -> None:
        mine, theirs = self.module.state_dict(), [one.module.state_dict() for one in others]
        for key in mine:
            mine[key] *= weights[0]
            for weight, state in zip(weights[1:], theirs, strict=True):
                mine[key] += state[key] * weight
        self.module.load_state_dict(mine)


class Objects:
    """One handler a peer, one after the other: a step of training, then a deep copy of the handler
    for every message, and a weighted merge of what came (gossipy, commit ea85ab1: `WeightedTMH`,
    `ModelHandler.caching`, `All2AllGossipSimulator`; its reports and clocks are left out)."""

    def __init__(self, graph: Graph, task: Torch) -> None:
        (block,) = task.records.blocks
        held, weights = block.weights > 0, np.asarray(graph.weights.todense())
        self.handlers = [Handler(task.network.module_with(task.start())) for _ in range(graph.n)]
        self.rows = [
            torch.from_numpy(block.features[k][held[k]]).to(task.network.dtype)
            for k in range(graph.n)
        ]
        self.labels = [torch.from_numpy(block.targets[k][held[k]]).long() for k in range(graph.n)]
        self.neighbors = [[v for v in np.flatnonzero(weights[u]) if v != u] for u in range(graph.n)]
        self.weights = [
            [float(weights[u, u]), *(float(weights[u, v]) for v in self.neighbors[u])]
            for u in range(graph.n)
        ]

    def round(self) -> None:
        for handler, rows, labels in zip(self.handlers, self.rows, self.labels, strict=True):
            handler.update(rows, labels)
        came = [[copy.deepcopy(self.handlers[v]) for v in around] for around in self.neighbors]
        for handler, others, weights in zip(self.handlers, came, self.weights, strict=True):
            handler.merge(others, weights)

    def models(self) -> Array:
        """One flat row a peer."""
        return np.stack(
            [
                np.concatenate([p.detach().numpy().ravel() for p in one.module.parameters()])
                for one in self.handlers
            ]
        )


def measure(quick: bool = False) -> Answer:
    torch.set_num_threads(1)
    peers, rounds = (20, 5) if quick else (PEERS, ROUNDS)
    answer = Answer(
        f"64-{HIDDEN}-10 on digits, {peers} peers, {rounds} rounds of gossip SGD, all records",
        quick,
    )
    graph = regular(peers, DEGREE, seed=1)
    task = Torch.load("digits", f"mlp:{HIDDEN}", peers=peers)
    single = replace(task, dtype="float32")  # what torch computes in, if nobody says

    def library(task: Torch = task, rounds: int = rounds) -> Array:
        return br.run(br.GossipSGD(RATE), graph, task, steps=rounds, evaluate_every=0).estimates

    objects = Objects(graph, single)
    for _ in range(FEWER):
        objects.round()
    apart = float(np.abs(library() - bare_loop(graph, task, rounds)).max())
    also = float(np.abs(library(single, FEWER) - objects.models()).max())
    seconds = interleaved(
        {
            "bare numpy": lambda: bare_loop(graph, task, rounds),
            "br.run": library,
            "br.run, float32": lambda: library(single),
            "one object a peer, float32": objects.round,  # one round
        },
        5,
    )
    seconds["one object a peer, float32"] *= rounds
    for name, found in seconds.items():
        answer.add(name, found / rounds / peers * 1e6, "CPU us a peer and round")
    answer.add("largest difference, br.run and bare numpy", apart, "")
    answer.add(f"largest difference, br.run and objects, {FEWER} rounds", also, "in float32")
    ratio = seconds["br.run"] / seconds["bare numpy"]
    gained = seconds["one object a peer, float32"] / seconds["br.run, float32"]
    answer.goals += [
        Goal("br.run, times the bare numpy loop", ratio, 3.0),
        Goal("one object a peer, times br.run, both float32", gained, 100.0, at_least=True),
    ]
    return answer


if __name__ == "__main__":
    main(measure)
