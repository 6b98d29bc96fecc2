"""The theorem on masked sums (silo:SILO-4, SILO-5): against few who collude a run costs what
DP-SGD with a trusted curator costs, attempt by attempt, and against more what each release costs
with its own share of the noise."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.errors import PrivacyError
from bruit.graphs import graph
from bruit.mechanisms import Gaussian, RecordSums
from bruit.privacy.account import Accountant
from bruit.privacy.events import (
    Exact,
    GaussianEvent,
    Mask,
    MaskedEvent,
    event_from,
    from_json,
    record_event,
)
from bruit.privacy.ledger import Budget, Ledger
from bruit.privacy.theorems.masked_sums import MaskedSums
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.runs.run import rehearse

RELATIONS = {"replace": "REPLACE_ONE", "add-remove": "ADD_OR_REMOVE_ONE"}


def curator(z, q, releases, delta, adjacency="replace"):
    """Trusted-curator DP-SGD, by dp_accounting itself."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    account = PLDAccountant(getattr(dp_accounting.NeighboringRelation, RELATIONS[adjacency]))
    noise = dp_accounting.GaussianDpEvent(z)
    account.compose(dp_accounting.PoissonSampledDpEvent(q, noise), releases)
    return account.get_epsilon(delta)


def run_of(noise, peers=5, steps=6, algorithm=None):
    algorithm = br.MaskedSGD(colluders=2) if algorithm is None else algorithm
    return rehearse(algorithm, graph(f"complete:{peers}"), noise, steps, dim=3)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("q", "z", "steps"),
    [
        pytest.param(0.05, 2.0, 40, marks=pytest.mark.slow),
        (0.3, 4.0, 10),
        pytest.param(0.5, 1.0, 3, marks=pytest.mark.slow),
    ],
)
def test_few_who_collude_learn_what_a_trusted_curator_would_publish(q, z, steps, adjacency):
    """To 1e-3, and never below."""
    noise = RecordSums(clip=0.5, sigma=0.5 * z, sample_rate=q, adjacency=adjacency)
    done = run_of(noise, steps=steps)
    known = curator(z, q, steps, 1e-5, adjacency)
    opened = curator(z / math.sqrt(3), q, steps, 1e-5, adjacency)  # 5 peers, 2 collude: 3 shares
    for seen_by in ({1}, {4}, {1, 2}, {3, 4}):
        found = done.guarantee(0, seen_by, 1e-5)
        assert found.theorem == MaskedSums.title
        assert found.status == "proven"
        assert known * (1 - 1e-9) <= float(found.epsilon(1e-5)) <= known * (1 + 1e-3)
    for seen_by in ({1, 2, 3}, {1, 2, 3, 4}, None):
        found = done.guarantee(0, seen_by, 1e-5)
        assert opened * (1 - 1e-9) <= float(found.epsilon(1e-5)) <= opened * (1 + 1e-3)
    assert any("opened" in note for note in done.guarantee(0, {1, 2}, 1e-5).notes)


@pytest.mark.parametrize(
    "noise",
    [RecordSums(clip=0.5, sigma=4.0), Gaussian(clip=0.5, sigma=4.0)],
    ids=["record", "user"],
)
def test_without_sampling_it_is_one_gaussian(noise):
    """mu = 2 C sqrt(T) / sigma, at record level and at user level; sqrt(n - a) times as much if all
    masks were opened."""
    done, mu = run_of(noise), 2 * 0.5 * math.sqrt(6) / 4.0
    for few in ({1}, {2, 3}):
        assert float(done.epsilon(0, few)) == pytest.approx(epsilon_of(mu, 1e-6), rel=1e-6)
        assert float(done.epsilon(0, few)) >= epsilon_of(mu, 1e-6)
    for many in ({1, 2, 3}, None):
        found = float(done.epsilon(0, many))
        assert found == pytest.approx(epsilon_of(mu * math.sqrt(3), 1e-6), rel=1e-6)
    table = done.accountant().table()
    assert table.summary.theorem == MaskedSums.title
    assert table.summary.epsilons[0] == pytest.approx(epsilon_of(mu, 1e-6), rel=1e-6)
    assert np.nanmax(table.losses) == np.nanmin(table.losses) == 6
    together = float(done.epsilon((0, 1), {2}))  # both change a record: their mu add up
    assert together == pytest.approx(epsilon_of(2 * mu, 1e-6), rel=1e-6)


