"""Brute force for the guarantees: enumerations, explicit covariances and whole runs, nothing of the
accountants."""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bruit.privacy.exact.rows import linear_gaussian
from bruit.privacy.profile import GaussianProfile, MixtureProfile, Profile, least_epsilon
from tests.unit.privacy.gossip import joint_gaussian
from tests.unit.privacy.test_admm_theorems import Audit, centralized, loss

__all__ = ["Audit", "centralized", "joint_gaussian", "loss"]


def gaussian_pair(energy, z):
    """A loss in local-DP units under a noise multiplier."""
    return GaussianProfile(math.sqrt(energy) / z)


@dataclass(frozen=True, eq=False)
class Outcomes(Profile):
    """Two laws over the same few outcomes: the hockey-stick divergence, the worse of both
    directions."""

    p: np.ndarray
    q: np.ndarray

    def delta(self, epsilon):
        return max(
            float(np.maximum(a - math.exp(epsilon) * b, 0).sum())
            for a, b in ((self.p, self.q), (self.q, self.p))
        )

    def epsilon(self, delta):
        return least_epsilon(self.delta, delta)

    def pure(self):
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.nanmax(np.abs(np.log(self.p) - np.log(self.q))))

    def divergence(self, order):
        return math.inf


@dataclass(frozen=True)
class OneSample(Profile):
    """One Poisson sample: removing the record is the worse direction, q delta_z(log(1 + (e**epsilon
    - 1) / q))."""

    rate: float
    noise_multiplier: float

    def delta(self, epsilon):
        inner = math.log1p(math.expm1(epsilon) / self.rate)
        return self.rate * GaussianProfile(1 / self.noise_multiplier).delta(inner)

    def epsilon(self, delta):
        return least_epsilon(self.delta, delta)

    def pure(self):
        return math.inf

    def divergence(self, order):
        return math.inf


@dataclass(frozen=True)
class Worst(Profile):
    """The worst of several pairs of neighboring data."""

    pairs: tuple[Profile, ...]

    def delta(self, epsilon):
        return max(pair.delta(epsilon) for pair in self.pairs)

    def epsilon(self, delta):
        return max(pair.epsilon(delta) for pair in self.pairs)

    def pure(self):
        return max(pair.pure() for pair in self.pairs)

    def divergence(self, order):
        return max(pair.divergence(order) for pair in self.pairs)


def counted(chances):
    """The law of how many of independent events of these chances happen."""
    law = np.ones(1)
    for chance in chances:
        law = np.convolve(law, [1 - chance, chance])
    return law


def shuffled_yes(truth, others, uniform=0):
    """How many say yes among one person's answer, others' true answers by randomized response, and
    coin tosses.

    As a pair of laws: the person's value is no, or yes."""
    rest = [truth if value else 1 - truth for value in others] + [0.5] * uniform
    return counted([1 - truth, *rest]), counted([truth, *rest])


def windows_of_answers(truth, others, windows):
    """Several windows, each with some uniform elements, of the same people's fresh answers."""
    p = q = np.ones(1)
    for uniform in windows:
        one, two = shuffled_yes(truth, others, uniform)
        p, q = np.outer(p, one).ravel(), np.outer(q, two).ravel()
    return Outcomes(p, q)


# Gossip


def reacting(matrices, rounds, observers, of, z, slopes=(0.0,), **more):
    """Gradients of all peers reacting linearly with any of the slopes, the whole run one joint
    Gaussian."""
    n = len(matrices[0])
    draws = np.random.default_rng(7)
    tried = [np.full(n, slope) for slope in slopes] + [
        draws.uniform(-2, 2, n) for _ in range(3)
    ] * (len(slopes) > 1)
    worst = 0.0
    for each in tried:
        setting = joint_gaussian.Setting(
            [matrices] * rounds, slopes=each if np.any(each) else None, **more
        )
        worst = max(worst, joint_gaussian.losses(setting, list(observers))[of])
    return gaussian_pair(worst, z)


def alike(matrices, rounds, slopes, of, z):
    """All gradients of one peer move alike, those of all react with known slopes."""
    setting = joint_gaussian.Setting([matrices] * rounds, slopes=-np.array(slopes))
    shifts, noise = joint_gaussian.view(setting, [0])
    return gaussian_pair(
        float(linear_gaussian(shifts[:, of :: setting.n].sum(axis=1, keepdims=True), noise)[0]), z
    )


