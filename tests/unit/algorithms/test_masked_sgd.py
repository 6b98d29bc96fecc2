"""Masked SGD: the model that a curator's sums would make, the same everywhere, whatever fails; and
nothing under a mask twice (silo:SILO-4, SILO-5)."""

import math
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from benchmarks.reliability.assembly import Assembly, Weather
from bruit.algorithms.door import Address
from bruit.algorithms.schedules.ballots.peer import BallotPeer
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import graph
from bruit.mechanisms import Gaussian, RecordSums
from bruit.privacy.account import Accountant
from bruit.privacy.events import Mask, MaskedEvent
from bruit.privacy.ledger import Budget, Ledger
from bruit.privacy.theorems.masked_sums import MaskedSums
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.randomness import Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Job
from bruit.runs.engines.events import Events
from bruit.tasks import Logistic
from bruit.tasks.records import Records

NOISE = RecordSums(clip=0.5, sigma=4.0, divisor=10.0, capacity=64)


def hospitals(sizes=(10, 12, 8, 10), columns=3, l2=0.1, seed=0):
    rng = np.random.default_rng(seed)
    many = sum(sizes)
    features = rng.normal(size=(many, columns))
    targets = np.where(features[:, 0] + rng.normal(size=many) > 0, 1.0, -1.0)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return Logistic(Records.of(features, targets, owners, "unit", True), l2=l2)


class NotingDoor(TaskDoor):
    """Keeps every answer before it is masked, by peer and ballot."""

    @property
    def answers(self):
        return self.__dict__.setdefault("_answers", {})

    def masked_gradient(self, at, x, grain, shares, votes=None):
        rows = super().masked_gradient(at, x, grain, shares, votes)
        for peer, ballot, row in zip(at.ids.tolist(), at.clock.tolist(), rows, strict=True):
            self.answers.setdefault((peer, ballot), []).append(row.copy())
        return rows


def test_without_noise_it_is_descent_on_the_sum_of_clipped_records():
    task, noise = hospitals(), replace(NOISE, sigma=0.0)
    done = br.run(br.MaskedSGD(rate=0.7, momentum=0.5), "complete:4", task, privacy=noise, steps=5)
    x, velocity, everybody = np.zeros((4, 4)), np.zeros(4), np.arange(4)
    for _ in range(5):
        sums = task.clipped_sum(everybody, x, None, 1.0, 0.5, 2.0**32).sum(axis=0) / 2.0**32
        velocity = 0.5 * velocity + sums / 40.0 + 0.1 * x[0]
        x = x - 0.7 * velocity
    assert done.estimates == pytest.approx(x, abs=1e-8)
    assert math.isinf(done.epsilon())


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_all_engines_make_one_model_and_a_run_is_read_back(rate, tmp_path):
    noise, task = replace(NOISE, sample_rate=rate), hospitals()
    runs = [
        br.run(br.MaskedSGD(rate=0.7), "complete:4", task, privacy=noise, steps=5, engine=engine)
        for engine in (Bulk(), Bulk(fused=False), Events(latency=0.3, loss=0.2, churn=0.2))
    ]
    for done in runs:
        assert np.ptp(done.estimates, axis=0).max() == 0
        assert np.array_equal(done.estimates, runs[0].estimates)
        assert done.ledger.counts().tolist() == [[5]] * 4
    runs[0].save(tmp_path / "run")
    again = br.load(tmp_path / "run")
    assert again.algorithm == runs[0].algorithm
    for seen_by in (1, None):
        assert again.epsilon(0, seen_by) == runs[0].epsilon(0, seen_by)
    assert again.guarantee(0, 1).theorem == MaskedSums.title


def test_the_average_is_that_of_the_second_half():
    task, models = hospitals(), []
    for steps in range(1, 7):
        one = br.run(
            br.MaskedSGD(rate=0.7),
            "complete:4",
            task,
            privacy=replace(NOISE, sigma=0.0),
            steps=steps,
        )
        models.append(one.estimates[0])
    mean = br.run(
        br.MaskedSGD(rate=0.7, averaged=True),
        "complete:4",
        task,
        privacy=replace(NOISE, sigma=0.0),
        steps=6,
    )
    assert mean.estimates[0] == pytest.approx(np.mean(models[3:], axis=0), abs=1e-8)


