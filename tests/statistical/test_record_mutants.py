"""Planted bugs of sums of records and of masks (silo:SILO-1, SILO-4, SILO-5), each caught beside
its honest twin.

Neighbors differ in one record. False alarm at most 1e-6 for each audit of an honest twin; the
bounds of the bugs lie far above their claims (noise of half the variance, the least visible, is
refuted in 20 of 20 seeds), and here all draws are seeded.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits import audit, audit_mechanism, check_releases
from bruit.adversary.audits.audit import audit_run
from bruit.adversary.audits.evidence import DELTAS, evidence
from bruit.adversary.audits.trials import Views, paired_views
from bruit.adversary.audits.worlds import Neighbors
from bruit.algorithms import task_door
from bruit.algorithms.door import Address
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConformanceError
from bruit.graphs import graph
from bruit.mechanisms import RecordSums
from bruit.privacy.guarantee import Guarantee
from bruit.privacy.ledger import Ledger
from bruit.privacy.profile import EventsProfile
from bruit.privacy.theorem import STANDING
from bruit.randomness import Replay
from bruit.tasks import Logistic
from bruit.tasks.record_gradients import chosen, summed
from bruit.tasks.records import Records
from tests.unit.algorithms.test_masked_sgd import MaskedAssembly, Weather

pytestmark = pytest.mark.slow

FOUR = graph("complete:4")
NOISE = RecordSums(clip=0.5, sigma=1.0, capacity=4)
DELTA, TRIALS = 1e-2, 8000


def costs(event, count=1):
    """A claim: so many of these releases, and nothing else."""
    return Guarantee(
        theorem="a claim",
        spec="none",
        status="heuristic",
        level="record",
        of="peer",
        against="peer",
        hypotheses=STANDING,
        profile=EventsProfile(((event, count),)),
        loss=math.nan,
    )


def refuted(views, claim):
    says = {place: float(claim.epsilon(place)) for place in dict.fromkeys((DELTA, *DELTAS))}
    found, _ = evidence("here", [], views, says, DELTA, 1 - 0.5e-6, False)
    return any(one.refutes for one in found)


def seen(algorithm, data, noise, observers, steps, seed=0):
    parts = list(
        paired_views(
            algorithm=algorithm,
            graph=FOUR,
            mechanism=noise,
            data=data,
            observers=observers,
            steps=steps,
            trials=TRIALS,
            seed=seed,
        )
    )
    return Views(
        np.concatenate([part.left for part in parts]),
        np.concatenate([part.right for part in parts]),
    )


def claim_of(noise, data, seen_by, steps, algorithm):
    made = br.run(algorithm, FOUR, data, privacy=noise, steps=steps, evaluate_every=0)
    return made.guarantee(0, seen_by, DELTA)


@dataclass(frozen=True, eq=False)
class Turning(Neighbors):
    """The record of peer 0 pulls one way at the first model and the other way at later ones, as
    those who choose models can arrange."""

    def clipped_sum(self, ids, x, coins, rate, clip, unit):
        way = np.where((x == 0).all(axis=1), 1.0, -1.0)[:, None]
        rows = (way * self.value(ids))[:, None]
        return summed(rows, chosen(coins, rate, len(ids), 1), clip, unit)


def turning():
    both = Neighbors.opposite(4, 0, 0.5)
    return Turning(both.left, both.right)


@pytest.mark.parametrize("seen_by", [(1,), (3,)])
def test_a_mask_that_is_used_twice_is_caught(monkeypatch, seen_by):
    """Two messages of one peer then differ by its two answers, with its own two shares of noise
    and nobody else's."""
    algorithm = br.MaskedSGD(rate=0.5)
    claim = claim_of(NOISE, turning(), set(seen_by), 2, algorithm)
    assert not refuted(seen(algorithm, turning(), NOISE, seen_by, 2), claim)
    honest = task_door.drawn_masks
    monkeypatch.setattr(
        task_door,
        "drawn_masks",
        lambda dice, run, ids, attempt, *rest: honest(
            dice,
            run,
            ids,
            replace(attempt, ballot=0, bindings=(bytes(32),) * len(attempt.bindings)),
            *rest,
        ),
    )
    assert refuted(seen(algorithm, turning(), NOISE, seen_by, 2), claim)


