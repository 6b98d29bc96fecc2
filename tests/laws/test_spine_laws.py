"""Laws of runs, accounts and machines, on inputs nobody thought of."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import bruit as br
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.messages import Slots
from bruit.algorithms.schedules.machine import Envelope, Met, Send
from bruit.algorithms.schedules.peer import Seat, peer_machine
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import LocalProtocolError, RemoteProtocolError
from bruit.graphs import from_edges, ring
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.runs.engines.replay import flat
from bruit.runs.run import rehearse
from bruit.tasks import Mean
from bruit.trace import Faults

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def graphs(draw, least: int = 2, most: int = 9):
    """Any connected graph: a random tree and some more edges."""
    n = draw(st.integers(least, most))
    tree = [(draw(st.integers(0, k - 1)), k) for k in range(1, n)]
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(
        lambda pair: pair[0] != pair[1]
    )
    return from_edges(n, tree + draw(st.lists(pairs, max_size=n)))


ALGORITHMS = st.sampled_from(
    [
        br.Averaging(),
        br.Chebyshev(gamma=1.2),
        br.PairAveraging(),
        br.GossipSGD(mixing=2),
        br.Renoised(),
        br.WalkSGD(cap=2),
    ]
)
ENGINES = st.sampled_from(
    [br.Bulk(), br.Events(latency=0.3), br.Events(latency=0.2, loss=0.3, churn=0.2)]
)


@FEW
@given(
    graphs(),
    st.sampled_from([br.Averaging(), br.Chebyshev(gamma=1.2), br.PairAveraging()]),
    ENGINES,
    st.integers(0, 6),
    st.integers(0, 99),
)
def test_averaging_keeps_the_mean(graph, algorithm, engine, steps, seed):
    values = np.random.default_rng(seed).normal(size=(graph.n, 2))
    found = br.run(
        algorithm, graph, Mean(values), steps=steps, seed=seed, engine=engine, evaluate_every=0
    )
    assert np.allclose(found.estimates.mean(axis=0), values.mean(axis=0), atol=1e-12)


@FEW
@given(
    graphs(),
    ALGORITHMS,
    st.integers(0, 6),
    st.floats(0.2, 5),
    st.floats(1.01, 10),
    st.integers(0, 99),
)
def test_more_noise_never_raises_epsilon(graph, algorithm, steps, sigma, factor, seed):
    little, much = (
        rehearse(algorithm, graph, br.Gaussian(clip=0.5, sigma=s), steps, seed)
        for s in (sigma, factor * sigma)
    )
    for of, seen_by in ((None, None), (graph.n - 1, 0)):
        assert much.epsilon(of, seen_by) <= little.epsilon(of, seen_by) + 1e-9


@FEW
@given(graphs(least=3), ALGORITHMS, st.integers(0, 6), st.integers(0, 99))
def test_losses_lie_between_nothing_and_all_releases(graph, algorithm, steps, seed):
    run = rehearse(algorithm, graph, br.Gaussian(clip=0.5, sigma=1.0), steps, seed)
    m, most = run.losses(), run.facts().releases()
    off = ~np.eye(graph.n, dtype=bool)
    assert np.isnan(np.diag(m)).all()
    assert (m[off] >= 0).all()
    assert (m <= most[:, None] + 1e-9)[off].all()
    one, two = run.guarantee(2, 0).loss, run.guarantee(2, [0, 1]).loss
    assert one <= two + 1e-9
    assert run.epsilon(2, 0) <= run.epsilon(2) + 1e-9


@FEW
@given(graphs(), ALGORITHMS, ENGINES, st.integers(1, 5), st.integers(0, 99))
def test_a_view_is_what_the_trace_says_took_place(graph, algorithm, engine, steps, seed):
    """No payload reaches an observer outside of a meeting, hop or round of the trace: else the
    account were too low."""
    values = np.random.default_rng(seed).normal(size=(graph.n, 1))
    run = br.run(
        algorithm, graph, Mean(values), steps=steps, seed=seed, engine=engine, watch=range(graph.n)
    )
    heard = [(message.sender, message.receiver) for message in run.trace.received]
    meetings = list(zip(run.trace.meetings.a.tolist(), run.trace.meetings.b.tolist(), strict=True))
    if isinstance(algorithm.schedule, br.Pairs):
        assert sorted(heard) == sorted(meetings + [(b, a) for a, b in meetings])
    elif isinstance(algorithm.schedule, br.Walk):
        assert sorted(pair for pair in heard if pair[0] != pair[1]) == sorted(
            p for p in meetings if p[0] != p[1]
        )
    else:
        assert len(heard) == 2 * steps * graph.edge_count - 2 * len(run.trace.faults.round)


class Atom(NamedTuple):
    index: np.ndarray
    weight: np.ndarray


class Recent(NamedTuple):
    value: np.ndarray


@dataclass(frozen=True)
class Posting(Algorithm[Recent]):
    """Peers wake, and post a record: the schedule and the messages that no algorithm of the catalog
    has."""

    schedule: br.Wakes = br.Wakes()

    def start(self, home):
        return Recent(home.value())

    def emit(self, state, edges):
        return edges.broadcast(Atom(np.arange(len(state.value)), state.value))

    def absorb(self, state, inbox, home):
        return Recent(inbox.copies(inbox.rows.weight).mean(axis=0, keepdims=True))

    def estimate(self, state):
        return state.value


def seat(
    me: int, algorithm: Algorithm[Any], steps: int = 5, calls: int = 0, arithmetic: str = "grid"
) -> Seat:
    graph, dice, ledger = ring(4), Replay(1), Ledger(peers=4)
    values = np.arange(8.0).reshape(4, 2)
    door = TaskDoor(
        task=Mean(values),
        mechanism=br.Gaussian(clip=20.0, sigma=1.0, arithmetic=arithmetic),
        dice=dice,
        ledger=ledger,
    )
    times, partners = np.arange(calls, dtype=float), np.full(calls, (me + 1) % 4)
    public = algorithm.prepare(graph, steps)
    return Seat(
        me=me,
        algorithm=algorithm,
        graph=graph,
        door=door,
        dice=dice,
        steps=steps,
        public=public,
        faults=Faults.none(),
        calls=times,
        partners=partners,
    )


def frozen(thing: Any) -> Any:
    """Everything a machine remembers, comparable."""
    if isinstance(thing, np.ndarray):
        return thing.dtype.str, thing.shape, thing.tobytes()
    if isinstance(thing, Slots):
        return frozen((thing.start, thing.peers, thing.rows))
    if isinstance(thing, dict):
        return {key: frozen(value) for key, value in thing.items()}
    if isinstance(thing, tuple | list):
        return [frozen(part) for part in thing]
    if isinstance(thing, Envelope):
        return thing.kind, thing.number, frozen(thing.row)
    return repr(thing)


KINDS = st.sampled_from(
    ["round", "offer", "answer", "busy", "reply", "token", "post", "hello", "", "check", None]
)
NUMBERS = st.one_of(st.integers(-2, 7), st.sampled_from([2**70, -(2**70), True, None, 0.5, "1"]))
ROWS = st.sampled_from(
    [
        np.ones((1, 2)),
        np.full((1, 2), -3.0),
        np.zeros((1, 3)),
        np.zeros((2, 2)),
        np.zeros(2),
        np.zeros((0, 2)),
        np.full((1, 2), np.nan),
        np.full((1, 2), np.inf),
        np.ones((1, 2), np.float32),
        np.ones((1, 2), np.int64),
        np.array([["a", "b"]]),
        np.array([[None, 1]], object),
        None,
        "row",
        [[1.0, 2.0]],
        3.0,
        {},
        Atom(np.array([1]), np.ones((1, 2))),
        Atom(np.array([1.5]), np.ones((1, 2))),
        Atom(None, None),
        (1, 2),
    ]
)


class AnyMessages(RuleBasedStateMachine):
    """A peer under any envelopes in any order: only RemoteProtocolError escapes, and then nothing
    has changed."""

    algorithm: Algorithm[Any] = br.Averaging()
    calls = 0

    @initialize()
    def begin(self) -> None:
        self.machine = peer_machine(seat(0, self.algorithm, calls=self.calls))
        self.machine.begin(0.0)

    def memory(self) -> Any:
        kept = {
            key: value for key, value in vars(self.machine).items() if key not in ("seat", "_links")
        }
        return frozen(kept), len(self.machine.seat.door.ledger)

    @rule(sender=st.integers(-1, 5), kind=KINDS, number=NUMBERS, row=ROWS)
    def receive(self, sender: int, kind: Any, number: Any, row: Any) -> None:
        before, refused = self.memory(), False
        try:
            self.machine.receive(1.0, sender, Envelope(kind, number, row))
        except RemoteProtocolError:
            refused = True
        assert not refused or self.memory() == before

    @rule(sender=st.sampled_from([1, 3]), number=st.integers(0, 4), value=st.floats(-9, 9))
    def receive_well_formed(self, sender: int, number: int, value: float) -> None:
        row: Any = np.full((1, 2), value)
        if isinstance(self.algorithm, Posting):
            row = Atom(np.array([1]), row)
        for kind in ("round", "offer", "answer", "reply", "busy", "token", "post"):
            self.receive(sender, kind, number, None if kind in ("offer", "busy") else row)

    @rule()
    def wake(self) -> None:
        if self.machine._calls < len(self.machine.seat.calls):
            self.machine.wake(2.0)
        else:
            with pytest.raises(LocalProtocolError, match="did not ring"):
                self.machine.wake(2.0)

    @invariant()
    def state_is_whole(self) -> None:
        if hasattr(self, "machine"):
            assert np.isfinite(flat(self.machine.state)).all()


class AnyMeetings(AnyMessages):
    algorithm, calls = br.PairAveraging(), 6


class AnyTokens(AnyMessages):
    algorithm = br.WalkSGD()


class AnyPosts(AnyMessages):
    algorithm, calls = Posting(), 6


class AnyCopies(AnyMessages):
    algorithm = br.Renoised()


for case in (AnyMessages, AnyMeetings, AnyTokens, AnyPosts, AnyCopies):
    case.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
TestAnyMessages, TestAnyMeetings, TestAnyTokens, TestAnyPosts, TestAnyCopies = (
    case.TestCase for case in (AnyMessages, AnyMeetings, AnyTokens, AnyPosts, AnyCopies)
)


def test_messages_before_the_beginning_are_the_drivers_mistake():
    with pytest.raises(LocalProtocolError, match="before it began"):
        peer_machine(seat(0, br.Averaging())).receive(0.0, 1, Envelope("round", 0, np.ones((1, 2))))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_meetings_are_whole_whatever_order_messages_arrive_in(data):
    """Messages of four peers, delivered in any order, some twice: the result is that of the
    meetings one by one, to the bit in ideal arithmetic, and on a grid up to the dithers of a few
    meetings (2^-10 each)."""
    arithmetic, close = data.draw(st.sampled_from([("ideal", 1e-12), ("grid", 0.03)]))
    machines = [
        peer_machine(seat(peer, br.PairAveraging(), calls=3, arithmetic=arithmetic))
        for peer in range(4)
    ]
    for machine in machines:
        machine.begin(0.0)
    values = np.concatenate([machine.state.value for machine in machines])
    under_way: list[tuple[int, int, Envelope]] = []
    met: list[tuple[int, int]] = []

    def carry_out(peer: int, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                under_way.append((effect.to, peer, effect.envelope))
            elif isinstance(effect, Met):
                met.append((effect.other, peer))

    while True:
        asleep = [peer for peer in range(4) if machines[peer]._calls < 3]
        choices = [("wake", peer) for peer in asleep] + [
            ("deliver", k) for k in range(len(under_way))
        ]
        if not choices:
            break
        what, which = data.draw(st.sampled_from(choices))
        if what == "wake":
            carry_out(which, machines[which].wake(0.0))
            continue
        to, sender, envelope = under_way.pop(which)
        carry_out(to, machines[to].receive(0.0, sender, envelope))
        if data.draw(st.booleans()) and len(under_way) < 40:
            carry_out(to, machines[to].receive(0.0, sender, envelope))  # it arrives twice
    for a, b in met:
        values[[a, b]] = (values[a] + values[b]) / 2
    assert not any(machine.waiting for machine in machines)
    assert np.allclose(
        np.concatenate([machine.state.value for machine in machines]), values, atol=close, rtol=0
    )