def test_copies_are_runs_of_their_own():
    """Two chunks of copies, the second not the first: one model in each copy, another in each."""
    task = br.tasks.Mean(np.zeros((4, 2)))

    class Tiled(type(task)):
        def value(self, ids):
            return super().value(ids % 4)

    tiled = Tiled(np.ones((4, 2)))
    noise = RecordSums(clip=0.5, sigma=4.0, capacity=1, sample_rate=0.5)
    for first in (0, 3):
        door = NotingDoor(task=tiled, mechanism=noise, dice=Replay(1), ledger=Ledger(peers=64))
        job = Job(
            algorithm=br.MaskedSGD(),
            graph=graph("complete:4"),
            door=door,
            dice=Replay(1),
            steps=3,
            ledger=Ledger(peers=4),
            watch=frozenset({1}),
        )
        outcome = Bulk(copies=3, first=first).execute(job)
        models = outcome.state.model.reshape(3, 4, 2)
        assert np.ptp(models, axis=1).max() == 0
        assert len(np.unique(models[:, 0, 0])) == 3
        words = [message.row for message in outcome.trace.received]
        raw = np.concatenate(words).view(np.int64)
        assert np.abs(raw).max() > 2.0**60  # masked: no answer comes near that


class MaskedAssembly(Assembly):
    """Peers that run masked SGD through losses, kills, deaths and lies."""

    def __init__(self, weather, seed, task, noise, budget=None):
        self.task, self.noise = task, noise
        super().__init__(weather, seed)
        self.algorithm = br.MaskedSGD(
            rate=0.5,
            colluders=weather.colluders,
            dropouts=weather.dropouts,
            spare=weather.spare,
        )
        self.door = NotingDoor(
            task=task, mechanism=noise, dice=Replay(seed), ledger=self.ledger, budget=budget
        )
        self.machines = [self._machine(peer) for peer in range(weather.peers)]

    def _machine(self, peer):
        machine = super()._machine(peer)
        if not isinstance(self.algorithm, br.MaskedSGD):
            return machine
        public = self.algorithm.prepare(self.graph, self.weather.steps)
        machine = self.algorithm.schedule.machine(replace(machine.seat, public=public))
        assert isinstance(machine, BallotPeer)
        return machine

    def judge(self):
        for machine in self.machines:  # what the toy of the assembly calls sums
            if machine.state is not None:
                machine.state = _Named(*machine.state)
        return super().judge()


class _Named(br.algorithms.silos.masked_sgd.State):
    @property
    def sums(self):
        return self.model


