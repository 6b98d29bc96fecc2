"""Many questions about one run: what does not depend on the question is found once, and never after
the run changed."""

import numpy as np
import pytest

import bruit as br
from bruit.graphs import butterfly
from bruit.privacy import exact
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import VIEWS
from bruit.privacy.theorems import consensus
from bruit.testing import small_task

NOISE = br.Gaussian(clip=1.0, sigma=1.0)


def run(**options):
    return br.run(
        br.Averaging(),
        "er:20,c=2",
        small_task(20),
        privacy=NOISE,
        steps=4,
        evaluate_every=0,
        **options,
    )


def test_one_view_is_computed_once(monkeypatch):
    """A question was answered by two decompositions, one for the loss and one for its note; the
    next by two more."""
    asked, honest = [], exact.leverage
    monkeypatch.setattr(
        exact,
        "leverage",
        lambda graph, observers, steps: asked.append(observers) or honest(graph, observers, steps),
    )
    found = run()
    first = found.epsilon(of=3, seen_by=1)
    found.epsilon(of=4, seen_by=1)
    assert found.epsilon(of=3, seen_by=1) == first
    found.epsilon(of=3, seen_by=2)
    assert asked == [(1,), (2,)]


def test_a_changed_run_is_asked_anew():
    found = run()
    before = found.epsilon(of=3, seen_by=1)
    assert found.accountant() is found.accountant()
    found.trace.missed = 2
    assert "2 exchanges were missed" in found.epsilon(of=3, seen_by=1).why()
    found.trace.missed = 0
    found.declared = (Hypothesis("said later", checked=False),)
    assert "said later" in found.epsilon(of=3, seen_by=1).why()
    ids = np.arange(20)
    found.ledger.record(ids, ids, ids, found.ledger.events[0])
    assert found.epsilon(of=3, seen_by=1) > before


def test_other_meetings_are_asked_anew():
    """The accountant that was kept went on with the meetings it had seen first."""
    few, many = (
        br.run(
            br.PairAveraging(),
            "ring:8",
            small_task(8),
            privacy=NOISE,
            steps=steps,
            evaluate_every=0,
        )
        for steps in (2, 60)
    )
    before = few.losses()[0, 4]
    few.trace.meetings = many.trace.meetings
    assert few.accountant() is few.accountant()
    assert few.losses()[0, 4] == many.losses()[0, 4] > before


def test_an_earlier_phase_that_changes_is_asked_anew():
    first = run()
    second = run(after=first, carry="nothing")
    assert "exchanges were missed" not in second.epsilon(of=3, seen_by=1).why()
    first.trace.missed = 1
    assert "1 exchanges were missed" in second.epsilon(of=3, seen_by=1).why()


def test_what_is_kept_is_bounded_and_not_shared():
    found = run()
    facts = found.accountant().facts
    theorem = found.algorithm.guarantees()[0]
    for v in range(20):
        theorem.losses(facts, (v,))[:] = np.nan
    assert len(facts.found) == VIEWS
    assert np.isfinite(theorem.losses(facts, (19,))).all()


@pytest.mark.parametrize("relabel", [None, 0])
def test_one_observer_of_a_butterfly_costs_one_column(relabel, monkeypatch):
    """All pairs of 1024 peers were computed in every round, for one column of them: two seconds a
    pair."""
    graph = butterfly(24, relabel=relabel)
    for number in (0, len(graph.radices)):
        whole = consensus.digit_losses(graph, number)
        for v in (0, 5, 23):
            assert np.array_equal(consensus.digit_losses(graph, number, v)[:, 0], whole[:, v])
    sizes, honest = [], consensus.digit_losses

    def counted(*asked):
        found = honest(*asked)
        sizes.append(found.size)
        return found

    monkeypatch.setattr(consensus, "digit_losses", counted)
    algorithm = br.GossipSGD(mixing=len(graph.radices))
    done = br.run(
        algorithm,
        graph,
        small_task(24),
        privacy=NOISE,
        steps=3 * len(graph.radices),
        evaluate_every=0,
    )
    done.epsilon(of=1, seen_by=2)
    assert sizes
    assert max(sizes) == 24


def test_of_more_peers_than_a_table_holds_a_run_tells_what_holds_for_all(monkeypatch):
    """A run of more than 16384 peers ended with exit code 2 after it was saved: its summary asked for
    all pairs."""
    run = br.run(
        br.Averaging(),
        "ring:8",
        br.tasks.Mean.uniform(8, seed=0),
        privacy=br.Gaussian(clip=0.5, sigma=2.0),
        steps=2,
    )
    table = run.summary()
    monkeypatch.setattr("bruit.privacy.account.MOST_PEERS", 7)
    bound = run.summary()
    assert bound.epsilons == (bound.local_epsilon,) * 3
    assert bound.epsilons[0] >= table.epsilons[0]
    assert "more than 7 peers" in bound.refused[-1]
    with pytest.raises(br.PrivacyError, match="Ask about one pair"):
        run.losses()
