"""The synthetic problems of the personalized-learning papers, made from a seed (perso:EXP-1, EXP-2,
EXP-3)."""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array, Ints
from bruit.graphs.graph import Weights
from bruit.graphs.similarity import angular_weights
from bruit.personal.objective import confidences
from bruit.personal.sensitivity import bounded_records
from bruit.tasks import Logistic, Records
from bruit.tasks.boosted import Boosted
from bruit.tasks.personal import Personal
from bruit.tasks.stumps import Stumps

Rows = tuple[Array, Array, Ints]  # features, labels -1 and 1, owners


def angles(
    seed: int, dim: int, sizes: tuple[int, int] = (10, 100), peers: int = 100, rows: str = "none"
) -> tuple[Personal, Weights, Array, Rows]:
    """Task, weights, confidences and training rows: linear targets in a plane of dim dimensions
    (perso:EXP-1).

    rows: "none", or "l1" or "l2" for records scaled to norm 1, which private runs need.
    """
    rng = np.random.default_rng(seed)
    target = np.zeros((peers, dim))
    target[:, :2] = rng.standard_normal((peers, 2))
    counts = rng.integers(sizes[0], sizes[1] + 1, peers)
    owners = np.repeat(np.arange(peers), counts)
    features = rng.uniform(-1, 1, (len(owners), dim))
    labels = np.where((features * target[owners]).sum(axis=1) > 0, 1.0, -1.0)
    labels[rng.random(len(labels)) < 0.05] *= -1
    tested = np.repeat(np.arange(peers), 100)
    fresh = rng.uniform(-1, 1, (len(tested), dim))
    truth = np.where((fresh * target[tested]).sum(axis=1) > 0, 1.0, -1.0)
    if rows == "none":
        records = Records.of(features, labels, owners)
    else:
        order = 1 if rows == "l1" else 2
        features = features / np.linalg.norm(features, order, axis=1)[:, None]
        records = bounded_records(features, labels, owners, order)
    task = Personal(Logistic(records), 2.0 / counts, Records.of(fresh, truth, tested))
    return task, angular_weights(target), np.array(confidences(counts)), (features, labels, owners)


def moons(
    seed: int, peers: int = 100, dim: int = 20, count: int = 200
) -> tuple[Boosted, Ints, Weights, tuple[float, ...]]:
    """Task, cluster of each peer, weights of the angles, confidences: two moons, turned by an angle
    (perso:EXP-3)."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(4), (10, 20, 30, 40))[:peers]
    corners = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)])
    axes = corners[cluster] + 0.3 * rng.standard_normal((peers, 2))
    turn = np.arctan2(axes[:, 1], axes[:, 0])

    def draw(counts: Ints) -> Rows:
        owners = np.repeat(np.arange(peers), counts)
        labels = np.where(rng.random(len(owners)) < 0.5, 1.0, -1.0)
        t = rng.uniform(0, np.pi, len(owners))
        up = labels > 0
        flat = np.stack(
            (np.where(up, np.cos(t), 1 - np.cos(t)), np.where(up, np.sin(t), 0.5 - np.sin(t))),
            axis=1,
        )
        flat = flat - (0.5, 0.25) + 0.05 * rng.standard_normal(flat.shape)
        c, s = np.cos(turn[owners]), np.sin(turn[owners])
        features = np.zeros((len(owners), dim))
        features[:, 0], features[:, 1] = (
            c * flat[:, 0] - s * flat[:, 1],
            s * flat[:, 0] + c * flat[:, 1],
        )
        return features, labels, owners

    counts = rng.integers(3, 16, peers)
    train, test = draw(counts), draw(np.full(peers, 100))
    train[1][rng.random(len(train[1])) < 0.05] *= -1
    stumps = Stumps.over(train[0].min(axis=0), train[0].max(axis=0), count)
    task = Boosted(Boosted.of(*train, stumps), Boosted.of(*test, stumps))
    return task, cluster, angular_weights(axes), confidences(counts)
