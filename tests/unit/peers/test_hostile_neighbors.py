"""Neighbors and strangers: what they send costs what was agreed on, and stops nobody else."""

import asyncio
import contextlib
import gc
import heapq
import itertools
import logging
import time
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import grpc
import numpy as np
import pytest

import bruit.algorithms.schedules.rounds.peer as rounds_file
import bruit.peers.host as host_file
import bruit.peers.journal.outbox as outbox_file
import bruit.peers.speech as speech_file
from bruit.algorithms.schedules.machine import Envelope
from bruit.algorithms.schedules.rounds.peer import WINDOW
from bruit.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from bruit.peers.site import running
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.codec import Conversation, Frame, decode, encode
from bruit.peers.wire.line import Line
from bruit.peers.wire.said_once import SaidOnce
from bruit.peers.wire.waiting import Waiting
from tests.unit.peers.small_network import MEAN, found_small
from tests.unit.peers.toy_peer import FACTS, RUN, open_journal

SEED = 4
LONG = MEAN.replace("steps = 6", "steps = 5000").replace('"gossip-sgd"', '"averaging"')


@pytest.fixture
def lonely(tmp_path):
    """A host of a ring of three whose lines lead nowhere, with all it would have needed to
    begin."""
    made = []

    def make(text=LONG, begin=True):
        one = participant(read_site(found_small(tmp_path, text)[0]), SEED)
        made.append(one)
        host = one.host
        host.lines.update(
            {peer: SimpleNamespace(notify=lambda: None, connected=True, level=0) for peer in (1, 2)}
        )
        if begin:
            host.clock.began = time.monotonic()
            with host.journal.step() as step:
                host._feed(step, "begin", 0, 1, b"")
        return host

    yield make
    for one in made:
        one.host.journal.close()


def frame(host, sender, sequence, row=None, number=0, kind="round"):
    made = Frame.of(
        Conversation(host.run_id, host.algorithm, sender), sequence, Envelope(kind, number, row)
    )
    return made, encode(made)


async def offer(host, sender, sequence, row, number, kind="round"):
    """What a line does with a frame; False if it would have to wait for room."""
    _, data = frame(host, sender, sequence, row, number, kind)
    try:
        await asyncio.wait_for(
            host.ears.accept(sender, decode(data, host._voice(sender), host.limits), data), 0.02
        )
    except TimeoutError:
        return False
    return True


ROW = np.full((1, 2), 7.0)


def test_a_call_that_ends_while_it_waits_for_room_loses_nothing(lonely):
    """The message comes again on the next call, and is queued then."""
    host = lonely(begin=False)

    async def flood():
        taken = [await offer(host, 1, k + 1, ROW, k) for k in range(17)]
        assert taken == [True] * 16 + [False]
        host._queue.get_nowait()
        assert await offer(host, 1, 17, ROW, 16)
        assert [item[1].sequence for item in host._queue._queues[1]] == list(range(2, 18))

    asyncio.run(flood())
    assert host.refused == {}


def test_two_lines_of_one_neighbor_queue_a_message_once(lonely):
    host = lonely(begin=False)

    async def race():
        for k in range(16):
            await offer(host, 1, k + 1, ROW, k)
        made, data = frame(host, 1, 17, ROW, 16)
        both = [asyncio.create_task(host.ears.accept(1, made, data)) for _ in range(2)]
        await asyncio.sleep(0)
        for _ in range(2):
            host._queue.get_nowait()
        assert sorted(await asyncio.gather(*both)) == [False, True]

    asyncio.run(race())
    assert host.refused == {"repeated": 1}


def test_neighbors_take_turns_and_a_full_one_stops_nobody_else():
    async def talk():
        waiting = Waiting(each=4)
        for k in range(4):
            waiting.put((1, SimpleNamespace(sequence=k), b""))
        assert waiting.full(1)
        assert not waiting.full(2)
        waiting.put((2, SimpleNamespace(sequence=0), b""))
        waiting.put((3, SimpleNamespace(sequence=0), b""))
        assert [waiting.get_nowait()[0] for _ in range(6)] == [1, 2, 3, 1, 1, 1]
        with pytest.raises(asyncio.QueueEmpty):
            waiting.get_nowait()

    asyncio.run(talk())


