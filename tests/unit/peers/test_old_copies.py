"""A peer on an old copy of its state: what it would say shares no noise with what it said, and
neighbors stop it."""

import asyncio
import json
import shutil
import sys

import numpy as np
import pytest

from bruit.algorithms.schedules.machine import Envelope
from bruit.commands import cli
from bruit.errors import RemoteProtocolError
from bruit.peers.journal.journal import recorded_spend
from bruit.peers.recalling import recall
from bruit.peers.site.running import last_line, run_participants, write_report
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.codec import decode
from tests.unit.peers.small_network import MEAN, found_small, live_together


def said_alone(site, life):
    """All rows that this peer says at its beginning, when nobody is asked before; its folder is
    that of a copy."""
    place = site.parent.parent / f"{site.parent.name}-{life}"
    shutil.copytree(site.parent, place)
    one = participant(read_site(place / site.name))
    one.paying.begin()
    host = one.host
    host._spawn = lambda work: work.close()  # no line is laid
    recall(host)
    if host.machine.state is None:
        with host.journal.step() as step:
            host._feed(step, "begin", host.me, 1, b"")
    rows = [
        field.values
        for peer in (1, 2)
        for _, data in host.journal.outbox(peer)
        for field in decode(data, host._voice(host.me)).fields
    ]
    calls = one.host.machine.seat.calls
    host.journal.close()
    return np.concatenate([row.ravel() for row in rows]), calls, place / site.name


def test_two_lives_from_one_copy_share_no_noise(tmp_path):
    """The records are the same, the journal is the same: all that differs is the start, and every
    number does."""
    site = found_small(tmp_path)[0]
    participant(
        read_site(site)
    ).host.journal.close()  # from here on there is a secret, and nothing was said
    (first, _, _), (second, _, _) = said_alone(site, "a"), said_alone(site, "b")
    assert len(first) == len(second) > 2
    assert not np.isin(first, second).any()


def test_executed_again_it_is_what_was_said(tmp_path):
    site = found_small(tmp_path)[0]
    first, _, place = said_alone(site, "a")
    again, _, _ = said_alone(place, "b")
    assert np.array_equal(first, again)


def test_the_timetable_of_calls_stays(tmp_path):
    site = found_small(tmp_path, MEAN.replace('"gossip-sgd"', '"personalized"'))[0]
    _, calls, place = said_alone(site, "a")
    assert len(calls)
    assert np.array_equal(calls, said_alone(place, "b")[1])


def stopping(one, step):
    """Let it stop, in good order, when it has come so far."""
    work = one.host._work

    def watched(first, commit=False):
        work(first, commit)
        if one.host.machine.count >= step:
            one.host.stop()

    one.host._work = watched


def live_until_it_ends(chosen):
    """Run all until the first of them has ended, then stop the others."""

    async def everybody():
        lives = [asyncio.create_task(one.host.run()) for one in chosen]
        await lives[0]
        for one in chosen:
            one.host.stop()
        await asyncio.gather(*lives)

    try:
        asyncio.run(everybody())
    finally:
        for one in chosen:
            one.host.journal.close()


def test_neighbors_stop_a_peer_on_an_old_copy_before_it_says_anything_new(tmp_path, caplog):
    """Files, log and head are all old, and agree with each other: only the neighbors know
    better."""
    sites = found_small(tmp_path, MEAN.replace("steps = 6", "steps = 60"))
    state, old = sites[0].parent / "state", tmp_path / "old"
    live_together(sites, change=lambda one: stopping(one, 2))
    shutil.copytree(state, old)
    live_together(sites, change=lambda one: stopping(one, 5))
    shutil.rmtree(state)
    shutil.copytree(old, state)
    people = [participant(read_site(site)) for site in sites]
    before = people[0].host.journal.lines, [one.host.journal.last_sequence(0) for one in people[1:]]
    live_until_it_ends(people)
    stopped = people[0].host
    assert stopped.broken
    assert "is an old copy" in stopped.gave_up
    assert "peer 0 stops" in caplog.text
    assert (
        stopped.journal.lines,
        [one.host.journal.last_sequence(0) for one in people[1:]],
    ) == before
    assert not any(one.host.broken for one in people[1:])
    report = write_report(people[0])
    assert report["problems"] == [stopped.gave_up]
    assert report["epsilon"] == "inf"  # nobody knows what was spent
    assert "is an old copy" in last_line(people[0])
    again = exit_of("peer", "run", str(sites[0]))
    assert again == 3  # a later start does not even ask


def test_what_an_old_copy_would_need_to_go_on_is_nowhere_any_more(tmp_path):
    """Neighbors keep nothing that a lost life has confirmed, and have heard another message in the
    place of the copy's next one, of a round that cannot be said twice. So there is no word by which
    an operator lets it go on, whatever is charged."""
    sites = found_small(tmp_path, MEAN.replace("steps = 6", "steps = 60"))
    state, old = sites[0].parent / "state", tmp_path / "old"
    live_together(sites, change=lambda one: stopping(one, 2))
    shutil.copytree(state, old)
    live_together(sites, change=lambda one: stopping(one, 8))
    shutil.rmtree(state)
    shutil.copytree(old, state)
    copy, *others = [participant(read_site(site)).host for site in sites]
    for host in (copy, *others):
        host._line = lambda peer: None
        recall(host)
    for host in others:
        kept = [sequence for sequence, _ in host.journal.outbox(0)]
        assert not kept or min(kept) > copy.journal.last_sequence(host.me) + 1
        assert host.journal.last_sequence(0) > copy.journal.last_sent(host.me)
        with pytest.raises(RemoteProtocolError, match="peer 0 spoke of round"):
            host.machine.hear(0.0, 0, Envelope("round", copy.machine.count + 1, np.zeros((1, 2))))
    for host in (copy, *others):
        host.journal.close()


@pytest.mark.slow
def test_a_deleted_state_is_an_old_copy_too_and_the_exit_code_is_3(tmp_path):
    sites = found_small(tmp_path, MEAN.replace("steps = 6", "steps = 60"), timeout=0.5)
    live_together(sites, change=lambda one: stopping(one, 2))
    shutil.rmtree(sites[0].parent / "state")
    people = [participant(read_site(site)) for site in sites]
    for one in people[1:]:
        stopping(one, 3)
    assert run_participants(people) == 3
    assert recorded_spend(sites[0].parent / "state" / "journal.db") == []  # nothing was released
    report = json.loads((sites[0].parent / "state" / "report.json").read_text())
    assert "is an old copy" in report["problems"][0]


def exit_of(*words):
    before, sys.argv = sys.argv, ["bruit", *words]
    try:
        cli.main()
    except SystemExit as end:
        return end.code
    finally:
        sys.argv = before
    return 0


def test_a_lost_log_is_exit_code_3_before_anything_is_sent(tmp_path, capsys):
    sites = found_small(tmp_path)
    one = participant(read_site(sites[0]))
    recall(one.host)
    shutil.copytree(sites[0].parent, tmp_path / "killed")  # as kill -9 leaves it
    one.host.journal.close()
    (tmp_path / "killed" / "state" / "journal.db-wal").unlink()
    assert exit_of("peer", "run", str(tmp_path / "killed" / "site.toml")) == 3
    said = capsys.readouterr().err
    assert "its log journal.db-wal is missing" in said
    assert said.count("\n") == 1
