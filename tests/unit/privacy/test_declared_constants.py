"""Every constant that a claim takes from a declaration is printed with its value, and as
assumed."""

from dataclasses import dataclass

import numpy as np
import pytest

import bruit as br
from bruit.graphs import path, ring
from bruit.privacy.ahead.admm import (
    AdmmNoise,
    consensus_guarantee,
    federated_guarantee,
    models_estimate,
)
from bruit.privacy.ahead.iteration import last_iterate
from bruit.privacy.theorems.descent import GossipDescent as Quadratic
from bruit.privacy.theorems.descent import quadratic_guarantee
from bruit.privacy.theorems.walk_hypotheses import Descent
from bruit.privacy.theorems.walk_realized import Visits, realized
from bruit.runs.asking import BlankProtocol
from bruit.tasks import Constants, Mean

ADMM = AdmmNoise(lipschitz=1.75, gamma=0.375, sigma=20.0)
PATH, FLAGS = np.array([0, 1, 2, 0, 1]), np.ones(5, bool)


@dataclass(frozen=True, eq=False)
class Linear(Mean):
    """Gradients that do not react, by declaration."""

    def gradient(self, ids, x):
        return self.value(ids)

    def constants(self):
        return Constants(1.0, 0.0, 0.0, "declared")


def walk(bound=None, l2=0.0):
    task = br.tasks.Logistic.load("iris_like.npz", peers=4, l2=l2)
    return br.run(
        br.WalkSGD(rate=0.5, bound=bound),
        "complete:4",
        task,
        steps=9,
        evaluate_every=0,
        privacy=br.Gaussian(clip=4.0, sigma=8.0),
    ).guarantee(of=1, seen_by=2)


SAID = {
    "walk": (
        walk,
        (
            "the declared smoothness beta = 0.25",
            "no longer than L = 1, which the clip 4 never cuts",
        ),
    ),
    "walk in a ball": (
        lambda: walk(3.0, 0.125),
        ("beta = 0.375, strong convexity mu = 0.125", "ball of radius 3"),
    ),
    "federated ADMM": (
        lambda: federated_guarantee(ADMM, 3),
        ("the declared L = 1.75", "gamma = 0.375"),
    ),
    "server's ADMM": (
        lambda: consensus_guarantee(9, 3, 1.75, 0.375, 1.0),
        ("the declared L = 1.75", "gamma = 0.375"),
    ),
    "estimated ADMM": (
        lambda: models_estimate(ADMM, 9, 3),
        ("the declared L = 1.75", "gamma = 0.375"),
    ),
    "last iterate": (
        lambda: last_iterate([1, 0], 2.0, lipschitz=[1.5, 1.0], descent=Descent(0.5, 0.75)),
        ("the declared beta = 0.75", "declared Lipschitz constants, 1 to 1.5"),
    ),
    "realized walk": (
        lambda: realized(
            Visits(path=PATH, contributed=FLAGS, n=3, lipschitz=np.linspace(1, 2, 5)),
            0,
            [2],
            2.0,
            Descent(0.5, 0.75),
        ),
        ("the declared beta = 0.75", "declared Lipschitz constants, 1 to 2"),
    ),
    "squares": (
        lambda: quadratic_guarantee(Quadratic(path(3), 2, 1, slopes=(0.1, 0.2, 0.3)), 0, 2, 4.0),
        ("rate * h is as declared, 0.1 to 0.3",),
    ),
    "gradients that stay": (
        lambda: br.run(
            br.GossipSGD(),
            ring(6),
            Linear(np.ones((6, 1))),
            steps=2,
            evaluate_every=0,
            privacy=br.Gaussian(clip=1.0, sigma=2.0),
        ).guarantee(of=1, seen_by=3),
        ("the declared smoothness is beta = 0",),
    ),
    "asked beforehand": (
        lambda: (
            BlankProtocol(
                graph="complete:6",
                algorithm="walk-sgd",
                settings=("algorithm.rate=0.5",),
                steps=12,
                sigma=4.0,
                smoothness=0.625,
            )
            .rehearse()
            .guarantee(of=1, seen_by=2)
        ),
        ("beta = 0.625", "L = 0.5, which the clip 0.5 never cuts"),
    ),
}


@pytest.mark.parametrize(("state", "words"), SAID.values(), ids=SAID)
def test_declared_constants_are_printed_as_assumed(state, words, tmp_path, monkeypatch):
    """Before, the walk called them checked, and ADMM did not say which L."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("iris_like.npz", X=rng.normal(size=(40, 2)), y=np.arange(40) % 2)
    assumed = [
        line for line in state().epsilon().why().splitlines() if line.startswith("  assumed: ")
    ]
    for text in words:
        assert any(text in line for line in assumed), (text, assumed)