def test_what_is_held_lets_others_pass():
    waiting = Waiting(held=lambda sender, frame: sender == 1, each=4)
    waiting.put((1, SimpleNamespace(sequence=1), b""))
    assert waiting.empty()
    waiting.put((2, SimpleNamespace(sequence=1), b""))
    assert waiting.get_nowait()[0] == 2
    assert len(waiting) == 1


def test_frames_are_as_large_as_the_agreed_row(lonely):
    """Known before the start, without a release: nothing is in the ledger."""
    host = lonely(begin=False)
    assert host.limits.bytes < 2 * 8 + 5000
    assert host.row.shape == (0, 2)
    assert host.ledger.calls == 0
    assert host.machine.state is None
    big = Frame.of(
        Conversation(host.run_id, host.algorithm, 1), 1, Envelope("round", 0, np.ones((1, 2000)))
    )
    with pytest.raises(RemoteProtocolError, match="more than the"):
        decode(encode(big), host._voice(1), host.limits)


@pytest.mark.parametrize(
    ("row", "kind", "why"),
    [
        (np.ones((1, 3)), "round", "was due"),
        (None, "round", "were due"),
        (ROW, "token", "which nobody expects"),
    ],
)
@pytest.mark.parametrize("begin", [False, True])
def test_what_has_not_the_agreed_shape_is_refused_before_it_waits(lonely, begin, row, kind, why):
    host = lonely(begin=begin)
    with pytest.raises(RemoteProtocolError, match=why):
        asyncio.run(offer(host, 1, 1, row, 0, kind))
    assert len(host._queue) == 0


def test_rounds_of_the_future_wait_on_their_line(lonely):
    """One neighbor is five thousand rounds ahead: a few of them are taken, the rest stays with
    it."""
    host = lonely()

    async def flood():
        sequence, taken = 0, True
        while taken:
            taken = await offer(host, 1, sequence + 1, ROW, sequence)
            sequence += taken
            host._work(None)
        return sequence

    taken = asyncio.run(flood())
    assert taken == WINDOW + 1 + 16
    assert len(host.machine._heard) == WINDOW + 1
    assert host.machine.count == 0
    assert host.journal.volume < 20_000


def test_a_round_that_was_spoken_of_or_skipped_is_refused_and_ends_the_line(lonely, caplog):
    host = lonely()

    async def talk():
        assert await offer(host, 1, 1, ROW, 0)
        for sequence, number in ((2, 0), (3, 2), (4, 5)):
            assert await offer(host, 1, sequence, ROW, number)
            line = host.ears._lines[1] = asyncio.get_running_loop().create_future()
            host._work(None, commit=True)
            _, why = line.result()
            assert f"spoke of round {number} after round 0" in why

    asyncio.run(talk())
    assert host.refused == {"message": 3}
    assert len([line for line in caplog.records if line.levelno == logging.WARNING]) == 1
    assert list(host.machine._heard) == [0]


def test_a_peer_whose_neighbors_never_come_goes_on_in_small_steps(lonely, monkeypatch):
    """What is missed is remembered up to a bound, and a step holds a few rounds: not all that are
    left."""
    rounds, kept, row = 60, 2**18, 2000 * 8
    monkeypatch.setattr(rounds_file, "OWED", kept)
    monkeypatch.setattr(host_file, "VOLUME", 3 * row)
    host = lonely(
        LONG.replace("dim = 2", "dim = 2000").replace("steps = 5000", f"steps = {rounds}")
    )
    host.settings = replace(host.settings, kept=2**18)
    host.enough, steps, largest = 2**18, 0, 0
    host.machine._alone = host.machine._rung = 10**6
    host.machine._away = {1, 2}
    heapq.heappush(host.clock.alarms, (0.0, 10**6, "more", 0))
    deadline = time.monotonic() + 60
    while not host.done and time.monotonic() < deadline:
        before = host.machine.count
        host._work(None, commit=True)
        steps, largest = steps + 1, max(largest, host.journal.volume)
        assert host.machine.count <= before + 4
        assert host.machine._owed_bytes <= kept
    assert host.machine.count == rounds
    owed = [row.nbytes for _, row in host.machine._owed.values()]
    assert sum(owed) == host.machine._owed_bytes
    assert len(owed) == kept // row
    assert host.absences.missed == 2 * rounds
    assert steps >= rounds / 4
    assert largest < 5 * (
        kept + 4 * row
    )  # snapshots are as large as what is kept, and taken after four times that