def group_energy(weights, steps, group, observers):
    """max over signs of d^T Pi d, Pi the projector on the rows of a few messages, by pinv."""
    n = len(weights)
    heard = sorted({w for v in observers for w in np.flatnonzero(weights[v])} - set(observers))
    rows = [np.eye(n)[list(observers)]] + [
        np.linalg.matrix_power(weights, t)[heard] for t in range(steps)
    ]
    known = np.concatenate(rows)
    pi = (np.linalg.pinv(known) @ known)[np.ix_(group, group)]
    return max(
        float(np.array(d) @ pi @ np.array(d))
        for d in itertools.product((1.0, -1.0), repeat=len(group))
    )


def pairwise_masks(graph, own, pair, observers, of):
    """What all masked values tell those who know some of the noises: rows of noise over (own,
    links)."""
    links = [(i, j) for i, j in graph.edges().tolist() if i != j]
    noise = np.zeros((graph.n, graph.n + len(links)))
    noise[:, : graph.n] = own * np.eye(graph.n)
    for k, (i, j) in enumerate(links):
        noise[i, graph.n + k], noise[j, graph.n + k] = pair, -pair
    known = [
        *observers,
        *(graph.n + k for k, link in enumerate(links) if set(link) & set(observers)),
    ]
    secrets = np.eye(noise.shape[1])[known]
    values = np.vstack([np.eye(graph.n), np.zeros((len(known), graph.n))])
    return float(linear_gaussian(values, np.vstack([noise, secrets]))[of])


def correlated_energy(graph, noise, rounds, observers, of):
    """Noise drawn once and used in several rounds, by several peers: the whole covariance of all that
    hidden peers say, and the worst signs of one peer's moves."""
    hidden = np.setdiff1d(np.arange(graph.n), observers)
    links = np.zeros((graph.n, graph.edge_count))
    for place, (a, b) in enumerate(graph.edges()):
        if not {int(a), int(b)} & set(observers):
            part = 1.0
            if noise.by_degree:
                degrees = graph.degrees
                shares = (degrees.min() / degrees[a]) ** 2 + (degrees.min() / degrees[b]) ** 2
                part = round(1024 * math.sqrt(shares / 2)) / 1024
            links[[a, b], place] = noise.pair * part, -noise.pair * part
    used = np.array(
        [
            [noise.taps[t - s] if 0 <= t - s < len(noise.taps) else 0.0 for s in range(rounds)]
            for t in range(rounds)
        ]
    )
    drawn = np.hstack([np.kron(used, noise.own * np.eye(graph.n)), np.kron(used, links)])
    said = (np.arange(rounds)[:, None] * graph.n + hidden).ravel()
    inverse = np.linalg.inv((np.eye(rounds * graph.n) + drawn @ drawn.T)[np.ix_(said, said)])
    place, worst = int(np.flatnonzero(hidden == of)[0]), 0.0
    for turn in range(min(noise.cycle, rounds)):
        mine = place + len(hidden) * np.arange(turn, rounds, noise.cycle)
        block = inverse[np.ix_(mine, mine)]
        moves = itertools.product((1.0, -1.0), repeat=len(mine))
        worst = max(worst, *(float(np.array(one) @ block @ one) for one in moves))
    return worst


def token_around(n, variances, observers, of, published=False):
    """The sums an observer of a ring sees, hop by hop; columns: contributions of one peer, noises,
    all others known."""
    state, rows = np.zeros(1 + len(variances)), []
    for hop, variance in enumerate(variances):
        if hop % n in observers:
            rows.append(state.copy())
            continue
        state[0] += hop % n == of
        state[1 + hop] += math.sqrt(variance)
    rows += [state.copy()] if published else []
    stacked = np.array(rows)
    return float(linear_gaussian(stacked[:, :1], stacked[:, 1:])[0])


def hidden_losses(steps, order):
    """Peer 0 hears peer 1, to whom the strangers 2, 3, 4 hang on in some order, a path: energies of
    stranger 2."""
    weights = np.zeros((5, 5))
    chain = [0, 1, *order]
    for a, b in itertools.pairwise(chain):
        weights[a, b] = weights[b, a] = 1 / 3
    np.fill_diagonal(weights, 1 - weights.sum(axis=1))
    return group_energy(weights, steps, [2], [0])


@lru_cache
def hidden_law(steps):
    return np.array([hidden_losses(steps, order) for order in itertools.permutations((2, 3, 4))])


# Walks


