"""A run that is stopped between two steps is the beginning of the whole one, and its account is
never too low."""

import os
import signal

import numpy as np
import pytest

import bruit as br
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.runs.places import begins_with
from bruit.runs.stopping import Patient, interruptible
from bruit.tasks import Logistic, Records

RNG = np.random.default_rng(0)
TASK = Logistic(
    Records.of(RNG.normal(size=(24, 3)), np.tile([-1.0, 1.0], 12), np.repeat(np.arange(8), 3))
)
NOISE = br.Gaussian(clip=1.0, sigma=1.0)
CASES = [
    (br.Averaging(), "ring:8", br.tasks.Mean.uniform(8, 2)),
    (br.GossipSGD(), "ring:8", TASK),
    (br.WalkSGD(), "ring:8", TASK),
    (br.PairAveraging(), "ring:8", br.tasks.Mean.uniform(8, 2)),
    (br.Personalized(), "ring:8", br.tasks.Personal(TASK, np.full(8, 0.5))),
    (br.GossipSGD(mixing=3), "butterfly:8", TASK),
    (br.Chebyshev(), "torus:2x4", br.tasks.Mean.uniform(8, 2)),
]


class Clock:
    """Stops after so many words about progress; remembers the last."""

    def __init__(self, most):
        self.most, self.told = most, []

    def __call__(self, done, total, scores):
        self.told.append((done, total))
        if len(self.told) == self.most:
            raise br.Stop


def run(case, clock=None, engine=None, steps=12):
    algorithm, graph, task = case
    return br.run(
        algorithm,
        graph,
        task,
        privacy=NOISE,
        steps=steps,
        seed=2,
        progress=clock,
        engine=engine,
        watch=[1],
    )


@pytest.mark.parametrize("case", CASES, ids=[case[0].name() + case[1] for case in CASES])
def test_a_stopped_run_is_the_beginning_of_the_whole_one(case):
    clock = Clock(4)
    part, whole = run(case, clock), run(case)
    assert whole.interrupted is None
    assert part.interrupted == clock.told[-1]
    assert part.interrupted[0] < part.interrupted[1]
    assert begins_with(whole, part)
    assert len(part.ledger) <= len(whole.ledger)
    for one, two in zip(
        sorted(part.view(1).messages, key=lambda m: (m.clock, m.sender)),
        [
            m
            for m in sorted(whole.view(1).messages, key=lambda m: (m.clock, m.sender))
            if (m.clock, m.sender) in {(k.clock, k.sender) for k in part.view(1).messages}
        ],
        strict=True,
    ):
        assert all(
            np.array_equal(a, b)
            for a, b in zip(np.atleast_1d(one.row), np.atleast_1d(two.row), strict=True)
        )
    assert part.trace.messages < whole.trace.messages


@pytest.mark.parametrize("case", CASES, ids=[case[0].name() + case[1] for case in CASES])
def test_the_account_of_a_part_is_local_dp_of_all_its_releases(case):
    """Composition of the ledger's lines holds whatever was sent; no theorem about whole runs is
    asked."""
    part = run(case, Clock(4))
    found = part.guarantee(of=3, seen_by=0)
    assert found.theorem.startswith("local DP")
    assert "interrupted after" in " ".join(found.notes)
    everybody = float(part.epsilon(of=3, seen_by="everybody"))
    assert float(part.epsilon(of=3, seen_by=0)) == pytest.approx(everybody)
    own = part.ledger.counts()[3][part.ledger.is_data()].sum()
    if own:
        alone = NOISE.event_of(1, 0.0)
        assert everybody >= compose_epsilon([(alone, int(own))], 1e-6) * (1 - 1e-6)
    with pytest.raises(br.PrivacyError, match="interrupted"):
        part.epsilon(of=3, seen_by=0, status="published")


@pytest.mark.parametrize("case", CASES[:4], ids=[case[0].name() for case in CASES[:4]])
def test_events_are_stopped_too(case):
    part = run(case, Clock(1), br.Events(latency=0.2), steps=400)
    assert part.interrupted is not None
    assert part.estimates.shape[0] == 8
    assert part.metrics.rows


def test_stopping_at_the_last_step_changes_nothing():
    clock = Clock(12)
    assert run(CASES[0], clock).interrupted is None
    assert clock.told[-1] == (12, 12)


def test_the_models_that_are_kept_are_scored():
    part = run(CASES[1], Clock(5))
    assert part.metrics.steps[-1] == 5
    assert part.metrics.rows[-1] == TASK.evaluate(part.estimates)


def test_a_part_comes_back_from_its_folder(tmp_path):
    part = run(CASES[1], Clock(5))
    again = br.load(part.save(tmp_path / "x.run"))
    assert again.interrupted == (5, 12)
    assert again.stopped_words() == "interrupted after 5 of 12 rounds"
    assert float(again.epsilon(of=3, seen_by=0)) == float(part.epsilon(of=3, seen_by=0))
    assert "interrupted after 5 of 12 rounds" in " ".join(again.model.warnings)
    with pytest.raises(br.ConfigError, match="interrupted after 5 of 12 rounds"):
        br.replay(again, TASK)


