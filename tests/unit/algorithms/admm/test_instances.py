"""Gradient, coordinate and proximal methods as noisy fixed points: walk:ADMM-2, ADMM-4."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bruit.algorithms.admm.draws import AddressedDraws, WrittenDraws
from bruit.algorithms.admm.iteration import Iteration
from bruit.algorithms.admm.regularizers import L1, ElasticNet
from bruit.errors import ConfigError
from bruit.randomness import Replay
from papers.theorems.coordinate_descent import coordinate_descent, cut, joined
from papers.theorems.general_admm import Splitting
from papers.theorems.gradient_steps import gradient_descent, stochastic_gradient_descent
from papers.theorems.proximal_steps import proximal_gradient, proximal_point, reflection

QUIET = AddressedDraws(Replay(0))


def test_private_sgd_is_a_noisy_fixed_point():
    # walk:ADMM-2: beta 2, gamma .3, u (1, -2), gradients (.5, .1) of all, (.2, -.3) of one, normals
    # (.4, -1.1).
    full, one = np.array([[0.5, 0.1]]), np.array([[0.2, -0.3]])
    eta = np.array([[[0.4, -1.1]]])
    iteration = stochastic_gradient_descent(
        lambda u: full, lambda step, u: one, 2.0, 0.3, noise=1.0
    )
    found = iteration.run(np.array([[1.0, -2.0]]), 1, WrittenDraws(eta))
    assert found[0] == pytest.approx([1.06, -2.24], abs=1e-14)
    direct = np.array([1.0, -2.0]) - 0.3 * (
        one[0] - eta[0, 0]
    )  # the sign of a normal law does not matter
    assert found[0] == pytest.approx(direct, abs=1e-14)


def quadratic(seed=0, d=6):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    hessian, b = root @ root.T / d + 0.1 * np.eye(d), rng.normal(size=d)
    return hessian, b, float(np.linalg.eigvalsh(hessian)[-1])


def test_gradient_descent_reaches_the_minimum():
    hessian, b, beta = quadratic()
    found = gradient_descent(lambda u: u @ hessian - b, beta, 1 / beta).run(
        np.zeros((1, 6)), 3000, QUIET
    )
    assert found[0] == pytest.approx(np.linalg.solve(hessian, b), abs=1e-8)


def test_coordinate_descent_moves_one_block_and_reaches_the_minimum():
    # walk:ADMM-2, Prop. 8.4
    hessian, b, beta = quadratic()
    iteration = coordinate_descent(lambda x: x @ hessian - b, beta, 1 / beta, noise=0.0)
    start = cut(np.zeros(6), 3)
    once = iteration.run(
        start, 1, WrittenDraws(np.zeros((1, 3, 2)), np.array([[False, True, False]]))
    )
    assert joined(once) == pytest.approx([0, 0, b[2] / beta, b[3] / beta, 0, 0])
    found = iteration.run(start, 8000, AddressedDraws(Replay(1), count=1))
    assert joined(found) == pytest.approx(np.linalg.solve(hessian, b), abs=1e-6)


def test_the_noise_of_a_coordinate_step():
    # gamma (grad_b + noise): the noise of the iteration is scaled back to the gradient
    iteration = coordinate_descent(lambda x: 0 * x, 4.0, 0.1, noise=3.0)
    found = iteration.run(
        np.zeros((2, 1)), 1, WrittenDraws(np.ones((1, 2, 1)), np.array([[True, False]]))
    )
    assert found[:, 0] == pytest.approx([0.1 * 3.0, 0.0])


def test_proximal_gradient_keeps_the_noise_inside_the_prox():
    hessian, b, beta = quadratic()
    rate, regularizer = 1 / beta, L1(0.2)
    iteration = proximal_gradient(lambda x: x @ hessian - b, regularizer, beta, rate, noise=0.5)
    normals = np.random.default_rng(1).normal(size=(4, 1, 6))
    found = regularizer.prox(iteration.run(np.zeros((1, 6)), 4, WrittenDraws(normals)), rate)[0]
    x = np.zeros(6)
    for eta in normals[:, 0]:
        forward = x - rate * (hessian @ x - b - 0.5 * eta)
        x = np.sign(forward) * np.maximum(np.abs(forward) - rate * 0.2, 0)
    assert found == pytest.approx(x, abs=1e-14)


def test_proximal_gradient_meets_the_optimality_conditions():
    hessian, b, beta = quadratic()
    regularizer, rate = ElasticNet(0.3, 0.1), 1 / beta
    state = proximal_gradient(lambda x: x @ hessian - b, regularizer, beta, rate).run(
        np.zeros((1, 6)), 4000, QUIET
    )
    x = regularizer.prox(state, rate)[0]
    slope = b - hessian @ x - 0.1 * x  # must lie in 0.3 times the subgradient of |x|_1
    assert (np.abs(slope) <= 0.3 + 1e-9).all()
    assert slope[x != 0] == pytest.approx(0.3 * np.sign(x[x != 0]), abs=1e-8)


def test_the_proximal_point_method():
    hessian, b, _ = quadratic()
    inverse = np.linalg.inv(np.eye(6) + 2.0 * hessian)

    def prox(u):
        return (u + 2.0 * b) @ inverse

    found = proximal_point(prox).run(np.zeros((1, 6)), 2000, QUIET)
    assert found[0] == pytest.approx(np.linalg.solve(hessian, b), abs=1e-8)
    assert reflection(prox)(found) == pytest.approx(found, abs=1e-7)
    noisy = proximal_point(prox, sigma=2.0).run(
        np.zeros((1, 6)), 1, WrittenDraws(np.ones((1, 1, 6)))
    )
    assert noisy[0] == pytest.approx(prox(np.zeros((1, 6)))[0] + 1.0)


def splitting(seed=0, gamma=0.7):
    """Quadratic f, g with a general A and B, and the KKT solution of the tied problem."""
    rng = np.random.default_rng(seed)
    A, B, c = rng.normal(size=(5, 4)), rng.normal(size=(5, 3)), rng.normal(size=5)
    c = A @ rng.normal(size=4) + B @ rng.normal(size=3)
    P, Q = np.diag(rng.uniform(0.5, 2, 4)), np.diag(rng.uniform(0.5, 2, 3))
    p, q = rng.normal(size=4), rng.normal(size=3)
    left_x, left_z = np.linalg.inv(P + A.T @ A / gamma), np.linalg.inv(Q + B.T @ B / gamma)
    made = Splitting(
        A, B, c, lambda w: -(p + w @ A / gamma) @ left_x, lambda w: -(q + w @ B / gamma) @ left_z
    )
    system = np.block(
        [[P, np.zeros((4, 3)), A.T], [np.zeros((3, 4)), Q, B.T], [A, B, np.zeros((5, 5))]]
    )
    solution = np.linalg.lstsq(system, np.concatenate((-p, -q, c)), rcond=None)[0]
    return made, solution[4:7]


def test_general_admm_reaches_the_kkt_point():
    # walk:ADMM-4, acceptance: sigma = 0, quadratic f and g
    made, z = splitting()
    state = Iteration(made.operator, 0.5).run(np.zeros((1, 5)), 4000, QUIET)
    assert made.model(state)[0] == pytest.approx(z, abs=1e-10)
    both = Iteration(made.operator, 0.5).run(np.zeros((2, 1, 5)), 4000, QUIET)
    assert made.model(both)[1, 0] == pytest.approx(z, abs=1e-10)


def test_the_step_of_general_admm_is_the_one_printed():
    # walk:ADMM-4, Algorithm E.1, one noisy step written out
    made, _ = splitting(1)
    u, eta, share, sigma = np.arange(5.0), np.array([0.3, -0.2, 0.5, 1.0, -1.0]), 0.4, 0.6
    z = made.solve_z(u)
    x = made.solve_x(2 * made.B @ z + u - made.c)
    wanted = u + 2 * share * (made.A @ x + made.B @ z - made.c + sigma * eta / 2)
    found = Iteration(made.operator, share, sigma).run(u[None], 1, WrittenDraws(eta[None, None]))
    assert found[0] == pytest.approx(wanted, abs=1e-13)


def test_the_verified_sensitivity_of_general_admm():
    # walk:ADMM-4: |A (x - x')| <= 2 L gamma / (n omega_A), reached by linear losses and A = I/2;
    # (E.15), with an extra
    # |A| = 1/2, allows half of it.
    n, gamma, L, w = 20, 0.1, 2.0, np.array([0.3, -0.4])

    def image(slope):
        def total(x):
            return slope @ x / n + ((x / 2 + w) ** 2).sum() / (2 * gamma)

        return minimize(total, np.zeros(2), method="BFGS", options={"gtol": 1e-9}).x / 2

    moved = np.linalg.norm(image(np.array([L, 0.0])) - image(np.array([-L, 0.0])))
    assert moved == pytest.approx(2 * L * gamma / (n * 0.5), rel=1e-6)
    assert moved > 1.9 * (0.5 * 2 * L * gamma / (n * 0.5))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (
            lambda: gradient_descent(lambda u: u, 2.0, 1.5),
            r"rate must be in \(0, 2 / smoothness = 1\], found 1.5",
        ),
        (lambda: gradient_descent(lambda u: u, 0.0, 1.0), "positive smoothness, found 0.0"),
        (lambda: proximal_gradient(lambda u: u, L1(1.0), 2.0, 3.0), "rate must be in"),
        (lambda: cut(np.zeros(5), 2), "5 coordinates cannot be cut into 2 equal blocks"),
        (
            lambda: Splitting(np.eye(2), np.eye(3), np.zeros(2), lambda w: w, lambda w: w),
            "found 2, 3 and 2",
        ),
    ],
)
def test_impossible_instances(make, word):
    with pytest.raises(ConfigError, match=word):
        make()
