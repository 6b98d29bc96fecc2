"""Gaussian, Laplace and discrete Gaussian releases: addresses, lattices, events, calibration,
refusals."""

import json
import math

import numpy as np
import pytest

from bruit import mechanisms
from bruit.discovery import classes
from bruit.errors import ConfigError
from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace, clip_rows, mechanism_from
from bruit.mechanisms.mechanism import Mechanism, catalog
from bruit.privacy.events import DiscreteGaussianEvent, Exact, GaussianEvent, LaplaceEvent
from bruit.privacy.toolbox.gaussian import epsilon_of, zcdp_to_epsilon
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.randomness import Replay
from bruit.randomness.discrete_normal import discrete_normals


def test_a_part_of_a_mechanism_takes_no_ones_place():
    """Noise on a grid that all share is a Gaussian too, with a grid of its own: files that asked
    for gaussian noise got it, with no grid at all, and a model fitted alone could not be released."""
    found = classes(mechanisms, Mechanism, without=(".compiled",))
    assert catalog()["gaussian"] is Gaussian
    assert type(mechanism_from(Gaussian(clip=2.0, sigma=0.7).describe())) is Gaussian
    assert len({one.kind for one in found}) == len(set(found))
    assert catalog()["gaussian"](clip=2.0, sigma=0.7).spacing > 0


MECHANISMS = [
    Gaussian(clip=2.0, sigma=0.7),
    Gaussian(clip=2.0, sigma=0.7, arithmetic="ideal"),
    Gaussian(clip=1.0),
    Laplace(clip=1.5, scale=0.3),
    Laplace(clip=1.5, scale=30.0, level="record"),
    DiscreteGaussian(clip=1.0, sigma=0.4, grid=2.0**-6),
    DiscreteGaussian(clip=1.0, sigma=0.0),
]
VALUES = np.random.default_rng(0).normal(size=(6, 5)) * 3


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_release_is_the_clipped_row_plus_addressed_noise(mechanism):
    dice, lanes, steps = Replay(1), np.arange(6) + 10, np.arange(6)
    got = mechanism.release(VALUES, dice, lanes, steps, 3, run=2)
    noise = mechanism.noise(dice, lanes, steps, 3, 5, run=2)
    clipped = clip_rows(VALUES, mechanism.clip, mechanism.norm)
    np.testing.assert_allclose(got - noise, clipped, atol=3 * mechanism.spacing + 1e-13)
    for i in range(6):
        alone = mechanism.release(
            VALUES[i : i + 1], dice, lanes[i : i + 1], int(steps[i]), 3, run=2
        )
        assert (alone[0] == got[i]).all()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_manifest_brings_back_the_mechanism(mechanism):
    assert mechanism_from(json.loads(json.dumps(mechanism.describe()))) == mechanism
    assert mechanism.sensitivity == 2 * mechanism.clip


@pytest.mark.parametrize("mechanism", [m for m in MECHANISMS if m.spacing])
def test_releases_lie_on_the_lattice(mechanism):
    assert math.frexp(mechanism.spacing)[0] == 0.5
    got = mechanism.release(VALUES, Replay(1), np.arange(6), 0, 0)
    assert (np.mod(got, mechanism.spacing) == 0).all()


@pytest.mark.parametrize("sigma", [1.0, 0.7, 3e-9, 1e9, 2.0**-30])
def test_the_grid_is_a_power_of_two_just_below_sigma_times_two_to_the_minus_forty(sigma):
    mechanism = Gaussian(clip=1e-3 * sigma, sigma=sigma)
    assert 2.0**-41 * sigma < mechanism.spacing <= 2.0**-40 * sigma


def test_a_release_on_a_grid_of_the_protocol():
    """times * clip(x), toward zero, plus times * noise, to the bit; -0.0 does not occur."""
    mechanism, dice, lanes = Gaussian(clip=1.0, sigma=0.8), Replay(5), np.arange(6)
    grid = mechanism.fine_grid(0.3, data=1e6, noise=1e3)
    assert mechanism.reach(0.3, 1e6, 1e3) / grid <= 2.0**51
    bare = mechanism.bare_on(grid, 0.3, VALUES, lanes)
    assert (np.abs(bare) <= np.abs(0.3 * clip_rows(VALUES, 1.0))).all()
    assert (np.mod(bare, grid) == 0).all()
    got = mechanism.release_on(grid, 0.3, VALUES, dice, lanes, 4, 2)
    noise = discrete_normals(
        dice, "noise", lanes, 4, 2, VALUES.shape[1], 0.3 * 0.8 / grid, grid=grid
    )
    assert (got == bare + noise).all()
    assert not np.signbit(mechanism.bare_on(grid, 0.3, -np.zeros((1, 3)) - 1e-300, lanes[:1])).any()
    with pytest.raises(ConfigError, match="laplace noise has no grid"):
        Laplace(scale=1.0).release_on(grid, 1.0, VALUES, dice, lanes, 0, 0)


