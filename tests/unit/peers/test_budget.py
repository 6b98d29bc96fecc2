"""The budget law at a live peer: two releases of six are allowed; then the full noise goes on, and
no data."""

import logging
import math
import struct
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.door import Address, LeftOut, OnGrid
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConfigError
from bruit.mechanisms import Gaussian
from bruit.peers.recalling import recall
from bruit.peers.site.running import last_line
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.codec import Conversation, decode
from bruit.privacy.events import GaussianEvent, Mask, from_json
from bruit.privacy.ledger import Budget, Ledger
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.randomness import Replay
from bruit.runs.entrance import check_budget
from bruit.testing import small_task
from tests.unit.peers.small_network import MEAN, found_small, live_together

RATE, SEED = 0.1, 9
NOISE = Gaussian(clip=1.0, sigma=1.5)


@pytest.fixture
def poor(tmp_path):
    """Three peers, of which peer 0 can afford two releases, not three."""
    sites = found_small(tmp_path)
    two, three = (compose_epsilon([(NOISE.event(), count)], 1e-6) for count in (2, 3))
    assert two < three
    sites[0].write_text(
        sites[0].read_text() + f"[budget]\nepsilon = {(two + three) / 2!r}\ndelta = 1e-6\n"
    )
    return sites, two, three


def heard(site, sender, run, algorithm="gossip-sgd"):
    """What a peer has in its journal of what another one said, by round."""
    chosen = participant(read_site(site), SEED)
    rows = {}
    for line in chosen.host.journal.inputs():
        if line.kind == "message" and line.sender == sender:
            frame = decode(
                line.payload[struct.calcsize("<d") :], Conversation(run, algorithm, sender)
            )
            rows[frame.number] = frame.fields[0].values[0]
    chosen.host.journal.close()
    return rows


def test_a_spent_budget_silences_the_data_and_not_the_noise(poor, caplog):
    sites, two, three = poor
    with caplog.at_level(logging.WARNING, "bruit.peers"):
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
            noise = (
                seat.door.noise_on(
                    Address(*(np.array([k]) for k in (peer, step, step)), 0),
                    np.array([NOISE.sigma]),
                    2,
                    OnGrid(grid, RATE),
                )[0]
                / RATE
            )
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


# sums of a token, where some hops add a value and no noise

RING = MEAN.replace('"gossip-sgd"', '"ring-sum"').replace(
    "steps = 6", "steps = 9"
)  # three times around
SHARED = RING.replace('name = "ring-sum"', 'name = "ring-sum"\nnoise = "shared"')


def with_budget(site, epsilon):
    site.write_text(site.read_text() + f"[budget]\nepsilon = {epsilon!r}\n")


def test_a_budget_that_no_release_without_noise_can_keep_is_refused_beforehand(tmp_path):
    """At quiet hops ring-sum adds the value as it is: against everybody together that costs
    infinitely much."""
    sites = found_small(tmp_path, RING)
    for peer, quiet in ((0, "1 hop"), (1, "2 hops"), (2, "1 hop")):  # noise is at even hops
        with_budget(sites[peer], 50.0)
        why = rf"what peer {peer} would release: at {quiet} its value .* noise = \"shared\""
        with pytest.raises(ConfigError, match=why):
            participant(read_site(sites[peer]))
        assert not (sites[peer].parent / "state").exists()


def test_a_peer_whose_hops_all_carry_noise_may_have_a_budget(tmp_path):
    sites = found_small(tmp_path, RING.replace("steps = 9", "steps = 3"))
    with_budget(sites[0], 50.0)
    participant(read_site(sites[0])).host.journal.close()


def test_a_budget_without_noise_or_below_one_release_is_refused(tmp_path):
    sites = found_small(tmp_path, MEAN.partition("[privacy]")[0])
    with_budget(sites[0], 50.0)
    with pytest.raises(
        ConfigError, match="allows nothing here, because the experiment adds no noise"
    ):
        participant(read_site(sites[0]))
    (other, *_) = found_small(tmp_path / "other")
    with_budget(other, 1.0)
    with pytest.raises(
        ConfigError, match=r"allows no release at all, since a single one costs epsilon 6\.8"
    ):
        participant(read_site(other))


