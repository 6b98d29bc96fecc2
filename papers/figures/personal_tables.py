"""Personal models on real data, against one model for all and models fitted alone (perso:EXP-4).

    python -m papers.figures.personal_tables SET ...

Accuracies in percent, pooled over the test records of all peers, means over three splits: the table
is `bruit reproduce hdr-t2.1`. Called as above it shows how the parameters in SETTINGS were chosen:
on records held back from the training part of a fourth split, never on test records. The source's
linear models use the hinge loss, ours the logistic loss, whose gradient coordinate descent needs.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np

import bruit as br
from bruit.algorithms.personal.boosting import Boosting
from bruit.algorithms.personal.personalized import Personalized as Descent
from bruit.arrays import Array, Ints
from bruit.graphs.learn import Collaboration
from bruit.personal.alternate import alternate
from bruit.personal.objective import confidences
from bruit.tasks import Logistic, Records
from bruit.tasks.boosted import Boosted
from bruit.tasks.data import catalog
from bruit.tasks.personal import Personal
from bruit.tasks.stumps import Stumps
from papers.figures.personal_sets import SETS, Personalized, held_back

SPLITS, CHOSEN_ON = (0, 1, 2), 3
ROUNDS, WAKES, FLOOR, RADIUS, GLOBAL_STEPS = 3, 100, 1e-2, 1.0, 300
KINDS = ("linear", "boost")


@dataclass(frozen=True)
class Setting:
    """Coupling of the graph (lambda_1 and lambda_2 of the source), sparsity (lambda_3), the ridge of
    linear models times m_u, and the coupling of models if it is another."""

    coupling: float
    sparsity: float
    ridge: float = 0.1
    models: float | None = None

    @property
    def between(self) -> float:
        """The coupling of models on the graph."""
        return self.coupling if self.models is None else self.models


SETTINGS = {
    ("har", "linear"): Setting(10.0, 0.05, 0.01),
    ("har", "boost"): Setting(1.0, 0.5, models=30.0),
    ("har_fifth", "boost"): Setting(1.0, 0.5),
    ("computer_buyers", "linear"): Setting(1.0, 5.0, 0.01),
    ("computer_buyers", "boost"): Setting(10.0, 0.05),
    ("school", "linear"): Setting(0.1, 0.05, 1.0),
    ("school", "boost"): Setting(1.0, 5.0),
    ("landmine", "linear"): Setting(10.0, 0.05, 1.0),
    ("landmine", "boost"): Setting(1.0, 0.5),
    ("parkinsons", "linear"): Setting(0.1, 0.05, 0.01),
    ("parkinsons", "boost"): Setting(0.1, 0.05),
}
GRID: tuple[Setting, ...] = (
    Setting(0.1, 0.05),
    Setting(0.1, 5.0),
    Setting(1.0, 0.5),
    Setting(1.0, 5.0),
    Setting(10.0, 0.05),
    Setting(1.0, 0.5, models=10.0),
    Setting(1.0, 0.5, models=30.0),
    Setting(1.0, 0.5, models=100.0),
)
RIDGES = (0.01, 0.1, 1.0)
SOURCE = {  # perso:EXP-4, Table 2.1: global, local, learned
    ("har", "linear"): (93.64, 92.69, 96.87),
    ("har", "boost"): (94.34, 93.16, 95.57),
    ("har_fifth", "boost"): (94.34, 93.16, 95.57),
    ("computer_buyers", "linear"): (62.18, 60.68, 69.10),
    ("computer_buyers", "boost"): (69.16, 66.61, 73.55),
    ("school", "linear"): (57.06, 70.43, 71.78),
    ("school", "boost"): (69.96, 70.69, 72.47),
}


def available(name: str) -> bool:
    """Whether the files of a set are on this machine."""
    return catalog.locate(name.removesuffix("_fifth")) is not None


def kinds(name: str) -> list[str]:
    """The kinds of models that a set is judged with."""
    return [kind for kind in KINDS if (name, kind) in SETTINGS]


def accuracies(
    name: str, kind: str, seed: int, setting: Setting | None = None
) -> tuple[float, float, float]:
    """Global, local and learned, in percent, on one split."""
    return compare(SETS[name](seed), kind, setting or SETTINGS[name, kind], seed)


def compare(
    data: Personalized, kind: str, setting: Setting, seed: int
) -> tuple[float, float, float]:
    """The three methods on the test records of a split."""
    if kind == "boost":
        return _boosted(data, setting, seed)
    return _linear(data, setting, seed)


def _boosted(data: Personalized, setting: Setting, seed: int) -> tuple[float, float, float]:
    low, high = data.features.min(axis=0), data.features.max(axis=0)
    stumps = Stumps.over(low, high, data.stumps * data.features.shape[1])
    task = Boosted(Boosted.of(*data.part(True), stumps), Boosted.of(*data.part(False), stumps))
    trust, steps = confidences(task.sizes), max(20, 3000 // task.peers)
    boost = Boosting(setting.between, RADIUS, confidences=trust)
    alone = br.run(
        Boosting(0.0, RADIUS), f"ring:{task.peers}", task, steps=100, seed=seed, evaluate_every=0
    )
    aim = Collaboration(setting.coupling, setting.coupling, setting.sparsity, FLOOR)
    learned = alternate(
        boost, task, aim, rounds=ROUNDS, steps=steps, wakes=WAKES * task.peers, seed=seed
    )
    one = np.broadcast_to(_one_booster(data, stumps), (task.peers, task.dim))
    sizes = task.held_out.sizes if task.held_out is not None else task.sizes
    return _three([task.scores(models) for models in (one, alone.estimates, learned.models)], sizes)


def _one_booster(data: Personalized, stumps: Stumps) -> Array:
    """Frank-Wolfe on all records in one place."""
    features, labels, _ = data.part(True)
    task = Boosted(Boosted.of(features, labels, np.zeros(len(labels), np.int64), stumps))
    model = np.zeros((1, task.dim))
    for step in range(1, GLOBAL_STEPS + 1):
        slope = task.gradient(np.array([0]), model)[0]
        best, length = int(np.abs(slope).argmax()), 2 / (step + 2)
        model *= 1 - length
        model[0, best] -= length * RADIUS * np.sign(slope[best])
    return model


def _linear(data: Personalized, setting: Setting, seed: int) -> tuple[float, float, float]:
    train, test = data.part(True), data.part(False)
    records = Records.of(*train)
    task = Personal(Logistic(records), setting.ridge / records.sizes, Records.of(*test))
    one = Personal(
        Logistic(Records.of(train[0], train[1], np.zeros(len(train[1]), np.int64))),
        np.array([setting.ridge / len(train[1])]),
    )
    smooth = tuple(_smoothness(data, peer) + float(task.ridge[peer]) for peer in range(task.peers))
    descent = Descent(setting.between, smooth, confidences(task.sizes))
    aim = Collaboration(setting.coupling, setting.coupling, setting.sparsity, FLOOR)
    learned = alternate(
        descent,
        task,
        aim,
        rounds=ROUNDS,
        steps=max(20, 3000 // task.peers),
        wakes=WAKES * task.peers,
        seed=seed,
    )
    shared = np.broadcast_to(one.value(np.array([0])), (task.peers, task.dim))
    local = task.value(np.arange(task.peers))
    sizes = task.held_out.sizes if task.held_out is not None else task.sizes
    return _three([task.scores(models) for models in (shared, local, learned.models)], sizes)


def _smoothness(data: Personalized, peer: int) -> float:
    """The largest curvature of a peer's logistic loss; nothing is private here, so it may be read
    off the records."""
    rows = data.features[data.train & (data.owners == peer)]
    return float(np.linalg.norm(rows, 2) ** 2 / len(rows) / 4)


def _three(scores: list[Array], sizes: Ints) -> tuple[float, float, float]:
    """Global, local and learned, pooled over all test records."""
    shared, local, learned = (100 * float(one @ sizes / sizes.sum()) for one in scores)
    return shared, local, learned


def means(name: str, kind: str) -> Array:
    """Means and standard deviations over the splits, for global, local and learned  # (2, 3)."""
    found = np.array([accuracies(name, kind, seed) for seed in SPLITS])
    return np.stack((found.mean(axis=0), found.std(axis=0)))


