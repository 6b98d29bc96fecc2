"""Scores: one number per view, larger when the data is the second of two neighbors.

The likelihood ratio is the best score there is, known for linear algorithms under Gaussian noise
(its forms come from running the algorithm on symbols). The learned score is Fisher's linear
discriminant, fitted on the training half of the views: it knows nothing of the algorithm, so it
also finds what a mistake leaves behind, such as noise that cancels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bruit.adversary.attacks.distinguish import likelihood_weights
from bruit.adversary.audits.trials import Views, copied_views
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import Address
from bruit.algorithms.messages import Edges
from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.randomness import Replay, pair
from bruit.runs.engines.forms import SourceDoor, view_forms
from bruit.tasks.task import Task
from bruit.trace import Trace

SYMBOLS = 30_000  # copies spoken beyond which the forms of a view are too wide to hold
FEATURES = 1500  # numbers of a view the learned score looks at
RIDGES = np.logspace(-13, 1, 15)


@dataclass(frozen=True, eq=False)
class ViewScore:
    """A linear score; `fitted` says that half of the trials were spent on finding it."""

    name: str
    weights: Array  # (features,)
    fitted: bool

    def of(self, views: Views) -> tuple[Array, Array]:
        return views.left @ self.weights, views.right @ self.weights


def likelihood_score(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    steps: int,
    observers: tuple[int, ...],
    of: int,
    direction: Array,
    seed: int = 0,
    given: Trace | None = None,
) -> ViewScore | None:
    """<(B B^T)^+ A_u 1, Y e>, e the direction in which peer `of` moves; None without forms
    (gossip:LG-1)."""
    first = graph if isinstance(graph, Graph) else graph.at(0)
    if not algorithm.linear or int(first.weights.nnz) * max(steps, 1) > SYMBOLS:
        return None
    try:
        forms, _ = view_forms(algorithm, graph, steps, observers, seed, given)
    except PrivacyError:
        return None  # something in it is not linear after all; the learned score is there
    shift = forms.A[:, forms.owner == of].sum(axis=1)
    if not shift.any():
        return None
    found = likelihood_weights(forms.B, shift)
    return ViewScore("likelihood ratio", np.outer(found.w, direction).ravel(), fitted=False)


def learned_score(training: Views) -> ViewScore:
    """Fisher's discriminant (S + ridge)^-1 (mean_right - mean_left); a part of the training views
    chooses the ridge."""
    left, right = training
    centers, scale = (left.mean(axis=0), right.mean(axis=0)), _scale(left, right)
    gap = (centers[1] - centers[0]) / scale
    chosen = np.sort(np.argsort(-np.abs(gap), kind="stable")[:FEATURES])
    part = [
        (side[:, chosen] - center[chosen]) / scale[chosen]
        for side, center in zip(training, centers, strict=True)
    ]
    cut = max(2, len(left) // 2)
    ridge = _best_ridge(
        Views(left[:, chosen] / scale[chosen], right[:, chosen] / scale[chosen]), cut
    )
    weights = np.zeros(left.shape[1])
    weights[chosen] = (
        _fitted(np.concatenate(part), gap[chosen], np.array([ridge]))[0] / scale[chosen]
    )
    return ViewScore("learned", weights, fitted=True)


def _scale(left: Array, right: Array) -> Array:
    """What one unit of each feature is: its spread, or the gap where it has none."""
    spread = np.sqrt((left.var(axis=0) + right.var(axis=0)) / 2)
    gap = np.abs(right.mean(axis=0) - left.mean(axis=0))
    return np.where(
        spread > 1e-12 * gap, np.where(spread > 0, spread, 1.0), np.where(gap > 0, gap, 1.0)
    )


def _fitted(centered: Array, gap: Array, ridges: Array) -> Array:
    """(S + ridge)^-1 gap for each ridge  # (ridges, features)."""
    values, vectors = np.linalg.eigh(centered.T @ centered / len(centered))
    turned = vectors.T @ gap
    return np.stack([vectors @ (turned / (np.maximum(values, 0.0) + ridge)) for ridge in ridges])


