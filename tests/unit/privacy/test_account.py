"""The accountant: which theorem, why not another, and what is refused."""

import importlib
import pkgutil
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
import bruit.privacy.theorems as folder
from bruit.algorithms.algorithm import catalog
from bruit.commands.listing import listing
from bruit.errors import PrivacyError
from bruit.graphs import butterfly, complete, from_edges, path, ring, star
from bruit.personal import bounded_records, model_noise
from bruit.privacy.theorem import Theorem
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.runs.run import rehearse
from bruit.testing import small_task
from bruit.trace import Meetings, Trace

NOISE = br.Gaussian(clip=0.5, sigma=2.0)  # sensitivity 1, so the noise multiplier is 2


def averaging(graph=None, steps=3, noise=NOISE):
    return rehearse(br.Averaging(), star(6) if graph is None else graph, noise, steps)


def test_a_pair_is_accounted_by_the_exact_theorem():
    # gossip:MUF-2: star(6), v = 1, T = 3: [1, 1, 0.25, 0.25, 0.25, 0.25]; gossip:DP-1 gives
    # epsilon.
    found = averaging().epsilon(of=2, seen_by=1)
    assert found.guarantee.loss == pytest.approx(0.25)
    assert float(found) == pytest.approx(epsilon_of(0.5 / 2.0, 1e-6))
    assert (found.guarantee.spec, found.guarantee.status) == ("gossip:MUF-2", "proven")
    why = found.why()
    for words in (
        "delta = 1e-06 (user level), proven",
        "what peer 1 could have learned about peer 2",
        "checked: one",
    ):
        assert words in why


def test_everybody_sees_every_release():
    found = averaging().epsilon()
    assert float(found) == pytest.approx(epsilon_of(1 / 2.0, 1e-6))
    assert (found.guarantee.of, found.guarantee.against) == ("the worst peer", "everybody")
    assert float(averaging().epsilon(of=3, seen_by="everybody")) == float(found)


def test_releases_compose_in_the_local_view():
    # gossip:DP-8: mu^2 adds over 5 gradients.
    found = rehearse(br.GossipSGD(), ring(6), NOISE, 5).epsilon()
    assert found.guarantee.loss == 5
    assert float(found) == pytest.approx(epsilon_of(np.sqrt(5) / 2, 1e-6))


def test_the_worst_peer_in_a_view():
    run = averaging()
    assert run.guarantee(seen_by=1).loss == pytest.approx(1)
    assert run.guarantee(seen_by=[1, 2]).against == "peers 1, 2 together"
    assert run.guarantee(of=3, seen_by={1, 2}).loss >= 0.25


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (
            rehearse(br.GossipSGD(mixing=3, gamma=1.5), butterfly(8), NOISE, 6),
            "no round ends in exact consensus",
        ),
        (rehearse(br.WalkSGD(), ring(6), NOISE, 9), "does not apply"),
        (
            rehearse(br.Averaging(), ring(6), br.Laplace(clip=1.0, scale=2.0), 3),
            "needs one Gaussian mechanism",
        ),
        (rehearse(br.Renoised(tau=0.0), ring(6), NOISE, 3), "needs noise in every message"),
    ],
    ids=["accelerated", "walk", "laplace", "no message noise"],
)
def test_the_default_falls_back_to_local_dp_and_says_why(run, why):
    found = run.epsilon(of=2, seen_by=0)
    assert found.guarantee.theorem.startswith("local DP")
    assert any(why in note for note in found.guarantee.notes)
    assert float(found) == float(run.epsilon(of=2))
    assert any(why in reason for reason in run.summary().refused)
    off = ~np.eye(run.n, dtype=bool)
    assert np.array_equal(
        run.losses()[off], np.repeat(run.facts().releases()[:, None], run.n, 1)[off]
    )


def test_without_consensus_only_the_last_round_is_sharper():
    # gossip:MUF-9: reveal all rounds but the last, whose view is that of averaging (gossip:MUF-2).
    run = rehearse(br.GossipSGD(mixing=2), path(6), NOISE, 6)
    for u, last in ((1, 1.0), (2, 1.0), (3, 0.0), (5, 0.0)):
        assert run.guarantee(of=u, seen_by=0).loss == pytest.approx(2 + last)
    assert any(
        "no round ends in exact consensus" in note for note in run.guarantee(of=1, seen_by=0).notes
    )


def test_consensus_rounds_compose():
    # gossip:MUF-X2: with radix 2, m = 1 / 2^i for the highest differing digit i; two rounds add.
    run = rehearse(br.GossipSGD(mixing=3), butterfly(8), NOISE, 6)
    for u, loss in ((1, 1.0), (2, 0.5), (3, 0.5), (4, 0.25), (7, 0.25)):
        assert run.guarantee(of=u, seen_by=0).loss == pytest.approx(2 * loss)
    complete_graph = rehearse(br.GossipSGD(), complete(5), NOISE, 4)
    assert complete_graph.guarantee(of=1, seen_by=0).spec.startswith("gossip:MUF-9")


