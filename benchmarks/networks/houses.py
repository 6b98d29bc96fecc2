"""MAFALDA-SGD's Housing setting: 15 Florentine families, 8-64-1, 16 batches a peer, each read 20 times in
turn, rate 0.1, clip 1: root mean squared error on a fifth of the districts, in 100,000 dollars.

`mu` is that of the source: a record that is taken away and leaves its place empty, all messages
public. A record that is replaced moves a clipped sum twice as far: the true mu of such a change is
2 mu, and so is the one that is told. *Local* draws fresh noise; *mafalda* the noise of `OWN` and
`BACK`, which a search found for this graph and these rounds without any data (what it leaves in the
models is 0.18 of what local noise does); *masked* is `masked-sgd`, one colluder, records drawn by
coins in place of turns, at the epsilon of mu at delta = 1e-5. Scaling by all districts' means and
deviations is the source's, and not private.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import mean, stdev

import numpy as np
import torch

import bruit as br
from benchmarks.networks.choosing import DELTA, Setting
from benchmarks.timing import Answer, Goal, main
from bruit.graphs.names import fixed_graph
from bruit.mechanisms import RecordSums
from bruit.privacy.exact import CorrelatedNoise, correlated_losses
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.tasks import Torch
from bruit.tasks.data.catalog import folders
from bruit.tasks.records import Records, Sample

GRAPH, TURNS, TIMES, RATE, HELD_OUT = "florentine", 16, 20, 0.1, 4128
OWN, BACK = 5.7, (0.489, 0.186, 0.106, 0.071)
MUS, SEEDS = (0.1, 0.2, 0.5, 1.0, 2.0), (1, 2, 3)


def network() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))


def districts() -> tuple[np.ndarray, np.ndarray]:
    """Eight numbers of every district as scikit-learn has them, each brought to mean 0 and deviation 1,
    and the median price  # (r, 8), (r,)."""
    file = next(
        (path for one in folders() if (path := one / "houses/houses.csv.gz").is_file()), None
    )
    if file is None:
        raise SystemExit(
            "skipped: no houses/houses.csv.gz; set BRUIT_DATA to the folder that holds it"
        )
    columns = (0, 1, 2, 3, 4, 5, 6, 7, 9)
    rows = np.genfromtxt(file, delimiter=",", skip_header=1, usecols=columns)
    price, income, age, rooms, beds, people, homes, north, east = rows.T
    told = (income, age, rooms / homes, beds / homes, people, people / homes, north, east)
    features = np.stack(told, axis=1)
    return (features - features.mean(axis=0)) / features.std(axis=0), price / 1e5


def dealt(peers: int, each: int) -> Torch:
    features, prices = districts()
    order = np.random.default_rng(421).permutation(len(prices))
    judged, learned = order[:HELD_OUT], order[HELD_OUT:]
    mine = np.concatenate([learned[k::peers][:each] for k in range(peers)])
    records = Records.of(features[mine], prices[mine], np.repeat(np.arange(peers), each))
    kept = replace(records, held_out=Sample(features[judged], prices[judged]))
    return Torch(network, "squared", records=kept)


def turned(task: Torch, mu: float, own: float, seed: int, times: int) -> tuple[float, float]:
    """The error of a run in which records take turns, and the mu that it tells for a record replaced."""
    steps = times * TURNS
    learner = br.Mafalda(rate=RATE, own=own, back=BACK if own else (), cycle=TURNS)
    noise = CorrelatedNoise(own, 0.0, learner.taps, TURNS)
    loss = correlated_losses(fixed_graph(GRAPH), noise, steps, (0,))[1]
    held = int(task.sizes.max())
    sums = RecordSums(clip=1.0, sigma=math.sqrt(loss) / mu, divisor=float(held), capacity=held)
    run = br.run(learner, GRAPH, task, privacy=sums, steps=steps, seed=seed, evaluate_every=steps)
    return run.metrics.last("rmse"), 2 * math.sqrt(run.guarantee(of=3, seen_by=0).loss) / sums.sigma


def masked(task: Torch, mu: float, seed: int, times: int) -> float:
    setting = Setting(
        steps=times * TURNS, clip=1.0, rate=RATE, sample_rate=1 / TURNS, averaged=False
    )
    sigma = setting.noise(epsilon_of(mu, DELTA))
    sums = RecordSums(
        clip=1.0,
        sigma=sigma,
        sample_rate=setting.sample_rate,
        adjacency="add-remove",
        divisor=setting.sample_rate * float(task.sizes.mean()),
    )
    learner = br.MaskedSGD(rate=RATE, averaged=False, colluders=1, spare=0)
    where = f"complete:{task.peers}"
    run = br.run(
        learner, where, task, privacy=sums, steps=setting.steps, seed=seed, evaluate_every=0
    )
    return float(task.evaluate(run.estimates[:1])["rmse"])


def measure(quick: bool = False) -> Answer:
    torch.set_num_threads(1)
    answer = Answer("MAFALDA-SGD's Housing setting: root mean squared error", quick)
    times, seeds = (1, SEEDS[:1]) if quick else (TIMES, SEEDS)
    place = fixed_graph(GRAPH)
    task = dealt(place.n, 160 if quick else 16512 // (place.n * TURNS) * TURNS)
    for mu in MUS[:1] if quick else MUS:
        local, taken = (
            [turned(task, mu, own, seed, times) for seed in seeds] for own in (0.0, OWN)
        )
        found = {
            "local": [error for error, _ in local],
            "mafalda": [error for error, _ in taken],
            "masked": [masked(task, mu, seed, times) for seed in seeds],
        }
        for what, errors in found.items():
            spread = stdev(errors) if len(errors) > 1 else 0.0
            answer.add(f"mu {mu:g}: {what}", mean(errors), f"± {spread:.4f}")
        answer.add(f"mu {mu:g}: true mu where a record is replaced", taken[0][1], "")
        best = mean(found["mafalda"])
        answer.goals.append(
            Goal(f"mu {mu:g}: mafalda against local", best / mean(found["local"]), 1.01)
        )
    return answer


if __name__ == "__main__":
    main(measure)
