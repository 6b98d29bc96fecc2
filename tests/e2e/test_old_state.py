"""Real processes with real dice, killed and given a damaged or an old state: exit code 3, and
nothing more is said."""

import shutil

import numpy as np
import pytest

from bruit.peers.journal.journal import recorded_spend

pytestmark = pytest.mark.slow
STEPS = 60


def restore(site, kept):
    shutil.rmtree(site.parent / "state")
    shutil.copytree(kept, site.parent / "state")


def test_only_the_newest_state_goes_on(village, tmp_path):
    """An old state is found out by the neighbors, a damaged one by itself; with the newest the run
    goes on to its end, and nobody was missed meanwhile."""
    busy = village("ring:3", 3, STEPS, seed=None)
    (site, *_), state = busy.sites, busy.home(0) / "state"
    starting = (0, 1, 2)
    for name, step in (("old", 10), ("newest", 40)):
        busy.hold(step)
        busy.start(*starting)
        busy.wait_for_step(step, 0)
        busy.kill(0)
        shutil.copytree(state, tmp_path / name)
        starting = (0,)
    before = len(recorded_spend(tmp_path / "newest" / "journal.db"))

    (state / "journal.db-wal").unlink()
    busy.start(0)
    assert busy.code(0) == 3
    assert "is damaged" in busy.log(0)

    restore(site, tmp_path / "old")
    known = len(recorded_spend(state / "journal.db"))
    assert known < before
    for words in (r"with a valid stamp", "an earlier start has found that out"):
        busy.start(0)
        assert busy.code(0) == 3, busy.log(0)
        assert "is an old copy" in busy.log(0)
        assert words in busy.log(0)
        assert len(recorded_spend(state / "journal.db")) == known  # nothing was released

    restore(site, tmp_path / "newest")
    busy.let_go()
    busy.start(0)
    reports, models = busy.finish()
    assert [report["missed"] for report in reports] == [0, 0, 0]
    assert np.ptp(models, axis=0).max() < 10
    assert len(busy.releases(0)) == STEPS  # one a round: nothing was released twice