def choose(name: str, kind: str) -> list[tuple[Setting, tuple[float, float, float]]]:
    """Every setting of the grid on held-back training records of the fourth split, the best learned
    models first, and of equal ones the most coupled."""
    data = held_back(SETS[name](CHOSEN_ON), CHOSEN_ON)
    grid = GRID
    if kind == "linear":
        ridge = max(
            RIDGES, key=lambda one: _linear(data, Setting(1.0, 0.5, one), 0)[1]
        )  # the best for local models
        grid = tuple(replace(one, ridge=ridge) for one in GRID)
    tried = [(setting, compare(data, kind, setting, 0)) for setting in grid]
    return sorted(tried, key=lambda entry: (-entry[1][2], -entry[0].between))


def main() -> None:
    parser = argparse.ArgumentParser(description="how the settings of personal models were chosen")
    parser.add_argument("sets", nargs="+", metavar="SET", help=f"of {', '.join(SETS)}")
    names = parser.parse_args().sets
    if unknown := sorted(set(names) - set(SETS)):
        parser.error(f"there is no set {unknown[0]!r}; the sets are {', '.join(SETS)}")
    if missing := [name for name in names if not available(name)]:
        parser.error(
            f"the files of {missing[0]} are not here; set BRUIT_DATA to the folder that holds them"
        )
    for name in names:
        for kind in kinds(name):
            for setting, found in choose(name, kind):
                shown = ", ".join(f"{one:.2f}" for one in found)
                print(f"{name} {kind} {setting}: {shown}", flush=True)


if __name__ == "__main__":
    main()
