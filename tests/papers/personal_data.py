"""The toy problem P1 of perso:PERSO-1, and the objective that experiments are judged by."""

import numpy as np

from bruit.personal.objective import Joint
from bruit.tasks import Logistic, Records
from bruit.tasks.personal import Personal

P1_WEIGHTS = np.array([[0, 1, 0.5], [1, 0, 0.25], [0.5, 0.25, 0]])
P1_SMOOTHNESS = (1.25, 1.0, 0.7916666666666666)
P1_CONFIDENCES = (0.5, 1.0, 0.75)


def p1():
    features = np.array(
        [[1, 0], [0, 1], [1, 1], [1, -1], [-1, 1], [0, 1], [0.5, 0], [0, -0.5], [0.5, 0.5]], float
    )
    labels = np.array([1, -1, 1, 1, -1, 1, 1, 1, -1.0])
    owners = np.array([0, 0, 1, 1, 1, 1, 2, 2, 2])
    task = Personal(Logistic(Records.of(features, labels, owners)), 2.0 / np.array([2, 4, 3]))
    return task, Joint(P1_WEIGHTS, np.array(P1_CONFIDENCES), 1.0)


def worth(joint, task, models):
    """M at these models."""
    return joint.value(models, task.losses(np.arange(task.peers), models))


def best(joint, task, steps=400):
    """The minimizer of M by exact block minimization: an oracle that shares no code with the
    algorithms' steps."""
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