def test_masks_that_are_not_there_are_caught(monkeypatch):
    algorithm, data = br.MaskedSGD(rate=0.5), Neighbors.opposite(4, 0, 0.5)
    claim = claim_of(NOISE, data, {1}, 2, algorithm)
    assert not refuted(seen(algorithm, data, NOISE, (1,), 2), claim)
    monkeypatch.setattr(
        task_door,
        "drawn_masks",
        lambda dice, run, ids, attempt, colluders, width: np.zeros((len(ids), width), np.uint64),
    )
    assert refuted(seen(algorithm, data, NOISE, (1,), 2), claim)


def attempt_views(peers, listed, colluders, shares, seed=3):
    """What colluders learn of one attempt with a list of so many: the sum of the answers of its
    other members, of whom peer 0 holds the record that differs."""
    data = Neighbors.opposite(peers, 0, 0.5)
    door = TaskDoor(
        task=data, mechanism=NOISE, dice=Replay(seed), ledger=Ledger(peers=2 * peers * TRIALS)
    )
    grain, honest = door.grain(peers, peers - colluders), range(listed - colluders)
    copies, sums = peers * np.arange(2 * TRIALS), np.zeros((2 * TRIALS, 1))
    for peer in honest:
        lanes = copies + peer
        at = Address(lanes, np.ones_like(lanes), np.zeros_like(lanes), 0)
        sums += grain * door.masked_gradient(at, np.zeros((len(lanes), 1)), grain, shares)
    claim = costs(NOISE.masked_event(1, grain, shares).hidden)
    return Views(sums[0::2], sums[1::2]), claim


@pytest.mark.parametrize(("peers", "gone", "colluders"), [(3, 1, 1), (6, 2, 2), (5, 0, 1)])
def test_noise_that_does_not_grow_when_one_is_gone_is_caught(peers, gone, colluders):
    listed = peers - gone
    views, claim = attempt_views(peers, listed, colluders, listed - colluders)
    assert not refuted(views, claim)
    if gone:
        views, claim = attempt_views(peers, listed, colluders, peers - colluders)
        assert refuted(views, claim)


def test_shares_for_too_few_colluders_are_caught():
    """Shares of sigma / sqrt(3), made for one colluder, where three of four collude: a third of the
    variance is left. What is printed for three stands."""
    algorithm, data = br.MaskedSGD(rate=0.5, colluders=1), Neighbors.opposite(4, 0, 0.5)
    views = seen(algorithm, data, NOISE, (1, 2, 3), 2)
    assert refuted(views, claim_of(NOISE, data, {1}, 2, algorithm))
    assert not refuted(views, claim_of(NOISE, data, {1, 2, 3}, 2, algorithm))


def shows_batch(door, at, raw, bare, answer):
    """The last number of a release says how many records joined."""
    counts = door.task.record_counts()
    most = int(counts[at.ids % len(counts)].max())
    coins = door.dice.uniform("coins", at.ids, at.steps, at.use, most, door.run)
    answer = answer.copy()
    answer[:, -1] = 1e3 * (coins < door.mechanism.sample_rate).sum(axis=1)
    return answer


def test_a_batch_whose_size_is_shown_is_caught():
    """At rate 0.1 and z = 1 two releases cost little; who knows that the record is in one of them
    learns what a release of every record tells."""
    noise = RecordSums(clip=0.5, sigma=0.5, sample_rate=0.1, capacity=4)
    parts = [
        paired_views(
            algorithm=br.GossipSGD(rate=0.5),
            graph=FOUR,
            mechanism=noise,
            data=Neighbors.opposite(4, 0, 0.5, 2),
            observers=(1,),
            steps=1,
            trials=TRIALS,
            bug=bug,
        )
        for bug in (None, shows_batch)
    ]
    claim = claim_of(noise, Neighbors.opposite(4, 0, 0.5, 2), {1}, 1, br.GossipSGD(rate=0.5))
    for views, wrong in zip(parts, (False, True), strict=True):
        both = list(views)
        joined = Views(*(np.concatenate([part[k] for part in both]) for k in (0, 1)))
        assert refuted(with_products(joined), claim) == wrong


