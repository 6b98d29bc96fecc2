"""What linear gossip sends, against exact fractions: grids, dithers, roundings, sums, ranges
(fp:FP-1, FP-2).

`recorded` keeps the states a bulk run goes through; weights are the graph's own fractions, the
account's weights.
"""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import bruit as br
from bruit.adversary.attacks import own_dithers, starting_values
from bruit.adversary.attacks.dithers import grid_of
from bruit.algorithms.door import COARSEST
from bruit.algorithms.gossip.exchange import DITHER, Arithmetic, exchange_of
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Links
from bruit.algorithms.task_door import TaskDoor
from bruit.graphs import butterfly, complete, erdos_renyi, path, ring, star
from bruit.privacy.events import GaussianEvent, Mask
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.randomness.discrete_normal import discrete_normals
from bruit.tasks import Logistic, Mean, Records

NOISE = br.Gaussian(clip=1.5, sigma=0.7)
TAU = NOISE.sigma * DITHER
GRAPHS = [path(4), star(5), ring(6), erdos_renyi(7, c=1.5, seed=1), complete(5)]
WIDTH = 2


def values(n):
    return Mean(np.random.default_rng(n).uniform(-1, 1, (n, WIDTH)))


def recorded(monkeypatch, algorithm, graph, steps=4, engine=None, seed=2):
    """A run in bulk, everybody watched, along the trace of another engine if there is one; and its
    states in order."""
    task, states, kind = values(graph.n), [], type(algorithm)
    plain = kind.emit
    options = {
        "privacy": NOISE,
        "steps": steps,
        "seed": seed,
        "watch": range(graph.n),
        "evaluate_every": 0,
    }
    given = br.run(algorithm, graph, task, engine=engine, **options).trace if engine else None

    def emit(self, state, edges):
        states.append(state)
        return plain(self, state, edges)

    monkeypatch.setattr(kind, "emit", emit)
    run = br.run(algorithm, graph, task, given=given, **options)
    monkeypatch.setattr(kind, "emit", plain)
    return run, task, [*states, run.state]


def cells(rows, grid):
    """Rows in whole cells of the grid, exactly; refused if some are not."""
    whole = np.asarray(rows) / grid
    assert np.array_equal(whole, np.rint(whole)), "not on the grid"
    assert not np.any((np.asarray(rows) == 0) & np.signbit(rows)), "there is one zero"
    return [[Fraction(int(x)) for x in row] for row in whole]


def mixed(graph, rows, own=None):
    """sum_j W_ij rows_j with the graph's fractions, exactly; `own`: what a peer takes for
    itself."""
    own = rows if own is None else own
    return [
        [
            sum(
                graph.fraction(i, j) * (own if j == i else rows)[j][k]
                for j in range(graph.n)
                if graph.fraction(i, j)
            )
            for k in range(WIDTH)
        ]
        for i in range(graph.n)
    ]


def farthest(one, other):
    return max(
        abs(x - y) for a, b in zip(one, other, strict=True) for x, y in zip(a, b, strict=True)
    )


def recorded_slack(run, grid, deviation):
    """How far messages may be from the real protocol's, in cells, by the least ledger line: R
    solved for it."""
    amounts = [event.rounding for event in run.ledger.events if isinstance(event, Mask)]
    return math.sqrt(min(amounts) / WIDTH) * deviation / grid - 0.5


def allowed(run, grid, gamma=1.0, more=0.0):
    """rho in cells, as the form of the messages states it; the ledger's lines say no less."""
    facts = run.algorithm.prepare(run.graph, run.steps)
    facts = getattr(facts, "exchange", facts)
    size = max(1.0, 2 * gamma - 1)
    times = getattr(run.algorithm, "rate", 1.0)
    bound = (
        (3 * facts.degree + 6)
        * 2.0**-53
        * size
        * NOISE.reach(times, facts.data, facts.noise)
        / grid
    )
    assert recorded_slack(run, grid, times * TAU) >= (0.5 + bound / size + 0.5 + more) * (1 - 1e-9)
    return Fraction(0.5 + bound)


CHURN = br.Events(churn=0.3)
ENGINES = pytest.mark.parametrize("engine", [None, CHURN], ids=["complete", "churn"])