def test_much_that_is_kept_for_one_who_is_away_is_told(lonely, monkeypatch, caplog):
    monkeypatch.setattr(speech_file, "HOARD", 500)
    host = lonely(LONG.replace("steps = 5000", "steps = 30"))
    host.machine._alone = host.machine._rung = 10**6
    host.machine._away = {1, 2}
    heapq.heappush(host.clock.alarms, (0.0, 10**6, "more", 0))
    deadline = time.monotonic() + 60
    while not host.done and time.monotonic() < deadline:
        host._work(None, commit=True)
    lines = [
        line.getMessage()
        for line in caplog.records
        if "kept on disk until it comes back" in line.getMessage()
    ]
    assert len([line for line in lines if line.startswith("peer 1 is away")]) == 1
    assert len(lines) == 2


def test_moving_the_outbox_reads_every_step_once(tmp_path, monkeypatch):
    """One step of thousands of messages to somebody who is away, then a snapshot."""
    read = Counter()
    inner = outbox_file.unpack
    monkeypatch.setattr(
        outbox_file, "unpack", lambda content: read.update(["step"]) or inner(content)
    )
    with open_journal(tmp_path / "j.db") as journal:
        for _ in range(3):
            with journal.step() as step:
                for k in range(400):
                    step.send(1, b"head", b"body")
                    step.send(2, b"head", b"body %d" % k)
        journal.acknowledge(2, 500)
        journal.snapshot(b"state")
        assert read["step"] == 3
        assert len(list(journal.outbox(1))) == 1200
        assert [sequence for sequence, _ in journal.outbox(2)] == list(range(501, 1201))
        with journal.step() as step:
            for _ in range(100):
                step.send(1, b"h")
        read.clear()
        assert len(list(journal.outbox(1))) == 1300
        assert read["step"] <= 1
    assert RUN
    assert FACTS


def test_one_status_that_cannot_be_written_is_told_and_the_next_one_is(lonely, monkeypatch, caplog):
    wrote, fails = (
        [],
        iter(
            [ConfigError("cannot write status.json: too many open files"), OSError(24, "no files")]
        ),
    )
    monkeypatch.setattr(running, "EVERY", 0.001)
    monkeypatch.setattr(running, "_signs", lambda of: (len(wrote), next(moved)))
    moved = itertools.count()

    def show(of, notice):
        error = next(fails, None)
        if error is not None:
            raise error
        wrote.append(1)

    monkeypatch.setattr(running, "_show", show)

    async def watch():
        watcher = asyncio.create_task(
            running._watch(SimpleNamespace(host=SimpleNamespace(me=0)), None)
        )
        async with asyncio.timeout(60):
            while len(wrote) < 3:
                await asyncio.sleep(0.001)
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher

    asyncio.run(watch())
    assert caplog.text.count("its status is not up to date") == 1


class Context:
    """As much of a gRPC call as a listener looks at."""

    def __init__(self):
        self.said, self.code, self.why = [], None, ""

    async def write(self, data):
        self.said.append(data)


async def nothing_more(*frames):
    for data in frames:
        yield data


def test_of_trouble_in_this_machine_a_neighbor_hears_nothing_but_that_there_is(lonely):
    host = lonely(begin=False)

    def broken(sender, frame, data):
        raise LocalProtocolError(f"the journal {host.journal.path} cannot be used any more")

    host.ears.accept = broken
    hello = encode(Frame(conversation=host._voice(1), sequence=0, kind="hello"))
    _, why = asyncio.run(host.ears._line(1, nothing_more(hello), Context()))
    assert why == "this peer cannot listen now"


def test_who_says_nothing_new_is_refused(lonely):
    host = lonely(begin=False)
    hello = encode(Frame(conversation=host._voice(1), sequence=0, kind="hello"))
    _, why = asyncio.run(host.ears._line(1, nothing_more(*[hello] * 100), Context()))
    assert "said nothing new" in why