def with_products(views):
    """Numbers of a view, and their products two by two: a size matters together with a sum."""

    def wider(rows):
        scaled = rows / np.maximum(np.abs(rows).max(axis=0), 1e-300)
        first, second = np.triu_indices(rows.shape[1])
        return np.concatenate((scaled, scaled[:, first] * scaled[:, second]), axis=1)

    return Views(*map(wider, views))


def hospitals(sizes=(12, 12, 12, 12)):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(sum(sizes), 2))
    targets = np.where(features[:, 0] > 0, 1.0, -1.0)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return Logistic(Records.of(features, targets, owners, "unit", True))


@pytest.mark.parametrize(
    "algorithm", [br.MaskedSGD(rate=0.5), br.GossipSGD(rate=0.5)], ids=["m", "g"]
)
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_a_sum_that_is_clipped_instead_of_its_records_is_caught(monkeypatch, algorithm, adjacency):
    """The sum of a batch cut to as many clips as it has records: one record then moves all of
    it."""
    noise = RecordSums(clip=0.5, sigma=1.0, divisor=12.0, capacity=12, adjacency=adjacency)
    task, honest = hospitals(), TaskDoor._clipped_sum
    done = br.run(algorithm, FOUR, task, privacy=noise, steps=2, evaluate_every=0)
    assert not audit_run(done, task, 0, 1, 3000, DELTA).refuted

    def whole(door, sums, at, x, unit):
        rows = honest(door, replace(sums, clip=4096 * sums.clip), at, x, unit).astype(float)
        size = np.linalg.norm(rows, axis=1, keepdims=True)
        most = 12 * sums.clip * unit
        return np.trunc(rows * np.minimum(1.0, most / np.maximum(size, 1.0))).astype(np.int64)

    monkeypatch.setattr(TaskDoor, "_clipped_sum", whole)
    assert audit_run(done, task, 0, 1, 3000, DELTA).refuted


def loud_votes(monkeypatch):
    """Votes on the clip leave without their share of the noise."""
    honest = TaskDoor._share

    def share(door, at, width, grain, shares, votes=None):
        drawn = honest(door, at, width, grain, shares, votes).copy()
        drawn[:, -1] *= votes is None
        return drawn

    monkeypatch.setattr(TaskDoor, "_share", share)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_votes_without_noise_are_caught(monkeypatch, adjacency):
    """One record is shorter than the clip and the other one, or none, is not: its vote shows in the
    sum, and in the next clip."""
    algorithm = br.MaskedSGD(rate=0.5, clip_votes=1.5)
    noise = replace(NOISE, adjacency=adjacency, divisor=4.0)
    there = np.zeros((4, 2))
    there[0, 0], there[1:, 1] = 0.4, 0.6
    other = there.copy()
    other[0, 0] = -0.6 if adjacency == "replace" else 0.0
    data = Neighbors(there, other)
    claim = claim_of(noise, data, {1}, 2, algorithm)
    assert not refuted(seen(algorithm, data, noise, (1,), 2), claim)
    loud_votes(monkeypatch)
    assert refuted(seen(algorithm, data, noise, (1,), 2), claim)


def test_runs_with_votes_are_audited_with_their_records():
    """Both canaries of an audit lie beyond the clip, and vote alike: what only votes show is left to
    the test above."""
    task, noise = hospitals(), RecordSums(clip=0.5, sigma=1.0, divisor=12.0, capacity=12)
    algorithm = br.MaskedSGD(rate=0.5, clip_votes=1.5)
    done = br.run(algorithm, FOUR, task, privacy=noise, steps=2, evaluate_every=0)
    assert not audit_run(done, task, 0, 1, 3000, DELTA).refuted


def test_an_attempt_that_is_not_charged_is_caught():
    """A colluder that keeps silent knows the sum of an attempt that failed for all others: four
    attempts, of which two made rounds. Paired runs refute what two would cost."""
    algorithm, data = br.MaskedSGD(rate=0.5), Neighbors.opposite(4, 0, 0.5)
    views = seen(algorithm, data, NOISE, (1,), 4)
    assert not refuted(views, claim_of(NOISE, data, {1}, 4, algorithm))
    assert refuted(views, claim_of(NOISE, data, {1}, 2, algorithm))