def test_another_run_does_not_begin_so():
    part = run(CASES[1], Clock(5))
    other = br.run(br.GossipSGD(), "ring:8", TASK, privacy=NOISE, steps=12, seed=9)
    assert not begins_with(other, part)


def test_the_first_signal_waits_for_the_step_and_the_second_does_not():
    told = []
    patient = Patient(lambda done, total, scores: told.append(done))
    with patient.listening():
        patient(1, 3, {})
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(br.Stop):
            patient(2, 3, {})
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert told == [1, 2]
    before = signal.getsignal(signal.SIGTERM)
    with interruptible(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_repeat_says_what_is_lost():
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="1 of 3 runs were done, and are lost"):
        br.repeat(
            br.WalkSGD(), "ring:8", TASK, seeds=range(3), privacy=NOISE, steps=20, progress=stop
        )


class Until(Clock):
    """Stops at the first word about so many steps."""

    def __call__(self, done, total, scores):
        self.told.append((done, total))
        if done >= self.most:
            raise br.Stop


@pytest.mark.parametrize(
    "algorithm",
    [
        br.WalkSGD(),
        br.WalkSGD(cap=3, rest=2, burn_in=4),
        br.WalkADMM(),
        br.RingSum(),
        br.RingSum(noise="shared", published=True),
    ],
    ids=repr,
)
def test_a_compiled_walk_that_is_stopped_has_released_what_the_general_one_has(algorithm):
    """With fused = True the ledger was written at the end only: 30 hops of 100 cost nothing."""
    task = br.tasks.Mean.uniform(8, 2) if isinstance(algorithm, br.RingSum) else TASK
    parts = [
        br.run(
            algorithm,
            "ring:8",
            task,
            privacy=NOISE,
            steps=100,
            seed=1,
            evaluate_every=10,
            progress=Until(30),
            engine=br.Bulk(fused=fused),
        )
        for fused in (False, True)
    ]
    general, compiled = parts
    assert compiled.interrupted == general.interrupted == (30, 100)
    assert np.array_equal(
        compiled.ledger.counts(),
        general.ledger.counts()[
            :, [general.ledger.events.index(event) for event in compiled.ledger.events]
        ],
    )
    assert sorted(compiled.ledger.column("clock")) == sorted(general.ledger.column("clock"))
    assert len(compiled.ledger) >= 26
    assert float(compiled.epsilon(of=3, seen_by=0)) == float(general.epsilon(of=3, seen_by=0)) > 0
    assert compiled.trace.messages == general.trace.messages
    assert np.array_equal(compiled.trace.meetings.b, general.trace.meetings.b)
    assert "not in this run" in compiled.unwatched
    for name in ("spent", "latest") if algorithm.name() == "walk-sgd" else ():
        assert np.array_equal(getattr(compiled.state, name), getattr(general.state, name))


@pytest.mark.parametrize(
    "algorithm",
    [
        br.WalkSGD(cap=3, rest=9),
        br.WalkADMM(),
        br.RingSum(),
        br.GossipSGD(mixing=2),
        br.Chebyshev(),
        br.Averaging(),
    ],
    ids=repr,
)
def test_a_stopped_run_goes_on_from_where_it_was(algorithm):
    """Six of twenty steps and then ten are sixteen; it went on as if all twenty had been done."""
    task = (
        TASK
        if isinstance(algorithm, br.WalkSGD | br.WalkADMM | br.GossipSGD)
        else br.tasks.Mean.uniform(8, 2)
    )
    part = br.run(algorithm, "ring:8", task, steps=20, seed=1, progress=Until(6))
    whole = br.run(algorithm, "ring:8", task, steps=16, seed=1)
    assert np.allclose(
        br.chain(part, task, steps=10).estimates, whole.estimates, rtol=1e-12, atol=1e-12
    )


def test_a_run_that_was_stopped_within_a_step_does_not_go_on():
    part = br.run(br.GossipSGD(mixing=2), "ring:8", TASK, steps=20, progress=Until(5))
    with pytest.raises(br.ConfigError, match="stopped after 5 rounds, in the middle"):
        br.chain(part, TASK, steps=10)
    mean = br.tasks.Mean.uniform(8, 2)
    for algorithm, engine in (
        (br.PairAveraging(), br.Bulk()),
        (br.Averaging(), br.Events(latency=0.2)),
    ):
        part = br.run(algorithm, "ring:8", mean, steps=400, progress=Clock(1), engine=engine)
        with pytest.raises(
            br.ConfigError, match=r"interrupted after .* run it to its end, or carry the 'model'"
        ):
            br.chain(part, mean, steps=10)
