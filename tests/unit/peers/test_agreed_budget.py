"""The agreed epsilon is a law at every peer's door, whatever the walk and whoever sends tokens."""

import json
import logging
from dataclasses import replace

import numpy as np
import pytest

from bruit.algorithms.schedules.machine import Envelope
from bruit.errors import ConfigError, RemoteProtocolError
from bruit.peers.founding.founding import plan_network
from bruit.peers.site.running import first_line, run_participants, status, write_report
from bruit.peers.site.site import participant, read_site
from bruit.peers.site.verdict import problems
from bruit.privacy.ledger import AT_MOST, Budget, Ledger
from tests.unit.peers.small_network import MEAN, found_small, live_together

WALK = """\
graph = "ring:4"
steps = 200
seed = 3

[task]
kind = "mean"
dim = 2

[algorithm]
name = "{name}"

[privacy]
epsilon = 1.0
"""
ROUNDS = MEAN.replace("sigma = 1.5", "epsilon = 2.0\ndelta = 1e-5")


def built(site, rehearse=5):
    one = participant(read_site(site), rehearse)
    one.host.journal.close()
    return one


def add(site, text):
    site.write_text(site.read_text() + text)


def visited(one, numbers):
    """Let a neighbor bring this peer tokens of these hops, without any network. Signatures would
    stop a single neighbor before (see `vouchers`); neighbors that vouch for each other they would
    not."""
    machine, me = one.host.machine, one.host.me
    machine.seat = replace(machine.seat, seals=None)
    machine.begin(0.0)
    row = machine._mine(me)
    for number in numbers:
        machine.receive(0.0, (me + 1) % 4, Envelope("token", number, row))


@pytest.mark.parametrize("name", ["walk-sum", "walk-sgd", "walk-admm"])
def test_a_neighbor_that_sends_every_hop_forces_nothing_beyond_the_budget(tmp_path, name):
    """Tokens of hops 1, 2, .. 199, all to the same peer: it cost 1.8 of an agreed 1.0."""
    one = built(found_small(tmp_path, WALK.format(name=name), 4)[1])
    visited(one, range(1, 199))
    assert 0.9 < status(one)["epsilon"] <= 1.0 * AT_MOST
    assert status(one)["releases"] >= status(one)["releases_planned"] == one.planned.most < 100
    assert len(one.host.left_out) + status(one)["releases"] == 198
    assert one.host.left_out[0].step > one.planned.most
    told = [word for word in problems(one.host) if word.endswith("left out: budget")]
    assert len(told) == 1
    assert told[0].startswith(f"{len(one.host.left_out)} contributions of hop ")


def test_as_many_visits_as_are_planned_leave_nothing_out(tmp_path):
    one = built(found_small(tmp_path, WALK.format(name="walk-sum"), 4)[1])
    visited(one, range(1, one.planned.most + 1))
    assert not one.host.left_out
    assert status(one)["epsilon"] == pytest.approx(1.0, rel=1e-3)
    assert (status(one)["budget"], status(one)["budget_agreed"], status(one)["releases_sure"]) == (
        1.0,
        1.0,
        0.999,
    )


@pytest.mark.slow
def test_the_agreed_epsilon_and_delta_are_the_budget(tmp_path):
    sites = found_small(tmp_path, ROUNDS)
    assert built(sites[0]).budget == Budget(2.0, 1e-5)
    people, reports = live_together(sites, 5)
    assert [report["left_out"] for report in reports] == [0, 0, 0]
    assert [report["epsilon"] for report in reports] == [pytest.approx(2.0, rel=1e-6)] * 3
    assert {report["delta"] for report in reports} == {1e-5}
    assert (
        "budget epsilon 2 at delta 1e-05 (as agreed); each peer releases data at most 6 times"
        in first_line(people[0])
    )


def test_noise_by_its_size_promises_no_epsilon(tmp_path):
    one = built(found_small(tmp_path)[0])
    assert one.budget is None
    assert "no budget: the noise was agreed on by its size" in first_line(one)
    bare = built(found_small(tmp_path / "bare", MEAN.partition("[privacy]")[0])[0])
    assert "nothing is hidden" in first_line(bare)


