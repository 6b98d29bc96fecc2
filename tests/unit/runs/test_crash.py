"""An algorithm that raises: the error names function, peer and step in every engine, and the file it
leaves gives the same error again."""

import json
import os
import pickle
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import bruit as br
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.messages import Slots
from bruit.algorithms.schedules.schedule import Schedule
from bruit.arrays import Array
from bruit.commands.cli import app
from bruit.errors import AlgorithmError, BruitError, ConfigError, ConformanceError

NOISE = br.Gaussian(clip=1.0, sigma=1.0)
TASK = br.tasks.Mean.uniform(8, dim=2, seed=0)
PEER, AGE = 3, 5
BULK, EVENTS = br.Bulk(), br.Events(latency=0.1)


class Aged(NamedTuple):
    model: Array  # (n, d)
    age: Array  # (n, 1)


class Both(NamedTuple):
    who: Array  # (n, 1)
    rest: Aged


@dataclass(frozen=True)
class Broken(Algorithm[Both]):
    """Mixes and reads gradients, until one peer is too old in one function."""

    schedule: Schedule = br.Rounds()
    function: str = "absorb"
    together: bool = False
    kind: str = "index"

    def trip(self, function, who, age):
        guilty = (who[:, 0] == PEER) & (age[:, 0] >= AGE)
        if self.together and len(who) < 2:
            return
        if function == self.function and guilty.any():
            kinds = {"index": IndexError, "refusal": ConfigError}
            raise kinds[self.kind](f"too old: {age[guilty][0, 0]:.0f}")

    def start(self, home):
        who, age = home.ids[:, None].astype(float), home.zeros(1)
        self.trip("start", who, age + AGE)
        return Both(who, Aged(home.value(), age))

    def emit(self, state, edges):
        self.trip("emit", state.who, state.rest.age)
        return edges.broadcast(state.rest.model)

    def absorb(self, state, inbox, home):
        mixed = inbox.mix() - 0.1 * home.gradient(state.rest.model) + 0 * home.common()
        age = state.rest.age + 1
        self.trip("absorb", state.who, age)
        return Both(state.who, Aged(mixed, age))

    def estimate(self, state):
        self.trip("estimate", state.who, state.rest.age)
        return state.rest.model


def crash(algorithm, engine=BULK, graph="complete:8", steps=12, **options):
    with pytest.raises(AlgorithmError) as found:
        br.run(algorithm, graph, TASK, privacy=NOISE, steps=steps, engine=engine, **options)
    return found.value


SCHEDULES = [br.Rounds(), br.Pairs(), br.Walk(order="ring"), br.Wakes()]


@pytest.mark.parametrize("engine", [BULK, EVENTS], ids=["bulk", "events"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=["rounds", "pairs", "walk", "wakes"])
@pytest.mark.parametrize("function", ["start", "emit", "absorb", "estimate"])
def test_the_error_names_the_place_and_its_file_gives_the_same_error(schedule, engine, function):
    algorithm = Broken(schedule, function)
    error = crash(algorithm, engine, steps=45 if schedule.entered else 12)
    assert f"broken: {function} raised IndexError('too old:" in str(error)
    assert f" at peer {PEER}" in str(error)
    if function == "absorb":
        assert f"at peer {PEER}, step {AGE}" in str(error)
    kept = br.load_crash(error.saved)
    assert kept.about["peers"] == [PEER]
    assert len(kept.about["digest"]) > 8
    with pytest.raises(IndexError) as again:
        kept.replay(algorithm)
    assert repr(again.value) == repr(error.__cause__) == kept.about["error"]


def test_in_rounds_the_step_is_the_round():
    assert f"step {AGE}; after {AGE - 1} of 12 rounds; look" in str(crash(Broken()))


def test_the_file_holds_the_call_of_that_peer_alone_bit_by_bit():
    seen = []

    @dataclass(frozen=True)
    class Told(Broken):
        def absorb(self, state, inbox, home):
            if len(home.ids) == 1 or home.step[0] < AGE:
                return super().absorb(state, inbox, home)
            seen.append((state, inbox.mix(), home.gradient(state.rest.model)))
            return super().absorb(state, inbox, home)

    kept = br.load_crash(crash(Told(), graph="torus:2x4").saved)
    state, mixed, gradient = seen[0]
    assert np.array_equal(kept.state.rest.model, state.rest.model[[PEER]])
    assert np.array_equal(kept.inbox.mix(), mixed[[PEER]])
    assert {name for name, _ in kept.answers} == {"gradient", "common"}
    assert len(dict(kept.answers)["gradient"]) == 1  # and nothing of other peers
    assert gradient.shape == (8, 2)


def test_what_no_peer_does_alone_is_said_of_all_together():
    error = crash(Broken(together=True))
    assert "at 8 peers together, and at none of them alone" in str(error)
    with pytest.raises(IndexError):
        br.load_crash(error.saved).replay(Broken(together=True))


def test_several_guilty_peers_are_named():
    @dataclass(frozen=True)
    class All(Broken):
        def trip(self, function, who, age):
            if function == "absorb" and (who >= 2).any():
                raise KeyError("who")

    assert "raised KeyError('who') at peer 2, step 1, as at peers 3, 4 and more" in str(
        crash(All())
    )


def test_faults_and_a_graph_without_listed_links_are_cut_down_too():
    given = br.run(Broken(function=""), "complete:8", TASK, steps=9, engine=br.Events(churn=0.3))
    error = crash(Broken(), steps=9, given=given.trace)
    with pytest.raises(IndexError):
        br.load_crash(error.saved).replay(Broken())
    wide = br.tasks.Mean.uniform(6001, dim=1, seed=0)  # complete, and its links are not listed
    with pytest.raises(AlgorithmError, match=f"at peer {PEER}, step {AGE}") as found:
        br.run(Broken(), "complete:6001", wide, steps=9, evaluate_every=0)
    with pytest.raises(IndexError):
        br.load_crash(found.value.saved).replay(Broken())


def test_a_state_with_slots_and_messages_of_their_own_are_kept():
    class Kept(NamedTuple):
        mine: Slots

    @dataclass(frozen=True)
    class Each(Algorithm[Kept]):
        def start(self, home):
            return Kept(home.edges.expand(home.value()))

        def emit(self, state, edges):
            return edges.each(state.mine)

        def absorb(self, state, inbox, home):
            if PEER in home.ids and home.step[0] == 2:
                raise ZeroDivisionError("slots")
            return Kept(inbox.slots().on(home.edges))

        def estimate(self, state):
            return state.mine.sums()

    kept = br.load_crash(crash(Each(), graph="ring:8").saved)
    assert kept.inbox.each
    assert kept.inbox.senders.tolist() == [2, 4]
    assert kept.state.mine.peers.tolist() == [2, 4]
    with pytest.raises(ZeroDivisionError):
        kept.replay(Each())


def test_a_refusal_stays_as_it_is():
    with pytest.raises(ConfigError, match=r"^too old: 5$") as found:
        br.run(Broken(kind="refusal"), "complete:8", TASK, steps=9)
    assert found.value.__cause__ is None


def test_the_file_is_private_and_the_error_travels_between_processes():
    error = crash(Broken())
    if os.name == "posix":
        assert error.saved.stat().st_mode & 0o777 == 0o600
        assert error.saved.parent.stat().st_mode & 0o777 == 0o700
    sent = pickle.loads(pickle.dumps(error))
    assert str(sent) == str(error)
    assert sent.saved == error.saved


def test_what_cannot_be_saved_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path / "nowhere"))
    assert "could not be saved: cannot write" in str(error := crash(Broken()))
    assert error.saved is None