def test_chained_phases_are_accounted_by_the_whole_ledger():
    task, graph = small_task(8), butterfly(8)
    first = br.run(br.GossipSGD(mixing=3), graph, task, privacy=NOISE, steps=3, seed=1)
    second = br.run(
        br.GossipSGD(mixing=3), graph, task, privacy=NOISE, steps=6, seed=2, after=first
    )
    assert first.guarantee(of=7, seen_by=0).loss == pytest.approx(0.25)
    assert second.guarantee(of=7, seen_by=0).loss == pytest.approx(
        0.75
    )  # three rounds, all end in exact consensus
    cut = br.run(br.GossipSGD(mixing=3), graph, task, privacy=NOISE, steps=5, seed=1)
    with (
        pytest.warns(UserWarning, match="no exact continuation"),
        pytest.raises(
            br.ConfigError, match="stopped after 5 rounds, in the middle of the 3 exchanges"
        ),
    ):
        br.run(br.GossipSGD(mixing=3), graph, task, privacy=NOISE, steps=6, seed=2, after=cut)
    after = br.run(
        br.GossipSGD(mixing=3),
        graph,
        task,
        privacy=NOISE,
        steps=6,
        seed=2,
        after=cut,
        carry="model",
    )
    assert cut.guarantee(of=7, seen_by=0).loss == pytest.approx(
        0.25
    )  # two exchanges do not bring peer 7 to peer 0
    assert cut.guarantee(of=2, seen_by=0).loss == pytest.approx(
        1.0
    )  # one half of a release in each round
    assert after.guarantee(of=7, seen_by=0).loss == pytest.approx(
        2.5
    )  # continued: both are charged 1, then two more


def test_hidden_states_handed_on_are_charged_as_seen():
    # Averaging then gradient descent from its models: later messages say more about the earlier
    # releases.
    task, graph = small_task(8), butterfly(8)
    first = br.run(br.Averaging(), graph, task, privacy=NOISE, steps=2, seed=1)
    onward = br.run(
        br.GossipSGD(mixing=3), graph, task, privacy=NOISE, steps=6, seed=2, after=first
    )
    apart = br.run(
        br.GossipSGD(mixing=3),
        graph,
        task,
        privacy=NOISE,
        steps=6,
        seed=2,
        after=first,
        carry="nothing",
    )
    alone = first.guarantee(of=7, seen_by=0).loss
    assert alone == 0.0  # two exchanges do not bring peer 7 to peer 0
    assert onward.carried == "model"
    assert onward.guarantee(of=7, seen_by=0).loss == pytest.approx(1.0 + 0.5)
    assert apart.guarantee(of=7, seen_by=0).loss == pytest.approx(0.0 + 0.5)
    assert "hidden states" in onward.epsilon(of=7, seen_by=0).why()
    whole = br.run(
        br.Averaging(), graph, task, privacy=NOISE, steps=3, seed=1
    )  # ends in exact consensus
    warm = br.run(br.GossipSGD(mixing=3), graph, task, privacy=NOISE, steps=6, seed=2, after=whole)
    assert warm.guarantee(of=7, seen_by=0).loss == pytest.approx(0.25 + 0.5)


def test_protocols_with_different_mechanisms_compose_tightly():
    # mu**2 adds over Gaussian protocols; a Laplace release joins by its privacy loss distribution.
    task, graph = small_task(8), butterfly(8)
    first = br.run(
        br.Averaging(), graph, task, privacy=br.Gaussian(clip=0.5, sigma=2.0), steps=3, seed=1
    )
    second = br.run(
        br.GossipSGD(mixing=3),
        graph,
        task,
        privacy=br.Gaussian(clip=0.5, sigma=4.0),
        steps=6,
        after=first,
        carry="nothing",
    )
    energy = 0.25 / 2.0**2 + 0.5 / 4.0**2
    assert float(second.epsilon(of=7, seen_by=0)) == pytest.approx(epsilon_of(energy**0.5, 1e-6))
    third = br.run(
        br.Averaging(),
        graph,
        task,
        privacy=br.Laplace(clip=0.5, scale=4.0),
        steps=1,
        after=second,
        carry="nothing",
    )
    one, both = float(second.epsilon(of=7, seen_by=0)), float(third.epsilon(of=7, seen_by=0))
    assert one < both < one + 0.25
    assert third.summary().epsilons[0] >= both