def test_ideal_arithmetic_is_plain_floats_and_says_so():
    ideal, dice = Gaussian(clip=1.0, sigma=0.8, arithmetic="ideal"), Replay(5)
    assert ideal.spacing == ideal.fine_grid() == 0.0
    assert (
        ideal.noise(dice, np.arange(3), 0, 0, 4)
        == 0.8 * dice.normal("noise", np.arange(3), 0, 0, 4)
    ).all()
    assert ideal.event() == GaussianEvent(0.4) != Gaussian(clip=1.0, sigma=0.8).event()


def test_the_lattice_stays_exact_when_sigma_is_tiny():
    mechanism = Gaussian(clip=1.0, sigma=1e-15)
    got = mechanism.release(np.array([[0.3, 0.4]]), Replay(0), np.array([0]), 0, 0)
    assert mechanism.clip / mechanism.spacing <= 2.0**51
    np.testing.assert_allclose(got, [[0.3, 0.4]], atol=1e-13)


def test_events():
    assert Gaussian(clip=0.5, sigma=4.0).event_of(3) == GaussianEvent(4.0, 3 * 2.0**-80 / 4)
    assert Gaussian(clip=0.5, sigma=4.0).event_of(3, 1e-9) == GaussianEvent(4.0, 1e-9)
    assert Laplace(clip=0.5, scale=4.0).event() == LaplaceEvent(4.0)
    assert DiscreteGaussian(clip=0.5, sigma=4.0).event() == DiscreteGaussianEvent(4.0)
    for silent in (Gaussian(), Laplace(), DiscreteGaussian()):
        assert silent.event() == Exact()
        assert (silent.noise(Replay(0), np.arange(2), 0, 0, 3) == 0).all()


def test_gaussian_calibration_meets_the_worked_number():
    """gossip:DP-4: epsilon 0.5, delta 1e-5, sensitivity 1: sigma 7.03182668."""
    mechanism = Gaussian(clip=0.5).calibrate(epsilon=0.5, delta=1e-5)
    assert mechanism.sigma == pytest.approx(7.03182668, abs=5e-9)
    assert Gaussian(clip=0.5).calibrate(0.5, 1e-5, releases=4).sigma == pytest.approx(
        2 * mechanism.sigma, rel=1e-9
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "releases"), [(1.0, 1e-6, 12), (10.0, 1e-6, 12), (0.01, 1e-9, 1000)]
)
def test_gaussian_calibration_is_safe_and_least(epsilon, delta, releases):
    mechanism = Gaussian(clip=3.0).calibrate(epsilon, delta, releases, dim=1)
    assert compose_epsilon([(mechanism.event(), releases)], delta) <= epsilon
    wide = Gaussian(clip=3.0).calibrate(epsilon, delta, releases, dim=10**6)
    assert compose_epsilon([(wide.event_of(10**6), releases)], delta) <= epsilon
    assert wide.sigma == pytest.approx(mechanism.sigma, rel=1e-4)
    less = Gaussian(clip=3.0, sigma=mechanism.sigma * (1 - 1e-6))
    assert compose_epsilon([(less.event(), releases)], delta) > epsilon


def test_local_noise_of_the_walk_table():
    """Section 3 of the walk part: 12 contributions, delta 1e-6, local DP: 14.6347 (epsilon 1),
    1.8744 (epsilon 10)."""
    assert Gaussian().calibrate(1.0, 1e-6, 12).noise_multiplier == pytest.approx(14.6347, abs=5e-5)
    assert Gaussian().calibrate(10.0, 1e-6, 12).noise_multiplier == pytest.approx(1.8744, abs=5e-5)


def test_pair_calibration():
    """mu = sensitivity * sqrt(loss) / sigma (conventions: loss in local-DP units)."""
    mechanism = Gaussian(clip=1.5).calibrate_pair(0.7, 1e-6, loss=0.03)
    mu = 3.0 * math.sqrt(0.03) / mechanism.sigma
    assert epsilon_of(mu, 1e-6) == pytest.approx(0.7, rel=1e-8)
    assert Gaussian().calibrate_pair(0.7, 1e-6, loss=5.0) == Gaussian().calibrate(
        0.7, 1e-6, releases=5
    )
    assert Gaussian(sigma=3.0).calibrate_pair(0.7, 1e-6, loss=0.0).sigma == 0.0


