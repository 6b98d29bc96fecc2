"""Real processes that wait for each other: started in any order, killed while they wait, one that
never comes."""

import numpy as np
import pytest

from bruit.peers.founding.demo import read_json
from bruit.peers.journal.journal import recorded_spend
from tests.e2e.villages import until

pytestmark = pytest.mark.slow


def test_peers_started_late_and_killed_while_they_wait_miss_nothing(village):
    """Nothing is spent before the last one is there; then the end is that of the undisturbed
    rehearsal."""
    busy = village("ring:4", 4, 12)
    busy.start(0, 1, 3)
    busy.wait_for(1, lambda now: now["waiting_for"] == ["peer-2"], "waiting for peer 2")
    busy.wait_for(0, lambda now: now["connected"] == 2, "having both neighbors")
    busy.wait_for(3, lambda now: now["connected"] == 1, "having one neighbor")
    assert busy.status(0)["waiting"]  # for peer 1 and peer 3, who wait for another
    busy.kill(1)
    assert [busy.status(peer)["epsilon"] for peer in (0, 1, 3)] == [0, 0, 0]
    until(lambda: "waiting for peer-2 (1 of 2 connected)" in busy.log(3), "a word of it")
    busy.start(1, 2)
    reports, models = busy.finish()
    assert np.allclose(models, busy.bulk().estimates, rtol=0, atol=1e-9)
    assert [report["missed"] for report in reports] == [0, 0, 0, 0]


def test_all_give_up_together_when_one_never_comes(village):
    busy = village("ring:4", 4, 12, lines="start_timeout = 6.0\n")
    busy.start(0, 1, 3)
    for peer in (0, 1, 3):
        assert busy.code(peer) == 1
        assert "nothing was released and nothing was spent" in busy.log(peer)
        assert recorded_spend(busy.home(peer) / "state" / "journal.db") == []
        assert not read_json(busy.home(peer) / "state" / "report.json")["done"]


def test_wake_peers_go_on_without_one_that_never_starts_and_say_so(village):
    """The site allows it (`wait_for`), so the code is 0; who was not there is told."""
    busy = village("ring:3", 3, 10, algorithm="personalized", timeout=2.0, lines="wait_for = 1\n")
    busy.start(0, 1)
    reports, _ = busy.finish(0, 1, codes=(0,))
    for peer, report in enumerate(reports):
        assert report["step"] > 0
        assert report["complete"] is False
        assert "going on without peer 2" in busy.log(peer)
