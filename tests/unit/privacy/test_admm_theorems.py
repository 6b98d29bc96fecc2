"""Private ADMM: worked numbers, and exact audits of linear-quadratic runs by the linear Gaussian
oracle."""

import math

import numpy as np
import pytest

from bruit.errors import PrivacyError
from bruit.privacy.ahead.admm import (
    AdmmNoise,
    consensus_guarantee,
    consensus_multiplier,
    decentralized_estimate,
    decentralized_guarantee,
    federated_estimate,
    federated_estimate_closed,
    federated_guarantee,
    models_estimate,
    models_guarantee,
    models_loss,
    transcript_guarantee,
)
from bruit.privacy.exact.rows import linear_gaussian
from papers.printed.admm import (
    corrected_token,
    published_central,
    published_centralized,
    published_token,
)


class Audit:
    """p = 1, r = 0, f_i = h_i x^2 / 2 + g_i x, L = 1, sigma = 1; g_0 moves by 2. Coordinates:
    (shift, noises)."""

    def __init__(
        self, n: int, relaxation: float, gamma: float, h: list[float], noises: int
    ) -> None:
        self.n, self.relaxation, self.gamma, self.h = n, relaxation, gamma, np.array(h)
        self.duals = np.zeros((n, 1 + noises))
        self.mean = np.zeros(1 + noises)
        self.used = 0

    def step(self, i: int, z: np.ndarray) -> np.ndarray:
        """du = 2 lambda (x - z + eta / 2), x = prox(2 z - u_i) = (2 z - u_i - gamma g_i) / (1 +
        gamma h_i)."""
        x = 2 * z - self.duals[i]
        if i == 0:
            x[0] -= self.gamma * 2.0
        du = 2 * self.relaxation * (x / (1 + self.gamma * self.h[i]) - z)
        self.used += 1
        du[self.used] += self.relaxation
        self.duals[i] += du
        self.mean = self.mean + du / self.n
        return du


def loss(rows: list[np.ndarray], hidden: list[int] | None = None) -> float:
    """X = d^T Sigma^-1 d of the rows; noises of the observers are known."""
    stacked = np.array(rows)
    noise = stacked[:, 1:] if hidden is None else stacked[:, [1 + k for k in hidden]]
    return float(linear_gaussian(stacked[:, :1], noise)[0])


def centralized(
    n: int, rounds: int, relaxation: float, gamma: float, h: float, colluders: int = 0
) -> tuple[float, float]:
    """Losses of all models, and of the last one alone, against outsiders or the last c users."""
    run = Audit(n, relaxation, gamma, [0.0] + [h] * (n - 1), n * rounds)
    models = []
    for _ in range(rounds):
        z = run.mean.copy()
        for i in range(n):
            run.step(i, z)
        models.append(run.mean.copy())
    hidden = [k for k in range(n * rounds) if k % n < n - colluders]
    return loss(models, hidden), loss(models[-1:], hidden)


@pytest.mark.parametrize(
    ("n", "rounds", "relaxation", "gamma", "h", "joint", "last"),
    [
        (5, 1, 0.5, 0.5, 0.0, 0.8, 0.8),
        (5, 5, 0.5, 0.5, 0.5, 3.016440822, 2.741250573),
        (20, 5, 0.25, 0.5, 0.5, 0.783396996, 0.749155469),
    ],
)
def test_centralized_audit(n, rounds, relaxation, gamma, h, joint, last):
    """walk:ADMM-5: the exact audit, the proven bound above it, the printed one below."""
    found = centralized(n, rounds, relaxation, gamma, h)
    assert found == pytest.approx((joint, last), rel=1e-8)
    noise = AdmmNoise(1.0, gamma, 1.0, relaxation)
    for alpha in (1.0, 2.0):
        exact = alpha * joint / 2
        assert models_guarantee(noise, n, rounds).profile.divergence(alpha) >= exact
        assert (
            published_centralized(noise, n, rounds).loss * alpha / (2 * noise.noise_multiplier**2)
            < exact
        )


def test_second_row_of_the_audit():
    """walk:ADMM-5, alpha = sigma = 1: exact 1.508220, V3 gives 10 (the transcript bound), the print
    0.4."""
    noise = AdmmNoise(1.0, 0.5, 1.0, 0.5)
    assert models_guarantee(noise, 5, 5).profile.divergence(1.0) == pytest.approx(10.0)
    assert published_centralized(noise, 5, 5).loss / (
        2 * noise.noise_multiplier**2
    ) == pytest.approx(0.4)
    assert centralized(5, 5, 0.5, 0.5, 0.5)[0] / 2 == pytest.approx(1.508220, abs=1e-6)


