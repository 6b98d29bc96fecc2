"""Other people's accounting of decentralized views, rebuilt, against bruit.privacy.theorems on the
same small graphs.

The protocol of all of them is gossip gradient descent with noise in every round: x_{t+1} = W (x_t +
g_t + z_t), so that the message of peer w in round t is row w of sum_{s <= t} W^{t-s} (g_s + z_s).
Values are squared mu, that is losses in units of one release of sensitivity 1 and noise 1 seen by
everybody. What each paper computes is rebuilt with plain numpy and nothing of the package:

- linear systems (arXiv:2505.19969): the whole run as one block triangular map, the view as one
  Gaussian mechanism. The text at hand says how it is built and how fast its squared sensitivity
  grows, and prints no formula. So what stands here is the construction, not a quotation: the
  sensitivity of the observed map after whitening, by Cholesky, with and without secure summation;
  and the triangle inequality over rounds, the T^2 that the paper improves on;
- matrix factorization (arXiv:2510.17480, and its public code): sens(C; B)^2 = sum |C^T B^+ B C|
  over a user's rounds;
- the corrected printed bound of Muffliato-SGD, as that code quotes it, cut at local DP;
- DECOR (arXiv:2405.01031, and its public code): (s^2 I + c^2 L)^-1 a round, Renyi composition and
  conversion.

Ours may equal theirs, where theirs is exact, and must never be larger. See
docs/explanation/prior-art.md.
"""

import itertools
import math

import numpy as np
import pytest

import bruit as br
from bruit.privacy.ahead.secure_sums import secure_sum_losses
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.exact.rows import linear_gaussian, user_loss
from bruit.privacy.theorems.descent import GossipDescent, nonadaptive
from bruit.privacy.toolbox.gaussian import epsilon_of

TIGHT = 1e-9
GRAPHS = {
    name: br.graphs.graph(name)
    for name in ("path:6", "ring:8", "star:7", "grid:3x4", "er:10,c=2", "er:12,c=3")
}
ROUNDS = (1, 2, 4)
everywhere = pytest.mark.parametrize("name", GRAPHS)


def mixing(name):
    return GRAPHS[name].weights.toarray()


def workload(w, rounds):
    """Row t n + p: what peer p says in round t, over the noisy gradients of all rounds."""
    blank = np.zeros_like(w)
    powers = [np.linalg.matrix_power(w, k) for k in range(rounds)]
    return np.block(
        [[powers[t - s] if s <= t else blank for s in range(rounds)] for t in range(rounds)]
    )


def heard(w, rounds, observer, secure=False):
    """The forms one peer knows: its own releases, and its neighbors' messages or only their
    weighted sum."""
    n, said = len(w), workload(w, rounds)
    own = np.eye(n * rounds)[observer::n]
    if secure:
        return np.vstack([own, np.kron(np.eye(rounds), w[[observer]]) @ said])
    others = np.delete(np.arange(n), observer)
    neighbors = others[w[observer, others] > 0]
    return np.vstack([own, said[(n * np.arange(rounds)[:, None] + neighbors).ravel()]])


def columns(n, rounds, peer):
    return peer + n * np.arange(rounds)


def victims(name):
    return range(1, GRAPHS[name].n)  # the observer is peer 0


# Matrix factorization


def factorization(b, c, chosen):
    """sens(C; B)^2 as the paper defines it and its code computes it."""
    x = c.T @ np.linalg.pinv(b) @ b @ c
    return np.abs(x[np.ix_(chosen, chosen)]).sum()


@everywhere
@pytest.mark.parametrize("rounds", ROUNDS)
def test_matrix_factorization_of_gossip_descent(name, rounds):
    """arXiv:2510.17480 with independent noise, C = I: the same number, gossip:MUF-9 `nonadaptive`,
    or a smaller one where entries of the projector differ in sign."""
    w = mixing(name)
    b, ours = heard(w, rounds, 0), nonadaptive(GossipDescent(GRAPHS[name], rounds, 1), 0)
    for u in victims(name):
        chosen = columns(len(w), rounds, u)
        theirs = factorization(b, np.eye(b.shape[1]), chosen)
        assert ours[u] <= theirs + TIGHT
        if np.all((np.linalg.pinv(b) @ b)[np.ix_(chosen, chosen)] >= -1e-12):
            assert ours[u] == pytest.approx(theirs, abs=1e-8)


