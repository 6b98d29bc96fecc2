"""How long an answer takes says nothing of the records in it: it takes a whole number of units."""

import pytest

from bruit.errors import ConfigError
from bruit.peers import held_answers
from bruit.peers.site.site import participant, read_site
from tests.unit.peers.small_network import found_small, live_together
from tests.unit.peers.test_masked_peers import TEXT


@pytest.mark.parametrize(("taken", "rest"), [(0.0, 0.5), (0.1, 0.4), (0.75, 0.25), (3.2, 0.3)])
def test_an_answer_takes_whole_units(monkeypatch, taken, rest):
    slept = []
    monkeypatch.setattr(held_answers.time, "monotonic", lambda: 7.0 + taken)
    monkeypatch.setattr(held_answers.time, "sleep", slept.append)
    held_answers.hold(7.0, 0.5)
    held_answers.hold(7.0, 0.0)
    assert slept == [pytest.approx(rest)]


def test_every_answer_is_held_and_nothing_else(tmp_path, monkeypatch):
    held = []
    monkeypatch.setattr("bruit.peers.host.hold", lambda began, unit: held.append(unit))
    sites = found_small(tmp_path, TEXT, 4, timeout=8.0)
    for number, site in enumerate(sites):
        path = site if site.is_file() else site / "site.toml"
        path.write_text(path.read_text() + f"answer_seconds = {number + 1}e-3\n")
    done, _ = live_together(sites)
    answers = [one.host.machine.charges for one in done]
    assert sorted(set(held)) == [1e-3, 2e-3, 3e-3, 4e-3]
    assert [held.count((number + 1) * 1e-3) for number in range(4)] == answers


def test_answers_that_take_longer_than_others_wait_are_refused(tmp_path):
    site = found_small(tmp_path, TEXT, 4, timeout=3.0)[0]
    site.write_text(site.read_text() + "answer_seconds = 2.0\n")
    with pytest.raises(ConfigError, match="answer_seconds"):
        participant(read_site(site))