def test_a_second_line_takes_the_place_of_the_first(lonely):
    host = lonely(begin=False)
    hello = encode(Frame(conversation=host._voice(1), sequence=0, kind="hello"))

    async def silent():
        yield hello
        await asyncio.Event().wait()

    async def both():
        first = asyncio.create_task(host.ears._line(1, silent(), Context()))
        for _ in range(3):
            await asyncio.sleep(0)
        second = asyncio.create_task(host.ears._line(1, silent(), Context()))
        _, why = await asyncio.wait_for(first, 10)
        second.cancel()
        return why

    assert "another line of this peer" in asyncio.run(both())


def test_who_leaves_ends_its_lines_without_refusing_anybody(lonely):
    """To the neighbor it is a line that is down: an ordinary end would count as a refusal there."""
    host = lonely(begin=False)
    hello = encode(Frame(conversation=host._voice(1), sequence=0, kind="hello"))

    async def silent():
        yield hello
        await asyncio.Event().wait()

    async def leave():
        line = asyncio.create_task(host.ears._line(1, silent(), Context()))
        while 1 not in host.ears._lines:
            await asyncio.sleep(0)
        host.ears._end_lines()
        return await asyncio.wait_for(line, 10)

    assert asyncio.run(leave()) == (grpc.StatusCode.UNAVAILABLE, "this peer leaves")
    assert host.refused == {}


def test_a_line_whose_two_halves_end_at_once_surprises_nobody(lonely):
    """Reading and writing fail in the same moment, or the line is given up: no task is left, no
    error unretrieved."""
    host, surprises = lonely(begin=False), []

    class Call:
        def __init__(self, fails):
            self.fails, self.said = fails, []

        async def write(self, data):
            self.said.append(data)

        async def read(self):
            if len(self.said) == 1 and not self.fails.is_set():
                self.fails.set()
                return encode(Frame(conversation=host._voice(1), sequence=0, kind="ack"))
            return await asyncio.Event().wait()

        def cancel(self):
            pass

    async def both(give_up):
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: surprises.append(context["message"]))
        line = Line(
            identity=host.identity,
            entry=host.book.entry(1),
            members=host.people,
            journal=host.journal,
            mine=host._voice(0),
            theirs=host._voice(1),
            limits=host.limits,
            scale=host.scale,
        )
        begun = asyncio.Event()
        call = Call(begun)
        if not give_up:

            async def broken(*_):
                raise asyncio.InvalidStateError("RPC already finished.")

            line._listen = line._speak = broken
        talk = asyncio.create_task(
            line._talk(SimpleNamespace(stream_stream=lambda path: lambda timeout: call))
        )
        await asyncio.wait_for(begun.wait(), 60)
        for _ in range(5):
            await asyncio.sleep(0)
        talk.cancel()
        with contextlib.suppress(asyncio.CancelledError, asyncio.InvalidStateError):
            await talk
        assert asyncio.all_tasks() == {asyncio.current_task()}

    for give_up in (False, True):
        asyncio.run(both(give_up))
        gc.collect()
    assert surprises == []


def test_who_is_refused_again_and_again_is_not_listened_to_for_a_while(lonely, caplog):
    host = lonely(begin=False)
    told = [
        asyncio.run(host.ears._line(1, nothing_more(b"garbage"), Context()))[1] for _ in range(4)
    ]
    assert ["no frame" in why for why in told] == [True, True, False, False]
    assert told[-1] == "what this peer sent was refused more than once; call again later"
    assert host.refused["frame"] == 4
    assert len([line for line in caplog.records if line.levelno == logging.WARNING]) == 1


def test_a_trouble_is_told_once_a_minute_with_how_often_it_came(caplog):
    now = [0.0]
    told = SaidOnce(logging.getLogger("bruit.peers"), clock=lambda: now[0])
    for k in range(100):
        now[0] = 1.0 * k
        told.warn((3, "frame"), "refused what peer %d sent", 3)
    told.warn((4, "frame"), "refused what peer %d sent", 4)
    lines = [line.getMessage() for line in caplog.records if line.levelno == logging.WARNING]
    assert lines == [
        "refused what peer 3 sent",
        "refused what peer 3 sent, and 59 more like this before",
        "refused what peer 4 sent",
    ]