def test_a_repaired_algorithm_gives_its_result_and_a_changed_one_is_told():
    error = crash(Broken())
    assert br.load_crash(error.saved).replay(Broken(function="")).rest.age == AGE

    @dataclass(frozen=True)
    class Changed(Broken):
        def absorb(self, state, inbox, home):
            home.value()
            return state

    with pytest.raises(ConformanceError, match="for 'value', and when it failed it asked for 'gra"):
        br.load_crash(error.saved).replay(Changed())


def command(*words):
    return CliRunner().invoke(app, ["replay", *words])


def test_the_command_makes_the_call_again(monkeypatch):
    monkeypatch.setattr(br.Averaging, "absorb", lambda self, state, *_: {}["mixed"])
    with pytest.raises(AlgorithmError) as found:
        br.run(br.Averaging(), "ring:8", TASK, steps=3, engine=br.Bulk(fused=False))
    path = str(found.value.saved)
    shown = command("--crash", path)
    assert shown.exit_code == 0
    assert "it fails again: KeyError('mixed')" in shown.output
    assert "averaging: absorb at peer 0, step 1; ring:8, 3 steps, seed 0" in shown.output
    assert "Traceback" in shown.output
    assert '{}["mixed"]' in shown.output
    about = json.loads(command("--crash", path, "--json").output)
    assert about["reproduced"]
    assert about["function"] == "absorb"
    assert about["peers"] == [0]
    monkeypatch.undo()
    mended = command("--crash", path)
    assert isinstance(mended.exception, ConformanceError)  # exit code 1
    assert "when it failed it asked for 'nothing more'" in str(mended.exception)


def test_the_command_wants_one_thing_and_knows_its_algorithms_only(tmp_path):
    for words in ([], ["x.run", "--crash", "y"]):
        assert "give a run folder, or --crash FILE" in str(command(*words).exception)
    stranger = command("--crash", str(crash(Broken()).saved)).exception
    assert "no algorithm 'broken'" in str(stranger)
    assert "br.load_crash(FILE)" in str(stranger)


@pytest.mark.parametrize(
    "damage", ["absent", "text", "cut", "no about", "foreign", "newer", "torn"]
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, damage):
    good, path = crash(Broken()).saved, tmp_path / "bad.npz"
    arrays = dict(np.load(good))
    about = json.loads(arrays["about"].tobytes())
    if damage == "text":
        path.write_text("hello")
    elif damage == "cut":
        path.write_bytes(good.read_bytes()[:-40])
    elif damage != "absent":
        about["format"] = "else" if damage == "foreign" else about["format"]
        about["version"] += damage == "newer"
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        left_out = {"no about": "about", "torn": "state.rest.age"}.get(damage)
        np.savez(path, **{name: rows for name, rows in arrays.items() if name != left_out})
    with pytest.raises(BruitError) as found:
        br.load_crash(path)
    assert type(found.value) is ConfigError
    assert str(path) in str(found.value)
    assert "\n" not in str(found.value)
