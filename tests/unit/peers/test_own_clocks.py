"""Peers with a clock of their own: calls that did not happen are counted, told, and no reason to
end with code 0."""

import json
from types import SimpleNamespace

import pytest

from bruit.peers.site.running import last_line, run_participants, status
from bruit.peers.site.site import participant, read_site
from tests.unit.peers.small_network import MEAN, found_small, live_together

SEED = 5
WAKES = MEAN.replace('"gossip-sgd"', '"personalized"').replace("steps = 6", "steps = 8")
BOOSTING = WAKES.replace('"personalized"', '"boosting"')
PAIRS = MEAN.replace('"gossip-sgd"', '"pair-averaging"').replace("steps = 6", "steps = 8")


@pytest.mark.parametrize("text", [WAKES, BOOSTING])
def test_one_neighbor_that_never_starts_stops_nobody_and_is_named(tmp_path, text):
    """Two of three went without a single update."""
    sites = found_small(tmp_path, text, timeout=0.3, pace=0.01, lines="wait_for = 1\n")
    people = [participant(read_site(site), SEED) for site in sites[:2]]
    assert run_participants(people) == 0  # wait_for plans for it
    for one in people:
        now, calls = status(one), len(one.host.machine.seat.calls)
        assert (now["step"], now["skipped"], now["missing"]) == (calls, 0, ["peer-2"])
        assert now["missed"] == calls
        told = f"without peer-2 in {calls} exchanges, as wait_for allows"
        assert told in last_line(one)
        report = json.loads((one.site.state / "report.json").read_text())
        assert report["skipped_for"] == {}
        assert (report["problems"], report["complete"]) == ([], False)
        assert told in report["notes"]


def test_who_hears_nobody_at_all_makes_no_silent_update(tmp_path):
    sites = found_small(tmp_path, WAKES, timeout=0.3, pace=0.01, lines="wait_for = 0\nquorum = 0\n")
    one = participant(read_site(sites[0]), SEED)
    assert run_participants([one]) == 1
    now, calls = status(one), len(one.host.machine.seat.calls)
    assert (now["step"], now["skipped"], now["missing"]) == (0, calls, ["peer-1", "peer-2"])
    assert "met nobody" in last_line(one)
    assert f"made no update in {calls} call" in last_line(one)
    assert "0 updates in 8 units of time" in last_line(one)


@pytest.mark.parametrize("text", [WAKES, PAIRS])
def test_no_call_is_lost_on_a_machine_that_is_too_slow_for_its_clock(tmp_path, text):
    """A unit of time is a tenth of a millisecond: all calls are overdue before anybody has heard a
    word."""
    people, reports = live_together(found_small(tmp_path, text, pace=1e-4), SEED)
    for one, report in zip(people, reports, strict=True):
        assert one.host.machine.calls_left == 0
        if text is WAKES:
            assert (report["skipped"], report["problems"]) == (0, [])
            assert report["step"] == len(one.host.machine.seat.calls)
        else:  # calls while bound are dropped by the law of meetings; who had no other is told
            assert bool(report["step"]) != bool(report["problems"])


@pytest.mark.parametrize("text", [WAKES, PAIRS])
def test_who_has_ended_and_is_started_again_waits_for_nobody(tmp_path, text):
    """Its last input came before its time was over; all the others have gone for good."""
    sites = found_small(tmp_path, text, timeout=20.0, pace=0.05)
    _, reports = live_together(sites, SEED)
    sites[0].write_text(
        sites[0].read_text().replace("timeout = 20.0", "timeout = 0.2\nstart_timeout = 0.5")
    )
    assert not any(one["problems"] for one in reports)
    state = sites[0].parent / "state"
    assert {(state / name).stat().st_mode & 0o777 for name in ("model.json", "model.npz")} == {
        0o600
    }
    again = participant(read_site(sites[0]), SEED)
    assert run_participants([again]) == 0
    assert (again.host.ended, again.host.gave_up, status(again)["step"]) == (
        True,
        "",
        reports[0]["step"],
    )


def test_a_slow_peer_has_a_slow_clock(tmp_path):
    """A call waits while its peer meets one who is there, the clock stands still meanwhile, and
    what is late makes the rest late: calls never come in a burst in which all but the first find
    their peer busy."""
    one = participant(read_site(found_small(tmp_path, PAIRS)[0]), SEED)
    host, call = one.host, (1.0, 1, "call", 0)
    line = SimpleNamespace(connected=True, level=0)
    host.lines[1], host.clock.alarms, host.machine._offered = line, [call], (1, 0)
    host.count_meeting_time("alarm", 0.5)
    assert host._next_alarm() is None
    line.connected = (
        False  # whoever is not there is waited for in vain: the law of meetings drops the call
    )
    assert host._next_alarm() == call
    host.machine._offered = None
    host.count_meeting_time("message", 2.0)
    assert (host.clock.alarms, host.clock.behind) == ([(2.5, 1, "call", 0)], 1.5)
    host.clock.take_alarm(host.clock.alarms[0], 4.0)
    assert (host.clock.alarms, host.clock.behind) == ([], 3.0)
    host.journal.close()


def test_the_clock_does_not_stand_still_for_one_who_never_came(tmp_path):
    one = participant(read_site(found_small(tmp_path, PAIRS)[0]), SEED)
    host, one.host.clock.bound = one.host, 0.5
    host.count_meeting_time("alarm", 30.0)
    assert (host.clock.behind, host.clock.bound) == (0.0, None)
    host.journal.close()


def test_skipped_calls_survive_a_restart(tmp_path):
    sites = found_small(tmp_path, WAKES, timeout=0.2, pace=0.01, lines="wait_for = 0\nquorum = 0\n")
    one = participant(read_site(sites[0]), SEED)
    run_participants([one])
    again = participant(read_site(sites[0]), SEED)
    assert run_participants([again]) == 1
    assert again.host.absences.skipped_for == one.host.absences.skipped_for != {}
    assert again.host.absences.skipped == one.host.absences.skipped


def test_a_patience_that_ended_survives_a_restart(tmp_path):
    """Executed again, the same updates are made without the same neighbor."""
    sites = found_small(tmp_path, WAKES, timeout=0.2, pace=0.01, lines="wait_for = 1\n")
    people = [participant(read_site(site), SEED) for site in sites[:2]]
    run_participants(people)
    again = participant(read_site(sites[0]), SEED)
    assert run_participants([again]) == 0
    assert again.host.absences.of == people[0].host.absences.of != {}
    assert (again.host.machine.state.model == people[0].host.machine.state.model).all()
