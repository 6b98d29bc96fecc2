"""One way to learn for all rows of the tables: `masked-sgd` through the library, record level,
add-remove, with sums, noise, masks, integers and account as in any run.

    curator       nobody may collude: the noise of the sum is what one trusted party would add
    masked        one peer may collude: 16/15 of that variance
    local         every peer adds all of the noise itself: 16 times that variance
    alone         one peer's records, dealt to two, nobody may collude: its own curator
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np
from dp_accounting import dp_event, pld

import bruit as br
from benchmarks.networks.choosing import DELTA, Setting
from benchmarks.timing import Answer
from bruit.mechanisms import RecordSums
from bruit.tasks import Torch
from bruit.tasks.records import Records


class Way(NamedTuple):
    """How noise is made: who may collude, and how much more of it there is than a curator's."""

    colluders: int = 0
    louder: float = 1.0


class Learned(NamedTuple):
    """Accuracies on the pictures that judge, one a seed, and what it cost."""

    accuracies: tuple[float, ...]
    epsilon: float

    def told(self, answer: Answer, what: str) -> None:
        spread = f" ± {stdev(self.accuracies):.4f}" if len(self.accuracies) > 1 else ""
        cost = f"epsilon {self.epsilon:.4g}" if math.isfinite(self.epsilon) else "no noise"
        seeds = len(self.accuracies)
        answer.add(what, mean(self.accuracies), f"{spread} ({seeds} seeds), {cost}")


def learned(
    task: Torch, setting: Setting, epsilon: float, way: Way, seeds: tuple[int, ...]
) -> Learned:
    """So many runs of masked-sgd; epsilon = inf: without noise. The epsilon told is the run's own,
    against a colluder if there may be one, and whoever gets the models."""
    held, peers = int(task.sizes.sum()), task.peers
    sums = RecordSums(
        clip=setting.clip,
        sample_rate=setting.sample_rate,
        adjacency="add-remove",
        divisor=setting.sample_rate * held / peers,
    )
    if math.isfinite(epsilon):
        sums = replace(sums, sigma=way.louder * setting.noise(epsilon) * setting.clip)
    algorithm = br.MaskedSGD(
        rate=setting.rate,
        momentum=setting.momentum,
        averaged=setting.averaged,
        colluders=way.colluders,
        spare=0,
    )
    runs = [
        br.run(
            algorithm,
            f"complete:{peers}",
            task,
            privacy=sums,
            steps=setting.steps,
            seed=seed,
            evaluate_every=0,
        )
        for seed in seeds
    ]
    found = tuple(task.evaluate(run.estimates[:1])["accuracy"] for run in runs)
    if not way.colluders:  # a curator's or a peer's own noise, to whoever sees what it is added to
        return Learned(found, epsilon)
    return Learned(found, float(runs[0].epsilon(of=0, seen_by=1, delta=DELTA)))


def counted_again(setting: Setting, epsilon: float) -> float:
    """The epsilon of the same noise by another library: dp_accounting's privacy loss
    distributions, Poisson sampling, add-remove."""
    account = pld.PLDAccountant()
    step = dp_event.PoissonSampledDpEvent(
        setting.sample_rate, dp_event.GaussianDpEvent(setting.noise(epsilon))
    )
    account.compose(step, setting.steps)
    return float(account.get_epsilon(DELTA))


def alone(task: Torch, peer: int = 0) -> Torch:
    """The task of one peer's records, dealt to two lanes; judged as before."""
    block = task.records.blocks[task.records.block_of[peer]]
    place = task.records.place_of[peer]
    held = block.weights[place] > 0
    rows, labels = block.features[place][held], block.targets[place][held]
    records = Records.of(rows, labels, np.arange(len(rows)) % 2, classes=task.outputs)
    return replace(task, records=replace(records, held_out=task.records.held_out))
