"""Noise on sums of clipped records: what it costs, what it refuses, and what leaves through the
door (silo:SILO-1, SILO-2)."""

import math
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.door import Address, OnGrid
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConfigError, PrivacyError
from bruit.mechanisms import Gaussian, RecordSums, mechanism_from
from bruit.privacy.events import (
    Exact,
    GaussianEvent,
    Mask,
    MaskedEvent,
    SampledGaussianEvent,
    record_event,
)
from bruit.privacy.ledger import Budget, Ledger
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.randomness import Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.events import Events
from bruit.tasks import Logistic, Mean, Ridge
from bruit.tasks.records import Records

NOISE = RecordSums(clip=0.5, sigma=4.0, divisor=10.0, capacity=64)


def hospitals(sizes=(10, 12, 8, 10), columns=3, l2=0.0, kind=Logistic, seed=0):
    rng = np.random.default_rng(seed)
    many = sum(sizes)
    features = rng.normal(size=(many, columns))
    targets = np.where(features[:, 0] + rng.normal(size=many) > 0, 1.0, -1.0)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return kind(Records.of(features, targets, owners, "unit", True), l2=l2)


def door_of(task, noise=NOISE, seed=0, **more):
    return TaskDoor(
        task=task, mechanism=noise, dice=Replay(seed), ledger=Ledger(peers=task.peers), **more
    )


def at(peers, step=1, use=0):
    ids = np.arange(peers)
    return Address(ids, np.full(peers, step), np.full(peers, step), use)


@pytest.mark.parametrize(
    "wrong",
    [
        {"clip": 0.0},
        {"clip": -1.0},
        {"clip": math.inf},
        {"clip": math.nan},
        {"sigma": -1.0},
        {"sigma": math.nan},
        {"sample_rate": 0.0},
        {"sample_rate": 1.5},
        {"sample_rate": -0.1},
        {"sample_rate": math.nan},
        {"sample_rate": True},
        {"adjacency": "substitute"},
        {"divisor": 0.0},
        {"divisor": -3.0},
        {"divisor": math.inf},
        {"divisor": math.nan},
        {"divisor": 65.0},
        {"capacity": 0},
        {"capacity": 10.5},
        {"capacity": 2**41},
        {"level": "user"},
    ],
    ids=str,
)
def test_what_cannot_mean_anything_is_refused(wrong):
    with pytest.raises(ConfigError) as error:
        replace(NOISE, **wrong)
    assert len(str(error.value)) > 20
    with pytest.raises(ConfigError):
        mechanism_from({**NOISE.describe(), **wrong})


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_it_is_read_back_and_costs_what_a_release_of_records_costs(adjacency, rate):
    noise = replace(NOISE, adjacency=adjacency, sample_rate=rate)
    assert mechanism_from(noise.describe()) == noise
    event = noise.event_of(7)
    assert event == record_event(8.0, rate, adjacency, event.rounding)
    assert 0 < event.rounding < 1e-18
    half = 2.0 if adjacency == "replace" else 1.0
    assert (noise.z, noise.sensitivity, noise.noise_multiplier) == (8.0, half * 0.5, 8.0 / half)
    if rate == 1:
        assert isinstance(event, GaussianEvent)
        assert event.noise_multiplier == noise.noise_multiplier
    else:
        assert isinstance(event, SampledGaussianEvent)
        assert event.noise_multiplier == noise.z
    masked = noise.masked_event(7, 2.0**-20, 3)
    assert isinstance(masked, MaskedEvent)
    hidden, opened = masked.hidden, masked.opened
    assert hidden == record_event(8.0, rate, adjacency, hidden.rounding)
    assert opened == record_event(8.0 / math.sqrt(3), rate, adjacency, 3 * hidden.rounding)
    assert replace(noise, sigma=0.0).event_of(3) == Exact()
    assert replace(noise, sigma=0.0).masked_event(3, 1.0, 2) == Exact()


@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_noise_made_for_an_epsilon_keeps_it_and_not_by_much(rate):
    noise = replace(NOISE, sample_rate=rate).calibrate(1.0, 1e-5, 7, 20)
    event = noise.event_of(20)
    found = compose_epsilon([(event, 7)], 1e-5)
    assert 0.99 < found <= 1 + 1e-9


def test_a_release_is_the_noisy_sum_over_a_public_number_and_the_penalty_after_it():
    task, x = hospitals(l2=2.0), np.full((4, 4), 3.0)
    bare = door_of(task, replace(NOISE, sigma=0.0)).gradient(at(4), x, None)
    grain = replace(NOISE, sigma=0.0).grain
    sums = grain * task.clipped_sum(np.arange(4), x, None, 1.0, 0.5, 1 / grain)
    assert np.array_equal(bare, sums / 10.0 + 2.0 * x)
    assert np.linalg.norm(2.0 * x[0]) > 10 * NOISE.clip  # the penalty is not clipped
    rows = np.concatenate(
        [door_of(task).gradient(at(4, step), x, None) - bare for step in range(1, 400)]
    )
    spread = rows.std(axis=0) / (
        NOISE.sigma / 10.0
    )  # 1596 rows: 1 but for 6 times 1 / sqrt(2 * 1596)
    assert np.all(np.abs(spread - 1) < 6 / math.sqrt(2 * len(rows)))