def test_laplace_calibration():
    mechanism = Laplace(clip=0.7).calibrate(epsilon=0.3, releases=7)
    assert mechanism.scale == pytest.approx(1.4 * 7 / 0.3, rel=1e-10)
    assert 7 / mechanism.noise_multiplier <= 0.3
    assert mechanism.sigma == pytest.approx(math.sqrt(2) * mechanism.scale)


def test_discrete_gaussian_calibration():
    mechanism = DiscreteGaussian(clip=0.5).calibrate(epsilon=1.0, delta=1e-6, releases=3)
    assert zcdp_to_epsilon(1.5 / mechanism.sigma**2, 1e-6) <= 1.0
    assert zcdp_to_epsilon(1.5 / (mechanism.sigma * (1 - 1e-6)) ** 2, 1e-6) > 1.0
    assert mechanism.sigma > Gaussian(clip=0.5).calibrate(1.0, 1e-6, 3).sigma


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(clip=0.0), "clip must be a positive number, found 0.0"),
        (lambda: Gaussian(clip=math.inf), "clip must be a positive number"),
        (lambda: Gaussian(clip=-1.0), "clip must be a positive number, found -1.0"),
        (lambda: Gaussian(sigma=-1.0), "sigma must be a number >= 0 .*, found -1.0"),
        (lambda: Gaussian(sigma=math.nan), "sigma must be a number >= 0"),
        (lambda: Laplace(scale=-1.0), "scale must be a number >= 0"),
        (lambda: Gaussian(level="group"), "level must be 'user' or 'record', found 'group'"),
        (
            lambda: Gaussian(arithmetic="real"),
            "arithmetic is 'grid' .* or 'ideal' .*, found 'real'",
        ),
        (lambda: DiscreteGaussian(sigma=1.0, grid=0.1), "grid must be a power of two"),
        (lambda: DiscreteGaussian(sigma=1.0, grid=2.0**-60), "too fine for clip 1.0 and sigma 1.0"),
        (lambda: Gaussian().calibrate(0.0), "positive, finite epsilon, found 0.0"),
        (lambda: Gaussian().calibrate(1.0, releases=0), "1 release or more, found 0"),
        (
            lambda: Gaussian().calibrate_pair(1.0, 1e-6, loss=-1.0),
            "loss of a pair must be a finite number >= 0",
        ),
        (lambda: Laplace().calibrate(math.inf), "positive, finite epsilon"),
        (lambda: Laplace().calibrate(1.0, releases=0), "1 release or more"),
        (lambda: DiscreteGaussian().calibrate(-1.0), "positive, finite epsilon"),
        (lambda: DiscreteGaussian().calibrate(1.0, releases=0), "1 release or more"),
        (
            lambda: mechanism_from({"kind": "coin"}),
            "unknown mechanism 'coin'; known ones: discrete_gaussian, gaussian",
        ),
        (
            lambda: mechanism_from({"kind": "gaussian", "noise": 1.0}),
            "gaussian mechanism cannot be read .*noise",
        ),
    ],
)
def test_parameters_that_mean_nothing_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_bad_value_names_its_peer(bad):
    values = np.zeros((3, 2))
    values[1, 1] = bad
    with pytest.raises(ConfigError, match=f"peer 42 has {bad} at coordinate 1 .* step size"):
        Gaussian(sigma=1.0).release(values, Replay(0), np.array([7, 42, 9]), 0, 0)


@pytest.mark.parametrize("shape", [(3,), (2, 2), (3, 2, 1)])
def test_a_bad_shape_is_refused(shape):
    with pytest.raises(ConfigError, match=r"one row per peer, found shape .* for 3 peers"):
        Gaussian(sigma=1.0).release(np.zeros(shape), Replay(0), np.arange(3), 0, 0)


def test_mechanisms_are_abstract_or_final():
    with pytest.raises(TypeError):
        Mechanism()


@pytest.mark.parametrize("grid", [1.0, 0.5, 2.0**-10])
def test_a_row_on_the_edge_of_its_ball_stays_there_on_a_coarse_grid(grid):
    """A clip that allows for rounding would push it to the next point inside; rows beyond the edge
    never get out."""
    mechanism = DiscreteGaussian(clip=1.0, sigma=1.0, grid=grid)
    rows = np.array([[1.0, 0.0], [0.0, -1.0], [1e200, 0.0]])
    got = mechanism.bare(rows, np.arange(3))
    assert got[:2].tolist() == rows[:2].tolist()
    assert np.linalg.norm(got, axis=1).max() <= 1.0