def test_a_composed_run_survives_its_folder(tmp_path):
    task, graph = small_task(8), butterfly(8)
    first = br.run(br.Averaging(), graph, task, privacy=NOISE, steps=3, seed=1)
    second = br.run(
        br.GossipSGD(mixing=3), graph, task, privacy=NOISE, steps=6, seed=2, after=first
    )
    again = br.load(second.save(tmp_path / "two.run"))
    for of, seen_by in ((7, 0), (1, 0), (3, [1, 2])):
        assert float(again.epsilon(of=of, seen_by=seen_by)) == float(
            second.epsilon(of=of, seen_by=seen_by)
        )
    with pytest.raises(br.ConfigError, match="keeps no states"):
        br.run(br.GossipSGD(mixing=3), graph, task, privacy=NOISE, steps=3, after=again)


@pytest.mark.parametrize(
    ("of", "seen_by", "word"),
    [
        (2, 2, "nobody has secrets from oneself"),
        (2, [1, 2], "nobody has secrets"),
        (6, 0, "there is no peer 6"),
        (-1, 0, "there is no peer -1"),
        (0, 6, "there is no peer 6"),
        (0, [1, -2], "there is no peer -2"),
        (0, [], "`seen_by` names no peer"),
        (0, "all", "found 'all'"),
    ],
)
def test_questions_without_an_answer_are_refused(of, seen_by, word):
    with pytest.raises(PrivacyError, match=word):
        averaging().epsilon(of=of, seen_by=seen_by)


@pytest.mark.parametrize("delta", [1.0, -0.1, 2.0, float("nan")])
@pytest.mark.parametrize("seen_by", [0, None])
def test_delta_is_at_least_0_and_below_1(delta, seen_by):
    with pytest.raises(PrivacyError, match="delta must"):
        averaging().epsilon(of=1, seen_by=seen_by, delta=delta)


def test_a_composed_guarantee_answers_at_any_delta():
    found = rehearse(br.Averaging(), ring(6), br.Laplace(clip=1.0, scale=2.0), 3).guarantee(
        delta=1e-6
    )
    assert float(found.epsilon(1e-3)) <= float(found.epsilon(1e-6)) <= 1.0


def test_noise_of_different_sizes_is_charged_locally():
    # The projector of gossip:LG-1 is about equal noise; peers with noises of their own sizes get
    # local DP.
    owners = np.repeat(np.arange(6), [1, 1, 1, 10, 1, 1])
    task = br.tasks.Logistic(bounded_records(np.ones((15, 1)), np.ones(15), owners), l2=1.0)
    noise = replace(model_noise(task, "gaussian"), noise_multiplier=2.0)
    found = br.run(br.Averaging(), star(6), task, privacy=noise, steps=3, evaluate_every=0).epsilon(
        of=2, seen_by=1
    )
    assert found.guarantee.theorem.startswith("local DP")
    assert any("noise of different sizes" in note for note in found.guarantee.notes)
    assert float(found) == pytest.approx(epsilon_of(1 / 2.0, 1e-6))


def test_published_is_on_request_only_and_says_so():
    # gossip:MUF-1 on path(5), v = 0, T = 3: [0.72463768, 1.7246377, 0.50724638, 0.043478261, 0].
    run = averaging(path(5))
    found = [run.guarantee(of=u, seen_by=0, status="published") for u in (1, 2, 3, 4)]
    assert [g.loss for g in found] == pytest.approx([1.7246377, 0.50724638, 0.043478261, 0])
    assert all(g.status == "published" and "not a guarantee" in g.notes[0] for g in found)
    assert run.summary(status="published").status == "published"
    with pytest.raises(PrivacyError, match="no published formula is listed for runs of renoised"):
        rehearse(br.Renoised(), ring(6), NOISE, 3).epsilon(of=1, seen_by=0, status="published")
    with pytest.raises(PrivacyError, match="one Gaussian mechanism"):
        averaging(noise=br.Laplace(clip=1.0, scale=2.0)).epsilon(
            of=1, seen_by=0, status="published"
        )


def test_the_matrix_is_m_of_u_in_the_view_of_v():
    m = averaging().losses()
    assert np.isnan(np.diag(m)).all()
    assert m[2, 1] == pytest.approx(0.25)
    assert m[0, 1] == pytest.approx(1)
    assert m[1, 0] == pytest.approx(1)


def test_the_summary_prints_the_worst_beside_the_mean():
    # gossip:MUF-3: star(6), v = 1, T = 3: exact mean over u != v 1/3 for a leaf; the hub hears 5
    # inputs: 5/6.
    summary = averaging().summary()
    assert summary.losses == pytest.approx((1, 0.25, 5 / 6))
    assert summary.epsilons[0] == pytest.approx(epsilon_of(0.5, 1e-6))
    assert summary.local_epsilon == pytest.approx(epsilon_of(0.5, 1e-6))
    assert summary.local_loss == 1


