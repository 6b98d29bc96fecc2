"""Which clip and rate? Chosen on the *other* set of pictures, and never on pictures that judge.

A linear head on the fixed front is trained on 50,000 of the other set's 60,000 training pictures
and judged by the last 10,000 of these. Test pictures of neither set are opened. Batches, steps, momentum and
the noise (that of 16 peers, one of whom may collude) are those of the goal. Computed in plain
floats, all peers as one: sums are the same whoever holds the records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.networks.front import kept_features
from benchmarks.networks.pictures import CLASSES, Pictures, pictures
from benchmarks.timing import Answer, main
from bruit.privacy.calibrate import least_noise_multiplier

DELTA, PEERS, MOMENTUM, RATE_OF_RECORDS = 1e-5, 16, 0.9, 0.1
CLIPS, RATES = (0.25, 0.5), (80.0, 160.0, 320.0)
GOALS = {("mnist", 1.16): 60, ("mnist", 2.9): 100, ("fashion", 2.7): 100}  # -> steps
ROUNDING = 1e-9  # charged for finite precision, more than runs need
OTHER = {"mnist": "fashion", "fashion": "mnist"}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is chosen, and what was fixed before."""

    steps: int
    clip: float
    rate: float
    sample_rate: float = RATE_OF_RECORDS
    momentum: float = MOMENTUM
    averaged: bool = True

    def noise(self, epsilon: float) -> float:
        """sigma / clip that hides one record, added or removed, in all steps together."""
        return _noise(epsilon, self.steps, self.sample_rate)


@cache
def _noise(epsilon: float, steps: int, sample_rate: float) -> float:
    return least_noise_multiplier(epsilon, DELTA, steps, sample_rate, "add-remove", ROUNDING)


def descended(
    rows: Tensor, labels: Tensor, setting: Setting, noise: float, seed: int
) -> tuple[Tensor, Tensor]:
    """Weights of a linear head, the last ones and their mean over the second half of the steps;
    `noise`: deviation of what is added to sums, in clips  # (classes, d) twice."""
    draws = torch.Generator().manual_seed(seed)
    lengths = rows.norm(dim=1)
    model = torch.zeros(CLASSES, rows.shape[1])
    velocity, average, late = torch.zeros_like(model), torch.zeros_like(model), 0
    for step in range(setting.steps):
        taken = torch.nonzero(torch.rand(len(rows), generator=draws) < setting.sample_rate)[:, 0]
        batch = rows[taken]
        slopes = torch.softmax(batch @ model.T, 1) - functional.one_hot(labels[taken], CLASSES)
        slopes *= (setting.clip / (slopes.norm(dim=1) * lengths[taken])).clamp(max=1.0)[:, None]
        added = setting.clip * noise * torch.randn(model.shape, generator=draws)
        gradient = (slopes.T @ batch + added) / (setting.sample_rate * len(rows))
        velocity = setting.momentum * velocity + gradient
        model = model - setting.rate * velocity
        if step >= setting.steps // 2:
            late += 1
            average += (model - average) / late
    return model, average


def tried(name: str, epsilon: float, steps: int, some: Pictures) -> dict[Setting, float]:
    """The accuracy of every setting of the grid."""
    known = torch.from_numpy(kept_features(name, some.train)).float()
    labels, kept = torch.from_numpy(some.labels).long(), len(known) * 5 // 6
    rows, fresh, answers = known[:kept], known[kept:], labels[kept:]
    first = Setting(steps=steps, clip=CLIPS[0], rate=RATES[0])
    noise = first.noise(epsilon) * math.sqrt(PEERS / (PEERS - 1))
    found = {}
    for clip, rate in product(CLIPS, RATES):
        setting = replace(first, clip=clip, rate=rate)
        heads = descended(rows, labels[:kept], setting, noise, seed=1)
        for averaged, head in zip((False, True), heads, strict=True):
            said = (fresh @ head.T).argmax(1)
            right = float((said == answers).float().mean())
            found[replace(setting, averaged=averaged)] = right
    return found


def measure(quick: bool = False) -> Answer:
    torch.set_num_threads(1)
    answer = Answer("which clip and rate? judged on the other set's training pictures", quick)
    for (name, epsilon), steps in GOALS.items():
        other = OTHER[name]
        some = pictures(other)
        if quick:
            some = some.first(2400)
        found = tried(other, epsilon, steps, some)
        for setting, accuracy in found.items():
            model = "mean of models" if setting.averaged else "last model"
            what = f"for {name}, {epsilon:g}: clip {setting.clip:g}, rate {setting.rate:g}, {model}"
            best = "best" if accuracy == max(found.values()) else ""
            answer.add(what, accuracy, f"on {other} {best}".rstrip())
    return answer


if __name__ == "__main__":
    main(measure)