@everywhere
def test_matrix_factorization_with_noise_correlated_over_time(name):
    """Z enters as C^-1 Z, so G + C^-1 Z is observed: A = B C in their words (anti-PGD, and a random
    C)."""
    w, rounds = mixing(name), 3
    n, seen = len(w), heard(w, rounds, 0)
    draws = np.random.default_rng(0)
    for local in (
        np.tril(np.ones((rounds, rounds))),
        np.tril(draws.uniform(0.5, 1.5, (rounds, rounds))),
    ):
        c = np.kron(local, np.eye(n))
        b = seen @ np.linalg.inv(c)
        for u in victims(name):
            chosen = columns(n, rounds, u)
            assert user_loss(seen, b, chosen) <= factorization(b, c, chosen) + TIGHT


@everywhere
@pytest.mark.parametrize("rounds", ROUNDS)
def test_corrected_muffliato_bound_is_above(name, rounds):
    """sum_s (T - s) sum_{w in N(v)} (W^s)_uw / ||(W^s)_w||^2, without the square of the first print, at most T."""
    w = mixing(name)
    ours = nonadaptive(GossipDescent(GRAPHS[name], rounds, 1), 0)
    neighbors = np.flatnonzero(w[0, 1:] > 0) + 1
    powers = [np.linalg.matrix_power(w, s) for s in range(rounds)]
    shares = np.array(
        [(p[:, neighbors] / (p[:, neighbors] ** 2).sum(axis=0)).sum(axis=1) for p in powers]
    )  # (T, n)
    descent = np.minimum((shares * (rounds - np.arange(rounds))[:, None]).sum(axis=0), rounds)
    assert np.all(ours[1:] <= descent[1:] + TIGHT)


# Linear systems


def gaussian_mechanism(a, b, chosen):
    """The largest squared distance of two whitened means: one user's rounds each move by at most 1,
    all by brute force.

    Redundant rows are dropped until the covariance has a Cholesky factor."""
    kept: list[int] = []
    for row in range(len(b)):
        if np.linalg.matrix_rank(b[[*kept, row]], tol=1e-9) > len(kept):
            kept.append(row)
    factor = np.linalg.cholesky(b[kept] @ b[kept].T)
    white = np.linalg.solve(factor, a[np.ix_(kept, chosen)])
    moves = itertools.product((-1.0, 1.0), repeat=len(chosen))
    lengths = np.linalg.norm(white, axis=0)
    return max(float(np.sum((white @ np.array(move)) ** 2)) for move in moves), float(
        lengths.sum() ** 2
    )


@everywhere
@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("secure", [False, True], ids=["messages", "secure sums"])
def test_linear_system_view(name, rounds, secure):
    """arXiv:2505.19969: never above the round by round bound; equal to the Gaussian mechanism's own
    sensitivity, or 0.2 % above it where signs differ: the dual of a semidefinite program, the
    maximum itself for vectors."""
    w = mixing(name)
    b = heard(w, rounds, 0, secure)
    for u in victims(name):
        chosen = columns(len(w), rounds, u)
        ours = user_loss(b, b, chosen)
        best, triangle = gaussian_mechanism(b, b, chosen)
        assert ours <= triangle + TIGHT
        assert ours <= rounds + TIGHT  # everybody sees everything
        assert best - 1e-7 <= ours <= 1.002 * best + TIGHT
        gram = np.linalg.pinv(b)[chosen] @ b[:, chosen]
        if np.all(gram >= -1e-12):
            assert ours == pytest.approx(best, abs=1e-7)


