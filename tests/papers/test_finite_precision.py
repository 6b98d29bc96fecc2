"""The numbers of fp:FP-5 by brute force, our bounds above them, and the laws of what the package
sends on coarse grids.

Truths come from tests/papers/grid_laws.py (convolution and enumeration, nothing of the package);
numbers quoted are those of the specification, fp:FP-5 a to e, found there by another program. Data
differ by D = 2 sigma in one peer.
"""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

import bruit as br
from bruit.adversary.audits.trials import flat_rows
from bruit.adversary.audits.worlds import Neighbors
from bruit.algorithms import door
from bruit.algorithms.gossip import exchange
from bruit.algorithms.task_door import TaskDoor
from bruit.graphs import butterfly, from_matrix, path
from bruit.mechanisms import Gaussian
from bruit.privacy.ledger import Ledger
from bruit.privacy.toolbox.gaussian import delta_of, epsilon_of
from bruit.privacy.toolbox.rounding import rounded_delta, rounded_epsilon
from bruit.randomness import Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Job
from tests.papers.grid_laws import (
    aligned,
    canceling_ratio,
    delta,
    divergence,
    nearest,
    normal,
    renyi,
    rounded_normal,
    row_view,
    said,
    silent_star_view,
    star_view,
    theta,
)

ROW = from_matrix(np.array([[6, 2, 0, 0], [2, 2, 3, 1], [0, 3, 5, 0], [0, 1, 0, 7]]) / 8)
STAR = from_matrix(np.array([[3, 1, 0, 0], [1, 1, 1, 1], [0, 1, 3, 0], [0, 1, 0, 3]]) / 4)


def on_the_integers(patch, dither):
    """The package on a grid of spacing 1, with dithers of this deviation in units of sigma."""
    patch.setattr(
        Gaussian, "fine_grid", lambda self, times=1.0, data=1.0, noise=1.0: float(self.sigma > 0)
    )
    patch.setattr(exchange, "DITHER", dither)
    patch.setattr(door, "COARSEST", 1.0)


def gossip_rounding(n, messages, sigma, tau, rho=0.5):
    """R of fp:FP-1 at d = g = 1."""
    return n / (4 * sigma**2) + messages * (rho + 1) ** 2 / tau**2


def best_bound(mu, rounding, at):
    """The least epsilon that fp:FP-0 proves, the best beta of at 10^-k, k = 1 .. 11."""
    found = math.inf
    for beta in (at * 10.0**-k for k in range(1, 12)):
        gamma = rounding / 2 + math.sqrt(2 * rounding * math.log(1 / beta))

        def spent(epsilon, beta=beta, gamma=gamma):
            return math.exp(gamma) * delta_of(epsilon, mu) + (1 + math.exp(epsilon + gamma)) * beta

        enough = [epsilon for epsilon in np.arange(0.0, 5.0, 0.02).tolist() if spent(epsilon) <= at]
        if enough:
            low, high = max(0.0, enough[0] - 0.02), enough[0]
            for _ in range(40):
                middle = (low + high) / 2
                low, high = (middle, high) if spent(middle) > at else (low, middle)
            found = min(found, high + 2 * gamma)
    return found


def true_epsilon(p, q, at):
    low, high = 0.0, 8.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(p, q, middle) > at else (low, middle)
    return high


def never_below(p, q, mu, rounding):
    """Our statement about a view that is a Gaussian pair of this mu in real numbers is true on the
    grid."""
    for epsilon in (0.0, 0.25, 0.5, 1.0, 2.0, 3.0):
        assert delta(p, q, epsilon) <= rounded_delta(
            lambda left: delta_of(left, mu), rounding, epsilon
        )
    for at in (1e-1, 1e-3, 1e-5):
        assert true_epsilon(p, q, at) <= rounded_epsilon(
            lambda left: epsilon_of(mu, left), rounding, at
        )


# a: the lemma


@pytest.mark.parametrize(
    ("b", "forward", "backward", "bound"),
    [
        (0.5, 0.0602084, 0.0640463, 0.25),
        (0.0, 2.08399e-4, 2.17016e-4, 0.0625),
    ],
)
def test_one_number(b, forward, backward, bound):
    k = np.arange(-40, 41)
    p, q = normal(2, 20.0).p, rounded_normal(b, 2, k)
    assert (renyi(p, q, 2), renyi(q, p, 2)) == pytest.approx((forward, backward), rel=1e-5)
    assert bound == 2 * (b + 0.5) ** 2 / 4 / 2  # a R / 2
    assert max(forward, backward) < bound