def _best_ridge(views: Views, cut: int) -> float:
    """The ridge whose score, fitted on the views before `cut`, separates those after it best."""
    early, late = (
        Views(views.left[:cut], views.right[:cut]),
        Views(views.left[cut:], views.right[cut:]),
    )
    centered = np.concatenate([side - side.mean(axis=0) for side in early])
    gap = early.right.mean(axis=0) - early.left.mean(axis=0)
    best, chosen = -1.0, RIDGES[-1]
    for ridge, weights in zip(RIDGES, _fitted(centered, gap, RIDGES), strict=True):
        left, right = late.left @ weights, late.right @ weights
        spread = np.sqrt((left.var() + right.var()) / 2)
        far = right.mean() - left.mean()
        reach = float(far / max(spread, 1e-12 * abs(far), 1e-200))
        if reach > best * (1 + 1e-3):  # a larger ridge must be clearly better
            best, chosen = reach, ridge
    return float(chosen)


class _NextRowDoor(SourceDoor):
    """A door that answers every question with the next rows of a script, as linear losses would,
    and remembers whether any question was about a model."""

    def __init__(self, script: Array) -> None:
        super().__init__(width=script.shape[1])
        self._script, self._next, self.reacts, self.pairs = script, 0, False, False

    def _fresh(self, owners: Ints, data: bool) -> Array:
        rows = (self._next + np.arange(len(owners))) % len(self._script)
        self._next += len(owners)
        return self._script[rows]

    def _about_model(self, at: Address) -> Array:
        self.reacts = True
        return self._fresh(at.ids, True)

    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        return self._about_model(at)

    def prox(self, at: Address, x: Array, rho: Array) -> Array:
        return x - rho[:, None] * self._about_model(at)

    def envelope_gradient(self, at: Address, x: Array, rho: Array, level: float = 1.0) -> Array:
        return self._about_model(at)

    def descent(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        return self._about_model(at)

    def pair_value(self, x: Array, y: Array) -> Array:
        self.pairs = True
        return x * y

    def pair_gradient(self, models: Array, x: Array, y: Array) -> Array:
        self.pairs = True
        return models * x * y

    def keep(self, at: Address, query: Callable[[Task, Ints], Array]) -> Array:
        return np.zeros((len(at.ids), self.width))

    def pair_noise(self, at: Address, edges: Edges, sigma: float, width: int) -> Array:
        mine = np.repeat(at.ids, np.diff(edges.start))
        rows = self._script[pair(mine, edges.peers) % len(self._script)]
        return np.where(mine < edges.peers, sigma, -sigma)[:, None] * rows


class Shape(NamedTuple):
    """Whether a view is affine in what the door answers, whether the door is asked about models at
    all, and whether the task is asked what made-up data do not answer: about pairs of points, for
    losses."""

    affine: bool
    reacts: bool
    pairs: bool


def shape_of(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    steps: int,
    observers: tuple[int, ...],
    given: Trace | None = None,
) -> Shape:
    """A view is an affine function of what the door answers if F(a) + F(b) = F(0) + F(a + b) on
    random answers. Then Gaussian noise makes Gaussian scores: of straight losses always, of others
    if no answer depends on a model. Words modulo 2^64 are affine in nothing, nor is what follows from a
    loss."""
    if algorithm.schedule.masked:
        return Shape(affine=False, reacts=True, pairs=False)
    draws = Replay(17).normal("affine", np.arange(211), 0, 0, 2)
    one, two = draws[:, :1], draws[:, 1:]
    doors = [_NextRowDoor(script=script) for script in (one, two, np.zeros_like(one), one + two)]
    try:
        seen = [
            copied_views(algorithm, graph, door, steps, observers, 1, 0, given) for door in doors
        ]
    except PrivacyError:
        return Shape(affine=False, reacts=True, pairs=True)
    scale = 1.0 + float(np.abs(np.stack(seen)).max(initial=0.0))
    affine = bool(np.allclose(seen[0] + seen[1], seen[2] + seen[3], rtol=0, atol=1e-9 * scale))
    return Shape(affine, doors[0].reacts, doors[0].pairs)
