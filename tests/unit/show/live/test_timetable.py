"""Who speaks when: against the schedule itself, level by level in plain Python."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import bruit as br
from bruit.graphs import graph as named
from bruit.randomness import Replay
from bruit.show.live.timetable import Timetable


def built(algorithm, graph, steps, seed=5):
    return SimpleNamespace(
        algorithm=algorithm, graph=named(graph), steps=steps, file=SimpleNamespace(seed=seed)
    )


def test_in_rounds_everybody_speaks():
    table = Timetable(built(br.Averaging(), "ring:6", 4), 0)
    assert table.who_spoke(0, 1) is None
    assert [table.position(done) for done in (0, 1, 4)] == [0, 1, 4]


def test_a_changing_graph_tells_the_pairs_of_its_round():
    table = Timetable(built(br.Averaging(), "butterfly:8", 3), 0)
    for done in (1, 2, 3):
        assert sorted(table.who_spoke(done - 1, done)) == sorted(
            named("butterfly:8").at(done - 1).edges().tolist()
        )


def test_a_walk_tells_its_hops():
    algorithm = br.WalkSGD()
    table = Timetable(built(algorithm, "ring:6", 10), 0)
    path = algorithm.schedule.path(named("ring:6"), 10, Replay(5))
    hops = [[int(a), int(b)] for a, b in pairwise(path) if a != b]
    assert table.who_spoke(0, 10) == hops
    assert table.position(7) == 7


@pytest.mark.parametrize("watcher", [0, 3])
def test_meetings_are_done_by_levels_and_heard_in_order(watcher):
    algorithm = br.PairAveraging()
    table = Timetable(built(algorithm, "ring:8", 6), watcher)
    found = algorithm.schedule.meetings(named("ring:8"), 6, Replay(5))
    level, last = [], np.zeros(8, int)
    for a, b in zip(found.a, found.b, strict=True):
        level.append(1 + max(last[a], last[b]))
        last[a] = last[b] = level[-1]
    order = sorted(range(len(level)), key=lambda k: (level[k], k))
    for done in range(len(order) + 1):
        heard = [found.time[k] for k in order[:done] if watcher in (found.a[k], found.b[k])]
        assert table.position(done) == (int(np.ceil(max(heard))) if heard else 0)
    assert table.who_spoke(0, 3) == [[int(found.a[k]), int(found.b[k])] for k in order[:3]]