def test_noise_of_the_server_keeps_no_budget_of_a_peer():
    graph, noise = br.graphs.star(4), Gaussian(clip=1.0, sigma=1.0)
    for where, refused in (("server", True), ("peers", False)):
        algorithm = br.FederatedADMM(noise=where)
        if refused:
            with pytest.raises(ConfigError, match="the server adds all of the noise"):
                check_budget(algorithm, graph, 8, 1, noise, Budget(99.0))
        else:
            check_budget(algorithm, graph, 8, 1, noise, Budget(99.0))


def test_with_a_budget_that_suffices_the_sum_is_the_same(tmp_path):
    """The whole sum: no hop counts as infinite and adds nothing."""
    models = []
    for name, epsilon in (("free", None), ("rich", 1000.0)):
        sites = found_small(tmp_path / name, SHARED)
        for site in sites if epsilon else ():
            with_budget(site, epsilon)
        people, reports = live_together(sites, SEED)
        models.append(np.concatenate([one.host.machine.state.token for one in people]))
        assert [report["silent_releases"] for report in reports] == [0, 0, 0]
    assert np.array_equal(*models)


def test_a_contribution_that_the_budget_leaves_out_is_told_with_its_hop(tmp_path):
    sites = found_small(tmp_path, SHARED)
    one, two = (
        compose_epsilon([(Gaussian(clip=1.0, sigma=1.5 / math.sqrt(2)).event(), count)], 1e-6)
        for count in (1, 2)
    )
    with_budget(sites[1], (one + two) / 2)
    people, reports = live_together(sites, SEED)
    assert reports[1]["contributions_left_out"] == [
        [2, 4],
        [3, 7],
    ]  # peer 1 is visited at hops 1, 4 and 7
    assert reports[1]["left_out"] == 2
    assert reports[1]["notes"] == ["2 contributions of hop 4, 7 left out: budget of this site"]
    assert "2 contributions of hop 4, 7 left out: budget" in last_line(people[1])
    assert reports[1]["problems"] == []  # as its operator asked
    assert [report["complete"] for report in reports] == [True, False, True]
    assert reports[0]["left_out"] == reports[2]["left_out"] == 0
    masks = [event for event in people[1].host.ledger.events if isinstance(event, Mask)]
    assert [event.sigma for event in masks] == [
        pytest.approx(1.5 / np.sqrt(2))
    ]  # the share that this hop owes


def test_a_door_with_a_budget_never_opens_for_what_has_no_noise():
    door = TaskDoor(
        task=small_task(3),
        mechanism=NOISE,
        dice=Replay(0),
        ledger=Ledger(peers=3),
        budget=Budget(100.0),
    )
    at = Address(*(np.array([k]) for k in (1, 4, 7)), 0)
    assert not door.value_with(at, np.zeros(1)).any()
    assert door.left_out == [LeftOut(4, 7)]
    bare = TaskDoor(
        task=small_task(3),
        mechanism=None,
        dice=Replay(0),
        ledger=Ledger(peers=3),
        budget=Budget(100.0),
    )
    assert not bare.value(at).any()
    assert not bare.ledger.has_exact()
    assert len(bare.left_out) == 1


def test_what_was_left_out_survives_a_restart_from_a_snapshot(tmp_path):
    sites = found_small(tmp_path, MEAN.replace("steps = 6", "steps = 40"))
    with_budget(sites[0], 9.0)

    def often(one):
        one.host.settings = replace(one.host.settings, kept=1500)
        one.host.enough = 1500

    people, _ = live_together(sites, SEED, often)
    again = participant(read_site(sites[0]), SEED)
    again.host._line = lambda peer: None
    recall(again.host)
    assert again.host.journal.latest_snapshot() is not None
    again.host.journal.close()
    assert list(again.host.left_out) == list(people[0].host.left_out)
    assert len(again.host.left_out) == 39