def walk_energy(path, of, observers, contributes, keep=1.0, published=False):
    """Linear updates x <- c x + shift + noise at contributions, x + noise elsewhere: exact, segment
    by segment."""
    total, shift, variance = 0.0, 0.0, 0.0
    for holder, active in [
        *zip(path, contributes, strict=True),
        *([(observers[0], False)] if published else []),
    ]:
        if holder in observers:
            total += shift**2 / variance if shift else 0.0
            shift = variance = 0.0
            continue
        c = keep if active else 1.0
        shift, variance = c * shift + (active and holder == of), c * c * variance + 1.0
    return total


def first_visits(path, of, cap):
    """The first so many visits of one peer, and all visits of others."""
    seen, flags = 0, []
    for holder in path:
        seen += holder == of
        flags.append(holder != of or seen <= cap)
    return flags


@lru_cache
def walk_law(rows, start, length, of, observers, cap, published=False):
    """Energies and probabilities of all walks of that length from a law of starts."""
    weights, energies, chances = np.array(rows), [], []
    for path in itertools.product(range(len(rows)), repeat=length):
        chance = start[path[0]] * math.prod(weights[a, b] for a, b in itertools.pairwise(path))
        if chance:
            energies.append(
                walk_energy(path, of, observers, first_visits(path, of, cap), published=published)
            )
            chances.append(chance)
    values, place = np.unique(np.array(energies), return_inverse=True)
    return values, np.bincount(place, chances)


def all_walks(weights, start, length, of, observers, cap, z, published=False):
    """The walk is revealed: a public mixture of exact Gaussian pairs."""
    rows = tuple(map(tuple, np.asarray(weights).tolist()))
    energies, chances = walk_law(rows, tuple(start), length, of, tuple(observers), cap, published)
    return MixtureProfile(energies / z**2, chances)


# ADMM


def noisy_models(n, rounds, relaxation, gamma, h, unseen=1):
    """Consensus noise: duals without noise of their own, every model the mean of the duals and
    fresh noise."""
    run, rows = Audit(n, relaxation, gamma, [0.0] + [h] * (n - 1), n * rounds + rounds), []
    for k in range(rounds):
        z = run.mean.copy()
        z[1 + n * rounds + k] += 1.0
        rows.append(z)
        for i in range(n):
            du = run.step(i, z)
            du[run.used] -= relaxation
            run.duals[i][run.used] -= relaxation
            run.mean[run.used] -= relaxation / n
    return loss(rows[unseen:], list(range(n * rounds, n * rounds + rounds)))


def all_duals(n, rounds, relaxation, gamma, h):
    """The whole transcript."""
    run, rows = Audit(n, relaxation, gamma, [0.0] + [h] * (n - 1), n * rounds), []
    for _ in range(rounds):
        z = run.mean.copy()
        rows += [run.step(i, z).copy() for i in range(n)]
    return loss(rows)


def told_means(rounds, n, observers):
    """mu times the noise multiplier of peer n - 1 when only means of all answers are told: one
    explicit covariance.

    The answers of all rounds are one Gaussian vector; observers subtract their own noise;
    everybody's data are fixed.
    """
    tell = np.kron(np.eye(rounds), np.ones((1, n)) / n)  # (rounds, rounds * n)
    hidden = np.tile([u not in observers for u in range(n)], rounds)
    shift = tell[:, np.tile(np.arange(n) == n - 1, rounds)].sum(axis=1)
    covariance = (tell * hidden) @ (tell * hidden).T
    return math.sqrt(shift @ np.linalg.solve(covariance, shift))


def told_forward(graph, woken, observers):
    """The (peer, wake-up) pairs that words may have carried to the observers; 0 is before the first
    wake-up."""
    knows = [{(u, 0)} for u in range(graph.n)]
    heard = [
        set().union(*(knows[v] for v in (u, *graph.neighbors(u).tolist()))) for u in range(graph.n)
    ]
    count = [0] * graph.n
    for u in woken:
        count[u] += 1
        knows[u] |= heard[u] | {(u, count[u])}
        for v in graph.neighbors(u).tolist():
            heard[v] |= knows[u]
    return set().union(*(heard[v] | knows[v] for v in observers))


def sum_of_coins(trials):
    """The sum of the masked values, which everybody sees: coins of all who hide, moved by one
    level."""
    law = [math.comb(trials, k) / 2.0**trials for k in range(trials + 1)]
    return Outcomes(np.array([*law, 0.0]), np.array([0.0, *law]))