@ENGINES
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_averaging(monkeypatch, graph, engine):
    run, task, states = recorded(monkeypatch, br.Averaging(), graph, engine=engine)
    grid = grid_of(run).spacing
    assert bool(len(run.trace.faults.round)) == (engine is not None)
    assert np.array_equal(states[0].value, starting_values(run, task))
    rho = allowed(run, grid)
    for t, (before, after) in enumerate(pairwise(states)):
        expected = mixed(run.facts().at(t), cells(before.message, grid))
        assert farthest(cells(after.value, grid), expected) <= rho
    check_dithers(run, task, states, grid)


def check_dithers(run, task, states, grid, times=1.0):
    """One dither for every state, with its line; fresh; and all neighbors hear the same message."""
    drawn = own_dithers(run, task, range(run.n))
    assert set(drawn) == {(t, u) for t in range(run.steps + 1) for u in range(run.n)}
    for t, state in enumerate(states):
        said = getattr(state, "value", None)
        if said is not None:
            assert np.array_equal(state.message - said, [drawn[t, u] for u in range(run.n)])
    rows = np.concatenate([row[None] for row in drawn.values()])
    cells(rows, grid)
    assert (
        len(np.unique(rows)) == rows.size
    )  # a hundred numbers over some 2^30 cells: two are equal with chance 1e-6
    assert (
        0.4 < np.sqrt(np.mean(rows**2)) / (times * TAU) < 1.7
    )  # of 40 numbers or more: outside with chance 1e-8
    masks = [k for k, event in enumerate(run.ledger.events) if isinstance(event, Mask)]
    assert all(run.ledger.events[k].sigma == pytest.approx(TAU) for k in masks)
    here = np.isin(run.ledger.column("event"), masks)
    lines = list(
        zip(
            run.ledger.column("step")[here].tolist(),
            run.ledger.column("peer")[here].tolist(),
            strict=True,
        )
    )
    assert sorted(lines) == sorted(drawn)
    heard = {}
    for message in run.trace.received:
        first = heard.setdefault((message.clock, message.sender), message.row)
        assert np.array_equal(first, message.row)
        assert np.array_equal(message.row[0], states[message.clock].message[message.sender])


@pytest.mark.parametrize("graph", GRAPHS[:4], ids=lambda graph: graph.name)
def test_chebyshev(monkeypatch, graph):
    run, task, states = recorded(monkeypatch, br.Chebyshev(), graph)
    grid, exact = grid_of(run).spacing, Fraction(run.facts().public.gamma)
    said = [cells(state.message, grid) for state in states]
    for t, after in enumerate(states[1:]):
        gamma = exact if t else Fraction(1)
        expected = [
            [gamma * x + (1 - gamma) * y for x, y in zip(now, old, strict=True)]
            for now, old in zip(mixed(graph, said[t]), said[max(0, t - 1)], strict=True)
        ]
        assert farthest(cells(after.value, grid), expected) <= allowed(run, grid, float(gamma))
    check_dithers(run, task, states, grid)


