"""The noisy iteration itself: walk:ADMM-1, what contraction measures, and every refusal."""

import numpy as np
import pytest

from bruit.algorithms.admm.contraction import affine_contraction, measured_contraction
from bruit.algorithms.admm.draws import AddressedDraws, WrittenDraws
from bruit.algorithms.admm.iteration import Iteration
from bruit.errors import ConfigError
from bruit.randomness import Replay

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def turned(u):
    """R(u) = (-u2, u1) / 2 on two blocks of one number."""
    return 0.5 * np.einsum("ij,...jd->...id", TURN, u)


def test_the_worked_steps():
    # walk:ADMM-1: u0 = (2, 1), relaxation .8, sigma .5, blocks (1, 1) then (1, 0), normals (.2,
    # -.1), (.4, .3).
    draws = WrittenDraws(
        np.array([[[0.2], [-0.1]], [[0.4], [0.3]]]), np.array([[True, True], [True, False]])
    )
    first, second = Iteration(turned, 0.8, 0.5).iterates(np.array([[2.0], [1.0]]), 2, draws)
    assert first[:, 0] == pytest.approx([0.08, 0.96], abs=1e-14)
    assert second[:, 0] == pytest.approx([-0.208, 0.96], abs=1e-14)


def test_a_partial_step_of_a_non_expansive_operator_may_expand():
    # walk:ADMM-1, caution: swapping is an isometry, swapping the first block only takes distance 1
    # to sqrt(2).
    swap = Iteration(lambda u: u[..., ::-1, :])
    assert affine_contraction(swap.operator, np.zeros((2, 1))) == pytest.approx(1.0)
    draws = WrittenDraws(np.zeros((1, 2, 1)), np.array([[True, False]]))
    ends = [swap.run(np.array([[0.0], [second]]), 1, draws) for second in (0.0, 1.0)]
    assert np.linalg.norm(ends[1] - ends[0]) == pytest.approx(2**0.5)


def test_runs_at_once_are_runs_one_by_one():
    iteration = Iteration(turned, 0.7, 0.3)
    together = iteration.run(np.ones((4, 2, 3)), 5, AddressedDraws(Replay(3)))
    dice = Replay(3)
    for run in range(4):
        noise = np.stack(
            [dice.normal("fixed point", np.arange(2), step, 0, 3, run) for step in range(5)]
        )
        np.testing.assert_allclose(
            iteration.run(np.ones((2, 3)), 5, WrittenDraws(noise)), together[run], atol=1e-15
        )


def test_drawn_blocks_are_uniform_subsets():
    draws = AddressedDraws(Replay(1), count=2)
    chosen = np.stack([draws.active(step, (50, 5, 1)) for step in range(200)])
    assert (chosen.sum(axis=2) == 2).all()
    shares = chosen.reshape(-1, 5).mean(axis=0)  # 10,000 draws each: 6 standard errors of .0049
    assert np.abs(shares - 0.4).max() < 0.03


def test_a_relaxation_may_change_with_the_steps():
    shares = (0.5, 0.25)
    shrinking = Iteration(lambda u: 0 * u, lambda step: shares[step])
    after = shrinking.iterates(np.full((1, 1), 8.0), 2, WrittenDraws(np.zeros((2, 1, 1))))
    assert [float(u[0, 0]) for u in after] == [4.0, 3.0]


def test_contraction_of_an_affine_operator_is_its_spectral_norm():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(6, 6))
    known = np.linalg.svd(matrix, compute_uv=False)[0]

    def operator(u):
        return (u.reshape(*u.shape[:-2], 6) @ matrix.T + 1).reshape(u.shape)

    assert affine_contraction(operator, np.zeros((3, 2))) == pytest.approx(known)
    assert measured_contraction(operator, np.zeros((3, 2)), Replay(0)) <= known + 1e-12
    assert measured_contraction(turned, np.zeros((2, 1)), Replay(0)) == pytest.approx(0.5)


def test_measured_contraction_finds_the_slow_direction():
    slow = np.array([0.9, 0.2, 0.1])
    found = measured_contraction(
        lambda u: slow * np.tanh(u), np.zeros((1, 3)), Replay(0), pairs=400
    )
    assert 0.6 < found <= 0.9
    assert measured_contraction(lambda u: 0 * u, np.zeros((1, 3)), Replay(0)) == 0.0


ZERO = WrittenDraws(np.zeros((1, 2, 1)))


@pytest.mark.parametrize(
    ("act", "word"),
    [
        (lambda: Iteration(turned, 0.0), r"in \(0, 1\], found 0.0"),
        (lambda: Iteration(turned, 1.5), r"in \(0, 1\], found 1.5"),
        (lambda: Iteration(turned, 1.0, -1.0), "sigma must be a number >= 0, found -1.0"),
        (
            lambda: Iteration(turned, lambda step: 2.0).run(np.zeros((2, 1)), 1, ZERO),
            r"in \(0, 1\], found 2.0",
        ),
        (
            lambda: Iteration(turned).run(np.zeros(2), 1, ZERO),
            r"\(blocks, d\) or \(runs, blocks, d\), found shape \(2,\)",
        ),
        (
            lambda: Iteration(lambda u: u[:1]).run(np.zeros((2, 1)), 1, ZERO),
            r"\(2, 1\) into \(1, 1\)",
        ),
        (
            lambda: Iteration(turned, 1.0, 1.0).run(np.zeros((2, 1)), 2, ZERO),
            "given for 1 steps, and step 1",
        ),
        (lambda: AddressedDraws(Replay(0), 0), "at least one block"),
        (
            lambda: AddressedDraws(Replay(0), 3).active(0, (2, 1)),
            "3 blocks cannot move, the state has 2",
        ),
    ],
)
def test_impossible_iterations(act, word):
    with pytest.raises(ConfigError, match=word):
        act()