@everywhere
@pytest.mark.parametrize("rounds", ROUNDS)
def test_linear_system_view_of_one_release(name, rounds):
    """One release, then gossip: the same construction with noise in the first round only
    (gossip:MUF-2, MUF-X4)."""
    w = mixing(name)
    n = len(w)
    for secure, ours in (
        (False, leverage(GRAPHS[name], [0], rounds).loss),
        (True, secure_sum_losses(GRAPHS[name], rounds, 0)),
    ):
        b = heard(w, rounds, 0, secure)[:, :n]
        b = b[np.linalg.norm(b, axis=1) > 0]
        for u in victims(name):
            theirs, _ = gaussian_mechanism(b, b, [u])
            assert ours[u] <= theirs + TIGHT
            assert ours[u] == pytest.approx(theirs, abs=1e-6)


# DECOR


def correlated(name, own=0.5, shared=1.5, without=None):
    """Noise of one round: each peer its own, each link one that its ends add with opposite signs
    # (n, n + links)."""
    edges = [
        edge for edge in GRAPHS[name].edges().tolist() if edge[0] != edge[1] and without not in edge
    ]
    signs = np.zeros((GRAPHS[name].n, len(edges)))
    for k, (i, j) in enumerate(edges):
        signs[i, k], signs[j, k] = 1.0, -1.0
    return np.hstack([own * np.eye(GRAPHS[name].n), shared * signs]), signs


def laplacian(signs):
    return signs @ signs.T


@everywhere
def test_decor_one_round(name):
    """An eavesdropper on all links: the diagonal of (s^2 I + c^2 L)^-1, of which they charge
    everybody the largest."""
    noise, signs = correlated(name)
    inverse = np.linalg.inv(0.25 * np.eye(len(signs)) + 2.25 * laplacian(signs))
    ours = linear_gaussian(np.eye(len(signs)), noise)
    assert np.all(ours <= inverse.diagonal().max() + TIGHT)
    assert np.allclose(ours, inverse.diagonal(), atol=1e-9)


@everywhere
def test_decor_many_rounds_and_epsilon(name):
    """All messages of T rounds of gossip; their sum of Renyi bounds and its conversion are above
    the exact epsilon."""
    rounds, w = 3, mixing(name)
    n, said = len(w), workload(w, rounds)
    noise, signs = correlated(name)
    largest = np.linalg.inv(0.25 * np.eye(n) + 2.25 * laplacian(signs)).diagonal().max()
    view = said @ np.kron(np.eye(rounds), noise)
    for u in range(n):
        ours = user_loss(said, view, columns(n, rounds, u))
        assert ours <= rounds * largest + TIGHT
        for delta in (1e-6, 1e-3):
            rdp = rounds * largest / 2
            theirs = rdp + 2 * math.sqrt(rdp * math.log(1 / delta))
            assert epsilon_of(math.sqrt(ours), delta) <= theirs + TIGHT


@everywhere
def test_decor_with_a_curious_peer(name):
    """It knows the noises it shares: at best it is left with the links of the others, and it hears
    its neighbors only.

    With a cut vertex as observer the remaining graph is disconnected; the formula holds all the
    same.
    """
    w, (noise, signs) = mixing(name), correlated(name)
    n = len(w)
    shared_with_it = np.flatnonzero(signs[0])
    secrets = np.zeros((len(shared_with_it), noise.shape[1]))
    secrets[np.arange(len(shared_with_it)), n + shared_with_it] = 1.0
    own = np.eye(noise.shape[1])[[0]]
    _, rest = correlated(name, without=0)
    theirs = np.linalg.inv(0.25 * np.eye(n) + 2.25 * laplacian(rest)).diagonal()
    neighbors = np.flatnonzero(w[0, 1:] > 0) + 1
    for messages, equal in ((np.arange(n), True), (neighbors, False)):
        mixed = np.vstack([np.eye(n)[messages], np.zeros((len(secrets) + 1, n))])
        ours = linear_gaussian(mixed, np.vstack([noise[messages], secrets, own]))
        assert np.all(ours[1:] <= theirs[1:] + TIGHT)
        if equal:
            assert np.allclose(ours[1:], theirs[1:], atol=1e-9)
