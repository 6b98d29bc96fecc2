"""Peers with a clock of their own: calls that did not happen are counted, told, and no reason to end with code 0."""

import json
import sys
from pathlib import Path

import pytest

from bruit.sites.running import last_line, run_participants, status
from bruit.sites.site import participant, read_site

sys.path.insert(0, str(Path(__file__).parent))
from small_network import MEAN, found_small, live_together

SEED = 5
WAKES = MEAN.replace('"gossip-sgd"', '"personalized"').replace("steps = 6", "steps = 8")
PAIRS = MEAN.replace('"gossip-sgd"', '"pair-averaging"').replace("steps = 6", "steps = 8")


def test_one_neighbor_that_never_starts_leaves_no_silent_zero(tmp_path):
    sites = found_small(tmp_path, WAKES, timeout=0.3, pace=0.01, lines="wait_for = 1\n")
    people = [participant(read_site(site), SEED) for site in sites[:2]]
    assert run_participants(people) == 1
    for one in people:
        now, calls = status(one), len(one.host.machine.seat.calls)
        assert (now["step"], now["skipped"], now["missing"]) == (0, calls, ["peer-2"])
        assert f"made no update: its clock called {calls} times" in last_line(one)
        assert "0 updates in 8 units of time" in last_line(one)
        report = json.loads((one.site.state / "report.json").read_text())
        assert report["skipped_for"] == {"peer-2": calls}
        assert report["problems"]


@pytest.mark.parametrize("text", [WAKES, PAIRS])
def test_no_call_is_lost_on_a_machine_that_is_too_slow_for_its_clock(tmp_path, text):
    """A unit of time is a tenth of a millisecond: all calls are overdue before anybody has heard a word."""
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
    sites = found_small(tmp_path, text, timeout=0.3, pace=0.05, lines="start_timeout = 1.0\n")
    _, reports = live_together(sites, SEED)
    assert not any(one["problems"] for one in reports)
    again = participant(read_site(sites[0]), SEED)
    assert run_participants([again]) == 0
    assert (again.host.ended, again.host.gave_up, status(again)["step"]) == (True, "", reports[0]["step"])


def test_skipped_calls_survive_a_restart(tmp_path):
    sites = found_small(tmp_path, WAKES, timeout=0.2, pace=0.01, lines="wait_for = 1\n")
    people = [participant(read_site(site), SEED) for site in sites[:2]]
    run_participants(people)
    again = participant(read_site(sites[0]), SEED)
    assert run_participants([again]) == 1
    assert (again.host.skipped, again.host.skipped_for) == (people[0].host.skipped, people[0].host.skipped_for)