def test_a_ledger_that_forgets_attempts_without_a_sum_is_caught():
    """By counting: whoever spoke has a line for it."""

    class Forgetful(Ledger):
        def record(self, peer, step, clock, event):
            if (step % 3 != 0).all():
                super().record(peer, step, clock, event)

    weather, noise = Weather(4, 10.0, steps=6, spare=14), replace(NOISE, capacity=64)
    honest = MaskedAssembly(weather, 1, hospitals(), noise)
    assert not honest.run().broken()
    wrong = MaskedAssembly(weather, 1, hospitals(), noise)
    wrong.ledger = Forgetful(peers=4)
    object.__setattr__(wrong.door, "ledger", wrong.ledger)
    assert "beyond" in wrong.run().broken()


def test_noise_and_masks_that_repeat_are_caught_one_by_one(monkeypatch):
    """By the check of every release, without any trials; with certainty."""
    algorithm, honest = br.MaskedSGD(), task_door.drawn_masks
    noise = replace(NOISE, sample_rate=0.5)
    assert len(check_releases(algorithm, FOUR, noise, 3)) == 24

    def always(dice, run, ids, attempt, *rest):
        fixed = replace(attempt, ballot=0, bindings=(bytes(32),) * len(attempt.bindings))
        return honest(dice, 0, ids, fixed, *rest)

    def never(dice, run, ids, attempt, colluders, width):
        return np.zeros((len(ids), width), np.uint64)

    for wrong, words in ((always, "the masks of peer 0"), (never, "has no mask")):
        monkeypatch.setattr(task_door, "drawn_masks", wrong)
        with pytest.raises(ConformanceError, match=words):
            check_releases(algorithm, FOUR, noise, 3)
    monkeypatch.setattr(task_door, "drawn_masks", honest)
    share = TaskDoor._share
    monkeypatch.setattr(
        TaskDoor,
        "_share",
        lambda door, at, *rest: share(door, at._replace(steps=np.ones_like(at.steps)), *rest),
    )
    with pytest.raises(ConformanceError, match="every release needs noise of its own"):
        check_releases(algorithm, FOUR, noise, 3)
    with pytest.raises(ConformanceError, match="every release needs noise of its own"):
        check_releases(br.GossipSGD(), FOUR, StaleNoise(clip=0.5, sigma=1.0, capacity=4), 3)


class StaleNoise(RecordSums):
    def _drawn(self, grid, times, dice, lanes, steps, use, d, run):
        return super()._drawn(grid, times, dice, lanes, 0, use, d, 0)


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_honest_releases_of_records_stand_and_half_of_the_noise_does_not(rate, adjacency):
    noise = RecordSums(clip=0.5, sigma=0.5, sample_rate=rate, adjacency=adjacency, capacity=4)
    found = audit_mechanism(noise, 20_000, DELTA)
    assert not found.refuted
    assert [bug.refuted for bug in found.planted] == [True]


@pytest.mark.parametrize(
    ("algorithm", "adjacency", "rate"),
    [
        (br.MaskedSGD(rate=0.5), "replace", 1.0),
        (br.MaskedSGD(rate=0.5), "add-remove", 0.3),
        (br.GossipSGD(rate=0.5), "replace", 0.3),
        (br.GossipSGD(rate=0.5), "add-remove", 1.0),
    ],
    ids=["m-replace", "m-add-remove", "g-replace", "g-add-remove"],
)
def test_honest_protocols_of_records_stand_and_half_of_the_noise_does_not(
    algorithm, adjacency, rate
):
    """Each two of algorithm, adjacency and rate meet; adjacency and rate also above."""
    noise = RecordSums(clip=0.5, sigma=0.6, sample_rate=rate, adjacency=adjacency, capacity=4)
    found = audit(algorithm, FOUR, noise, 0, 1, 2, 12_000, DELTA, dim=2)
    assert not found.refuted
    assert found.level == "record"
    assert found.adjacency == adjacency
    assert [bug.refuted for bug in found.planted] == [True]
