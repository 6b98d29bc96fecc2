"""How good is a model that 16 peers learn without a server? MNIST and Fashion-MNIST, record level,
delta = 1e-5, add-remove.

A linear head on the fixed front (`front`), learned by masked-sgd: sums that nobody can take apart,
with noise that all make together, one colluder tolerated. Clip and rate are those that were best on
the *other* set's training pictures (`choosing`), so that nothing was chosen on the set that judges
but the front itself, batches and steps, which were fixed after first trials on the training
pictures of both.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import mean

import torch
from torch import nn

from benchmarks.networks.choosing import PEERS, Setting
from benchmarks.networks.front import WIDTH, kept_features
from benchmarks.networks.learning import Learned, Way, alone, counted_again, learned
from benchmarks.networks.pictures import CLASSES, Pictures, dealt, pictures
from benchmarks.timing import Answer, Goal, main
from bruit.tasks import Torch

SEEDS, OTHER_SEEDS = (1, 2, 3), (1,)
MASKED, CURATOR, LOCAL = Way(colluders=1), Way(), Way(louder=math.sqrt(PEERS))
SETTINGS = {  # (set, epsilon): best on the other set by `python -m benchmarks.networks choosing`
    ("mnist", 1.16): (0.96, Setting(steps=60, clip=0.25, rate=320.0, averaged=False)),
    ("mnist", 2.9): (0.975, Setting(steps=100, clip=0.25, rate=160.0, averaged=False)),
    ("fashion", 2.7): (0.86, Setting(steps=100, clip=0.25, rate=320.0, averaged=False)),
}


def head() -> nn.Module:
    """Ten linear scores, all zero at the start."""
    layer = nn.Linear(WIDTH, CLASSES, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


def task_of(name: str, some: Pictures) -> Torch:
    rows = kept_features(name, some.train)
    fresh = kept_features(name, some.test)
    return Torch(head(), records=dealt(rows, some.labels, fresh, some.answers, PEERS))


def best_alone(task: Torch, setting: Setting, epsilon: float) -> Learned:
    """The best of four rates on the pictures that judge: in favor of staying alone."""
    own = alone(task)
    tries = [
        learned(own, replace(setting, rate=setting.rate / part), epsilon, CURATOR, OTHER_SEEDS)
        for part in (1, 4, 16, 64)
    ]
    return max(tries, key=lambda one: mean(one.accuracies))


def rows_of(answer: Answer, name: str, epsilon: float) -> None:
    """The rows of one budget, and its goals."""
    (goal, setting), some = SETTINGS[name, epsilon], pictures(name)
    if answer.quick:
        some, setting = some.first(3200), replace(setting, steps=3)
    task, label = task_of(name, some), f"{name}, epsilon {epsilon:g}"
    masked = learned(task, setting, epsilon, MASKED, SEEDS)
    masked.told(answer, f"{label}: masked, one colluder")
    answer.add(f"{label}: by dp_accounting", counted_again(setting, epsilon), "epsilon")
    answer.goals += [
        Goal(f"{label}: accuracy, 16 peers", mean(masked.accuracies), goal, at_least=True),
        Goal(f"{label}: epsilon of the run", masked.epsilon, epsilon),
    ]
    best_alone(task, setting, epsilon).told(answer, f"{label}: one peer alone")
    learned(task, setting, epsilon, LOCAL, OTHER_SEEDS).told(answer, f"{label}: local noise")
    learned(task, setting, epsilon, CURATOR, OTHER_SEEDS).told(answer, f"{label}: curator")
    learned(task, setting, math.inf, CURATOR, OTHER_SEEDS).told(answer, f"{label}: no noise")


def measure(quick: bool = False) -> Answer:
    torch.set_num_threads(1)
    answer = Answer("16 peers, no server, fixed front and a linear head: accuracy", quick)
    for name, epsilon in SETTINGS:
        rows_of(answer, name, epsilon)
    return answer


if __name__ == "__main__":
    main(measure)