def test_colluding_participants():
    """walk:ADMM-5: n = 20, c = 17, K = 3, linear losses, gamma = L = sigma = 1."""
    exact = centralized(20, 3, 0.5, 1.0, 0.0, colluders=17)[0]
    assert exact == pytest.approx(16.0, rel=1e-9)
    noise = AdmmNoise(1.0, 1.0, 1.0, 0.5)
    mu_squared = 64 * 3 / 19
    assert mu_squared == pytest.approx(10.105, abs=1e-3)
    assert mu_squared < exact <= 2 * models_guarantee(noise, 20, 3, 17).profile.divergence(1.0)
    assert models_loss(20, 3, 0.5, 19) == 3.0


@pytest.mark.parametrize(
    ("n", "rounds", "alpha", "gamma", "sigma", "relaxation", "printed", "transcript", "v3", "v4"),
    [
        (100, 50, 2.0, 0.5, 1.0, 0.5, 0.02, 200.0, 8.080808081, 0.005),
        (1000, 100, 8.0, 1.0, 2.0, 0.25, 0.0016, 1600.0, 6.406406406, 0.0004),
    ],
)
def test_centralized_table(n, rounds, alpha, gamma, sigma, relaxation, printed, transcript, v3, v4):
    """walk:ADMM-5."""
    noise = AdmmNoise(1.0, gamma, sigma, relaxation)
    assert published_centralized(noise, n, rounds).profile.divergence(alpha) == pytest.approx(
        printed
    )
    assert transcript_guarantee(noise, rounds).profile.divergence(alpha) == pytest.approx(
        transcript
    )
    assert models_guarantee(noise, n, rounds).profile.divergence(alpha) == pytest.approx(
        v3, rel=1e-9
    )
    about = consensus_guarantee(n, rounds, 1.0, gamma, sigma, relaxation)
    assert about.profile.divergence(alpha) == pytest.approx(v4)
    assert about.profile.mu == pytest.approx(2 * gamma * math.sqrt(rounds) / (n * sigma))


def test_one_round_refutes_theorem_8_7():
    """walk:ADMM-5: linear losses, exactly n times the print, 8 alpha L^2 gamma^2 / (n sigma^2)."""
    for n in (3, 10, 40):
        noise = AdmmNoise(1.0, 0.5, 1.0, 0.5)
        exact = centralized(n, 1, 0.5, 0.5, 0.0)[0]
        assert exact / 2 == pytest.approx(8 * 0.25 / n)
        assert exact == pytest.approx(
            n * published_centralized(noise, n, 1).loss / noise.noise_multiplier**2
        )
        assert exact == pytest.approx(2 * models_estimate(noise, n, 1).profile.divergence(1.0))


def test_above_one_half():
    """walk:ADMM-5: V3 and V4 grow with delta_max = 2 lambda gamma L / (1 - lambda), and end at
    1."""
    for relaxation in (0.6, 0.9):
        delta_max = 2 * relaxation * 0.5 / (1 - relaxation)
        expected = (
            20 * (2 * delta_max + 4 * 0.5) ** 2 / (2 * 999)
        )  # at alpha = sigma = L = 1, gamma = 0.5
        found = models_guarantee(AdmmNoise(1.0, 0.5, 1.0, relaxation), 1000, 20).profile.divergence(
            1.0
        )
        assert found == pytest.approx(expected)
        assert consensus_multiplier(1000, 1.0, 0.5, 1.0, relaxation) == pytest.approx(
            1000 / delta_max
        )
    assert models_loss(1000, 20, 1.0) == 20.0
    assert models_loss(1000, 20, 0.5) == pytest.approx(models_loss(1000, 20, 0.5 + 1e-12))


def federated(
    n: int, rounds: list[set[int]], relaxation: float, gamma: float, h: list[float]
) -> tuple[float, float]:
    run = Audit(n, relaxation, gamma, h, sum(map(len, rounds)))
    models = []
    for chosen in rounds:
        z = run.mean.copy()
        for i in sorted(chosen):
            run.step(i, z)
        models.append(run.mean.copy())
    return loss(models), loss(models[-1:])


def test_federated_audit():
    """walk:ADMM-6, K_0 = 2."""
    found = federated(4, [{0, 1}, {2, 3}, {0, 3}], 0.5, 0.5, [0.0, 0.3, 0.3, 0.3])
    assert found == pytest.approx((2.347454844, 1.572651524), rel=1e-8)
    assert found[0] <= 2 * federated_guarantee(AdmmNoise(1.0, 0.5, 1.0), 2).profile.divergence(1.0)


