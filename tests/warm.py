"""`python -m tests.warm` compiles the loops that fast tests need, once, before workers start.

Two workers that begin with nothing compiled both compile the same loops. Here two processes share
them out: one accounts, the other runs algorithms. What was compiled is kept beside the code by
numba, so that a second call only finds it there. What is forgotten here is compiled by the first
test that needs it: nothing depends on this list but time.
"""

from __future__ import annotations

import sys
from multiprocessing import get_context

import numpy as np

import bruit as br
from bruit.privacy.theorems.walk_realized import visits, walk_matrix
from bruit.runs.run import rehearse
from bruit.tasks import Logistic, Mean, Pairwise, Records, Ridge, Statistic

NOISE = br.Gaussian(clip=0.3, sigma=0.5)
REAL = br.Gaussian(clip=0.3, sigma=0.5, arithmetic="ideal")


def account() -> None:
    """Losses of all pairs: of rounds, of meetings, of gradients and of a walk."""
    for algorithm in (br.Averaging(), br.PairAveraging(), br.GossipSGD(mixing=2), br.WalkSGD()):
        accountant = rehearse(algorithm, "er:14,c=1.5,seed=2", NOISE, 4, 4).accountant()
        accountant.losses()
        accountant.guarantee(of=1, seen_by=0)
    walk_matrix(visits([0, 2, 1, 3, 0, 0, 2], 4, cap=2))


def learn() -> None:
    """The compiled paths of rounds, meetings, walks, statistics of pairs and personal models."""
    records = Records.of(
        np.eye(3)[np.arange(24) % 3], np.resize([1.0, -1.0], 24), np.arange(24) % 6
    )
    pairs = Statistic.of(np.arange(6.0), "gini")
    ranked = Pairwise.of(np.eye(3)[np.arange(6) % 3], np.resize([1.0, -1.0], 6))
    for algorithm, task, noise in (
        (br.Averaging(), Mean.uniform(6, 1, 1), REAL),
        (br.Averaging(), Mean.uniform(6, 10, 1), REAL),
        (br.Averaging(), Mean.uniform(6, 37, 1), REAL),
        (br.Chebyshev(), Mean.uniform(6, 3, 1), REAL),
        (br.PairAveraging(), Mean.uniform(6, 1, 1), REAL),
        (br.PairAveraging(), Mean.uniform(6, 3, 1), REAL),
        (br.WalkSGD(), Logistic(records), NOISE),
        (br.WalkADMM(), Logistic(records), NOISE),
        (br.WalkADMM(), Ridge(records), NOISE),
        (br.Personalized(), Logistic(records), NOISE),
        (br.GostaRounds(), pairs, None),
        (br.U1Gossip(), pairs, None),
        (br.U2Gossip(), pairs, None),
        (br.DualAveragingRounds(), ranked, None),
    ):
        br.run(
            algorithm,
            "ring:6",
            task,
            privacy=noise,
            steps=300,
            seed=3,
            evaluate_every=0,
            engine=br.Bulk(fused=True),
        )


if __name__ == "__main__":
    accountant = get_context("spawn").Process(target=account)
    accountant.start()
    learn()
    accountant.join()
    sys.exit(accountant.exitcode)
