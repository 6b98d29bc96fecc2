"""The laws of meetings, walks and wakes. Every statistical check raises a false alarm with
probability <= 1e-6."""

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, kstest, poisson

from bruit.algorithms.algorithm import algorithm_from
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.algorithms.schedules.rounds.schedule import Rounds
from bruit.algorithms.schedules.schedule import Schedule
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.tokens.walk_sum import WalkSum
from bruit.errors import ConfigError
from bruit.graphs import complete, erdos_renyi, from_edges, grid, path, ring, star
from bruit.randomness import Replay

ALARM = 1e-6
GRAPHS = [star(5), path(4), grid(2, 3)]


def unordered(meetings, n: int) -> np.ndarray:
    low, high = np.minimum(meetings.a, meetings.b), np.maximum(meetings.a, meetings.b)
    return np.bincount(low * n + high, minlength=n * n).reshape(n, n)


def expected(graph, law: str) -> np.ndarray:
    """Chance of each unordered pair per activation, by gossip:GO-3 and the words of the
    schedule."""
    chance = np.zeros((graph.n, graph.n))
    edges = graph.edges()
    for i, j in edges:
        i, j = min(i, j), max(i, j)
        if law == "weights":
            chance[i, j] = 2 * graph.weights[i, j] / graph.n
        elif law == "edges":
            chance[i, j] = 1 / len(edges)
        else:
            chance[i, j] = (1 / graph.degrees[i] + 1 / graph.degrees[j]) / graph.n
    return chance


@pytest.mark.parametrize("law", ["weights", "edges", "clocks"])
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_the_law_of_activations(graph, law):
    count = 30_000
    meetings = Pairs(law, activations=count).meetings(graph, 0, Replay(3))
    chance = expected(graph, law)
    used = chance > 0
    seen = unordered(meetings, graph.n)
    assert not seen[~used].any()
    idle = 1 - chance.sum()
    if law == "weights":
        assert idle == pytest.approx(np.trace(graph.weights.toarray()) / graph.n)
    else:
        assert idle == pytest.approx(0)
    observed, wanted = seen[used], chance[used]
    if idle > 1e-9:
        observed, wanted = np.append(observed, count - len(meetings.a)), np.append(wanted, idle)
    assert chisquare(observed, count * wanted / wanted.sum()).pvalue > ALARM


@pytest.mark.parametrize("law", ["weights", "edges", "clocks"])
def test_meetings_in_time_follow_the_same_law_at_unit_rate(law):
    graph, duration = star(5), 4000
    meetings = Pairs(law).meetings(graph, duration, Replay(4))
    chance = expected(graph, law)
    seen = unordered(meetings, graph.n)
    # n clocks of rate 1: activations of a pair are Poisson of mean n * duration * chance,
    # independent between pairs.
    for i, j in np.argwhere(chance > 0):
        mean = graph.n * duration * chance[i, j]
        tail = min(poisson.cdf(seen[i, j], mean), poisson.sf(seen[i, j] - 1, mean))
        assert tail > ALARM / 8
    assert np.all(np.diff(meetings.time) >= 0)
    assert 0 <= meetings.time[0] <= meetings.time[-1] < duration


def test_waiting_times_are_exponential():
    meetings = Pairs("clocks").meetings(path(2), 3000, Replay(5))
    for peer in (0, 1):
        times = meetings.of(peer).time
        assert kstest(np.diff(times), "expon").pvalue > ALARM / 2


@pytest.mark.parametrize(
    "schedule",
    [Pairs(), Pairs("clocks"), Wakes()],
    ids=repr,
)
def test_a_peers_own_timetable_depends_on_its_own_links_alone(schedule):
    """So that every real peer draws for itself what the simulator draws for all."""
    graph, dice = grid(3, 3), Replay(6)
    other = from_edges(9, [*graph.edges().tolist(), [5, 7]])
    here, there = (schedule.meetings(one, 30, dice).of(0) for one in (graph, other))
    assert len(here.a) > 10
    for one, another in zip(here, there, strict=True):
        assert np.array_equal(one, another)


def test_meetings_are_between_neighbors_and_depend_on_the_seed():
    graph = erdos_renyi(30, 0.2, seed=1)
    links = {(int(i), int(j)) for i, j in graph.edges()} | {
        (int(j), int(i)) for i, j in graph.edges()
    }
    first = Pairs().meetings(graph, 20, Replay(1))
    assert {(int(i), int(j)) for i, j in zip(first.a, first.b, strict=True)} <= links
    assert not np.array_equal(first.time, Pairs().meetings(graph, 20, Replay(2)).time)


@pytest.mark.parametrize("law", ["weights", "edges", "clocks"])
@pytest.mark.parametrize("activations", [None, 50])
def test_lonely_peers_meet_nobody(law, activations):
    lonely = from_edges(3, [(0, 1)])
    meetings = Pairs(law, activations).meetings(lonely, 30, Replay(1))
    assert 2 not in meetings.a.tolist() + meetings.b.tolist()
    nobody = from_edges(2, [])
    assert len(Pairs(law, activations).meetings(nobody, 30, Replay(1)).a) == 0


