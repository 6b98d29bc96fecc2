"""What the accountant says about releases of a secret sample of the records (silo:SILO-2, SILO-3):
local DP, at record level, with the adjacency beside every epsilon."""

import math
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.errors import PrivacyError
from bruit.graphs import star
from bruit.privacy.account import Accountant
from bruit.privacy.events import GaussianEvent, LaplaceEvent, SampledGaussianEvent
from bruit.privacy.formulas.subsampled import dp_sgd
from bruit.privacy.guarantee import level_facts, together
from bruit.privacy.ledger import Ledger
from bruit.privacy.theorem import SECRET_SAMPLE
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.runs.run import rehearse

EVENT = SampledGaussianEvent(noise_multiplier=4.0, rate=0.1, rounding=1e-20)
IDEAL = replace(EVENT, rounding=math.inf)


def accountant(*lines, adjacency="replace"):
    """Of a star of four peers with the theorems of averaging and these lines (peers, event) in
    the ledger, one clock each."""
    noise = br.Gaussian(clip=0.5, sigma=2.0, level="record")
    run, ledger = rehearse(br.Averaging(), star(4), noise, 3), Ledger(peers=4)
    for clock, (peers, event) in enumerate(lines):
        clocks = np.full(len(peers), clock)
        ledger.record(np.array(peers), clocks, clocks, event)
    facts = replace(run.facts(), ledger=ledger, adjacency=adjacency)
    return Accountant(facts, run.accountant().theorems)


def test_views_fall_back_to_local_dp_and_say_why():
    asked = accountant(([0, 1, 2, 3], EVENT), ([0], EVENT))
    alone, everybody = (asked.guarantee(2, seen_by).epsilon() for seen_by in (1, None))
    assert alone == everybody == pytest.approx(compose_epsilon([(EVENT, 1)], 1e-6))
    assert asked.guarantee().epsilon() == pytest.approx(compose_epsilon([(EVENT, 2)], 1e-6))
    told = alone.why().splitlines()
    assert told[0].endswith("at delta = 1e-06 (record level, one record replaced), proven")
    assert "by local DP" in told[2]
    assert any(SECRET_SAMPLE in line for line in told)
    with pytest.raises(PrivacyError, match="only local DP and masked sums are proven"):
        asked.facts.noise_multiplier()
    with pytest.raises(PrivacyError, match="only local DP and masked sums are proven"):
        asked.guarantee(2, 1, status="published")


def test_tables_summaries_and_groups_are_those_of_local_dp():
    asked = accountant(([0, 1, 2, 3], EVENT), ([0], EVENT))
    table = asked.table()
    assert table.losses is None
    assert "secret samples" in table.reason
    twice = compose_epsilon([(EVENT, 2)], 1e-6)
    assert table.summary.epsilons == pytest.approx((twice,) * 3)
    assert table.summary.adjacency == "replace"
    assert table.summary.noise_multiplier == 0
    found = asked.learned(1)
    assert np.isnan(found[1])
    assert found[[0, 2]] == pytest.approx([twice, compose_epsilon([(EVENT, 1)], 1e-6)])
    both = asked.guarantee((0, 2), 1)
    assert both.epsilon() == pytest.approx(compose_epsilon([(EVENT, 3)], 1e-6))


def test_a_peer_as_a_whole_is_told_beside_its_records():
    """silo:SILO-6: 10 records of which two releases of z = 4 speak, at rate 1."""
    asked = accountant(([0, 1, 2, 3], EVENT), ([0], EVENT))
    later = replace(asked, earlier=accountant(([0], EVENT)))
    mu = 10 * 2 / 4
    for account, releases in ((asked, 2), (later, 3)):
        found = account.whole_peer(0, 10)
        assert found == pytest.approx(epsilon_of(mu * math.sqrt(releases), 1e-6), rel=1e-6)
    user = replace(asked, facts=replace(asked.facts, level="user"))
    with pytest.raises(PrivacyError, match="about everything that a peer holds already"):
        user.whole_peer(0, 10)
    with pytest.raises(PrivacyError, match="there is no peer 4"):
        asked.whole_peer(4, 10)


def test_other_releases_are_added_in_one_account_and_rounding_is_converted_once():
    plain = GaussianEvent(noise_multiplier=5.0, rounding=3e-20)
    laplace = LaplaceEvent(noise_multiplier=9.0)
    asked = accountant(([0], EVENT), ([0], plain), ([0], EVENT), ([0, 1], laplace))
    listed = [(EVENT, 2), (plain, 1), (laplace, 1)]
    found = asked.guarantee(0).epsilon()
    assert found == pytest.approx(compose_epsilon(listed, 1e-6), rel=1e-9)
    assert "finite precision adds" in found.why()
    assert asked.facts.all_rounding() == pytest.approx(5e-20)
    assert asked.facts.own_rounding() == pytest.approx([5e-20, 0, 0, 0])
    assert not asked.facts.ideal


def test_a_float_sample_is_ideal():
    asked = accountant(([0, 1, 2, 3], IDEAL))
    assert asked.facts.ideal
    assert asked.guarantee(0).status == "ideal"
    assert asked.facts.all_rounding() == math.inf
    assert asked.guarantee(0).epsilon() < accountant(([0], EVENT)).guarantee(0).epsilon()


def test_adjacency_is_told_beside_every_epsilon_of_records():
    event = replace(EVENT, adjacency="add-remove")
    asked = accountant(([0], event), adjacency="add-remove")
    assert (
        "(record level, one record added or removed), proven" in asked.guarantee().epsilon().why()
    )
    assert "one record added or removed" in asked.guarantee()._repr_html_()
    assert asked.summary().adjacency == "add-remove"
    assert level_facts("record", "add-remove") == {"level": "record", "adjacency": "add-remove"}
    assert level_facts("user", "replace") == {"level": "user"}
    stated = dp_sgd(1000, 50, 4.0, 3, "add-remove")
    assert "(record level, one record added or removed)" in stated.epsilon().why()


def test_statements_of_two_adjacencies_do_not_compose():
    one, other = (dp_sgd(1000, 50, 4.0, 3, how) for how in ("replace", "add-remove"))
    with pytest.raises(PrivacyError, match="replaced and one about one record added or removed do"):
        together([one, other])
    assert together([one, one]).adjacency == "replace"
