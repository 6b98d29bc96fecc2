"""Hosts on snapshots: the journal stays short, and who is recalled from it is who it was."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bruit.algorithms.schedules.machine import Envelope, Send
from bruit.peers.recalling import recall
from bruit.peers.site.site import participant, read_site
from tests.unit.peers.small_network import MEAN, found_small, live_together

pytestmark = pytest.mark.slow

SEED, KEPT = 4, 1500


def recalled(site):
    """A participant as its journal says, without any line to others."""
    again = participant(read_site(site), SEED)
    again.host._line = lambda peer: None
    recall(again.host)
    return again.host


def often(one):
    """A snapshot after every few steps."""
    one.host.settings = replace(one.host.settings, kept=KEPT)
    one.host.enough = KEPT


@pytest.mark.parametrize(
    ("algorithm", "steps"),
    [("gossip-sgd", 40), ("renoised", 40), ("pair-averaging", 60), ("walk-sgd", 90)],
)
def test_who_is_recalled_from_a_snapshot_is_who_it_was(tmp_path, algorithm, steps):
    text = MEAN.replace('"gossip-sgd"', f'"{algorithm}"').replace("steps = 6", f"steps = {steps}")
    sites = found_small(tmp_path, text, pace=0.02)
    chosen, reports = live_together(sites, SEED, often)
    for site, lived, report in zip(sites, chosen, reports, strict=True):
        host = recalled(site)
        journal = host.journal
        assert journal.latest_snapshot() is not None
        first = next(journal.inputs(), None)
        assert first is None or first.position > 1
        assert np.array_equal(
            host.machine.seat.algorithm.estimate(host.machine.state),
            lived.host.machine.seat.algorithm.estimate(lived.host.machine.state),
        )
        assert (host.machine.count, host.speech.sent, host.speech.payloads) == (
            report["step"],
            lived.host.speech.sent,
            lived.host.speech.payloads,
        )
        assert (host.absences.of, host.met) == (
            lived.host.absences.of,
            lived.host.met,
        )
        assert [tuple(line) for line in journal.spent()] == [
            (p, s, c, host.ledger.events[e].to_json())
            for p, s, c, e in zip(
                *(host.ledger.column(name).tolist() for name in ("peer", "step", "clock", "event")),
                strict=True,
            )
        ]
        journal.close()


def test_snapshots_change_no_result(tmp_path):
    text = MEAN.replace("steps = 6", "steps = 40")
    models = [
        live_together(found_small(tmp_path / name, text), SEED, change)[0]
        for name, change in (("plain", lambda one: None), ("often", often))
    ]
    for plain, kept in zip(*models, strict=True):
        assert np.array_equal(plain.host.machine.state.model, kept.host.machine.state.model)


def test_a_state_that_no_snapshot_can_keep_is_left_alone(tmp_path, caplog):
    """A machine that holds something strange: the journal keeps all inputs, and everything
    works."""

    def strange(one):
        often(one)
        one.host.machine.strange = json.JSONDecoder()

    sites = found_small(tmp_path, MEAN.replace("steps = 6", "steps = 30"))
    with caplog.at_level("INFO", "bruit.peers"):
        chosen, reports = live_together(sites, SEED, strange)
    assert all(report["done"] for report in reports)
    assert "the journal keeps all inputs: a memory holds a JSONDecoder" in caplog.text
    host = recalled(sites[0])
    assert host.journal.latest_snapshot() is None
    assert np.array_equal(host.machine.state.model, chosen[0].host.machine.state.model)
    host.journal.close()


def test_a_word_to_itself_that_a_peer_refused_is_not_heard_again_after_a_restart(tmp_path):
    """A token so large that no peer takes it, not even the one it stays with."""
    site = found_small(tmp_path, MEAN.replace('"gossip-sgd"', '"walk-sgd"'))[0]

    def owing():
        host = participant(read_site(site), SEED).host
        begin, large = host.machine.begin, np.full((1, host.row.shape[1]), 2e150)

        def begun(now):
            begin(now)
            return [Send(host.me, Envelope("token", 1, large))]

        host._line, host.machine.begin = lambda peer: None, begun
        return host

    host = owing()
    with host.journal.step() as step:
        host._feed(step, "begin", host.me, 1, b"")
        host._hear_oneself(step)
    assert host.refused["message"] == 1
    host.journal.close()
    again = owing()
    recall(again)
    assert again.refused["message"] == 1
    assert again._own == []
    again.journal.close()