@pytest.mark.parametrize(("mixing", "gamma"), [(1, 1.0), (2, 1.0), (3, 1.3)])
@ENGINES
def test_gossip_sgd(monkeypatch, mixing, gamma, engine):
    graph = erdos_renyi(7, c=1.5, seed=1)
    algorithm = br.GossipSGD(rate=0.3, mixing=mixing, gamma=gamma)
    run, task, states = recorded(monkeypatch, algorithm, graph, steps=6, engine=engine)
    grid = grid_of(run).spacing
    said = [cells(state.message, grid) for state in states]
    for t, after in enumerate(states[1:]):
        factor, heard = (
            Fraction(gamma) if t % mixing else Fraction(1),
            mixed(run.facts().at(t), said[t]),
        )
        expected = [
            [factor * x + (1 - factor) * y for x, y in zip(now, old, strict=True)]
            for now, old in zip(heard, said[max(0, t - 1)], strict=True)
        ]
        assert farthest(cells(after.model, grid), expected) <= allowed(
            run, grid, float(factor), 0.5
        )
    check_dithers(run, task, states, grid, 0.3)
    data = run.facts().data_lines()
    assert data.sum() == run.n * (6 // mixing)
    assert all(
        event.rounding < 1e-20 for event in run.ledger.events if isinstance(event, GaussianEvent)
    )


def test_pair_averaging():
    """A meeting's messages are those of the two peers; the next ones are their mean, within rho,
    and new dithers."""
    graph, task = ring(6), values(6)
    run = br.run(
        br.PairAveraging(),
        graph,
        task,
        privacy=NOISE,
        steps=6,
        seed=2,
        watch=range(6),
        evaluate_every=0,
    )
    grid, drawn = grid_of(run).spacing, own_dithers(run, task, range(6))
    state, step = starting_values(run, task), [0] * 6
    said = {(message.clock, message.sender): message.row for message in run.trace.received}
    assert len(run.trace.meetings.a) > 20
    for number, (a, b) in enumerate(
        zip(run.trace.meetings.a.tolist(), run.trace.meetings.b.tolist(), strict=True)
    ):
        messages = {}
        for u in (a, b):
            assert np.array_equal(said[number, u][0], state[u] + drawn[step[u], u])
            messages[u] = cells(said[number, u], grid)[0]
            step[u] += 1
        exact = [(x + y) / 2 for x, y in zip(messages[a], messages[b], strict=True)]
        state[[a, b]] = next_state = np.rint((said[number, a] + said[number, b]) / 2 / grid) * grid
        assert farthest(cells(next_state, grid), [exact]) <= allowed(run, grid)
    assert np.array_equal(run.estimates, state)
    assert sorted(drawn) == sorted((t, u) for u in range(6) for t in range(step[u] + 1))
    assert sum(isinstance(run.ledger.events[k], Mask) for k in run.ledger.column("event")) == len(
        drawn
    )


@ENGINES
def test_renoised(monkeypatch, engine):
    """The own state, not the own message, enters the mean, and each copy has a noise of its own."""
    graph = erdos_renyi(7, c=1.5, seed=1)
    run, _, states = recorded(monkeypatch, br.Renoised(tau=0.2), graph, engine=engine)
    facts, grid, spoken = run.facts(), grid_of(run).spacing, 0
    for t, (before, after) in enumerate(pairwise(states)):
        now = facts.at(t)
        copies = {}
        start = before.spoken.start
        for u in range(7):
            for place in range(start[u], start[u + 1]):
                copies[u, int(before.spoken.peers[place])] = cells(
                    before.spoken.rows[place : place + 1], grid
                )[0]
        assert len({tuple(row) for row in copies.values()}) == len(copies)
        spoken += len({u for u, _ in copies})
        own = cells(before.value, grid)
        for v in range(7):
            expected = [
                now.fraction(v, v) * own[v][k]
                + sum(now.fraction(v, w) * copies[w, v][k] for w in now.neighbors(v).tolist())
                for k in range(WIDTH)
            ]
            assert farthest(cells(after.value[v : v + 1], grid), [expected]) <= Fraction(0.51)
    masks = [k for k, event in enumerate(run.ledger.events) if isinstance(event, Mask)]
    assert np.isin(run.ledger.column("event"), masks).sum() == spoken
    theorem = run.accountant().theorem()[0]
    assert theorem is not None
    longer = (run.steps / facts.public.memory) ** 2 if engine else 1.0
    assert theorem.rounding(facts) == pytest.approx(longer * facts.all_rounding())
    assert longer > 1 or engine is None


@pytest.mark.parametrize("radices", [(2, 2, 2), (3, 3), (2, 3), (3, 2)])
@pytest.mark.parametrize(
    "algorithm", [br.Averaging(), br.GossipSGD(rate=0.3)], ids=lambda algorithm: algorithm.name()
)
def test_sums_of_butterflies(monkeypatch, radices, algorithm):
    """Messages are whole sums of cells, to the bit, and after all digits everybody has the same
    mean: float means were off in 37 of 80 messages of butterfly(9), by up to 64 units of the last
    place."""
    n, digits = math.prod(radices), len(radices)
    if isinstance(algorithm, br.GossipSGD):
        algorithm = replace(algorithm, mixing=digits)
    run, _, states = recorded(
        monkeypatch, algorithm, butterfly(n, radices=radices), steps=2 * digits
    )
    grid = grid_of(run).spacing
    assert not any(isinstance(event, Mask) for event in run.ledger.events)
    sums = cells(states[0].message, grid)
    for t in range(2 * digits):
        if t % digits == 0:
            sums = cells(states[t].message, grid)
        assert cells(states[t].message, grid) == sums
        near = run.graph.at(t)
        sums = [
            [sum(sums[j][k] for j in (i, *near.neighbors(i).tolist())) for k in range(WIDTH)]
            for i in range(n)
        ]
        if (t + 1) % digits == 0:
            known = getattr(states[t + 1], "value", None)
            known = states[t + 1].model if known is None else known
            assert len(np.unique(known, axis=0)) == 1
            assert farthest(cells(known, grid), [[x / n for x in row] for row in sums]) <= Fraction(
                0.51
            )


def test_there_is_one_zero():
    """Rounded numbers, rounded data, noise and its opposite: none of them is -0.0 when it
    leaves."""
    door = TaskDoor(task=values(5), mechanism=NOISE, dice=Replay(1), ledger=Ledger(peers=5))
    zero, links = np.zeros(5, np.int64), Links.of_graph(ring(5))
    home = Home(door, np.arange(5), zero, zero, zero > 0, links.edges, exchange_of(ring(5), 3))
    rows = home.snap(np.array([[-0.4, 0.4, -0.0]]), 1.0)
    assert not np.signbit(rows).any()
    assert not np.signbit(NOISE.bare_on(1.0, 1.0, np.array([[-0.4, 0.3]]), np.array([0]))).any()
    noise = discrete_normals(
        dice=Replay(2),
        purpose="noise",
        lanes=np.arange(3000),
        steps=0,
        use=0,
        count=1,
        s=COARSEST,
        run=0,
        grid=1.0,
    )
    assert np.sum(noise == 0) > 20
    assert not np.signbit(noise[noise == 0]).any()
    masked = home.zeros() + home.pair_noise(COARSEST * 2.0**-30, WIDTH, 2.0**-30).sums()
    assert not np.signbit(masked[masked == 0]).any()
    arithmetic = Arithmetic(home.public, home)
    assert arithmetic.grid <= NOISE.sigma * 2.0**-30


def far_away(size, n=6, d=3):
    """A run whose models are of that size, to go on from."""
    return br.run(
        br.Averaging(), complete(n), Mean(np.full((n, d), size)), steps=1, evaluate_every=0
    )


def logistic(n=6, d=3):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2 * n, d))
    return Logistic(
        Records.of(
            rows, np.where(rng.random(2 * n) < 0.5, 1.0, -1.0), np.repeat(np.arange(n), 2), "unit"
        )
    )


