"""Private descent in one run: a warm start, then updates that get more and more of the budget; each
peer counts its own wakes (perso:PERSO-9, PERSO-12, PERSO-13)."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.door import Address
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConfigError
from bruit.personal.objective import Joint
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.testing import task_for

TASK = task_for(br.PrivateDescent(), 6)
GRAPH = "ring:6"


def run(algorithm, steps=12, **options):
    return br.run(algorithm, GRAPH, TASK, steps=steps, seed=4, evaluate_every=0, **options)


def test_without_a_warm_start_and_with_even_noise_it_is_personalized_descent():
    plain = br.Personalized(0.5, 0.75, updates=3)
    same = br.PrivateDescent(coupling=0.5, smoothness=0.75, updates=3, growth=1.0, warm=0)
    expected, found = run(plain), run(same)
    assert np.array_equal(found.estimates, expected.estimates)
    assert np.array_equal(found.ledger.counts(), expected.ledger.counts())


def test_its_warm_start_is_model_propagation():
    """As long as nobody has woken more often than that."""
    smooth = br.ModelPropagation(0.5)
    warm = br.PrivateDescent(coupling=0.5, warm=50)
    assert np.array_equal(run(warm).estimates, run(smooth).estimates)


def test_each_update_has_less_noise_than_the_one_before():
    """The line of an update is that of growth**-k times the noise of the first."""
    algorithm = br.PrivateDescent(coupling=0.5, smoothness=0.75, updates=4, growth=2.0, warm=1)
    noisy = run(algorithm, steps=30, privacy=br.Gaussian(clip=2.0, sigma=0.5))
    multipliers = [event.noise_multiplier for event in noisy.ledger.events]
    assert multipliers == [0.125, 0.0625, 0.03125, 0.015625]
    assert noisy.ledger.counts().tolist() == [[2, 1, 1, 1]] * 6


@pytest.mark.parametrize(
    "noise",
    [
        br.Gaussian(clip=2.0, sigma=0.5),
        br.NoiseBySize(2, records=[3] * 4000, lipschitz=1.0, noise_multiplier=1.0),
    ],
)
def test_what_is_said_has_the_noise_of_its_line(noise):
    """Zeros with half of the noise are half as far from zero. Sample deviations of 4,000 numbers
    differ from the true ones by 20 % with a chance below 1e-12."""
    blank = br.tasks.Mean(np.zeros((4000, 2)))
    ids, use = np.arange(4000), np.zeros(4000, np.int64)
    ledger, noisy = Ledger(peers=4000), noise.on_blank(4000, 2)
    door = TaskDoor(task=blank, mechanism=noisy, dice=Replay(3), ledger=ledger)
    levels = np.where(ids % 2, 1.0, 0.5)
    said = door.gradient_with(Address(ids, use, use, 0), np.zeros((4000, 2)), levels)
    full, half = said[1::2].std() / noise.sigma, said[::2].std() / noise.sigma
    assert 0.8 < full < 1.2
    assert 0.4 < half < 0.6
    one = noise.event().noise_multiplier
    assert sorted(event.noise_multiplier for event in ledger.events) == [one / 2, one]


def test_without_noise_and_with_many_updates_it_finds_the_optimum():
    algorithm = br.PrivateDescent(
        coupling=0.5, smoothness=TASK.constants().smoothness, updates=400, growth=1.0, warm=2
    )
    found = run(algorithm, steps=300).estimates
    similar = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
    joint = Joint(similar, np.ones(6), 0.5)
    moved = np.abs(joint.gradient(found, TASK.gradient(np.arange(6), found))).max()
    assert moved < 1e-6


def test_a_phase_goes_on_where_the_last_one_ended():
    algorithm = br.PrivateDescent(coupling=0.5, smoothness=0.75, updates=4, warm=2)
    noise = br.Gaussian(clip=2.0, sigma=0.5)
    first = run(algorithm, steps=6, privacy=noise)
    later = br.chain(first, TASK, steps=30, evaluate_every=0)
    assert later.ledger.is_data()[later.ledger.column("event")].sum() == 6 * 5


@pytest.mark.parametrize("growth", [0.5, 100.0, float("nan"), float("inf")])
def test_a_budget_that_falls_or_explodes_is_refused(growth):
    with pytest.raises(ConfigError, match="growth"):
        br.PrivateDescent(updates=8, growth=growth)