# corner values of the library


def test_no_steps_no_loss():
    run = averaging(steps=0)
    assert run.guarantee(of=2, seen_by=0).loss == 0
    assert run.epsilon(of=2, seen_by=0) == 0
    assert run.summary().losses == (0, 0, 0)
    assert run.epsilon() > 0


def test_one_peer_alone_has_no_pair():
    run = averaging(path(1))
    assert np.isnan(run.losses()).all()
    assert run.summary().losses == (0, 0, 0)
    assert run.epsilon(seen_by=0) == 0


def test_no_loss_between_parts_that_never_meet():
    run = averaging(from_edges(5, [(0, 1), (1, 2), (3, 4)]), steps=6)
    assert run.guarantee(of=3, seen_by=0).loss == 0
    assert run.epsilon(of=4, seen_by=[0, 1, 2]) == 0
    assert run.guarantee(of=4, seen_by=3).loss == pytest.approx(1)


@pytest.mark.parametrize("noise", [None, br.Gaussian(clip=1.0, sigma=0.0)])
def test_no_noise_is_an_infinite_epsilon_never_a_missing_one(noise):
    run = averaging(noise=noise)
    assert run.epsilon() == np.inf
    assert run.epsilon(of=2, seen_by=1) == np.inf
    assert run.summary().epsilons[0] == np.inf
    assert run.summary().local_epsilon == np.inf


def test_the_level_is_named():
    run = averaging(noise=br.Gaussian(clip=0.5, sigma=2.0, level="record"))
    assert run.guarantee(of=2, seen_by=1).level == "record"
    assert "(record level, one record replaced)" in run.epsilon().why()


def test_the_weakest_status_wins():
    """From strong to weak: proven, quoted, ideal, published, heuristic."""
    from dataclasses import replace
    from itertools import combinations

    from bruit.privacy.guarantee import STATUSES, Guarantee, gaussian, together

    assert STATUSES == ("proven", "quoted", "ideal", "published", "heuristic")
    one = Guarantee(
        theorem="a claim",
        spec="none",
        status="proven",
        level="user",
        of="peer 1",
        against="peer 0",
        hypotheses=(),
        profile=gaussian(1.0, 2.0),
    )
    for strong, weak in combinations(STATUSES, 2):
        assert together([replace(one, status=weak), replace(one, status=strong)]).status == weak


def test_printed_formulas_of_gossip_sgd_and_pair_averaging_are_listed():
    """Both were written down and asked by nobody."""
    # gossip:MUF-9 source_C4 on path(6), v = 0, T = 3, K = 2.
    run = rehearse(br.GossipSGD(mixing=2), path(6), NOISE, 6)
    found = [run.guarantee(of=u, seen_by=0, status="published").loss for u in range(1, 6)]
    assert found == pytest.approx([6.0990198, 2.0866229, 0.31340123, 0.036822686, 0.0032478944])
    met = Trace(
        peers=3,
        steps=3,
        meetings=Meetings(np.arange(3.0), np.array([0, 1, 0]), np.array([1, 2, 1])),
    )
    pairs = br.run(
        br.PairAveraging(),
        path(3),
        small_task(3),
        privacy=NOISE,
        steps=3,
        given=met,
        evaluate_every=0,
    )
    printed = pairs.guarantee(of=2, seen_by=0, status="published")
    assert printed.loss == pytest.approx(2 / 3)
    assert pairs.guarantee(of=2, seen_by=0).loss == pytest.approx(
        1.0
    )  # proven: what was printed is no bound
    assert printed.status == "published"
    assert "not a guarantee" in printed.notes[0]
    assert pairs.losses("published")[2, 0] == pytest.approx(2 / 3)


def test_the_list_of_theorems_has_all_that_algorithms_name():
    found = listing("theorems")
    for name, kind in catalog().items():
        for theorem in kind().guarantees():
            assert theorem.title in found[f"{name} {type(theorem).__name__}"]
    assert found["gossip-sgd PublishedDescent"].startswith("published: ")
    assert found["pair-averaging PublishedMeetings"].startswith("published: ")
    assert "published_rows" in found["published"]


def test_every_theorem_of_the_folder_is_named_by_an_algorithm():
    """A class that no algorithm lists is never asked: the defect of PublishedDescent."""
    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{module.name}")
    cases = [kind() for kind in catalog().values()] + [br.FederatedADMM(noise="server")]
    named = {type(theorem) for one in cases for theorem in one.guarantees()}
    own = {kind for kind in Theorem.__subclasses__() if kind.__module__.startswith("bruit.")}
    assert {kind.__name__ for kind in own - named} == set()
