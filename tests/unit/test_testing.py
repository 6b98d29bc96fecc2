"""The public checks catch what they are for: a global peek, a leak, a false claim, a message that is never the same."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import Algorithm
from bruit.graphs import grid
from bruit.testing import check_algorithm, check_engines_agree, check_linear, check_messages_are_pure, small_task


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


def test_an_honest_algorithm_passes():
    check_algorithm(Honest())


@pytest.mark.parametrize("algorithm", [Peeking(), Leaky(), Bent(), Moody()], ids=repr)
def test_dishonest_algorithms_do_not(algorithm):
    with pytest.raises(br.BruitError):
        check_algorithm(algorithm)


@pytest.mark.parametrize(("check", "algorithm", "word"), [
    (check_engines_agree, Peeking(), "final states differ"), (check_linear, Bent(), "superposition fails"),
    (check_messages_are_pure, Leaky(), "a private field reaches the message"),
    (check_messages_are_pure, Moody(), "two different messages"),
])  # fmt: skip
def test_each_check_says_what_is_wrong(check, algorithm, word):
    with pytest.raises(br.ConformanceError, match=word):
        check(algorithm, grid(2, 4), small_task(8), 3 if check is not check_messages_are_pure else 0)
