"""Votes on the clip: one release with the gradients, of the multiplier that was asked for
(silo:SILO-7)."""

import math

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.behind_door.sums_of_records import SumsOfRecords
from bruit.algorithms.door import Address
from bruit.algorithms.task_door import TaskDoor
from bruit.mechanisms.clip_votes import ClipVotes, next_scale
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.tasks.records import Records


def one_record(row, label):
    return br.tasks.Logistic(Records.of(np.array([row]), np.array([label]), np.array([0])))


def answer(task, x, scale, votes=10.0, clip=0.5):
    """What one record says, in grains, without noise: the same door with and without its share."""
    noise = br.RecordSums(clip=clip, sigma=2.0 * clip)
    door = TaskDoor(task=task, mechanism=noise, dice=Replay(0), ledger=Ledger(peers=1))
    grain = door.grain(4, 3)
    at = Address(np.array([0]), np.array([1]), np.array([0]), 0)
    said = ClipVotes(votes, np.array([scale]))
    sums = SumsOfRecords(task=task, noise=noise, dice=Replay(0), run=0)
    return sums.with_votes(at, x, grain, said)[0], noise, grain, said


def test_the_multiplier_of_gradients_and_votes_together():
    votes = ClipVotes(10.0, np.ones(1))
    assert votes.gradient_noise(2.0) == pytest.approx(2.010076, abs=1e-6)
    for z in (0.3, 2.0, 15.0):
        both = (votes.gradient_noise(z) ** -2 + (2 * votes.noise) ** -2) ** -0.5
        assert both == pytest.approx(z, rel=1e-12)
    with pytest.raises(br.ConfigError, match="more than 10, half of sigma / clip"):
        votes.gradient_noise(20.0)


@pytest.mark.parametrize("scale", [2.0**-6, 0.37, 1.0, 5.3])
def test_a_record_with_its_vote_is_no_longer_than_the_noise_is_made_for(scale):
    """Exactly, in integers: noise of z_g C / grain over the length of the vector is at least z."""
    rng = np.random.default_rng(3)
    for size in (1e-6, 0.2, 1.0, 1e3):
        row, x = size * rng.standard_normal(5), rng.standard_normal((1, 5))
        said, noise, grain, votes = answer(one_record(row, 1.0), x, scale)
        length = math.sqrt(sum(int(k) ** 2 for k in said))
        deviation = noise.clip * votes.gradient_noise(noise.z) / grain
        assert deviation >= noise.z * length * (1 - 1e-12)
        assert said[-1] != 0


def test_who_is_shorter_votes_for_less():
    x = np.zeros((1, 2))  # a record of norm r has a gradient of norm r / 2 there
    short = answer(one_record([0.1, 0.0], 1.0), x, 1.0)[0]
    long = answer(one_record([9.0, 0.0], 1.0), x, 1.0)[0]
    assert short[-1] == -long[-1] > 0
    height = int(short[-1])
    assert next_scale(np.ones(1), np.array([height]), height, np.array([1.0]))[0] == pytest.approx(
        math.exp(-0.1)
    )


def test_the_clip_goes_to_the_median_of_the_norms_in_every_engine():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((400, 3)) * rng.uniform(0.1, 1.0, (400, 1))
    labels = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    task = br.tasks.Logistic(Records.of(rows, labels, np.repeat(np.arange(4), 100)))
    noise = br.RecordSums(clip=4.0, sigma=4.0, divisor=100.0)
    algorithm = br.MaskedSGD(rate=1e-9, clip_votes=50.0)
    bulk, events = (
        br.run(algorithm, "complete:4", task, privacy=noise, steps=80, seed=2, engine=engine)
        for engine in (br.Bulk(), br.Events(latency=0.2))
    )
    assert np.array_equal(bulk.state.scale, events.state.scale)
    median = np.median(np.linalg.norm(rows, axis=1)) / 2  # slopes are 1/2 at the start
    assert bulk.state.scale[0, 0] * 4.0 == pytest.approx(median, rel=0.25)
    plain = br.run(br.MaskedSGD(rate=1e-9), "complete:4", task, privacy=noise, steps=80, seed=2)
    same = [float(run.epsilon(of=1, seen_by=2)) for run in (bulk, plain)]
    assert same[0] == pytest.approx(same[1], rel=1e-6)


def test_votes_of_peers_are_refused():
    task, noise = br.tasks.Mean.uniform(4, 2), br.Gaussian(clip=1.0, sigma=1.0)
    with pytest.raises(br.ConfigError, match="votes of records"):
        br.run(br.MaskedSGD(clip_votes=5.0), "complete:4", task, privacy=noise, steps=2)
