"""The public checks catch what they are for: a global peek, a leak, a false claim, a message that
is never the same."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import Algorithm
from bruit.graphs import grid
from bruit.testing import (
    check_algorithm,
    check_data_only_through_the_door,
    check_engines_agree,
    check_linear,
    check_messages_are_pure,
    check_replay_under_faults,
    check_steps_zero,
    checks,
    small_task,
)


class State(NamedTuple):
    value: np.ndarray
    secret: np.ndarray


@dataclass(frozen=True)
class Honest(Algorithm[State]):
    """Plain averaging that also keeps a raw value at home."""

    private: ClassVar[tuple[str, ...]] = ("secret",)

    def start(self, home: Any) -> State:
        return State(home.value(), home.keep(lambda task, ids: task.value(ids)))

    def emit(self, state: State, edges: Any) -> Any:
        return edges.broadcast(state.value)

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(inbox.mix(), state.secret)

    def estimate(self, state: State) -> Any:
        return state.value


class Peeking(Honest):
    """Looks at the other rows of its batch: a mean that no real peer could compute."""

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(inbox.mix() - state.value.mean(axis=0), state.secret)


class Leaky(Honest):
    """Sends what was to stay at home."""

    def emit(self, state: State, edges: Any) -> Any:
        return edges.broadcast(state.value + state.secret)


class Bent(Honest):
    """Claims to be linear and is not."""

    linear: ClassVar[bool] = True
    private: ClassVar[tuple[str, ...]] = ()

    def start(self, home: Any) -> State:
        value = home.value()
        return State(value, value)

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(np.abs(inbox.mix()), state.secret)


class Moody(Honest):
    """Never says the same thing twice."""

    said: ClassVar[list[int]] = []

    def emit(self, state: State, edges: Any) -> Any:
        self.said.append(1)
        return edges.broadcast(state.value + len(self.said))


class TwoParts(NamedTuple):
    sum: np.ndarray
    count: np.ndarray


class Counted(Honest):
    """Messages of two arrays; at step 2 something is added for peer 3, but only when all peers are
    there at once."""

    def emit(self, state: State, edges: Any) -> Any:
        return edges.broadcast(TwoParts(state.value, np.ones((len(state.value), 1))))

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        wrong = (home.ids == 3) & (home.step == 2) & (len(home.ids) > 1)
        return State(state.value + wrong[:, None] * np.array([0.0, 1.0, 0.0]), state.secret)


class Spender(Honest):
    """Reads one more value at peer 2, step 3, but only when it is alone."""

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        home.value(where=(home.ids == 2) & (home.step == 3) & (len(home.ids) == 1))
        return State(inbox.mix(), state.secret)


class Late(Honest):
    """Counts on hearing all neighbors: with one missing, peer by peer and all at once differ."""

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        heard = np.diff(inbox.links.start)
        alone = len(home.ids) == 1
        return State(inbox.mix() + np.where(heard == 0, 5.0 * alone, 0.0)[:, None], state.secret)


class Telling(Honest):
    """Sends a number of its own records to whoever has a larger number."""

    private: ClassVar[tuple[str, ...]] = ()

    def start(self, home: Any) -> State:
        raw = around(home)
        return State(home.value(), raw)

    def emit(self, state: State, edges: Any) -> Any:
        return edges.broadcast(TwoParts(state.value, state.secret[:, :1]))

    def absorb(self, state: State, inbox: Any, home: Any) -> State:
        return State(state.value, state.secret)


def around(home: Any) -> np.ndarray:
    """What no algorithm may do: the records themselves, past the doorway."""
    door = object.__getattribute__(home.doorway, "_Doorway__inner")()
    return door.task.value(home.ids) if hasattr(door, "task") else home.zeros()


class Unready(Honest):
    """Supposes that there is somebody to speak to."""

    def start(self, home: Any) -> State:
        first = home.edges.peers[home.edges.start[:-1]]
        return State(home.value() + 0 * first[:, None], home.zeros())


class Short(Honest):
    """Believes for one peer only."""

    def estimate(self, state: State) -> Any:
        return state.value[:1]


def test_an_honest_algorithm_passes():
    check_algorithm(Honest())


@pytest.mark.parametrize("algorithm", [Peeking(), Leaky(), Bent(), Moody()], ids=repr)
def test_dishonest_algorithms_do_not(algorithm):
    with pytest.raises(br.BruitError):
        check_algorithm(algorithm)


@pytest.mark.parametrize(
    ("check", "algorithm", "steps", "words"),
    [
        (
            check_engines_agree,
            Peeking(),
            3,
            r"check_engines_agree: peeking: after step 1: the final states differ by .*: field "
            r"'value', peer \d, number \d",
        ),
        (
            check_engines_agree,
            Counted(),
            4,
            r"check_engines_agree: counted: after step 2: the final states differ by 1: field "
            r"'value', peer 3, number 1",
        ),
        (
            check_engines_agree,
            Spender(),
            4,
            r"check_engines_agree: spender: after step 3: the ledgers differ: .* of peer 2 at step "
            r"3, clock 3, only the",
        ),
        (
            check_replay_under_faults,
            Late(),
            4,
            r"check_replay_under_faults: late: with latency 0.1, loss 0.1, churn 0.15, after step "
            r"\d: the final states differ"
            r" by 5.*: field 'value', peer \d, number 0",
        ),
        (
            check_messages_are_pure,
            Leaky(),
            0,
            r"check_messages_are_pure: leaky: after step 0 a private field reaches the"
            r" message: 'secret' changes what is said, peer \d, the row, number \d",
        ),
        (
            check_messages_are_pure,
            Moody(),
            0,
            r"check_messages_are_pure: moody: after step 0 the same state emits two"
            r" different messages: peer \d, the row, number \d",
        ),
        (
            check_data_only_through_the_door,
            Telling(),
            2,
            r"check_data_only_through_the_door: telling: data leaves past the"
            r" door: what peer \d told peer \d at step 0 changes with the records \(field 'count', "
            r"number 0\)",
        ),
        (
            check_linear,
            Bent(),
            3,
            r"check_linear: bent: it claims to be linear, but superposition fails: what peer \d "
            r"told"
            r" peer \d at step 1, number \d, is .* where 2 x - 3 y is",
        ),
        (
            check_steps_zero,
            Unready(),
            3,
            r"check_steps_zero: unready: unready: start raised IndexError.*at peer 0, step 0.*line \d+ of test_testing"
            r"\.py, in start",
        ),
        (
            check_steps_zero,
            Short(),
            3,
            r"check_steps_zero: short: its estimate has 1 rows for 8 peers",
        ),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_each_check_says_what_is_wrong_and_where(check, algorithm, steps, words):
    """The check, the field, the peer and the step: one algorithm broken on purpose per kind of
    error."""
    with pytest.raises(br.ConformanceError, match=words):
        check(algorithm, grid(2, 4), small_task(8), steps)


def test_every_check_has_an_algorithm_that_fails_it():
    marks = [
        mark
        for mark in test_each_check_says_what_is_wrong_and_where.pytestmark
        if mark.name == "parametrize"
    ]
    assert {case[0] for case in marks[0].args[1]} == set(checks())