def test_wakes_are_uniform_over_peers():
    meetings = Wakes(activations=20_000).meetings(star(5), 0, Replay(7))
    assert np.array_equal(meetings.a, meetings.b)
    assert chisquare(np.bincount(meetings.a, minlength=5)).pvalue > ALARM


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_the_walk_follows_the_weights(graph):
    visits = Walk(first=1).path(graph, 9000, Replay(8))
    assert visits[0] == 1
    dense = graph.weights.toarray()
    moves = np.zeros_like(dense)
    np.add.at(moves, (visits[:-1], visits[1:]), 1)
    assert not moves[dense == 0].any()
    for v in range(graph.n):
        used = dense[v] > 0
        assert chisquare(moves[v, used], moves[v].sum() * dense[v, used]).pvalue > ALARM / graph.n


def test_long_walks_take_the_compiled_path_to_the_same_places():
    graph, dice = grid(2, 3), Replay(9)
    long, short = Walk().path(graph, 10_050, dice), Walk().path(graph, 9_000, dice)
    assert len(long) == 10_050
    assert np.array_equal(long[:9_000], short)


def test_each_holder_finds_the_next_from_its_own_row():
    graph, dice = grid(3, 3), Replay(10)
    visits = Walk(first=4).path(graph, 300, dice).tolist()
    assert [Walk().next(graph, at, hop, dice) for hop, at in enumerate(visits[:-1])] == visits[1:]


def test_walk_meetings_start_by_entering_at_the_first_peer():
    meetings = Walk(first=2).meetings(ring(5), 4, Replay(11))
    assert (int(meetings.a[0]), int(meetings.b[0])) == (2, 2)
    assert np.array_equal(meetings.a[1:], meetings.b[:-1])
    assert len(Walk().meetings(ring(5), 0, Replay(11)).a) == 0
    assert len(Walk().path(ring(5), 1, Replay(11))) == 1


def test_the_visits_of_a_doubly_stochastic_walk_are_even():
    # Walks of 40 hops on ring(5) from peer 0 (mixing time 3 at 1/4): the last place is uniform to
    # 1e-4.
    last = [Walk().path(ring(5), 40, Replay(seed))[-1] for seed in range(400)]
    assert binomtest(int(np.sum(np.array(last) == 0)), 400, 0.2).pvalue > ALARM


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("rounds", Rounds()),
        ({"name": "pairs", "law": "edges"}, Pairs("edges")),
        ({"name": "walk", "first": 3}, Walk(3)),
        ({"name": "wakes", "activations": 5}, Wakes(5)),
    ],
)
def test_schedules_are_read_back_from_manifests(text, schedule):
    assert Schedule.from_description(text) == schedule


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Pairs("sometimes"), "unknown law of meetings 'sometimes'"),
        (lambda: Walk(first=9).path(ring(5), 3, Replay(0)), "starts at peer 9"),
        (lambda: Schedule.from_description("dance"), "no schedule 'dance'"),
        (lambda: Schedule.from_description({"name": "walk", "speed": 2}), "no parameter 'speed'"),
    ],
)
def test_impossible_schedules(make, word):
    with pytest.raises(ConfigError, match=word):
        make()


@pytest.mark.parametrize("order", ["random", "ring"])
def test_a_drawn_first_holder_is_uniform(order):
    """2000 seeds on six peers of unequal degree; a false alarm has a chance of 1e-6. A first holder
    that follows the degrees (1/10 and 5/10 instead of 1/6) would be seen but for less than 1e-6."""
    graph, walk = star(6), Walk(first="uniform", order=order)
    first = [walk.path(graph, 3, Replay(seed))[0] for seed in range(2000)]
    assert chisquare(np.bincount(first, minlength=6)).pvalue > ALARM


def test_the_first_holder_is_the_same_however_the_walk_is_drawn():
    walk, dice = Walk(first="uniform"), Replay(11)
    for graph in (complete(7), ring(7), erdos_renyi(7, 0.7, seed=1)):
        first = walk.start(graph, dice)
        assert walk.path(graph, 5, dice)[0] == walk.path(graph, 20_000, dice)[0] == first
        assert walk.meetings(graph, 5, dice).a[0] == first
    assert (
        len({Walk(first="uniform", token=token).start(complete(50), dice) for token in range(9)})
        > 1
    )
    assert Walk(first=3).start(ring(5), dice) == 3


def test_a_drawn_first_holder_survives_its_description():
    algorithm = WalkSum(schedule=Walk(first="uniform"))
    assert algorithm_from(algorithm.describe()) == algorithm
    with pytest.raises(ConfigError, match="first = 'uniform', found 'anybody'"):
        Walk(first="anybody")
    with pytest.raises(ConfigError, match="starts at peer 9"):
        Walk(first=9).path(ring(5), 3, Replay(0))
