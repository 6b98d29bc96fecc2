"""A new schedule is one new file: nothing in the package names it, and every engine runs it."""

import sys
from dataclasses import dataclass
from textwrap import dedent
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import bruit as br
import bruit.algorithms.schedules as folder
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.schedules.schedule import Schedule, schedules
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array
from bruit.graphs import graph as named
from bruit.peers.engine import Network
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.runs.engines.engine import Job
from bruit.runs.engines.replay import compare
from bruit.show.live.timetable import Timetable
from bruit.tasks import Mean

NEW_FILE = dedent('''
    """Broadcast: at every step one peer, drawn uniformly, speaks to all neighbors, who absorb."""

    from dataclasses import dataclass

    import numpy as np

    from bruit.algorithms.doorway import absorbed, spoken, stored
    from bruit.algorithms.messages import Inbox, Links, take
    from bruit.algorithms.schedules.draws import uniform_peer
    from bruit.algorithms.schedules.machine import Envelope, Met, Send
    from bruit.algorithms.schedules.peer import ONE, PeerMachine
    from bruit.algorithms.schedules.schedule import Schedule
    from bruit.algorithms.schedules.stage import rows_of
    from bruit.trace import Meetings


    @dataclass(frozen=True)
    class Broadcast(Schedule):
        unit, events, timed = "broadcasts", "broadcasts", True

        def meetings(self, graph, steps, dice, before=0, holder=None):
            draws = dice.uniform("broadcast", np.arange(before, before + steps), 0)[:, 0]
            who = uniform_peer(graph.n, draws)
            return Meetings(np.arange(steps, dtype=np.float64), who, who)

        def play(self, stage):
            algorithm, count = stage.algorithm, np.zeros(stage.n, np.int64)
            links = Links.of_graph(stage.one_graph)
            state = stage.begin(stage.tiled(links))
            for event in stage.one_by_one():
                speaker = stage.meetings.a[event : event + 1]
                near = stage.one_graph.neighbors(int(speaker[0]))
                rows, speakers = stage.rows(near, stage.n), np.repeat(speaker, len(near))
                met = stage.met(near, speakers)
                said = take(state, stage.rows(speakers, stage.n))
                before = take(state, rows)
                own = spoken(algorithm, before, met.edges).rows
                inbox = Inbox(met, spoken(algorithm, said, met.edges).rows, False, own)
                count[near] += 1
                stage.sent(len(near), own)
                stage.told(np.repeat(event, len(near)), near, speakers, inbox)
                edges, never = stage.tiled(rows_of(links, near)).edges, np.zeros(len(near), bool)
                home = stage.home(near, count[near], count[near], never, edges)
                state = stored(state, rows, absorbed(algorithm, before, inbox, home))
                stage.tell(event + 1, stage.steps, state)
            stage.trace.meetings = stage.meetings
            return state

        def machine(self, seat):
            return BroadcastPeer(seat)

        def listeners(self, graph, a, b):
            return graph.neighbors(a)


    class BroadcastPeer(PeerMachine):
        kinds = ("post",)

        def __init__(self, seat):
            super().__init__(seat)
            self._heard = {}

        def begin(self, now):
            self._start(False)
            return self._next_call()

        def _ring(self, now, alarm, number):
            self._calls += 1
            word = Envelope("post", self._calls, take(self._say(self._links).rows, ONE))
            sent = [Send(int(peer), word) for peer in self._links.senders]
            return [*self._next_call(), Met(self.seat.me, self._calls), *sent]

        def _handle(self, now, sender, envelope):
            self._check_neighbor(sender)
            if envelope.number <= self._heard.get(sender, 0):
                return []
            self._heard[sender] = envelope.number
            links = Links.of_meetings(self.ids, np.array([sender]))
            inbox = Inbox(links, envelope.row, False, self._mine(sender))
            self.count += 1
            home = self._home(self.count, False)
            self.state = absorbed(self.seat.algorithm, self.state, inbox, home)
            return []
    ''')


class Held(NamedTuple):
    value: Array


@dataclass(frozen=True)
class HalfOfWhatIHear(Algorithm[Held]):
    """Everybody who hears somebody keeps the mean of the two values."""

    schedule: Schedule = br.Rounds()

    def start(self, home: Any) -> Held:
        return Held(home.value())

    def emit(self, state: Held, edges: Any) -> Any:
        return edges.broadcast(state.value)

    def absorb(self, state: Held, inbox: Any, home: Any) -> Held:
        return Held(inbox.mix())

    def estimate(self, state: Held) -> Array:
        return state.value


