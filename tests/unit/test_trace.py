"""Traces, faults, views, and their columns on disk."""

from typing import NamedTuple

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.trace import Faults, Meetings, Received, Trace, trace_from

COUNTS = {"messages": 7, "refusals": 1, "retransmissions": 2, "missed": 3, "bytes": 56}


class Pair(NamedTuple):
    index: np.ndarray
    sign: np.ndarray


def story(rows=()) -> Trace:
    meetings = Meetings(np.array([0.5, 1.5]), np.array([2, 0]), np.array([1, 2]))
    faults = Faults(np.array([0, 0, 3]), np.array([0, 1, 1]), np.array([1, 2, 2]))
    heard = [Received(k, 2, k % 2, row) for k, row in enumerate(rows)]
    return Trace(
        peers=3,
        steps=4,
        meetings=meetings,
        faults=faults,
        watched=frozenset({0, 1}),
        received=heard,
        reads=[{0: 3, 2: 1}, {}],
        **COUNTS,
    )


def read_back(trace: Trace) -> Trace:
    return trace_from(trace.columns(), trace.peers, trace.steps, COUNTS)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])],
        [Pair(np.array([3]), np.array([-1.0])), Pair(np.array([0]), np.array([1.0]))],
    ],
)
def test_columns_read_back(rows):
    first = story(rows)
    second = read_back(first)
    assert (second.peers, second.steps, second.watched, second.reads) == (
        3,
        4,
        first.watched,
        first.reads,
    )
    assert (
        second.messages,
        second.refusals,
        second.retransmissions,
        second.missed,
        second.bytes,
    ) == (7, 1, 2, 3, 56)
    for one, two in zip(
        first.meetings + first.faults, second.meetings + second.faults, strict=True
    ):
        assert np.array_equal(one, two)
    for one, two in zip(first.received, second.received, strict=True):
        assert (one.clock, one.sender, one.receiver) == (two.clock, two.sender, two.receiver)
        if isinstance(one.row, np.ndarray):
            assert np.array_equal(one.row, two.row)
        else:
            assert np.array_equal(one.row.index, two.row.index)
            assert np.array_equal(one.row.sign, two.row.sign)


def test_meetings_sort_by_time_and_keep_the_order_of_ties():
    told = Meetings(np.array([2.0, 1.0, 1.0]), np.array([0, 1, 2]), np.array([3, 4, 5])).sorted()
    assert told.a.tolist() == [1, 2, 0]
    assert told.of(1).b.tolist() == [4]


def test_faults_of_a_round():
    a, b = story().faults.in_round(0)
    assert (a.tolist(), b.tolist()) == ([0, 1], [1, 2])
    assert len(story().faults.in_round(1)[0]) == 0


def test_a_view_is_what_its_observers_received():
    trace = story([np.zeros((1, 1))] * 4)
    trace.received.append(Received(9, 1, 0, np.ones((1, 1))))
    assert [m.clock for m in trace.view(frozenset({1})).messages] == [1, 3]
    together = trace.view(frozenset({0, 1}))
    assert len(together.messages) == 5
    assert [m.sender for m in together.foreign] == [2] * 4


def test_a_view_that_was_not_kept_is_refused():
    with pytest.raises(ConfigError, match=r"peer 2 was not watched.*watch=\[0, 2\]"):
        story().view(frozenset({0, 2}))