def test_with_nobody_colluding_every_single_observer_is_one_too_many():
    """Who looks knows its own share: with a = 0 less than sigma is left, so masks count as
    opened."""
    noise = RecordSums(clip=1.0, sigma=3.0, sample_rate=0.2)
    done = run_of(noise, algorithm=br.MaskedSGD(colluders=0))
    assert float(done.epsilon(0, {1})) == float(done.epsilon(0, None))
    (event,) = done.ledger.events
    assert event.opened.noise_multiplier == pytest.approx(3.0 / math.sqrt(5))


def facts_of(lines, peers=5, **more):
    """Facts of a masked run whose ledger holds these lines (peers, clock, event)."""
    ledger = Ledger(peers=peers)
    for who, clock, event in lines:
        ids = np.array(who)
        ledger.record(ids, np.full(len(ids), clock + 1), np.full(len(ids), clock), event)
    done = run_of(RecordSums(clip=0.5, sigma=2.0, sample_rate=0.3), peers)
    return replace(done.facts(), ledger=ledger, **more)


def masked(shares, z=4.0, q=0.3):
    return MaskedEvent(
        record_event(z, q, "replace", 1e-18),
        record_event(z / math.sqrt(shares), q, "replace", shares * 1e-18),
    )


def test_every_attempt_is_charged_whatever_came_of_it():
    """Peers that are missing, exchanges that were missed and a run that was stopped cost attempts:
    the theorem holds, peer by peer, with as many as it spoke in."""
    everybody = range(5)
    lines = [(everybody, 0, masked(3)), ([0, 1, 2, 3], 1, masked(2)), ([0, 1, 2], 2, masked(2))]
    for more in ({}, {"missed": 7}, {"interrupted": "stopped after 2 of 6 rounds"}):
        asked = Accountant(facts_of(lines, **more), (MaskedSums(2),))
        for peer, attempts in ((0, 3), (2, 3), (3, 2), (4, 1)):
            watching = (1, 3) if peer not in (1, 3) else (0, 1)
            found = asked.guarantee(peer, watching)
            assert found.theorem == MaskedSums.title
            assert not any("local DP" in note for note in found.notes)
            paid = compose_epsilon([(masked(3).hidden, attempts)], 1e-6)
            assert float(found.epsilon()) == pytest.approx(paid)
        opened = asked.guarantee(0, None)
        once, twice = masked(3).opened, masked(2).opened
        paid = compose_epsilon([(once, 1), (twice, 2)], 1e-6)
        assert float(opened.epsilon()) == pytest.approx(paid)


def test_noise_of_different_sizes_is_local_dp():
    asked = Accountant(facts_of([(range(5), 0, masked(3))], unequal=True), (MaskedSums(2),))
    found = asked.guarantee(0, (1,))
    assert found.theorem.startswith("local DP")
    assert float(found.epsilon()) == float(asked.guarantee(0).epsilon())


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([([0, 1], 0, masked(3)), ([0], 0, masked(3))], "spoke twice in one attempt"),
        ([([0], 0, masked(3)), ([0], 1, masked(3, z=5.0))], "one kind of noise"),
        ([([0], 0, masked(3)), ([0], 1, masked(3, q=0.2))], "one kind of noise"),
        ([([0], 0, masked(3)), ([0], 1, Exact())], "one kind of noise"),
        ([([0], 0, record_event(4.0, 0.3, "replace", 0.0))], "one kind of noise"),
        ([([0], 0, masked(4))], "share of the noise as for 4 honest members of 5"),
        ([([0], 0, masked(2.5))], "share of the noise"),
    ],
    ids=["twice", "two noises", "two rates", "exact", "unmasked", "too small a share", "a part"],
)
def test_other_ledgers_are_refused_and_charged_as_local_dp(lines, why):
    facts = facts_of(lines)
    with pytest.raises(PrivacyError, match=why):
        MaskedSums(2).check(facts)
    found = Accountant(facts, (MaskedSums(2),)).guarantee(0, (1,))
    assert found.theorem.startswith("local DP")
    assert any(why in note for note in found.notes)