GRAPH, STEPS = "ws:9,k=4,p=0.3", 40


@pytest.fixture
def algorithm(tmp_path, monkeypatch):
    (tmp_path / "broadcast.py").write_text(NEW_FILE)
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(tmp_path)])
    yield HalfOfWhatIHear(Schedule.from_description("broadcast"))
    sys.modules.pop(f"{folder.__name__}.broadcast")


def run(algorithm, engine, **options):
    task = Mean(np.random.default_rng(1).normal(size=(9, 2)))
    noise = br.Gaussian(clip=1.0, sigma=0.5)
    return br.run(
        algorithm, GRAPH, task, privacy=noise, steps=STEPS, seed=4, engine=engine, **options
    )


def test_a_new_file_is_enrolled_by_being_there(algorithm):
    assert list(schedules()) == ["ballots", "broadcast", "pairs", "rounds", "wakes", "walk"]
    assert algorithm.describe()["schedule"] == {"name": "broadcast"}


def test_both_engines_run_it_and_agree(algorithm):
    bulk, events = (run(algorithm, engine, watch=[3]) for engine in (br.Bulk(), br.Events()))
    compare(bulk, events)
    assert np.array_equal(bulk.trace.meetings.a, events.trace.meetings.a)
    assert bulk.trace.messages == events.trace.messages > STEPS
    assert [heard.sender for heard in bulk.trace.received] == [
        heard.sender for heard in events.trace.received
    ]
    assert run(algorithm, br.Events(latency=0.3, loss=0.2, churn=0.1)).trace.retransmissions > 0


@pytest.mark.slow
def test_real_peers_run_it(algorithm):
    """How late words arrive is up to the machine, so only who spoke, and to how many, is fixed."""
    bulk, network = run(algorithm, br.Bulk()), run(algorithm, Network(pace=0.02))
    assert sorted(network.trace.meetings.a) == sorted(bulk.trace.meetings.a)
    assert network.trace.messages == bulk.trace.messages
    assert np.isfinite(network.estimates).all()


def test_what_engines_offer_holds_for_it_too(algorithm):
    """Replays, stopping, refusals, and the live page's timetable."""
    whole = run(algorithm, br.Bulk())
    task = Mean(np.random.default_rng(1).normal(size=(9, 2)))
    br.replay(whole, task)

    def stop(done, total, scores):
        if done == 7:
            raise br.Stop

    part = run(algorithm, br.Bulk(), progress=stop)
    assert part.stopped_words() == f"interrupted after 7 of {STEPS} broadcasts"
    assert np.array_equal(part.trace.meetings.a, whole.trace.meetings.a[:7])
    with pytest.raises(br.ConfigError, match="broadcast need one fixed graph"):
        br.run(algorithm, "butterfly:8", Mean(np.zeros((8, 1))), steps=3)
    with pytest.raises(br.ConfigError, match="has no fused path"):
        run(algorithm, br.Bulk(fused=True), evaluate_every=0)
    built = SimpleNamespace(
        algorithm=algorithm, graph=named(GRAPH), steps=STEPS, file=SimpleNamespace(seed=4)
    )
    first = int(whole.trace.meetings.a[0])
    near = named(GRAPH).neighbors(first).tolist()
    assert Timetable(built, 0).who_spoke(0, 1) == [[first, other] for other in near]


def test_copies_of_it_are_one_batch(algorithm):
    values, noise = np.random.default_rng(1).normal(size=(9, 2)), br.Gaussian(clip=1.0, sigma=0.5)

    def states(copies):
        door = TaskDoor(
            task=Mean(np.tile(values, (copies, 1))),
            mechanism=noise,
            dice=Replay(4),
            ledger=Ledger(peers=9 * copies),
        )
        job = Job(
            algorithm=algorithm,
            graph=named(GRAPH),
            door=door,
            dice=Replay(4),
            steps=STEPS,
            ledger=Ledger(peers=9),
        )
        return br.Bulk(copies=copies).execute(job).state.value

    assert np.allclose(states(3)[:9], states(1), rtol=0, atol=1e-12)
    assert not np.allclose(states(3)[9:18], states(1))
