"""Linkage: two batches of local-DP reports from the same users, in unknown order; who is who?

A user reports twice, the data repeated (or kept with probability `keep`, drawn anew otherwise). For
a pair of reports

    log-odds = log P(y, y' | one user) - log P(y) P(y')

and the matching with the largest sum of log-odds is the estimate. Each report is epsilon-DP alone;
two of them together can single a user out, which is what composition charges for. Prior laws of the
data are estimated from the reports themselves. Noise: randomized response over K values on every
attribute (perso:LDP-2), Gaussian or Laplace on rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.mechanisms import Laplace, Mechanism
from bruit.privacy.formulas.randomized_response import probabilities

NODES = 41  # of the data's law, per coordinate
SIDES = 4_000  # users beyond which the matrix of all pairs is too large


@dataclass(frozen=True)
class Responses:
    """Randomized response over `values` answers, each attribute at `epsilon`."""

    values: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class Linked:
    """Report `k` of the first batch is thought to be that of report `partner[k]` of the second."""

    partner: Ints  # (n,)
    odds: Array  # (n, n) log-odds that two reports are of one user

    def score(self, truth: Ints) -> tuple[float, float]:
        """The fraction matched rightly, and what guessing gives: 1 / n."""
        if np.shape(truth) != self.partner.shape:
            raise ConfigError(
                f"the truth names {np.shape(truth)} partners for {len(self.partner)} reports"
            )
        return float((self.partner == truth).mean()), 1.0 / len(self.partner)


def link(first: Array, second: Array, noise: Responses | Mechanism, keep: float = 1.0) -> Linked:
    """The most likely matching of two batches of reports (users, attributes), of whole numbers or
    of real ones."""
    one, two = np.asarray(first), np.asarray(second)
    if one.ndim != 2 or one.shape != two.shape or 0 in one.shape:
        raise ConfigError(
            f"two batches of reports need one shape (users, attributes), found {one.shape} and"
            f" {two.shape}"
        )
    check_size(len(one))
    answers = (
        _answer_odds(one, two, noise)
        if isinstance(noise, Responses)
        else number_odds(one, two, noise)
    )
    return matched(answers, keep)


def check_size(users: int) -> None:
    if users > SIDES:
        raise ConfigError(
            f"{users} users make too many pairs to compare; link at most {SIDES} at a time"
        )


def matched(odds: Array, keep: float = 1.0) -> Linked:
    """The matching with the largest sum of log-odds, when a user's data is kept with this
    probability."""
    from scipy.optimize import linear_sum_assignment

    if not 0 <= keep <= 1:
        raise ConfigError(
            f"the chance that a user's data is the same in both reports is in [0, 1], found {keep}"
        )
    with np.errstate(divide="ignore"):
        mixed = np.logaddexp(odds + np.log(keep), np.log1p(-keep))
    return Linked(
        np.asarray(linear_sum_assignment(np.maximum(mixed, -1e6), maximize=True)[1], np.int64),
        mixed,
    )


def _answer_odds(one: Array, two: Array, noise: Responses) -> Array:
    """sum over attributes of log sum_x p(x) P(y|x) P(y'|x) / (P(y) P(y')), p by unbiased counts of
    both batches."""
    if (
        one.dtype.kind not in "iu"
        or min(one.min(), two.min()) < 0
        or max(one.max(), two.max()) >= noise.values
    ):
        raise ConfigError(
            f"randomized responses are whole numbers in 0..{noise.values - 1}; check the reports"
        )
    truth, other = probabilities(noise.values, noise.epsilon)
    if truth == other:
        return np.zeros((len(one), len(two)))
    channel = np.full((noise.values, noise.values), other) + (truth - other) * np.eye(noise.values)
    odds = np.zeros((len(one), len(two)))
    for column in range(one.shape[1]):
        both = np.concatenate((one[:, column], two[:, column]))
        frequencies = np.bincount(both, minlength=noise.values) / len(both)
        prior = np.clip((frequencies - other) / (truth - other), 1e-6, None)
        odds += pair_odds(
            channel[:, one[:, column]].T, channel[:, two[:, column]].T, prior / prior.sum()
        )
    return odds


def pair_odds(one: Array, two: Array, prior: Array) -> Array:
    """log sum_x p(x) P(y|x) P(y'|x) / (P(y) P(y')) from likelihoods (users, data), each up to a
    factor  # (n, n)."""
    return np.asarray(np.log((one * prior) @ two.T) - np.log(np.outer(one @ prior, two @ prior)))


def number_odds(one: Array, two: Array, noise: Mechanism) -> Array:
    """The same for real reports: each coordinate's data has a normal law, fitted to the reports,
    cut to the clip."""
    if noise.sigma <= 0:
        return np.where(np.abs(one[:, None, :] - two[None, :, :]).sum(axis=2) > 1e-12, -1e6, 0.0)
    odds = np.zeros((len(one), len(two)))
    for column in range(one.shape[1]):
        both = np.concatenate((one[:, column], two[:, column]))
        spread = math.sqrt(max(float(both.var()) - noise.sigma**2, 1e-4 * noise.clip**2))
        nodes = np.clip(both.mean() + spread * np.linspace(-4, 4, NODES), -noise.clip, noise.clip)
        prior = np.exp(-(np.linspace(-4, 4, NODES) ** 2) / 2)
        prior /= prior.sum()
        a, b = _likelihood(one[:, column], nodes, noise), _likelihood(two[:, column], nodes, noise)
        odds += pair_odds(a, b, prior)
    return odds


def _likelihood(reports: Array, nodes: Array, noise: Mechanism) -> Array:
    """P(report | data = node), up to a factor of its own for each report: it cancels  # (users,
    nodes)."""
    gap = reports[:, None] - nodes
    if isinstance(noise, Laplace):
        logs = np.asarray(-np.abs(gap) / noise.scale)
    else:
        logs = np.asarray(-(gap**2) / (2 * noise.sigma**2))
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))
