"""The budget law at a live peer: two releases of six are allowed; then the full noise goes on, and no data."""

import logging
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from bruit.algorithms.home import Address, OnGrid
from bruit.mechanisms import Gaussian
from bruit.privacy.accountants.pld import compose_epsilon
from bruit.privacy.events import GaussianEvent, Mask, from_json
from bruit.protocols.codec import Conversation, decode
from bruit.sites.site import participant, read_site

sys.path.insert(0, str(Path(__file__).parent))
from small_network import MEAN, found_small, live_together

RATE, SEED = 0.1, 9
NOISE = Gaussian(clip=1.0, sigma=1.5)


@pytest.fixture
def poor(tmp_path):
    """Three peers, of which peer 0 can afford two releases, not three."""
    sites = found_small(tmp_path)
    two, three = (compose_epsilon([(NOISE.event(), count)], 1e-6) for count in (2, 3))
    assert two < three
    sites[0].write_text(sites[0].read_text() + f"[budget]\nepsilon = {(two + three) / 2!r}\ndelta = 1e-6\n")
    return sites, two, three


def heard(site, sender, run, algorithm="gossip-sgd"):
    """What a peer has in its journal of what another one said, by round."""
    chosen = participant(read_site(site), SEED)
    rows = {}
    for line in chosen.host.journal.inputs():
        if line.kind == "message" and line.sender == sender:
            frame = decode(line.payload[struct.calcsize("<d"):], Conversation(run, algorithm, sender))
            rows[frame.number] = frame.fields[0].values[0]
    chosen.host.journal.close()
    return rows


def test_a_spent_budget_silences_the_data_and_not_the_noise(poor, caplog):
    sites, two, three = poor
    with caplog.at_level(logging.WARNING, "bruit.network"):
        chosen, reports = live_together(sites, SEED)
    ledger = chosen[0].host.ledger
    events = [ledger.events[kind] for kind in ledger.column("event")]
    masks = [event for event in events if isinstance(event, Mask)]
    assert sum(isinstance(event, GaussianEvent) for event in events) == 2
    assert sum(event.sigma == NOISE.sigma for event in masks) == 4  # the others are dithers
    assert all(event.sigma <= NOISE.sigma / 1024 for event in masks if event.sigma != NOISE.sigma)
    assert reports[0]["silent_releases"] == 4
    assert reports[1]["silent_releases"] == reports[2]["silent_releases"] == 0
    assert reports[0]["epsilon"] == pytest.approx(two)
    assert reports[0]["epsilon"] <= reports[0]["budget"] < three
    told = [record for record in caplog.records if "budget is spent" in record.message]
    assert len(told) == 1
    assert "peer 0" in told[0].message


def test_what_it_says_after_that_is_the_mixture_plus_the_full_noise(poor):
    sites, _, _ = poor
    chosen, _ = live_together(sites, SEED)
    run, seat = chosen[0].host.run_id, chosen[0].host.machine.seat
    facts = seat.public
    grid = seat.door.fine_grid(RATE, facts.data, facts.noise)
    said = {0: heard(sites[1], 0, run), 1: heard(sites[0], 1, run), 2: heard(sites[0], 2, run)}
    weights = chosen[0].host.machine.seat.graph.weights.toarray()
    for step in range(1, 6):
        rows = np.stack([said[peer][step - 1] for peer in range(3)])
        for peer in range(3):
            model = (weights @ rows)[peer]
            released = (model - said[peer][step]) / RATE
            noise = seat.door.noise_on(Address(*(np.array([k]) for k in (peer, step, step)), 0),
                                       np.array([NOISE.sigma]), 2, OnGrid(grid, RATE))[0] / RATE  # fmt: skip
            data = np.abs(released - noise).max()
            near = 6 * NOISE.sigma / 1024  # the dither of a message
            assert data < near if peer == 0 and step >= 2 else data > near


def test_the_journal_holds_the_spend_of_all_that_left(poor):
    sites, _, _ = poor
    chosen, _ = live_together(sites, SEED)
    for one in chosen:
        reopened = participant(read_site(one.site.folder / "site.toml"), SEED).host.journal
        kinds = [from_json(line.event) for line in reopened.spent()]
        assert kinds == [one.host.ledger.events[kind] for kind in one.host.ledger.column("event")]
        reopened.close()


def test_masks_of_an_algorithm_are_no_silent_releases(tmp_path):
    """Re-noised gossip masks by itself; with a budget that suffices nothing is silent."""
    text = MEAN.replace('"gossip-sgd"', '"renoised"')
    sites = found_small(tmp_path, text)
    sites[0].write_text(sites[0].read_text() + "[budget]\nepsilon = 50.0\n")
    _, reports = live_together(sites, SEED)
    assert [report["silent_releases"] for report in reports] == [0, 0, 0]