@pytest.mark.parametrize(
    ("algorithm", "engine"),
    [
        (br.GossipSGD(), br.Bulk()),
        (br.GossipSGD(), br.Events()),
        (br.WalkSGD(), br.Bulk()),
        (br.WalkSGD(), br.Bulk(fused=True)),
        (br.WalkSGD(burn_in=2), br.Bulk()),
    ],
    ids=repr,
)
def test_models_out_of_range_are_refused(algorithm, engine):
    options = {"steps": 6, "evaluate_every": 0, "engine": engine, "carry": "model"}
    with pytest.raises(
        br.ConfigError,
        match=r"begins with a number of size 1e\+06, .* proven private up to .*'ideal'",
    ):
        br.run(algorithm, complete(6), logistic(), privacy=NOISE, after=far_away(1e6), **options)
    ideal = replace(NOISE, arithmetic="ideal")
    br.run(algorithm, complete(6), logistic(), privacy=ideal, after=far_away(1e6), **options)
    br.run(algorithm, complete(6), logistic(), privacy=NOISE, after=far_away(3.0), **options)


def test_states_out_of_range_are_refused():
    """Noise a million times smaller after a phase: its grid cannot hold the messages to go on
    from."""
    task, small = logistic(), replace(NOISE, sigma=NOISE.sigma * 1e-6, clip=1e-6)
    first = br.run(br.GossipSGD(rate=1.0), ring(6), task, privacy=NOISE, steps=3, evaluate_every=0)
    with pytest.raises(br.ConfigError, match="begins with a number of size"):
        br.chain(first, task, steps=3, privacy=small, evaluate_every=0)
    walked = br.run(br.WalkSGD(rate=1.0), ring(6), task, privacy=NOISE, steps=9, evaluate_every=0)
    with pytest.raises(br.ConfigError, match="begins with a number of size"):
        br.chain(walked, task, steps=9, privacy=small, evaluate_every=0)


def test_who_goes_on_pays_for_larger_numbers():
    """Float sums of larger numbers round more: the lines of a run that goes on say so."""
    cold, warm = (
        br.run(
            br.GossipSGD(),
            complete(6),
            logistic(),
            privacy=NOISE,
            steps=3,
            after=far_away(3.0),
            evaluate_every=0,
            carry=carry,
        )
        for carry in ("nothing", "model")
    )
    amounts = [
        [event.rounding for event in run.ledger.events if isinstance(event, Mask)]
        for run in (cold, warm)
    ]
    assert amounts[0][0] < amounts[1][0] < 100 * amounts[0][0]