@pytest.mark.parametrize(
    ("weather", "seeds"),
    [
        (Weather(4, 10.0, steps=6, spare=14, deaths=0), (1, 2)),
        (Weather(7, 10.0, steps=6, spare=14, dropouts=2, deaths=2), (3, 4)),
        (Weather(10, 10.0, 0.2, steps=6, spare=14, dropouts=3, colluders=2, deaths=2), (5, 8)),
        pytest.param(
            Weather(7, 10.0, steps=5, spare=25, dropouts=2, lies=("two lists", "silent")),
            (6, 7),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["four", "seven, two die", "ten", "a liar"],
)
def test_failures_cost_attempts_and_nothing_else(weather, seeds):
    """Every attempt that somebody spoke in is a line of its own, with the share of its list; sums
    of the chain are the sums of what was answered in them, masks gone; nothing is said twice under
    one ballot; the theorem holds and charges each peer for its attempts."""
    more = 0
    for seed in seeds:
        task, noise = hospitals((5,) * weather.peers, seed=seed), replace(NOISE, sample_rate=0.5)
        room = MaskedAssembly(weather, seed, task, noise)
        verdict = room.run()
        assert not verdict.broken()
        more += verdict.attempts
        colluders = weather.colluders
        lines = zip(
            *(room.ledger.column(name).tolist() for name in ("peer", "clock", "event")), strict=True
        )
        charged = {(peer, ballot): room.ledger.events[kind] for peer, ballot, kind in lines}
        assert len(charged) == len(room.ledger)
        assert set(charged) == set(room.door.answers)
        assert all(len(rows) == 1 for rows in room.door.answers.values())
        for machine in room.machines:
            for attempt in machine.attempts:
                event = charged[machine.seat.me, attempt.ballot]
                assert isinstance(event, MaskedEvent)
                ratio = event.hidden.noise_multiplier / event.opened.noise_multiplier
                assert ratio**2 == pytest.approx(len(attempt.members) - colluders)
        final = room.machines[room.honest[0]]
        for chain in final.history.chains[1:] if not room.liars else ():
            tally = final.history.tallies.get(chain)
            if tally is None:
                continue
            answers = [room.door.answers[v, tally.roll.ballot][0] for v in tally.roll.members]
            assert np.array_equal(np.sum(answers, axis=0), tally.words[0].view(np.int64))
        facts = br.run(
            room.algorithm, room.graph, task, privacy=noise, steps=weather.steps, evaluate_every=0
        ).facts()
        told = replace(facts, ledger=room.ledger, missed=weather.deaths)
        account = Accountant(told, room.algorithm.guarantees())
        attempts = facts_counts(room.ledger)
        peer = int(attempts.argmax())
        other = (peer + 1) % weather.peers
        found = account.guarantee(peer, other)
        assert found.theorem == MaskedSums.title
        (hidden,) = {event.hidden for event in room.ledger.events}
        paid = compose_epsilon([(hidden, int(attempts[peer]))], 1e-6)
        assert float(found.epsilon()) == pytest.approx(paid)
    assert more > 0  # something did fail


def facts_counts(ledger):
    return ledger.counts()[:, ledger.is_data()].sum(axis=1)


def test_at_the_end_of_a_budget_a_peer_says_noise():
    """Two attempts are paid for; in the others its share and its masks leave, and no data."""
    noise, task = replace(NOISE, sample_rate=0.5), hospitals()
    grain = TaskDoor(task=task, mechanism=noise, dice=Replay(0), ledger=Ledger(peers=4)).grain(4, 3)
    event = noise.masked_event(task.dim, grain, 3)
    budget = Budget(compose_epsilon([(event.hidden, 2)], 1e-6))
    rows = []
    for data in (task, hospitals(seed=9)):
        door = TaskDoor(
            task=data, mechanism=noise, dice=Replay(0), ledger=Ledger(peers=4), budget=budget
        )
        answers = []
        for step in range(1, 5):
            at = Address(np.arange(4), np.full(4, step), np.full(4, step), 0)
            answers.append(door.masked_gradient(at, np.ones((4, 4)), grain, 3))
        rows.append(answers)
        assert facts_counts(door.ledger).tolist() == [2] * 4
        assert [e.sigma for e in door.ledger.events if isinstance(e, Mask)] == [
            pytest.approx(4.0 / 10 / math.sqrt(3))
        ]
        assert len(door.left_out) == 8
    assert not np.array_equal(rows[0][1], rows[1][1])
    assert np.array_equal(rows[0][2], rows[1][2])
    assert np.array_equal(rows[0][3], rows[1][3])


def test_shares_add_up_to_the_noise_without_any_colluders():
    """1000 attempts of 4 members, 1 of whom colludes, 4 coordinates: the variance of the sum of any
    3 shares is sigma^2 within 6 deviations of 1 / sqrt(2000)."""
    noise, task = replace(NOISE, clip=1e-9, sigma=4.0), hospitals(l2=0.0)
    door = TaskDoor(task=task, mechanism=noise, dice=Replay(0), ledger=Ledger(peers=4))
    grain = door.grain(4, 3)
    for shares, members in ((3, 3), (2, 2)):
        sums = []
        for step in range(1000):
            at = Address(np.arange(4), np.full(4, step), np.full(4, step), shares)
            sums.append(
                door.masked_gradient(at, np.zeros((4, 4)), grain, shares)[:members].sum(axis=0)
            )
        spread = np.var(np.array(sums) * grain) / 16.0
        assert abs(spread - 1) < 6 * math.sqrt(2 / 4000)


@pytest.mark.parametrize(
    ("algorithm", "peers", "noise", "why"),
    [
        (
            br.MaskedSGD(colluders=2, dropouts=2),
            4,
            NOISE,
            "nobody is left to hide|peers are the least",
        ),
        (br.MaskedSGD(colluders=3), 4, NOISE, "peers are the least"),
        (br.MaskedSGD(colluders=1, dropouts=2), 4, NOISE, "fewer than half|nobody is left"),
        (br.MaskedSGD(), 2, NOISE, "peers are the least"),
        (br.MaskedSGD(), 4, replace(NOISE, sigma=1e-9), "might not fit"),
        (br.MaskedSGD(), 4, replace(NOISE, capacity=2**40, sigma=1e-3), "might not fit"),
        (br.MaskedSGD(), 4, br.Laplace(clip=1.0, scale=1.0), "made together"),
    ],
    ids=["a + D = n", "a = n - 1", "D = n / 2", "two", "little noise", "many records", "laplace"],
)
def test_what_cannot_work_is_refused_and_nothing_is_spent(algorithm, peers, noise, why):
    spent = []
    with pytest.MonkeyPatch.context() as patch:
        record = Ledger.record
        patch.setattr(
            Ledger, "record", lambda self, *line: (spent.append(line), record(self, *line))[1]
        )
        with pytest.raises(ConfigError, match=why):
            br.run(algorithm, f"complete:{peers}", hospitals((10,) * peers), privacy=noise, steps=2)
    assert not spent


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate": 0.0},
        {"rate": -1.0},
        {"rate": math.nan},
        {"momentum": 1.0},
        {"momentum": -0.1},
        {"colluders": -1},
        {"dropouts": -1},
        {"spare": -1},
        {"colluders": 0.5},
        {"route": "ring"},
    ],
    ids=str,
)
def test_parameters_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ConfigError):
        br.MaskedSGD(**wrong)


