"""Nobody heard, nothing spent: before each release enough neighbors are there, else a peer waits,
and then stops."""

import asyncio
import logging
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bruit.algorithms.schedules.rounds.schedule import Rounds
from bruit.errors import BrokenStateError, ConfigError
from bruit.graphs import graph
from bruit.peers.gathering import Gathering
from bruit.peers.journal.journal import recorded_spend
from bruit.peers.recalling import recall
from bruit.peers.site.running import _run, last_line, status, write_report
from bruit.peers.site.site import _quorum, _wanted, participant, read_site
from bruit.peers.site.verdict import problems
from tests.unit.peers.small_network import MEAN, found_small, live_together
from tests.unit.peers.test_gathering import stop_at

SEED, DEADLINE = 5, 60.0
LONG = MEAN.replace("steps = 6", "steps = 12")


async def until(condition, what):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        await asyncio.sleep(0.01)


def people_of(sites, *chosen):
    return [participant(read_site(sites[peer]), SEED) for peer in chosen]


def left_alone(sites, others_stop_at=2, patience=0.3):
    """Peer 0 among others who stop for good; what it had spent when it noticed, and itself at its
    end."""
    one, *others = people_of(sites, *range(len(sites)))
    for other in others:
        stop_at(other.host, others_stop_at)
    noticed = []
    wait = one.host._wait_for_quorum

    async def watched():
        noticed.append(len(one.host.ledger))
        one.host.settings = replace(one.host.settings, start_timeout=patience)
        await wait()

    one.host._wait_for_quorum = watched

    async def everybody():
        await asyncio.wait_for(
            asyncio.gather(*(_run(each, None) for each in (one, *others))), DEADLINE
        )

    asyncio.run(everybody())
    for each in (one, *others):
        each.host.journal.close()
        write_report(each)
    return noticed, one


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps"), [("gossip-sgd", 12), ("personalized", 30), ("walk-sum", 400)]
)
def test_whom_all_neighbors_have_left_releases_no_more_and_stops_with_code_1(tmp_path, name, steps):
    """Rounds and wakes wait before they read; the holder of a token that nobody takes stops instead
    of waiting for ever, and does not go on visiting itself."""
    text = LONG.replace("steps = 12", f"steps = {steps}").replace('"gossip-sgd"', f'"{name}"')
    sites = found_small(tmp_path, text, timeout=0.3, pace=0.1)
    noticed, one = left_alone(sites)
    assert noticed
    assert len(recorded_spend(one.site.state / "journal.db")) == noticed[-1]
    assert "neighbors must be there before more is released" in one.host.gave_up
    gave_up, *undone = problems(one.host)  # which is exit code 1
    assert gave_up == one.host.gave_up
    now = status(one)
    left = one.host.machine.calls_left
    behind = {"gossip-sgd": [f"ended after {now['step']} of 12 rounds"], "walk-sum": []}
    calls = f"{left} of {len(one.host.machine.seat.calls)} calls of its clock were not made"
    assert undone == behind.get(name, [calls])
    assert write_report(one)["calls_left"] == left
    assert not status(one)["done"]
    assert "nothing more was released, and what was done is kept" in last_line(one)


@pytest.mark.slow
def test_when_they_come_back_it_goes_on_as_if_nothing_had_been(tmp_path, caplog):
    """The clock stands still meanwhile: nobody is missed, and the models are those of an
    undisturbed run."""
    quiet = found_small(tmp_path / "quiet", LONG)
    wanted = [one.host.machine.state.model for one in live_together(quiet, SEED)[0]]
    sites = found_small(tmp_path / "busy", LONG)
    for old, new in zip(quiet, sites, strict=True):
        (new.parent / "records.npz").write_bytes((old.parent / "records.npz").read_bytes())
    one, *others = people_of(sites, 0, 1, 2)
    for other in others:
        stop_at(other.host, 3)

    async def story():
        life = asyncio.create_task(_run(one, None))
        await asyncio.gather(*(_run(other, None) for other in others))
        for other in others:
            other.host.journal.close()
        await until(lambda: one.host.gathering.waiting, "peer 0 waits")
        spent = len(one.host.journal.spent())
        await until(
            lambda: "waiting for peer-1, peer-2 (0 of 2 connected)" in caplog.text,
            "it says for whom",
        )
        assert status(one)["waiting_for"] == ["peer-1", "peer-2"]
        assert len(one.host.journal.spent()) == spent
        back = people_of(sites, 1, 2)
        await asyncio.gather(life, *(_run(other, None) for other in back))
        return back

    with caplog.at_level(logging.WARNING, "bruit.peers"):
        back = asyncio.run(asyncio.wait_for(story(), DEADLINE))
    for each in (one, *back):
        each.host.journal.close()
        assert (status(each)["missed"], problems(each.host)) == (0, [])
    for each, model in zip((one, *back), wanted, strict=True):
        assert np.allclose(each.host.machine.state.model, model, rtol=0, atol=1e-9)
    (again,) = people_of(sites, 0)  # its journal replays: the waiting is no input
    again.host._line = lambda peer: None
    recall(again.host)
    again.host.journal.close()
    assert np.array_equal(again.host.machine.state.model, one.host.machine.state.model)


@pytest.mark.slow
def test_what_was_said_goes_on_being_mixed_without_a_quorum(tmp_path):
    """Averaging reads once: mixing what was heard costs nothing, and needs nobody."""
    text = LONG.replace('"gossip-sgd"', '"averaging"')
    noticed, one = left_alone(found_small(tmp_path, text, timeout=0.2))
    assert (noticed, one.host.gave_up, status(one)["step"]) == ([], "", 12)
    assert "missed peer-1, peer-2" in problems(one.host)[0]