def test_federated_table():
    """walk:ADMM-6: (n, m, K, K_i, alpha, L, gamma, sigma) = (1000, 100, 200, 20, 4, 1, .5, 20)."""
    noise = AdmmNoise(1.0, 0.5, 20.0)
    assert federated_guarantee(noise, 20).profile.divergence(4.0) == pytest.approx(0.4)
    assert published_central(noise, 1000, 100, 200).profile.divergence(4.0) == pytest.approx(8e-6)
    estimate = federated_estimate(noise, 1000, 100, 200)
    assert estimate.noise_multiplier == pytest.approx(100.0)
    assert estimate.profile.divergence(4.0) == pytest.approx(4.000270017e-4, rel=1e-9)
    assert federated_estimate_closed(noise, 1000, 100, 200, 4.0) == pytest.approx(1.6e-3)


def test_one_round_refutes_theorem_8_9():
    """walk:ADMM-6: its value, 16 alpha L^2 gamma^2 / (sigma^2 n^2), against the exact loss of a
    full round."""
    n, gamma = 10, 0.5
    printed = 2 * 16 * gamma**2 / n**2  # X: twice the divergence at alpha = sigma = 1
    assert federated(n, [set(range(n))], 0.5, gamma, [0.0] * n)[0] == pytest.approx(n / 2 * printed)


def decentralized(
    n: int, walk: list[int], relaxation: float, gamma: float, h: list[float]
) -> float:
    """User 0 in the view of user 1, who knows the walk and its own noise."""
    run = Audit(n, relaxation, gamma, h, len(walk))
    seen = []
    for i in walk:
        if i == 1:
            seen.append(run.mean.copy())
        run.step(i, run.mean.copy())
    return loss(seen, [k for k, i in enumerate(walk) if i != 1])


@pytest.mark.parametrize(
    ("n", "walk", "relaxation", "expected"),
    [(3, [0, 2, 1, 0, 1], 0.5, 3.497340111), (4, [0, 2, 3, 1, 0, 3, 2, 1], 0.25, 2.925637535)],
)
def test_decentralized_audit(n, walk, relaxation, expected):
    """walk:ADMM-7; the local bound is 8 in both."""
    found = decentralized(n, walk, relaxation, 0.5, [0.0] + [0.3] * (n - 1))
    assert found == pytest.approx(expected, rel=1e-8)
    local = 2 * decentralized_guarantee(AdmmNoise(1.0, 0.5, 1.0, relaxation), 2).profile.divergence(
        1.0
    )
    assert local == pytest.approx(8.0)
    assert found <= local


def test_decentralized_table():
    """walk:ADMM-7: (n, K_i, alpha, L, gamma, sigma) = (1000, 10, 2, 1, .5, 4)."""
    noise = AdmmNoise(1.0, 0.5, 4.0)
    assert decentralized_guarantee(noise, 10).profile.divergence(2.0) == pytest.approx(2.5)
    assert published_token(noise, 1000, 10).profile.divergence(2.0) == pytest.approx(
        1.726938820e-2, rel=1e-9
    )
    assert corrected_token(noise, 1000, 10).profile.divergence(2.0) == pytest.approx(
        3.453877639e-2, rel=1e-9
    )
    one, two = (
        decentralized_estimate(noise, 1000, 10, hops).profile.divergence(2.0) for hops in (1.0, 2.0)
    )
    assert one == pytest.approx(1.781601803e-2, rel=1e-9)
    assert two == pytest.approx(3.217086653e-2, rel=1e-9)