def test_other_graphs_are_refused():
    with pytest.raises(ConfigError, match="use complete:4"):
        br.run(br.MaskedSGD(), "ring:4", hospitals(), privacy=NOISE, steps=2)


def test_the_largest_sums_fit_into_words():
    """Up to the refusal: as many records as declared, all at the clip and alike, and noise."""
    sizes = (20, 20, 20, 20)
    features = np.ones((80, 1))
    task = br.tasks.Ridge(Records.of(features, 1e6 * np.ones(80), np.repeat(np.arange(4), sizes)))
    noise = RecordSums(clip=1.0, sigma=2.0**-24, capacity=20)
    done = br.run(br.MaskedSGD(rate=1.0), "complete:4", task, privacy=noise, steps=1)
    assert done.estimates == pytest.approx(20.0 * np.ones((4, 1)), abs=1e-5)
    with pytest.raises(ConfigError, match="might not fit"):
        br.run(
            br.MaskedSGD(rate=1.0),
            "complete:4",
            task,
            privacy=replace(noise, sigma=2.0**-27),
            steps=1,
        )


def test_a_chain_adds_up_and_levels_are_not_mixed():
    task, noise = hospitals(), replace(NOISE, sample_rate=0.3)
    first = br.run(br.MaskedSGD(rate=0.5), "complete:4", task, privacy=noise, steps=3)
    then = br.run(br.MaskedSGD(rate=0.5), "complete:4", task, privacy=noise, steps=2, after=first)
    (event,) = first.ledger.events
    both = compose_epsilon([(event.hidden, 5)], 1e-6)
    assert float(then.epsilon(0, 1)) == pytest.approx(both, rel=1e-3)
    assert float(then.epsilon(0)) == pytest.approx(compose_epsilon([(event, 5)], 1e-6), rel=1e-3)
    for other in (Gaussian(clip=0.5, sigma=4.0), replace(noise, adjacency="add-remove")):
        with pytest.raises(PrivacyError, match="do not compose"):
            br.run(br.MaskedSGD(rate=0.5), "complete:4", task, privacy=other, steps=2, after=first)


def test_at_user_level_a_peer_s_whole_gradient_is_hidden():
    task = hospitals()
    noise = Gaussian(clip=0.5, sigma=4.0)
    done = br.run(br.MaskedSGD(rate=0.5), "complete:4", task, privacy=noise, steps=3)
    assert done.guarantee(0, 1).level == "user"
    assert done.guarantee(0, 1).theorem == MaskedSums.title
    assert np.ptp(done.estimates, axis=0).max() == 0