def test_a_site_may_allow_less_and_more_only_by_that_word(tmp_path, caplog):
    less, more, said, wide = found_small(tmp_path, ROUNDS.replace("ring:3", "ring:4"), 4)
    add(less, "[budget]\nepsilon = 1.5\ndelta = 1e-6\n")
    assert built(less).budget == Budget(1.5, 1e-6)
    assert "this site's own, below the agreed one (epsilon 2 at delta 1e-05)" in first_line(
        built(less)
    )
    add(more, "[budget]\nepsilon = 2.5\n")
    with pytest.raises(
        ConfigError,
        match=r"more than the epsilon 2 at delta 1e-05 that was agreed on; .*above_agreed",
    ):
        built(more)
    assert not (more.parent / "state").exists()
    add(wide, "[budget]\nepsilon = 2.0\ndelta = 1e-3\n")
    with pytest.raises(ConfigError, match="more than the epsilon 2"):
        built(wide)
    add(said, "start_timeout = 0.1\n[budget]\nepsilon = 2.5\ndelta = 1e-5\nabove_agreed = true\n")
    one = participant(read_site(said))
    assert "MORE than was agreed on (epsilon 2 at delta 1e-05)" in first_line(one)
    with caplog.at_level(logging.WARNING, "bruit.peers"):
        run_participants([one])
    assert "the budget of peer 2 is MORE than was agreed on" in caplog.text


@pytest.mark.slow
def test_what_no_budget_can_hold_is_refused_by_everybody_who_leads_there(tmp_path):
    text = ROUNDS.replace('"gossip-sgd"', '"ring-sum"').replace("steps = 6", "steps = 9")
    (tmp_path / "agreed.toml").write_text(text)
    with pytest.raises(
        ConfigError, match=r"agreed.toml:12: .*no finite budget holds .* agree on privacy.sigma"
    ):
        plan_network(str(tmp_path / "agreed.toml"), 3)
    shared = text.replace('name = "ring-sum"', 'name = "ring-sum"\nnoise = "shared"')
    _, reports = live_together(found_small(tmp_path / "shared", shared), 5)
    assert [report["left_out"] for report in reports] == [0, 0, 0]
    assert max(report["epsilon"] for report in reports) == pytest.approx(2.0, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "kind"), [("laplace", "mean"), ("randomized-response", "histogram")]
)
def test_pure_noise_that_is_made_for_the_budget_keeps_it(tmp_path, mechanism, kind):
    text = ROUNDS.replace("epsilon", f'mechanism = "{mechanism}"\nepsilon')
    if kind == "histogram":
        text = text.replace('kind = "mean"\ndim = 2', 'kind = "histogram"\ndim = 3')
        text = text.replace('"gossip-sgd"', '"token-histogram"').replace("steps = 6", "steps = 10")
    _, reports = live_together(found_small(tmp_path, text), 5)
    assert [report["left_out"] for report in reports] == [0, 0, 0]
    assert all(report["epsilon"] <= 2.0 * AT_MOST for report in reports)


def test_pure_releases_within_the_budget_need_no_loss_distribution(monkeypatch):
    import bruit.privacy.ledger as module
    from bruit.privacy.events import LaplaceEvent

    def never(*_):
        raise AssertionError("a privacy loss distribution was computed")

    budget, ledger = Budget(1.0), Ledger(peers=1)
    for step in range(10):
        monkeypatch.setattr(module, "compose_epsilon", never)
        assert budget.allows(ledger, 0, LaplaceEvent(10.0))
        ledger.record(*(np.array([place]) for place in (0, step, step)), LaplaceEvent(10.0))
    monkeypatch.undo()
    assert not Budget(1.0, 0.0).allows(ledger, 0, LaplaceEvent(10.0))


def test_a_journal_remembers_the_budget_it_began_with(tmp_path):
    from bruit.errors import PrivacyError

    site = found_small(tmp_path, ROUNDS)[0]
    built(site)
    add(site, "[budget]\nepsilon = 1.0\n")
    with pytest.raises(PrivacyError, match="the budget changed"):
        built(site)


def test_the_number_of_releases_is_in_the_report_and_forged_hops_are_still_refused(tmp_path):
    one = built(found_small(tmp_path, WALK.format(name="walk-sum"), 4)[1])
    visited(one, range(1, 5))
    with pytest.raises(RemoteProtocolError):
        visited(one, [0])
    report = write_report(one)
    assert (report["releases"], report["releases_planned"]) == (4, one.planned.most)
    assert json.loads((one.site.state / "report.json").read_text())["releases_sure"] == 0.999