@pytest.mark.parametrize("b", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("s", [2, 5])
@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 8.0, 32.0])
def test_the_lemma_at_many_orders(s, b, order):
    """D_a <= a R / 2 both ways, wherever the real center lies within b of the grid's."""
    k = np.arange(-36 * s, 36 * s + 1)
    p = normal(s, 36.0).p
    for w in np.linspace(-b, b, 5):
        q = rounded_normal(w, s, k)
        bound = order * (b + 0.5) ** 2 / s**2 / 2
        assert renyi(p, q, order) <= bound
        assert renyi(q, p, order) <= bound


def test_the_largest_ratio_without_a_shift():
    """ln p/q is at most 1 / (24 s^2): 0.0103734 of 1/96 at s = 2."""
    k = np.arange(-40, 41)
    largest = np.log(normal(2, 20.0).p / rounded_normal(0.0, 2, k)).max()
    assert largest == pytest.approx(0.0103734, rel=1e-5)
    assert largest <= 1 / 96


def test_two_peers_and_their_second_message():
    """Weights 1/3 and 2/3, sigma = 4, tau = 2, law of (M_1(0), M_2(0), M_1(1)) against the rounded
    real one."""
    k, last, dither = np.arange(-45, 46), np.arange(-60, 61), normal(2, 60.0)
    one = said(4, 2).on(-120, 241)[k + 120]
    mean = nearest(3)(k[:, None] + 2 * k)
    p = one[:, None, None] * one[:, None] * dither.p[last - mean[..., None] - dither.low]
    nodes, weights = np.polynomial.legendre.leggauss(4)
    q = np.zeros_like(p)
    for u, a in zip(nodes / 2, weights / 2, strict=True):
        for v, b in zip(nodes / 2, weights / 2, strict=True):
            x, y = (np.exp(-((k + shift) ** 2) / 40) / math.sqrt(40 * math.pi) for shift in (u, v))
            real = ((k + u)[:, None] + 2 * (k + v)) / 3
            q += a * b * x[:, None, None] * y[:, None] * rounded_normal(real[..., None], 2, last)
    rounding = (
        2 / 64 + 2 * 1.0**2 / 4 + 1.5**2 / 4
    )  # releases, first messages (b = 1/2), the second (b = 1)
    assert divergence(p, q) == pytest.approx(0.00925, abs=1e-5)
    assert divergence(q, p) == pytest.approx(0.00955, abs=1e-5)
    assert rounding / 2 == pytest.approx(0.547, abs=1e-3)
    assert np.abs(p - q).sum() / 2 == pytest.approx(0.0472, abs=1e-4)
    assert math.sqrt(rounding) / 2 == pytest.approx(0.523, abs=1e-3)


# b: gossip with dithers


