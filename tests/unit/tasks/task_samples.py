"""Small tasks with every loss, and their objectives written out from the definition."""

from math import inf

import numpy as np

from bruit.tasks import Logistic, Records, Ridge, Softmax

PEERS = 6


def make_records(kind, seed=0, rows="unit", records=40, columns=4):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(records, columns)) * 3
    owners = np.concatenate([np.arange(PEERS), rng.integers(0, PEERS, records - PEERS)])
    if kind is Logistic:
        targets = rng.choice([-1.0, 1.0], records)
    elif kind is Ridge:
        targets = 2 * rng.normal(size=records)
    else:
        targets = np.concatenate([np.arange(3.0), rng.integers(0, 3, records - 3)])
    return (
        Records.of(features, targets, owners, rows=rows, intercept=True),
        features,
        targets,
        owners,
    )


TASKS = [
    (Logistic, None, 0.0),
    (Logistic, 0.3, 0.1),
    (Logistic, 0.7, 0.0),
    (Ridge, None, 0.2),
    (Ridge, 0.5, 0.0),
    (Softmax, None, 0.0),
    (Softmax, None, 0.3),
]


def make_task(kind, clip, l2, **options):
    return kind(make_records(kind, **options)[0], l2, clip)


def objective(task, peer, x):
    """f_peer(x), written from the definition of the loss, record by record, clipped by integrating
    its slope."""
    part = next(task.records.parts(np.array([peer]), task.dim))
    kept = part.weights[0] > 0
    features, targets = part.features[0][kept], part.targets[0][kept]
    clip = inf if task.derivative_clip is None else task.derivative_clip
    total = 0.0
    for row, y in zip(features, targets, strict=True):
        scores = x.reshape(task.outputs, -1) @ row
        if isinstance(task, Logistic):
            margin = y * scores[0]
            knee = -np.log(clip / (1 - clip)) if clip < 1 else -inf
            total += np.log1p(np.exp(-max(margin, knee)))
            total += clip * (knee - margin) if margin < knee else 0.0
        elif isinstance(task, Ridge):
            gap = abs(scores[0] - y)
            total += gap**2 / 2 if gap <= clip else clip * gap - clip**2 / 2
        else:
            total += np.log(np.exp(scores).sum()) - scores[int(y)]
    return total / len(targets) + task.l2 / 2 * (x @ x)