def test_proven_accountants_are_above_random_audits():
    """walk:ADE-3: linear-quadratic instances; the print is violated by every one-round central
    instance."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, rounds = int(rng.integers(3, 9)), int(rng.integers(1, 7))
        relaxation, gamma, h = (
            float(rng.uniform(0.05, 0.5)),
            float(rng.uniform(0.1, 2.0)),
            float(rng.uniform(0, 1)),
        )
        noise = AdmmNoise(1.0, gamma, 1.0, relaxation)
        exact = centralized(n, rounds, relaxation, gamma, h)[0]
        assert exact <= 2 * models_guarantee(noise, n, rounds).profile.divergence(1.0) * (1 + 1e-9)
        one = centralized(n, 1, relaxation, gamma, h)[0]
        assert one > published_centralized(noise, n, 1).loss / noise.noise_multiplier**2
        sets = [
            set(rng.choice(n, int(rng.integers(1, n + 1)), replace=False).tolist())
            for _ in range(rounds)
        ]
        mine = sum(0 in chosen for chosen in sets)
        if mine:
            found = federated(n, sets, relaxation, gamma, [0.0] + [h] * (n - 1))[0]
            assert found <= 2 * federated_guarantee(noise, mine).profile.divergence(1.0) * (
                1 + 1e-9
            )
        walk = [*rng.integers(0, n, 12).tolist(), 1]
        if 0 in walk:
            found = decentralized(n, walk, relaxation, gamma, [0.0] + [h] * (n - 1))
            assert found <= 2 * decentralized_guarantee(noise, walk.count(0)).profile.divergence(
                1.0
            ) * (1 + 1e-9)


def test_consensus_noise_audit():
    """walk:ADMM-5, V4: the exact joint loss of all noisy models, by the linear oracle, any
    participation."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        n, rounds = int(rng.integers(2, 8)), int(rng.integers(1, 7))
        relaxation, gamma = float(rng.uniform(0.05, 0.95)), float(rng.uniform(0.1, 2.0))
        h = np.append(0.0, rng.uniform(0, 1, n - 1))
        duals, models = np.zeros((n, 2 + rounds)), []
        for k in range(rounds + 1):
            z = duals.mean(axis=0)
            z[1 + k] += 1.0
            models.append(z)
            for i in np.flatnonzero(rng.random(n) < 0.7):
                x = 2 * z - duals[i]
                x[0] -= 2 * gamma * (i == 0)
                duals[i] = duals[i] + 2 * relaxation * (x / (1 + gamma * h[i]) - z)
        exact = loss(models)
        bound = consensus_guarantee(
            n, rounds, 1.0, gamma, 1.0, relaxation
        )  # the first model does not depend on data
        assert exact <= 2 * bound.profile.divergence(1.0) * (1 + 1e-9)


def test_statuses():
    noise = AdmmNoise(1.0, 0.5, 20.0)
    estimates = (
        models_estimate(noise, 10, 3),
        federated_estimate(noise, 100, 5, 3),
        decentralized_estimate(noise, 50, 3),
    )
    assert {about.status for about in estimates} == {"heuristic"}
    printed = (
        published_centralized(noise, 10, 3),
        published_central(noise, 100, 5, 3),
        published_token(noise, 50, 3),
    )
    assert {about.status for about in printed} == {"published"}
    assert all(about.notes for about in printed + estimates)
    assert "refuted" in printed[0].epsilon(1e-6).why()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: AdmmNoise(0.0, 1.0, 1.0), "positive lipschitz"),
        (lambda: AdmmNoise(1.0, math.inf, 1.0), "positive gamma"),
        (lambda: AdmmNoise(1.0, 1.0, -1.0), "standard deviation >= 0"),
        (lambda: AdmmNoise(1.0, 1.0, 1.0, 1.5), "relaxation"),
        (lambda: models_loss(1, 3, 0.5), "two users"),
        (lambda: models_loss(5, 3, 0.5, 5), "and not the user"),
        (lambda: models_loss(5, -1, 0.5), "rounds >= 0"),
        (lambda: consensus_multiplier(5, 1.0, 1.0, 1.0, 1.0), "lower it"),
        (lambda: consensus_guarantee(5, -1, 1.0, 1.0, 1.0), "releases >= 0"),
        (lambda: transcript_guarantee(AdmmNoise(1.0, 1.0, 1.0), -1), "participations >= 0"),
        (lambda: federated_estimate(AdmmNoise(1.0, 1.0, 1.0), 5, 6, 1), "1 to 5 users"),
        (lambda: decentralized_estimate(AdmmNoise(1.0, 1.0, 0.0), 5, 6), "needs noise"),
        (lambda: published_centralized(AdmmNoise(1.0, 1.0, 0.0), 5, 1), "above 0"),
        (lambda: published_central(AdmmNoise(1.0, 1.0, 20.0), 10, 5, 1), "fewer than n / 5"),
        (lambda: published_central(AdmmNoise(1.0, 1.0, 1.0), 100, 5, 1), ">= 4"),
        (lambda: published_token(AdmmNoise(1.0, 1.0, 0.01), 100, 5), "allows no order"),
        (lambda: published_token(AdmmNoise(1.0, 1.0, 9.0), 1, 5), "two users"),
    ],
)
def test_refusals(call, said):
    with pytest.raises(PrivacyError, match=said):
        call()


def test_no_noise_means_no_privacy():
    assert transcript_guarantee(AdmmNoise(1.0, 1.0, 0.0), 3).epsilon(1e-6) == math.inf
    assert transcript_guarantee(AdmmNoise(1.0, 1.0, 1.0), 0).epsilon(1e-6) == 0.0
