"""Raw data never leaves: messages are the same when data change and the door's answers do not (in
every engine)."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import Door
from bruit.algorithms.doorway import NUMBERS, QUESTIONS, Doorway
from bruit.algorithms.home import Home
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import AlgorithmError, ConformanceError, PrivacyError
from bruit.peers.engine import Network
from bruit.peers.journal.snapshots import freeze, thaw
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.runs.result import load
from bruit.tasks import Mean
from bruit.testing import check_algorithm, check_data_only_through_the_door, small_task
from tests.conformance.hard_cases import FrankWolfe

NOISE = br.Gaussian(clip=2.0, sigma=0.5)
CHECKED = "checked: every release went through the door"


def raw(task, ids):
    return task.value(ids)


class State(NamedTuple):
    value: np.ndarray
    secret: np.ndarray


@dataclass(frozen=True)
class Keeps(Algorithm[State]):
    """Averaging that keeps a raw value at home and uses it there: the honest twin of all below."""

    schedule: Any = br.Rounds()
    private: ClassVar[tuple[str, ...]] = ("secret",)

    def start(self, home: Any) -> State:
        return State(home.value(), home.keep(raw))

    def emit(self, state: State, edges: Any) -> Any:
        return edges.broadcast(state.value)

    def heard(self, inbox: Any) -> Any:
        return (
            inbox.mix()
            if isinstance(self.schedule, br.Rounds)
            else inbox.copies()[: len(inbox.links.ids)]
        )

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(self.heard(inbox), state.secret + home.keep(raw))

    def estimate(self, state: State) -> Any:
        return state.value


class IntoAnotherField(Keeps):
    """home.keep into a field that is not private, then into a message: the finding itself."""

    private: ClassVar[tuple[str, ...]] = ()

    def emit(self, state: State, edges: Any) -> Any:
        return edges.broadcast(state.secret)


class Later(Keeps):
    """A private field leaks into a message two steps later."""

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(
            self.heard(inbox) + np.where(home.step == 2, 1e-9, 0.0)[:, None] * state.secret,
            state.secret,
        )


class OnTheWay(Keeps):
    """Keeps nothing at first, and sends what it reads on the way."""

    def start(self, home: Any) -> State:
        return State(home.value(), home.zeros())

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(self.heard(inbox) + home.keep(raw), state.secret)


class TakesNoiseBack(Keeps):
    """Keeps its own noise in a field nobody listed, and subtracts it later."""

    private: ClassVar[tuple[str, ...]] = ()

    def start(self, home: Any) -> State:
        value = home.value()
        return State(value, value - home.keep(raw))

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(self.heard(inbox) - state.secret, 0 * state.secret)


class Masked(Keeps):
    """Raw data under a mask: noise, but no line that says data was released."""

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(home.mask(self.heard(inbox) + state.secret, home.sigma), state.secret)


class Chooses(Keeps):
    """Whom it asks depends on raw data, and who is silent says it."""

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(home.gradient(self.heard(inbox), where=state.secret[:, 0] > 0), state.secret)


class Loud(Keeps):
    """How much noise it asks for depends on raw data, and the ledger says it."""

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(
            self.heard(inbox) + 0 * home.mask(state.value, 1.0 + np.abs(state.secret[:, 0])),
            state.secret,
        )


LEAKS = [IntoAnotherField, Later, OnTheWay, TakesNoiseBack, Masked, Chooses, Loud]
ENGINES = [br.Bulk(), br.Events(), br.Events(latency=0.3)]


@pytest.mark.parametrize("kind", LEAKS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("engine", ENGINES, ids=["bulk", "events", "late"])
@pytest.mark.parametrize(
    "schedule", [br.Rounds(), Pairs(), Walk(), Wakes()], ids=lambda s: type(s).__name__
)
def test_a_leak_is_stopped_before_anything_is_said(kind, schedule, engine):
    """Before: epsilon 0, proven, "checked: every release went through the door", and
    check_algorithm was silent."""
    with pytest.raises(
        PrivacyError,
        match=rf"{kind(schedule).name()}, peer \d, step \d+: (the message changes with raw"
        r" data that home.keep gave out|(what|how often) it asks at the door)",
    ):
        br.run(
            kind(schedule),
            "ring:6",
            small_task(6),
            privacy=NOISE,
            steps=12,
            engine=engine,
            evaluate_every=0,
        )


@pytest.mark.parametrize("kind", LEAKS, ids=lambda kind: kind.__name__)
def test_the_public_check_finds_them(kind):
    with pytest.raises(br.BruitError, match=r"raw data|private field|past the door"):
        check_algorithm(kind())
    with pytest.raises(ConformanceError, match="data leaves past the door"):
        check_data_only_through_the_door(kind(), br.graphs.ring(6), small_task(6), 6)


def test_the_sentence_names_the_field():
    with pytest.raises(PrivacyError, match="the field 'secret' holds what was to stay at home"):
        br.run(IntoAnotherField(), "ring:6", small_task(6), privacy=NOISE, steps=2)


@pytest.mark.parametrize(
    "engine", [*ENGINES, br.Events(latency=0.1, loss=0.1, churn=0.2)], ids=repr
)
@pytest.mark.parametrize(
    "algorithm", [Keeps(), Keeps(Pairs()), Keeps(Walk()), Keeps(Wakes()), FrankWolfe()], ids=repr
)
def test_what_stays_at_home_may(algorithm, engine):
    run = br.run(
        algorithm, "ring:6", small_task(6), privacy=NOISE, steps=6, engine=engine, evaluate_every=0
    )
    assert run.unwatched == ""
    assert CHECKED in run.epsilon().why()
    plain = br.run(
        algorithm, "ring:6", small_task(6), privacy=NOISE, steps=6, engine=engine, evaluate_every=0
    )
    assert np.array_equal(run.estimates, plain.estimates)
    lines = run.ledger.counts().sum()
    assert lines == plain.ledger.counts().sum() > 0  # the twin spends nothing


def test_real_peers_are_watched_too():
    engine = Network(timeout=20.0)
    with pytest.raises(PrivacyError, match=r"raw data that home\.keep gave out"):
        br.run(
            Later(),
            "ring:3",
            small_task(3),
            privacy=NOISE,
            steps=5,
            engine=engine,
            evaluate_every=0,
        )
    honest = br.run(
        Keeps(), "ring:3", small_task(3), privacy=NOISE, steps=3, engine=engine, evaluate_every=0
    )
    assert honest.unwatched == ""


def test_the_ledger_of_a_keeper_is_that_of_one_who_keeps_nothing():
    kept = br.run(Keeps(), "ring:6", small_task(6), privacy=NOISE, steps=3)
    plain = br.run(br.Averaging(), "ring:6", small_task(6), privacy=NOISE, steps=3)
    assert kept.facts().data_lines().sum() == plain.facts().data_lines().sum() == 6
    assert len(kept.ledger) == 6
    assert len(plain.ledger) == 6 + 4 * 6  # and a dither for every message


def reached(home):
    """The records, by a way nobody should take."""
    return home._door._Doorway__inner().task


class AroundTheDoor(Keeps):
    """Python hides nothing from who wants to see; the check of whole runs does not care how it was
    done."""

    private: ClassVar[tuple[str, ...]] = ()

    def start(self, home: Any) -> State:
        value = home.value()
        return State(value + reached(home).value(home.ids), value)

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(self.heard(inbox), state.secret)


class StraightAhead(AroundTheDoor):
    def start(self, home: Any) -> State:
        return State(home._door.task.value(home.ids), home.value())


def test_a_home_has_no_task_and_who_reaches_around_is_found():
    with pytest.raises(
        AlgorithmError, match="a home has no 'task': data, dice and ledger stay behind the door"
    ):
        br.run(StraightAhead(), "ring:6", small_task(6), privacy=NOISE, steps=2)
    with pytest.raises(
        ConformanceError, match=r"past the door: what peer \d told peer \d at step 0 changes with"
    ):
        check_data_only_through_the_door(AroundTheDoor(), br.graphs.ring(6), small_task(6), 3)
    with pytest.raises(ConformanceError, match="past the door"):
        check_algorithm(AroundTheDoor())


def test_every_question_of_a_door_is_listed():
    asked = {name for name in vars(Door) if not name.startswith("_")}
    assert asked - {"with_ledger", "keep_other", "watch", "left_out"} == QUESTIONS | NUMBERS
    home = Home(
        TaskDoor(task=small_task(3), mechanism=NOISE, dice=Replay(0), ledger=Ledger(peers=3)),
        np.arange(3),
        *[np.zeros(3, int)] * 2,
        np.zeros(3, bool),
        None,
        None,
    )
    assert isinstance(home.doorway, Doorway)
    for name in (
        "task",
        "dice",
        "ledger",
        "mechanism",
        "models",
        "budget",
        "with_ledger",
        "keep_other",
        "watch",
        "left_out",
    ):
        with pytest.raises(AttributeError, match=f"a home has no '{name}'"):
            getattr(home._door, name)


class Fails(Keeps):
    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        if not np.array_equal(state.secret, reached(home).value(home.ids)):
            raise ValueError("these are not my records")
        return State(self.heard(inbox), state.secret)


def test_who_works_with_one_data_set_only_cannot_be_checked_and_is_refused():
    with pytest.raises(
        PrivacyError,
        match=r"with other raw data it fails .*not my records.*make it work for any data",
    ):
        br.run(Fails(), "ring:6", small_task(6), privacy=NOISE, steps=2)


def test_peers_with_the_same_data_are_moved_apart():
    """A blank rehearsal finds the leak as well: raw numbers that are all alike are moved."""
    with pytest.raises(PrivacyError, match="raw data"):
        br.rehearse(IntoAnotherField(), br.graphs.ring(6), NOISE, 2)
    assert CHECKED in br.rehearse(Keeps(), br.graphs.ring(6), NOISE, 2).epsilon().why()


class Counts(Keeps):
    def start(self, home: Any) -> State:
        return State(
            home.value(), home.keep(lambda task, ids: (task.value(ids) > 0).astype(np.int64))
        )

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(self.heard(inbox), state.secret)


def test_whole_numbers_that_are_all_alike_leave_the_twin_blind_and_that_is_said(tmp_path):
    """They may be places in an array: nobody moves them, and nobody calls it checked."""
    different = br.run(Counts(), "ring:6", small_task(6), privacy=NOISE, steps=2)
    assert CHECKED in different.epsilon().why()
    alike = br.run(Counts(), "ring:6", Mean(np.ones((6, 3))), privacy=NOISE, steps=2)
    for said in (alike.epsilon(), alike.epsilon(of=1, seen_by=0)):
        assert "assumed: every release went through the door" in said.why()
        assert "(raw answers that are whole numbers and the same for all peers" in said.why()
        assert CHECKED not in said.why()


def test_an_unwatched_run_is_never_called_checked(tmp_path):
    """A compiled path reads the records itself; and a folder remembers whether anybody looked."""
    task = br.tasks.Logistic.load("breast_cancer", peers=6, components=2)
    slow, fast = (
        br.run(
            br.WalkSGD(),
            "complete:6",
            task,
            privacy=NOISE,
            steps=20,
            evaluate_every=0,
            engine=engine,
        )
        for engine in (br.Bulk(fused=False), br.Bulk(fused=True))
    )
    for run in (fast, load(fast.save(tmp_path / "fast.run"))):
        for said in (run.epsilon(), run.epsilon(of=1, seen_by=0)):
            assert (
                "assumed: every release went through the door and its ledger line (its compiled "
                "path" in said.why()
            )
            assert CHECKED not in said.why()
    assert CHECKED in load(slow.save(tmp_path / "slow.run")).epsilon().why()
    real = replace(NOISE, arithmetic="ideal")
    gossip = br.run(
        br.Averaging(),
        "ring:6",
        small_task(6),
        privacy=real,
        steps=4,
        evaluate_every=0,
        engine=br.Bulk(fused=True),
    )
    assert CHECKED in gossip.epsilon().why()  # no door, no raw data: nothing to read


class Local(Keeps):
    """Believes in what stays at home: a model fitted on raw data, of no use to others."""

    def estimate(self, state: State) -> Any:
        return state.secret


def test_models_that_hold_raw_data_are_no_beginning(tmp_path):
    task = small_task(6)
    first = br.run(Local(), "ring:6", task, privacy=NOISE, steps=2, evaluate_every=0)
    assert first.local
    with pytest.raises(PrivacyError, match="hold raw data that was to stay at home"):
        br.run(br.GossipSGD(), "ring:6", task, privacy=NOISE, steps=2, after=first)
    assert not br.run(Keeps(), "ring:6", task, privacy=NOISE, steps=2, evaluate_every=0).local


def test_the_twin_goes_on_in_the_next_phase():
    first = br.run(Keeps(), "ring:6", small_task(6), privacy=NOISE, steps=2, evaluate_every=0)
    second = br.run(
        Keeps(), "ring:6", small_task(6), privacy=NOISE, steps=2, evaluate_every=0, after=first
    )
    assert second.unwatched == ""
    with pytest.raises(PrivacyError, match=r"raw data that home\.keep gave out"):
        br.run(
            Later(),
            "ring:6",
            small_task(6),
            privacy=NOISE,
            steps=4,
            evaluate_every=0,
            after=replace(first, algorithm=Later()),
            carry="state",
        )


def test_a_twin_survives_a_snapshot():
    run = br.run(Keeps(), "ring:3", small_task(3), privacy=NOISE, steps=1, evaluate_every=0)
    again = thaw(freeze(run.twinned()), {__name__})
    assert np.array_equal(again.other.secret, run.twin.secret)
    assert not np.array_equal(again.other.secret, again.real.secret)
