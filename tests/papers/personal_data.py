"""The synthetic problems of the personalized-learning papers (perso:EXP-1, EXP-3) and the toy problem P1."""

import numpy as np

from bruit.graphs.similarity import angular_weights
from bruit.personal.objective import Joint, confidences
from bruit.personal.sensitivity import bounded_records
from bruit.tasks import Logistic, Records
from bruit.tasks.boosted import Boosted
from bruit.tasks.personal import Personal
from bruit.tasks.stumps import Stumps

P1_WEIGHTS = np.array([[0, 1, 0.5], [1, 0, 0.25], [0.5, 0.25, 0]])
P1_SMOOTHNESS = (1.25, 1.0, 0.7916666666666666)
P1_CONFIDENCES = (0.5, 1.0, 0.75)


def p1():
    features = np.array([[1, 0], [0, 1], [1, 1], [1, -1], [-1, 1], [0, 1], [0.5, 0], [0, -0.5], [0.5, 0.5]], float)
    labels = np.array([1, -1, 1, 1, -1, 1, 1, 1, -1.0])
    owners = np.array([0, 0, 1, 1, 1, 1, 2, 2, 2])
    task = Personal(Logistic(Records.of(features, labels, owners)), 2.0 / np.array([2, 4, 3]))
    return task, Joint(P1_WEIGHTS, np.array(P1_CONFIDENCES), 1.0)


def worth(joint, task, models):
    """M at these models."""
    return joint.value(models, task.losses(np.arange(task.peers), models))


def best(joint, task, steps=400):
    """The minimizer of M by exact block minimization: an oracle that shares no code with the algorithms' steps."""
    models, degrees = np.zeros((task.peers, task.dim)), joint.degrees
    for _ in range(steps):
        before = models.copy()
        for u in range(task.peers):
            mean = np.asarray(joint.weights[[u]] @ models)[0] / degrees[u]
            rho = joint.confidences[u] / joint.coupling
            models[u] = task.prox(np.array([u]), mean[None], rho)[0]
        if np.abs(models - before).max() < 1e-9:
            break
    return models


def angles(seed, dim, sizes=(10, 100), peers=100, rows="none"):
    """perso:EXP-1: linear targets in a plane of dim dimensions; rows: none, or scaled to norm 1 in L1 or L2."""
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


def moons(seed, peers=100, dim=20, count=200):
    """perso:EXP-3: two moons turned by an angle of the peer's cluster, zero-padded, answered by stumps."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(4), (10, 20, 30, 40))[:peers]
    corners = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)])
    axes = corners[cluster] + 0.3 * rng.standard_normal((peers, 2))
    turn = np.arctan2(axes[:, 1], axes[:, 0])

    def draw(counts):
        owners = np.repeat(np.arange(peers), counts)
        labels = np.where(rng.random(len(owners)) < 0.5, 1.0, -1.0)
        t = rng.uniform(0, np.pi, len(owners))
        up = labels > 0
        flat = np.stack((np.where(up, np.cos(t), 1 - np.cos(t)), np.where(up, np.sin(t), 0.5 - np.sin(t))), axis=1)
        flat = flat - (0.5, 0.25) + 0.05 * rng.standard_normal(flat.shape)
        c, s = np.cos(turn[owners]), np.sin(turn[owners])
        features = np.zeros((len(owners), dim))
        features[:, 0], features[:, 1] = c * flat[:, 0] - s * flat[:, 1], s * flat[:, 0] + c * flat[:, 1]
        return features, labels, owners

    counts = rng.integers(3, 16, peers)
    train, test = draw(counts), draw(np.full(peers, 100))
    train[1][rng.random(len(train[1])) < 0.05] *= -1
    stumps = Stumps.over(train[0].min(axis=0), train[0].max(axis=0), count)
    task = Boosted(Boosted.of(*train, stumps), Boosted.of(*test, stumps))
    return task, cluster, angular_weights(axes), confidences(counts)