@pytest.mark.parametrize(
    ("sigma", "tau", "true", "dithered", "rounding", "epsilons"),
    [
        (
            16,
            8,
            (0.02006262, 7.107194e-4),
            (0.02008961, 7.130824e-4),
            0.2851563,
            (0.95752, 8.2710, 6.7612),
        ),
        (
            1024,
            256,
            (0.05950318, 0.008993404),
            (0.0595032, 0.008993413),
            2.756119e-4,
            (1.42712, 1.9863, 1.6103),
        ),
        pytest.param(
            4096,
            1024,
            (0.0595032, 0.008993413),
            (0.0595032, 0.008993413),
            1.722574e-5,
            (1.42712, 1.8436, 1.4754),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_row_of_four_peers(sigma, tau, true, dithered, rounding, epsilons):
    p, q = row_view((2, 2, 3, 1), sigma, tau, 2 * sigma)
    mu, less = 2 * math.sqrt(0.1), 2 * sigma / 8 / math.sqrt(10 * (sigma**2 + tau**2) / 64 + tau**2)
    assert [delta(p, q, epsilon) for epsilon in (0.5, 1.0)] == pytest.approx(true, rel=2e-6)
    assert [delta_of(epsilon, less) for epsilon in (0.5, 1.0)] == pytest.approx(dithered, rel=2e-6)
    assert [delta_of(epsilon, mu) for epsilon in (0.5, 1.0)] == pytest.approx(
        (0.0963849, 0.02442103), rel=1e-6
    )
    assert gossip_rounding(4, 8, sigma, tau) == pytest.approx(rounding, rel=1e-6)
    found = (
        true_epsilon(p, q, 1e-3),
        best_bound(mu, rounding, 1e-3),
        best_bound(less, rounding, 1e-3),
    )
    assert found == pytest.approx(epsilons, rel=5e-5)
    never_below(p, q, mu, rounding)
    never_below(p, q, less, rounding)


@pytest.mark.parametrize(
    ("sigma", "tau", "true", "dithered"),
    [
        (4, 2, (0.08555107, 0.008441675), (0.08684144, 0.00875852)),
        (16, 4, (0.2000536, 0.05573847), (0.2003247, 0.05589706)),
    ],
)
def test_a_star_of_four_peers(sigma, tau, true, dithered):
    """Three rounds, weights 1/4, peer 3 in the view of peer 0."""
    p, q = (law.ravel() for law in star_view(sigma, tau, 2 * sigma))
    # (M_1(1), M_1(2)) is linear in X_2, X_3, the dithers of M_2(0), M_3(0), M_1(1), M_2(1), M_3(1),
    # M_1(2)
    rows = np.array([[4, 4, 4, 4, 16, 0, 0, 0], [4, 4, 4, 4, 4, 4, 4, 16]]) / 16
    rows[1, :4] = 1 / 16 + 3 / 16
    noise = rows * np.array([sigma, sigma, tau, tau, tau, tau, tau, tau])
    shift = 2 * sigma * rows[:, 1]
    less = math.sqrt(shift @ np.linalg.solve(noise @ noise.T, shift))
    mu = (
        br.rehearse(br.Averaging(), STAR, Gaussian(1.0, 1.0), 3).guarantee(of=3, seen_by=0).loss
        ** 0.5
        * 2
    )
    assert [delta(p, q, epsilon) for epsilon in (1.0, 2.0)] == pytest.approx(true, rel=1e-6)
    assert [delta_of(epsilon, less) for epsilon in (1.0, 2.0)] == pytest.approx(dithered, rel=1e-6)
    assert [delta_of(epsilon, mu) for epsilon in (1.0, 2.0)] == pytest.approx(
        (0.2862082, 0.1145246), rel=1e-6
    )
    never_below(p, q, mu, gossip_rounding(4, 12, sigma, tau))


def test_two_meetings():
    """Peers 1 and 2 meet, then 0 and 1: peer 2 in the view of 0, sigma = 16, tau = 8."""
    mean = [
        said(16, 8).plus(said(16, 8, value)).mapped(nearest(2)).plus(normal(8)) for value in (0, 32)
    ]
    p, q = aligned(*mean)
    less = 16 / math.sqrt((2 * (16**2 + 8**2)) / 4 + 8**2)
    assert [delta(p, q, epsilon) for epsilon in (1.0, 2.0)] == pytest.approx(
        (0.1517876, 0.03101613), rel=1e-6
    )
    assert [delta_of(epsilon, less) for epsilon in (1.0, 2.0)] == pytest.approx(
        (0.1518242, 0.03103237), rel=1e-6
    )
    never_below(p, q, math.sqrt(2), gossip_rounding(3, 4, 16, 8))


@pytest.mark.parametrize(
    ("sigma", "dither", "steps"), [(16.0, 0.5, 2), (1024.0, 0.25, 2), (4096.0, 0.25, 5)]
)
def test_the_rounding_of_a_run_is_that_of_the_formula(monkeypatch, sigma, dither, steps):
    """A message that is drawn after the last round is charged as well, though nobody hears it: N =
    n (T + 1)."""
    on_the_integers(monkeypatch, dither)
    run = br.rehearse(br.Averaging(), ROW, Gaussian(sigma, sigma), steps)
    messages = 4 * (steps + 1)
    assert run.facts().all_rounding() == pytest.approx(
        gossip_rounding(4, messages, sigma, dither * sigma), rel=1e-9
    )
    if steps == 2:
        assert run.guarantee(of=3, seen_by=0).loss == pytest.approx(0.1, abs=1e-9)
    if (sigma, steps) == (1024.0, 2):
        p, q = row_view((2, 2, 3, 1), 1024, 256, 2048)
        assert true_epsilon(p, q, 1e-3) < run.epsilon(of=3, seen_by=0, delta=1e-3) < 2.6


# c, d: too little dither, and none


def test_too_little_dither_is_worse_than_real_numbers():
    """Row (4, 4, 7, 1)/16, sigma = 2, tau = 0.3: above the profile of real numbers; our bound knows
    (R is 200)."""
    p, q = row_view((4, 4, 7, 1), 2, 0.3, 4)
    mu = 2 * math.sqrt(1 / 50)
    assert [delta(p, q, epsilon) for epsilon in (0.5, 1.0)] == pytest.approx(
        (0.00622080, 6.42261e-5), rel=2e-5
    )
    assert [delta_of(epsilon, mu) for epsilon in (0.5, 1.0)] == pytest.approx(
        (0.00557785, 2.34529e-5), rel=2e-5
    )
    never_below(p, q, mu, gossip_rounding(4, 8, 2, 0.3))


@pytest.mark.parametrize(
    ("sigma", "true"),
    [
        (4, (0.164921, 0.0123707)),
        pytest.param(64, (0.185099, 0.0176176), marks=pytest.mark.slow),
    ],
)
def test_without_dithers_roundings_tell_more_and_more(sigma, true):
    """Star of 4, 20 rounds, X_0 = X_1 = 0, all on one grid: above real numbers, however fine the
    grid."""
    p, q = silent_star_view(sigma, 2 * sigma, 20)
    assert [delta(p, q, epsilon) for epsilon in (2.0, 4.0)] == pytest.approx(true, rel=1e-5)
    mu = (
        br.rehearse(br.Averaging(), STAR, Gaussian(1.0, 1.0), 20).guarantee(of=3, seen_by=0).loss
        ** 0.5
        * 2
    )
    assert [delta_of(epsilon, mu) for epsilon in (2.0, 4.0)] == pytest.approx(
        (0.1145246, 0.00583801), rel=1e-6
    )


def test_messages_finer_than_values():
    """Row (16, 22, 21, 5)/64, sigma = 4, X_0 = X_1 = 0, messages on 1/256: values stand out between
    them."""
    told = [
        normal(4).times(21).plus(normal(4).shifted(value).times(5)).mapped(lambda k: 4 * k)
        for value in (0, 8)
    ]
    p, q = aligned(*told)
    mu = 2 * 5 / math.hypot(21, 5)
    assert [delta(p, q, epsilon) for epsilon in (0.5, 1.0)] == pytest.approx(
        (0.492557, 0.377055), rel=2e-6
    )
    assert [delta_of(epsilon, mu) for epsilon in (0.5, 1.0)] == pytest.approx(
        (0.0417748, 0.00410553), rel=2e-6
    )


# e: sums and noise that cancels


def test_a_sum_of_two():
    p, q = aligned(normal(1).plus(normal(1)), normal(math.sqrt(2.0)))
    seen = (p > 1e-250) & (q > 1e-250)
    v = 2 * sum(math.exp(-(math.pi**2) * k * k) for k in range(1, 6))
    largest, bound = np.abs(np.log(p[seen] / q[seen])).max(), math.log((1 + v) / (1 - v))
    assert (largest, bound) == pytest.approx((1.035e-4, 2.069e-4), rel=5e-4)
    assert largest <= bound


@pytest.mark.parametrize(
    ("n", "ratio", "bound"),
    [(2, 2.773e-3, 5.553e-3), (3, 6.205e-4, 1.666e-2), (4, 1.479e-4, 3.332e-2)],
)
def test_noise_that_cancels_is_a_discrete_gaussian(n, ratio, bound):
    assert canceling_ratio(n, 1, 1) == pytest.approx(ratio, rel=5e-4)
    assert theta(n * (n - 1) // 2, 1, 1) == pytest.approx(bound, rel=5e-4)
    assert ratio <= bound


def masked_pair(s, c, shift):
    """The law of both masked values of two peers, x_0 = shift  # (numbers, numbers)."""
    own, common = normal(s, 9.0), normal(c, 9.0)
    size = 2 * (-own.low - common.low) + shift + 1
    p = np.zeros((size, size))
    for d, chance in zip(common.k, common.p, strict=True):
        first, second = shift + d - common.low, -d - common.low
        p[first : first + len(own.p), second : second + len(own.p)] += (
            chance * own.p[:, None] * own.p
        )
    return p


def test_gopa_of_two():
    """s = 4, c = 16, the value of one of them moves by 8."""
    p, q = masked_pair(4, 16, 0), masked_pair(4, 16, 8)
    size = len(q)
    p = np.pad(p, (0, size - len(p)))
    covariance = 16 * np.eye(2) + 256 * np.array([[1, -1], [-1, 1]])
    mu = 8 * math.sqrt(np.linalg.inv(covariance)[0, 0])
    assert delta(p, q, 1.0) == pytest.approx(0.2946868, rel=1e-6)
    assert delta_of(1.0, mu) == pytest.approx(0.2946921, rel=1e-6)
    never_below(p.ravel(), q.ravel(), mu, 2 / (4 * 16))


def test_a_triangle_against_rounded_real_noise():
    """s = 1, c = 2: max ln p/q is at zero; the bound is tr(Sigma^-1) / 24. That of the
    specification is the discrete Gaussian's of covariance Sigma; the masked values' own law is
    within exp(theta) of it."""
    edges = np.array([[1, -1, 0], [1, 0, -1], [0, 1, -1]])
    covariance = np.eye(3) + 4 * edges.T @ edges
    inverse, (own, common) = np.linalg.inv(covariance), (normal(1), normal(2))
    d = np.stack(np.meshgrid(*[common.k] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    chance = np.prod(common.p[d - common.low], axis=1)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    u = np.stack(np.meshgrid(*[nodes / 2] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    cell = np.prod(
        np.stack(np.meshgrid(*[weights / 2] * 3, indexing="ij"), axis=-1).reshape(-1, 3), axis=1
    )
    box = np.array(list(product(range(-15, 16), repeat=3)))
    whole = np.exp(-0.5 * np.einsum("ki,ij,kj->k", box, inverse, box)).sum()
    found, ideal = [], []
    for m in ([0, 0, 0], [1, 0, 0], [1, -1, 0], [1, 1, 1], [2, 0, -1]):
        rest = np.array(m) - d @ edges
        inside = (np.abs(rest) <= -own.low).all(axis=1)
        p = (chance[inside] * np.prod(own.p[rest[inside] - own.low], axis=1)).sum()
        x = np.array(m) + u
        q = (cell * np.exp(-0.5 * np.einsum("ki,ij,kj->k", x, inverse, x))).sum()
        q /= math.sqrt((2 * math.pi) ** 3 * np.linalg.det(covariance))
        found.append(math.log(p / q))
        ideal.append(math.log(math.exp(-0.5 * np.array(m) @ inverse @ np.array(m)) / whole / q))
    assert np.argmax(ideal) == np.argmax(found) == 0
    assert ideal[0] == pytest.approx(0.0468245, rel=2e-5)
    assert np.trace(inverse) / 24 == pytest.approx(0.0480769, rel=1e-6)
    assert ideal[0] <= np.trace(inverse) / 24
    assert found[0] <= np.trace(inverse) / 24 + theta(3, 1, 2)


# what the package sends


def heard(algorithm, graph, noise, data, steps, copies, seed):
    """What peer 0 hears in every copy, message by message, in cells of the grid  # (messages,
    copies)."""
    task = Neighbors(data, data)
    ledger = Ledger(peers=copies * graph.n)
    door = TaskDoor(task=task, mechanism=noise, dice=Replay(seed), ledger=ledger)
    job = Job(
        algorithm=algorithm,
        graph=graph,
        door=door,
        dice=Replay(seed),
        steps=steps,
        ledger=ledger,
        watch=frozenset({0}),
    )
    rows = [
        flat_rows(message.row)[:, 0] for message in Bulk(copies=copies).execute(job).trace.received
    ]
    found = np.array(rows)
    assert (found == np.rint(found)).all()
    return found.astype(np.int64)


def even(denominator):
    """The nearest integer to a fraction, halves to the even one: what the package does."""
    return lambda k: np.rint(k / denominator).astype(np.int64)


def second_message(sigma, tau, own=None, rounding=even, last=None):
    """The law of (M_1(0), M_1(1)) of peer 1 with the weights (2, 3, 3)/8 of (M_0, M_1, M_2): rows
    are M_1(0).

    Mutants: the `own` state in place of the own message, another `rounding`, another dither of the
    `last` message.
    """
    first, dither = said(sigma, tau), normal(tau if last is None else last, 14.0)
    others = first.times(2).plus(said(sigma, tau, 3).times(3))
    table = []
    for m, chance in zip(first.k, first.p, strict=True):
        if own is None:
            law = others.shifted(3 * int(m)).mapped(rounding(8))
        else:  # X_1 given M_1(0) = X_1 + dither
            given = (
                normal(sigma).p * normal(tau, 60.0).p[m - normal(sigma).k - normal(tau, 60.0).low]
            )
            x = type(first)(normal(sigma).low, given / given.sum())
            law = others.plus(x.times(3)).mapped(rounding(8))
        table.append(chance * law.plus(dither).on(-200, 401))
    return first.low, np.array(table)


def pooled(law, counts, least=20.0):
    """Cells with that many expected ones each, the rest in one; law and counts of all of them."""
    expected = law * counts.sum()
    big = expected >= least
    return (
        np.append(law[big], 1 - law[big].sum()),
        np.append(counts[big], counts.sum() - counts[big].sum()),
        big,
    )


@pytest.mark.slow
def test_the_law_of_what_averaging_sends(monkeypatch):
    """600 000 copies of three peers on a grid of sigma/4, dithers sigma/2: chi-square of (M_1(0),
    M_1(1)) against the enumerated law, false alarms 1e-6. Each of four mutants would be noticed
    with a chance above 0.99: the own state in place of the own message, halves rounded up instead
    of to even, a dither that is 5 % short, (nearly) none at all."""
    on_the_integers(monkeypatch, 0.5)
    graph = from_matrix(np.array([[6, 2, 0], [2, 3, 3], [0, 3, 5]]) / 8)
    copies = 600_000
    seen = heard(
        br.Averaging(), graph, Gaussian(8.0, 4.0), np.array([[0.0], [0.0], [3.0]]), 2, copies, 5
    )
    low, law = second_message(4, 2)
    counts = np.zeros_like(law)
    np.add.at(counts, (seen[0] - low, seen[1] + 200), 1)
    p, found, big = pooled(law, counts)
    limit = chi2.isf(1e-6, len(p) - 1)
    assert ((found - copies * p) ** 2 / (copies * p)).sum() < limit
    for mutant in ({"own": "state"}, {"rounding": nearest}, {"last": 1.9}, {"last": 0.05}):
        other = second_message(4, 2, **mutant)[1]
        q = np.append(other[big], 1 - other[big].sum())
        assert ncx2.sf(limit, len(p) - 1, copies * ((q - p) ** 2 / p).sum()) > 0.99


def single(values, law, copies):
    """Chi-square of one number against its law, and what is beyond with a chance of 1e-6."""
    counts = np.bincount(values - law.low, minlength=len(law.p))[: len(law.p)]
    p, found, _ = pooled(law.p, counts)
    assert found.sum() == copies
    return ((found - copies * p) ** 2 / (copies * p)).sum(), chi2.isf(1e-6, len(p) - 1)


def test_the_laws_of_sums_copies_and_canceling_noise(monkeypatch):
    """A butterfly of 4 sends sums without dithers; re-noised gossip one noise a copy; GOPA masks
    whose noise cancels: one number each against its law, 60 000 copies, false alarms 1e-6. Noise
    that is 4 % short would be noticed with a chance above 0.99 in each."""
    on_the_integers(monkeypatch, 0.5)
    copies, noise = 60_000, Gaussian(8.0, 4.0)
    data = np.array([[0.0], [1.0], [2.0], [3.0]])
    sums = heard(br.Averaging(), butterfly(4), noise, data, 2, copies, 6)
    renoised = heard(br.Renoised(tau=0.5, flat=2), path(2), noise, data[:2], 1, copies, 7)
    gopa = heard(br.Gopa(ratio=3.0), path(2), noise, data[:2], 1, copies, 8)

    def laws(sigma):
        return (
            normal(sigma).plus(normal(sigma)).shifted(5),
            normal(sigma).plus(normal(sigma / 2)).shifted(1),
            normal(sigma).plus(normal(3 * sigma)).shifted(1),
        )

    for values, law, short in zip(
        (sums[1], renoised[0], gopa[0]), laws(4.0), laws(3.84), strict=True
    ):
        statistic, limit = single(values, law, copies)
        assert statistic < limit
        q, p = aligned(short, law)
        p, _, big = pooled(p, p * copies)
        q = np.append(q[big], 1 - q[big].sum())
        assert ncx2.sf(limit, len(p) - 1, copies * ((q - p) ** 2 / p).sum()) > 0.99