def test_what_is_on_a_grid_stays_there():
    task, x = hospitals(l2=0.7), np.random.default_rng(0).normal(size=(4, 4))
    for rate in (1.0, 0.3):
        door = door_of(task, replace(NOISE, sample_rate=rate))
        for times in (1.0, 0.1, 0.037):
            grid = door.fine_grid(times, 4.0, 4.0)
            on = OnGrid(grid, times)
            for rows in (
                door.gradient_on(at(4), x, None, on),
                door.descent_on(at(4, 2), x, 0.3, 1, None, on),
            ):
                assert np.array_equal(rows / grid, np.rint(rows / grid))
                assert np.abs(rows / grid).max() < 2.0**52
    free = door_of(task).gradient(at(4), x, None) - task.penalty_gradient(x)
    counted = free * NOISE.divisor / NOISE.grain
    assert counted == pytest.approx(np.rint(counted), rel=1e-15)


def equal_records(peers, each):
    """Records with one and the same gradient at 0: a sum counts them."""
    features, owners = np.ones((peers * each, 1)), np.repeat(np.arange(peers), each)
    return Ridge(Records.of(features, -np.ones(peers * each), owners))


def batches(door, steps, use=0):
    """How many records joined  # (steps, peers)."""
    n, sums = door.task.peers, door.mechanism
    one = door.task.clipped_sum(np.arange(1), np.zeros((1, 1)), np.zeros((1, 1)), 0.5, 1.0, 2.0**10)
    found = []
    for step in steps:
        total = door._clipped_sum(sums, at(n, step, use), np.zeros((n, 1)), 2.0**10)
        found.append(total[:, 0] // one[0, 0])
    return np.array(found)


def test_every_record_joins_by_a_coin_of_its_own_fresh_in_every_release():
    """40 peers of 25 records, 100 releases: means within 6 deviations (false alarm 2e-9 each), and
    the spread of batches that of independent coins, within 6 deviations too."""
    noise = RecordSums(clip=1.0, sigma=1.0, sample_rate=0.3, capacity=32)
    door = door_of(equal_records(40, 25), noise)
    found = batches(door, range(1, 101))
    count = found.size
    assert abs(found.mean() - 7.5) < 6 * math.sqrt(25 * 0.21 / count)
    assert abs(found.var() / (25 * 0.21) - 1) < 6 * math.sqrt(2 / count)
    lagged = np.corrcoef(found[:-1].ravel(), found[1:].ravel())[0, 1]
    beside = np.corrcoef(found[:, :-1].ravel(), found[:, 1:].ravel())[0, 1]
    assert abs(lagged) < 6 / math.sqrt(count)
    assert abs(beside) < 6 / math.sqrt(count)
    assert not np.array_equal(batches(door, [1], use=1), batches(door, [1], use=0))
    assert not np.array_equal(batches(replace(door, run=1), [1]), batches(door, [1]))
    assert 0 in np.unique(batches(door_of(equal_records(40, 3), noise), range(30)))  # empty ones


def test_coins_come_from_the_secret_dice_and_do_not_depend_on_who_else_is_asked():
    noise = RecordSums(clip=1.0, sigma=1.0, sample_rate=0.3, capacity=64)
    task = equal_records(5, 25)
    door = door_of(task, noise, seed=3)
    steps = range(1, 9)
    other = replace(door, public=Replay(99))
    assert np.array_equal(batches(door, steps), batches(other, steps))
    assert not np.array_equal(batches(door, steps), batches(door_of(task, noise, seed=4), steps))
    both = door._clipped_sum(noise, at(5), np.zeros((5, 1)), 2.0**10)
    one = Address(np.array([2]), np.array([1]), np.array([1]), 0)
    assert np.array_equal(both[2:3], door._clipped_sum(noise, one, np.zeros((1, 1)), 2.0**10))
    words = Replay(3).words("coins", np.arange(5), 1, 0, 4)
    assert not np.isin(words, Replay(3).words("noise", np.arange(5), 1, 0, 4)).any()


def test_a_spent_budget_leaves_the_noise_and_no_data():
    task = hospitals()
    event = NOISE.event_of(task.dim)
    budget = Budget(compose_epsilon([(event, 2)], 1e-6) * (1 + 1e-12))
    door = door_of(task, budget=budget)
    far = np.full((4, 4), 1e6)
    rows = [door.gradient(at(4, step), far, None) for step in (1, 2, 3, 4)]
    assert door.ledger.counts()[:, door.ledger.is_data()].sum(axis=1).tolist() == [2] * 4
    assert len(door.left_out) == 8
    silent = [one for one in door.ledger.events if isinstance(one, Mask)]
    assert [one.sigma for one in silent] == [NOISE.sigma / NOISE.divisor]
    again = door_of(hospitals(seed=9), budget=budget)
    other = [again.gradient(at(4, step), far, None) for step in (1, 2, 3, 4)]
    assert np.array_equal(rows[2], other[2])  # the data is another, the noise is the same
    assert not np.array_equal(rows[1], other[1])


def test_a_budget_on_a_grid_leaves_the_noise_of_the_release():
    task, x = hospitals(), np.zeros((4, 4))
    door = door_of(task, budget=Budget(1e-3))
    grid = door.fine_grid(0.1, 1.0, 1.0)
    rows = [door.gradient_on(at(4, step), x, None, OnGrid(grid, 0.1)) for step in range(200)]
    spread = np.std(rows) / (0.1 * NOISE.sigma / NOISE.divisor)
    assert abs(spread - 1) < 6 / math.sqrt(2 * 200 * 16)
    assert {one.sigma for one in door.ledger.events} == {NOISE.sigma / NOISE.divisor}


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("algorithm", [br.GossipSGD(rate=0.2), br.FedAvg(rate=0.2)], ids=["g", "f"])
def test_local_dp_is_that_of_the_releases_of_records(algorithm, adjacency, rate):
    noise = replace(NOISE, sample_rate=rate, adjacency=adjacency)
    done = br.run(algorithm, "complete:4", hospitals(l2=0.1), privacy=noise, steps=4)
    assert done.guarantee().level == "record"
    assert done.guarantee().adjacency == adjacency
    releases = done.facts().releases()
    kinds = {one for one in done.ledger.events if not isinstance(one, Mask)}
    (event,) = kinds
    assert event == record_event(8.0, rate, adjacency, event.rounding)
    for peer in range(4):
        found = float(done.epsilon(of=peer, delta=1e-5))
        assert found == pytest.approx(compose_epsilon([(event, int(releases[peer]))], 1e-5))
    if rate < 1:
        assert done.guarantee(0, 1).epsilon() == done.guarantee(0).epsilon()


def test_engines_and_fused_paths_agree_and_a_run_is_read_back(tmp_path):
    noise = replace(NOISE, sample_rate=0.3)
    runs = [
        br.run(
            br.GossipSGD(rate=0.2), "ring:4", hospitals(l2=0.1), privacy=noise, steps=4, engine=e
        )
        for e in (Bulk(), Bulk(fused=False), Events(latency=0.1))
    ]
    for other in runs[1:]:
        assert np.array_equal(runs[0].estimates, other.estimates)
    runs[0].save(tmp_path / "run")
    again = br.load(tmp_path / "run")
    assert again.privacy == noise
    assert again.guarantee(0).epsilon() == runs[0].guarantee(0).epsilon()
    assert again.ledger.events == runs[0].ledger.events


@pytest.mark.parametrize(
    ("algorithm", "graph", "words"),
    [
        (br.FedAvg(local_steps=2), "complete:4", "local_steps = 1"),
        (br.FedAvg(batch=3), "complete:4", "sample_rate"),
        (br.GossipSGD(batch=3), "complete:4", "sample_rate"),
        (br.Averaging(), "complete:4", "RecordNoise for fitted models"),
        (br.Gopa(), "complete:4", "RecordNoise for fitted models"),
        (br.WalkADMM(), "complete:4", "proximal"),
    ],
    ids=str,
)
def test_what_reads_no_single_gradients_is_refused_before_anything_is_spent(
    algorithm, graph, words
):
    ledgers = []
    record = Ledger.record

    def watched(self, *line):
        ledgers.append(line)
        return record(self, *line)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "record", watched)
        with pytest.raises(ConfigError, match=words):
            br.run(algorithm, graph, hospitals(l2=0.1), privacy=NOISE, steps=3)
    assert not ledgers


def test_more_records_than_declared_are_refused():
    with pytest.raises(PrivacyError, match="holds more records than the declared capacity 11"):
        br.run(br.GossipSGD(), "ring:4", hospitals(), privacy=replace(NOISE, capacity=11), steps=2)
    with pytest.raises(ConfigError, match='use level = "user"'):
        door_of(br.tasks.Statistic.of(np.arange(3.0), "gini"))


def test_a_mean_is_one_record_of_each_peer():
    task = Mean(np.array([[3.0], [-3.0], [0.1]]))
    noise = RecordSums(clip=1.0, sigma=1e-3, capacity=1)
    done = br.run(br.GossipSGD(rate=0.1), "complete:3", task, privacy=noise, steps=3)
    same = br.run(
        br.GossipSGD(rate=0.1), "complete:3", task, privacy=Gaussian(clip=1.0, sigma=1e-3), steps=3
    )
    assert done.estimates == pytest.approx(same.estimates, abs=0.01)
    assert float(done.epsilon()) == pytest.approx(float(same.epsilon()))
