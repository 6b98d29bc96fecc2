"""How many turns a peer has: laws against enumeration and simulation, and the least number that is
enough."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, poisson

from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.algorithms.schedules.rounds.schedule import Rounds
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.turns import SURE, Enough, Turns, enough, meeting_rates
from bruit.errors import ConfigError
from bruit.graphs import graph
from bruit.randomness import Replay


def contributions(path, peer, turns):
    """How often a peer contributes along a path, by the rule itself."""
    count, last = 0, -math.inf
    for hop in range(turns.begin, len(path) if turns.end is None else turns.end):
        if path[hop] == peer and hop - last >= turns.rest:
            count, last = count + 1, hop
    return count


def excesses(name, walk, steps, turns):
    """sum over peers of P(N_u > K) for each K, by going through all paths."""
    chosen = graph(name)
    weights = chosen.weights.toarray()
    start = (
        np.full(chosen.n, 1 / chosen.n) if walk.first == "uniform" else np.eye(chosen.n)[walk.first]
    )
    total = np.zeros(steps + 1)
    for path in itertools.product(range(chosen.n), repeat=steps):
        chance = start[path[0]] * math.prod(weights[a, b] for a, b in itertools.pairwise(path))
        for peer in range(chosen.n) if chance else ():
            total[: contributions(path, peer, turns)] += chance
    return total


@pytest.mark.parametrize(
    ("name", "walk"),
    [
        ("path:3", Walk()),
        ("path:3", Walk(first=1)),
        ("star:4", Walk("uniform")),
        ("complete:3", Walk()),
        ("complete:3", Walk("uniform")),
    ],
)
@pytest.mark.parametrize(
    "turns", [Turns(), Turns(rest=2), Turns(begin=2, end=6), Turns(begin=1, rest=3)]
)
def test_the_law_of_visits_is_that_of_all_paths(name, walk, turns):
    steps = 7
    exact = excesses(name, walk, steps, turns)
    for rare in (0.9, 0.5, 0.1, 0.01, 1e-4):
        wanted = int(np.argmax(exact <= rare * (1 + 1e-12)))
        assert enough(walk, graph(name), steps, turns, 1 - rare).turns == wanted


def test_walks_need_more_than_the_planned_number_as_rarely_as_is_said():
    """500 walks on a ring: their busiest peer has more than K turns with probability 0.001 at most.
    9 or more of them happen by chance with probability below 1e-7; above the number of a usual walk
    a good part of them is."""
    ring, steps = graph("ring:4"), 200
    planned = enough(Walk(), ring, steps, Turns())
    busiest = np.array(
        [np.bincount(Walk().path(ring, steps, Replay(seed))).max() for seed in range(500)]
    )
    assert binom.sf(8, 500, 1 - SURE) < 1e-7
    assert (busiest > planned.turns).sum() < 9
    assert (busiest > np.median(busiest) + 3).sum() > 80


def test_on_a_ring_every_number_is_fixed():
    for steps, rest, wanted in ((9, 1, 3), (10, 1, 4), (9, 3, 3), (9, 4, 2), (2, 1, 1)):
        found = enough(Walk(order="ring"), graph("ring:3"), steps, Turns(rest=rest))
        paths = [[(first + hop) % 3 for hop in range(steps)] for first in range(3)]
        assert wanted == max(
            contributions(path, peer, Turns(rest=rest)) for path in paths for peer in range(3)
        )
        assert found == Enough(wanted, 1.0)


def test_wakes_and_meetings_are_poisson():
    torus = graph("torus:3x3")
    found = enough(Wakes(), torus, 30, Turns())
    assert 9 * poisson.sf(found.turns, 30) <= 1 - SURE < 9 * poisson.sf(found.turns - 1, 30)
    for law in ("weights", "edges", "clocks"):
        rates = meeting_rates(Pairs(law), torus)
        met = Pairs(law).meetings(torus, 1500, Replay(1))
        counted = np.bincount(np.concatenate((met.a, met.b)), minlength=9) / 1500
        assert np.abs(counted - rates).max() < 6 * np.sqrt(
            rates.max() / 1500
        )  # a false alarm in 1e8
        planned = enough(Pairs(law), torus, 30, Turns()).turns
        assert (
            poisson.sf(planned, 30 * rates).sum()
            <= 1 - SURE
            < poisson.sf(planned - 1, 30 * rates).sum()
        )


def test_meetings_where_everybody_is_a_neighbor():
    whole = graph("complete:6")
    for law in ("weights", "edges", "clocks"):
        met = Pairs(law).meetings(whole, 1500, Replay(1))
        counted = np.bincount(np.concatenate((met.a, met.b)), minlength=6) / 1500
        assert np.abs(counted - meeting_rates(Pairs(law), whole)).max() < 0.25


def test_drawn_participants_are_binomial():
    found = enough(Rounds(), graph("star:8"), 40, Turns(draws=(20, 0.25, 8)))
    assert 8 * binom.sf(found.turns, 20, 0.25) <= 1 - SURE < 8 * binom.sf(found.turns - 1, 20, 0.25)
    assert (
        enough(Rounds(), graph("star:8"), 40, Turns(draws=(2, 0.9, 8))).turns == 2
    )  # never more than there are


def test_a_cap_of_the_algorithm_is_a_cap():
    assert enough(Walk(), graph("ring:4"), 200, Turns(cap=12)) == Enough(12, 1.0)
    assert enough(Walk(), graph("ring:4"), 200, Turns(cap=500)).turns < 100


def test_rounds_tell_nothing_by_themselves():
    assert enough(Rounds(), graph("ring:4"), 10, Turns()) is None


def test_a_walk_whose_law_would_take_too_long_is_refused():
    with pytest.raises(
        ConfigError, match=r"takes too long to compute; say the noise by privacy.sigma"
    ):
        enough(Walk(), graph("torus:40x40"), 10**6, Turns())


@pytest.mark.parametrize(
    ("schedule", "name"),
    [(Wakes(40), "ring:5"), (Pairs("weights", 40), "star:5"), (Pairs("edges", 40), "path:4")],
)
def test_counted_activations_are_binomial(schedule, name):
    """Against how often each peer is in the timetables of 400 seeds: deviations of six standard
    deviations of a mean have a chance below 1e-7."""
    chosen, found = graph(name), []
    for seed in range(400):
        events = schedule.meetings(chosen, 0, Replay(seed))
        ends = events.a if isinstance(schedule, Wakes) else np.append(events.a, events.b)
        found.append(np.bincount(ends, minlength=chosen.n))
    rates = np.ones(chosen.n) if isinstance(schedule, Wakes) else meeting_rates(schedule, chosen)
    laws = [binom(40, rate / chosen.n) for rate in rates]
    for peer, law in enumerate(laws):
        counts = np.array(found)[:, peer]
        assert abs(counts.mean() - law.mean()) < 6 * law.std() / 20
    told = enough(schedule, chosen, 8, Turns())
    above = [sum(float(law.sf(k)) for law in laws) for k in (told.turns, told.turns - 1)]
    assert above[0] <= 1 - SURE < above[1]
    assert told.law == "the peers' timetable"