def test_it_is_about_masked_sgd_only():
    facts = replace(facts_of([([0], 0, masked(3))]), algorithm="gossip-sgd")
    with pytest.raises(PrivacyError, match="it is about masked-sgd"):
        MaskedSums(2).check(facts)
    for wrong in (-1, 1.5, True):
        with pytest.raises(PrivacyError):
            MaskedSums(wrong)


def test_silent_attempts_cost_nothing():
    lines = [(range(5), 0, masked(3)), (range(5), 1, Mask(1.0))]
    found = Accountant(facts_of(lines), (MaskedSums(2),)).guarantee(0, (1,))
    paid = compose_epsilon([(masked(3).hidden, 1)], 1e-6)
    assert found.theorem == MaskedSums.title
    assert float(found.epsilon()) == pytest.approx(paid)


def test_masked_events_are_read_back_and_only_hide():
    for event in (masked(3), masked(1), masked(2, q=1.0)):
        assert event_from(event.describe()) == event
        assert from_json(event.to_json()) == event
        assert event.promised() == event.hidden
        assert list(event.parts()) == [(event.opened, 1)]
        assert compose_epsilon([(event, 3)], 1e-6) == compose_epsilon([(event.opened, 3)], 1e-6)
    noise = GaussianEvent(noise_multiplier=2.0, rounding=0.0)
    with pytest.raises(PrivacyError, match="no more noise"):
        MaskedEvent(noise, replace(noise, noise_multiplier=3.0))
    with pytest.raises(PrivacyError, match="one kind of noise"):
        MaskedEvent(noise, record_event(1.0, 0.5))
    for broken in ({"hidden": Exact().describe()}, {"opened": None}, {"hidden": {}}):
        with pytest.raises(PrivacyError):
            event_from({**masked(3).describe(), **broken})


def test_masks_that_change_rate_or_adjacency_hide_nothing_known():
    """What is hidden and what is opened are one release: only the noise may differ."""
    hidden = record_event(4.0, 0.1, "replace", 0.0)
    for opened in (
        record_event(2.0, 0.2, "replace", 0.0),
        record_event(2.0, 0.1, "add-remove", 0.0),
    ):
        with pytest.raises(PrivacyError):
            MaskedEvent(hidden, opened)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_a_budget_charges_what_is_promised_and_stops_at_the_limit(rate):
    """The limit is that of the hidden events, to the last release; the opened ones cost more."""
    event = masked(3, q=rate)
    limit = compose_epsilon([(event.hidden, 4)], 1e-6)
    budget, ledger = Budget(limit), Ledger(peers=2)
    for attempt in itertools.count():
        if not budget.allows(ledger, 0, event):
            break
        place = np.array([attempt])
        ledger.record(np.zeros(1, np.int64), place, place, event)
    assert attempt == 4
    assert budget.spent(ledger, 0) == pytest.approx(limit)
    assert budget.spent(ledger, 1) == 0
    assert compose_epsilon([(event, 4)], 1e-6) > limit
    assert not budget.allows(ledger, 0, masked(2, q=rate))  # another list, the same promise
    assert not budget.allows(ledger, 0, Exact())
    assert budget.allows(ledger, 0, Mask(1.0))


@pytest.mark.slow
def test_an_epsilon_is_kept_with_all_spare_attempts():
    """Noise made for epsilon is made for steps + spare attempts of the same kind."""
    from bruit.runs.build import build
    from bruit.runs.file import parse

    text = """graph = "complete:4"
steps = 6
[task]
kind = "logistic"
data = "breast_cancer"
components = 2
[algorithm]
name = "masked-sgd"
spare = 3
[privacy]
level = "record"
epsilon = 1.0
clip = 0.5
sample_rate = {rate}
"""
    for rate in (1.0, 0.2):
        made = build(parse(text.format(rate=rate)), text.format(rate=rate), "x")
        counts = made.task.record_counts()
        assert made.privacy.divisor == pytest.approx(rate * counts.mean())
        done = br.run(
            made.algorithm, made.graph, made.task, privacy=made.privacy, steps=6, evaluate_every=0
        )
        (event,) = done.ledger.events
        paid = compose_epsilon([(event.hidden, 9)], 1e-6)
        assert 0.98 < paid <= 1 + 1e-9
        assert float(done.epsilon(0, 1)) < paid  # nothing failed: six were needed