def test_half_of_the_neighbors_is_a_quorum_unless_the_site_says_otherwise(tmp_path):
    file = tmp_path / "site.toml"

    def quorum(lines, name="complete:6"):
        file.write_text("peer = 1\n" + lines)
        site = read_site(file)
        wait_for = _wanted(site, graph(name), 9, Rounds())
        return _quorum(site, graph(name), 9, wait_for, Rounds())

    assert quorum("") == 3
    assert quorum("", "ring:4") == 1
    assert quorum("", "star:5") == 1
    assert quorum('quorum = "all"\n') == 5
    assert quorum("quorum = 2\nwait_for = 0\n") == 2
    assert quorum("wait_for = 1\n") == 1  # never more than is asked for at the beginning
    assert quorum("quorum = 0\n") == 0
    with pytest.raises(ConfigError, match=r"quorum = 9, but peer 1 has 5 neighbors in complete:6"):
        quorum("quorum = 9\n")
    for wrong in ('"most"', "-1", "0.5", "true"):
        with pytest.raises(
            ConfigError, match=r"quorum: .*\"half\", \"all\", or how many neighbors"
        ):
            quorum(f"quorum = {wrong}\n")


def neighbors(*connected):
    lines = {
        peer: SimpleNamespace(connected=there, level=0) for peer, there in enumerate(connected, 1)
    }
    return lines, Gathering(
        lines=lines, names="peer-{}".format, wait_for=None, announce=lambda level: None
    )


def test_waiting_again_ends_with_a_quorum_or_with_patience():
    lines, gathering = neighbors(False, False, True)
    said = asyncio.run(gathering.wait_again(2, 0.1, lambda: False, set()))
    assert said.startswith(
        "stopped in the middle of the run: waited 0.1 s, and 2 of 3 neighbors must be there"
    )
    assert "missing: peer-1, peer-2" in said

    async def meanwhile():
        waiting = asyncio.create_task(gathering.wait_again(2, 30.0, lambda: False, set()))
        await until(lambda: gathering.waiting, "it waits")
        lines[1].connected = True
        return await waiting

    assert asyncio.run(meanwhile()) == ""
    assert not gathering.waiting


def test_who_has_said_goodbye_is_not_waited_for():
    _, gathering = neighbors(False, False, True)
    begun = time.monotonic()
    said = asyncio.run(gathering.wait_again(2, 600.0, lambda: False, {1, 2}))
    assert time.monotonic() < begun + 300
    assert "2 have ended" in said


def test_a_stop_ends_the_waiting():
    _, gathering = neighbors(False)
    assert asyncio.run(gathering.wait_again(1, 60.0, lambda: True, set())) == ""


def lonely(tmp_path, name):
    """A peer that has begun, with no neighbor connected, and never was on a network."""
    text = LONG.replace('"gossip-sgd"', f'"{name}"')
    one = participant(read_site(found_small(tmp_path / name, text)[0]), SEED)
    one.host.journal.close()
    one.host.machine.begin(0.0)
    one.host.clock.paused = None
    return one.host


@pytest.mark.slow
def test_what_waits_for_a_quorum_depends_on_how_peers_speak(tmp_path):
    rounds = lonely(tmp_path, "gossip-sgd")
    assert rounds._lonely()
    assert not lonely(tmp_path, "averaging")._lonely()  # has read all it reads
    assert lonely(tmp_path, "personalized")._lonely()
    assert not lonely(tmp_path, "model-propagation")._lonely()
    assert not lonely(tmp_path, "gossip-admm")._lonely()  # offers first, and reads after an answer
    assert lonely(tmp_path, "walk-sum")._lonely()
    rounds.machine.count = 11  # the last reading round is over
    assert not rounds._lonely()


@pytest.mark.slow
def test_words_that_never_arrived_are_a_problem_of_whoever_only_reads(tmp_path):
    """Who wakes by its clock reads the last words of one who has gone, and misses nothing: but it
    spoke to nobody."""
    text = LONG.replace("steps = 12", "steps = 30").replace('"gossip-sgd"', '"personalized"')
    sites = found_small(tmp_path, text, timeout=2.0, pace=0.05)
    people, reports = live_together(
        sites, SEED, lambda one: stop_at(one.host, 2) if one.host.me == 2 else None
    )
    assert people[0].host.ended
    assert reports[0]["missed"] == 0
    (problem,) = reports[0]["problems"]
    assert problem.startswith("missed peer-2: ")
    assert problem.endswith((" messages were never received", "1 message was never received"))


def test_an_old_copy_that_is_found_out_while_peers_wait_again_is_what_is_told(tmp_path):
    host = lonely(tmp_path, "gossip-sgd")

    async def found_out(*_):
        host._break_off(BrokenStateError("the journal is an old copy"))
        return ""

    host.gathering.wait_again = found_out
    asyncio.run(host._wait_for_quorum())
    assert host.broken
    assert problems(host) == ["the journal is an old copy"]


def test_a_message_that_waits_for_a_quorum_stays_the_first_of_its_neighbor(tmp_path):
    """Whatever happens while the peer waits, what came after it is not worked on before it: it
    would be taken for a gap, and dropped."""
    host = lonely(tmp_path, "gossip-sgd")
    first, second = ((1, SimpleNamespace(kind="round", number=k), b"") for k in (0, 1))
    there, asked = iter([False]), []
    host._lonely = lambda: next(there, True)
    host._queue.put(first)
    host._queue.put(second)

    async def waited():
        asked.append(host._queue.get_nowait())
        asked.append(host._queue.get_nowait())
        host.stop()

    host._wait_for_quorum = waited
    asyncio.run(host._live())
    assert asked == [first, second]
