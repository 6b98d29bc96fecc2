"""Consensus ADMM: every peer i holds a loss f_i and a dual u_i, and all agree on one regularized
model.

    min over x of (1/n) sum_i f_i(x) + r(x)

    zhat = mean_i u_i,  z = prox_{gamma r}(zhat),  x_i = prox_{gamma f_i}(2 z - u_i),  R_i(u) = u_i + 2 (x_i - z)

As a noisy iteration with relaxation l and noise sigma, u_i <- u_i + 2 l (x_i - z + eta / 2): with
all blocks it is the centralized algorithm (8.2), with m sampled ones the federated (8.3), with one
the walk (8.4). The mean of the duals and its proximal point are two variables; feeding z back as
the mean, as 8.3 and 8.4 print it, does not solve the regularized problem. `consensus_noise` puts
the noise on the mean instead and leaves the duals exact. Scaling: gamma is the one of the algorithm
as printed; the general form of walk:ADMM-4 has n times that.
Spec: walk:ADMM-5, ADMM-6, ADMM-7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite

import numpy as np

from bruit.algorithms.admm.contraction import measured_contraction
from bruit.algorithms.admm.draws import DrawSource
from bruit.algorithms.admm.iteration import check_relaxation, check_state
from bruit.algorithms.admm.regularizers import Free, Regularizer
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.randomness import Replay
from bruit.tasks.task import Task

CONTRACTION = 4096  # numbers in all duals up to which the contraction of ADMM is measured

LocalProx = Callable[
    [Array, float], Array
]  # rows (..., peers, d) and gamma to the peers' own proximal points


@dataclass(frozen=True)
class Consensus:
    """Everybody's proximal operator, the public regularizer and the length gamma of proximal
    steps."""

    prox: LocalProx
    gamma: float
    regularizer: Regularizer = Free()

    def __post_init__(self) -> None:
        check_length(self.gamma)

    def operator(self, u: Array) -> Array:
        """u + 2 (x - z)  # (..., peers, d)."""
        return u + self.change(u, self.model(u))

    def change(self, u: Array, z: Array) -> Array:
        """2 (x - z) for duals u and a model z  # (..., peers, d)."""
        center = z[..., None, :]
        return 2 * (self.prox(2 * center - u, self.gamma) - center)

    def model(self, u: Array) -> Array:
        """z, the regularized mean of the duals: what a run returns  # (..., d)."""
        return self.regularizer.prox(u.mean(axis=-2), self.gamma)

    def objective(self, x: Array, losses: Callable[[Array], Array]) -> Array:
        """(1/n) sum_i f_i(x) + r(x), for losses (..., d) to (..., peers)  # (...,)."""
        return np.asarray(losses(x).mean(axis=-1) + self.regularizer.value(x))


@dataclass(frozen=True)
class ConsensusNoise:
    """The variant with noise on the consensus variable only (V4): duals stay exact, with a trusted
    party.

        z = prox_{gamma r}(mean(u) + sigma_z xi),   u_i <- u_i + 2 l (x_i - z) for the peers that take part

    Every z is a release of sensitivity 2 gamma L / n for l <= 1/2, whoever takes part (walk:ADMM-V4).
    """

    consensus: Consensus
    relaxation: float
    sigma: float

    def __post_init__(self) -> None:
        check_relaxation(self.relaxation)
        if not (self.sigma >= 0 and isfinite(self.sigma)):
            raise ConfigError(f"sigma must be a number >= 0, found {self.sigma}")

    def models(self, start: Array, steps: int, draws: DrawSource) -> Iterator[Array]:
        """The released z_1, z_2, ... z_steps; the first depends on no data  # (..., d)."""
        u = check_state(start)
        for number in range(steps):
            z = self._release(number, u, draws)
            yield z
            moving = draws.active(number, u.shape)[..., None]
            u = np.where(moving, u + self.relaxation * self.consensus.change(u, z), u)

    def run(self, start: Array, steps: int, draws: DrawSource) -> Array:
        """The last of so many released models."""
        if steps < 1:
            raise ConfigError(
                f"a model is released in each step, found steps = {steps}; take at least one"
            )
        *_, last = self.models(start, steps, draws)
        return last

    def _release(self, number: int, u: Array, draws: DrawSource) -> Array:
        mean = u.mean(axis=-2)
        shape = (*mean.shape[:-1], 1, mean.shape[-1])
        noise = draws.normals(number, shape)[..., 0, :] if self.sigma else 0.0
        return self.consensus.regularizer.prox(mean + self.sigma * noise, self.consensus.gamma)


def task_prox(task: Task) -> LocalProx:
    """The proximal operators of the peers of a task, for states of all its peers (and of several
    runs)."""

    def prox(rows: Array, gamma: float) -> Array:
        if rows.shape[-2:] != (task.peers, task.dim):
            shape = f"({task.peers}, {task.dim})"
            raise ConfigError(
                f"the task has one row of {task.dim} numbers a peer, {shape}; found {rows.shape}"
            )
        ids = np.tile(np.arange(task.peers), rows.size // (task.peers * task.dim))
        return task.prox(ids, rows.reshape(-1, task.dim), gamma).reshape(rows.shape)

    return prox


def check_length(gamma: float) -> float:
    """gamma is positive and finite."""
    if not (gamma > 0 and isfinite(gamma)):
        raise ConfigError(f"proximal steps need a positive, finite gamma, found {gamma}")
    return gamma


def contraction_on(task: Task, gamma: float, regularizer: Regularizer) -> dict[str, float]:
    """How much ADMM contracts on this task, from below: for the observer, like the other references
    (walk:ADMM-1)."""
    if task.peers * task.dim > CONTRACTION:
        return {}
    consensus = Consensus(task_prox(task), gamma, regularizer)
    start = np.zeros((task.peers, task.dim))
    return {
        "contraction": measured_contraction(consensus.operator, start, Replay(0), pairs=4, turns=10)
    }
