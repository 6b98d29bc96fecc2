"""Odometers: costs known before a message is said, caps that no choice passes, and what they refuse."""

import numpy as np
import pytest

import bruit as br
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import graph as named
from bruit.privacy.exact import MeetingLosses
from bruit.privacy.exact.rows import noisy_rows_loss

CLINICS = np.where(np.arange(12)[:, None] // 4 == np.arange(12) // 4, 2.5, 1.0)


def rehearsed(graph, sigma, tau=0.1, seed=0):
    steps = len(graph.graphs)
    return br.rehearse(br.Renoised(tau=tau), graph, br.Gaussian(0.5, sigma), steps, seed=seed)


def noise(sigma):
    return br.Gaussian(clip=0.5, sigma=sigma)


def test_message_by_message_is_what_the_whole_view_costs():
    """Against dense rows of all messages heard, for random meetings of seven peers."""
    n, tau, rng = 7, 0.3, np.random.default_rng(5)
    losses = MeetingLosses(n, tau)
    states = {v: np.eye(n) for v in range(n)}
    heard = {v: [] for v in range(n)}
    for v in range(n):
        states[v][v] = 0
    for _ in range(9):
        order = rng.permutation(n)
        pairs = [(int(a), int(b)) for a, b in zip(order[0::2], order[1::2], strict=False)][:3]
        for a, b in pairs:
            for speaker, listener in ((a, b), (b, a)):
                before = losses.loss[:, listener] + losses.cost(speaker, listener)
                heard[listener].append(states[listener][speaker].copy())
                wanted = noisy_rows_loss(
                    np.array(heard[listener]), np.full(len(heard[listener]), tau)
                )
                assert np.allclose(before, wanted, atol=1e-10)
        losses.meet(pairs)
        for v in range(n):
            for a, b in pairs:
                states[v][a] = states[v][b] = (states[v][a] + states[v][b]) / 2
            states[v][v] = 0


def test_no_meeting_passes_a_cap_and_the_run_says_the_same():
    odometer = br.Odometer(CLINICS)
    meetings = odometer.release(2.12, tau=0.1)
    links = [(int(a), int(b)) for a, b in named("complete:12").edges()]
    while meetings.go_on(links) and len(meetings.held) < 12:
        assert np.all(meetings.losses.loss <= meetings.room)
    run = rehearsed(meetings.graph(), 2.12)
    off = ~np.eye(12, dtype=bool)
    assert np.allclose(run.losses()[off], meetings.losses.loss[off], atol=1e-9)
    assert odometer.fits(run)
    assert run.epsilon(of=0, seen_by=5) <= 1.0
    assert run.guarantee(of=0, seen_by=5).spec == "gossip:MUF-X1"


def test_a_spent_budget_reroutes_and_then_ends():
    """Peer 0 may hear little of 1: so 1 meets 2 first, and 0 hears of it behind the noise of others."""
    caps = np.full((4, 4), 3.0)
    caps[1, 0] = 2.0
    odometer = br.Odometer(caps)
    meetings = odometer.release(1.75, tau=0.1)
    assert not meetings.fits(0, 1)
    with pytest.raises(PrivacyError, match="peers 0 and 1 may not meet now"):
        meetings.meet([(0, 1)])
    free = br.Odometer(np.full((4, 4), 3.0)).rounds("complete:4", 1.75, steps=3)
    assert free.at(0).edges().tolist() == [[0, 1], [2, 3]]
    rerouted = odometer.rounds("complete:4", 1.75, steps=3)
    assert rerouted.at(0).edges().tolist() == [[0, 2], [1, 3]]
    run = br.run(
        br.Renoised(tau=0.1),
        rerouted,
        br.tasks.Mean(np.full((4, 1), 0.25)),
        privacy=noise(1.75),
        steps=len(rerouted.graphs),
    )
    odometer.add(run)
    assert odometer.epsilon(1, 0) == pytest.approx(2.0, abs=1e-6)
    assert run.epsilon(of=1, seen_by=0) <= odometer.epsilon(1, 0)
    assert not odometer.fits(rehearsed(rerouted, 1.75, seed=1))
    with pytest.raises(PrivacyError, match=r"no two peers may meet.*noise multiplier of"):
        odometer.rounds("complete:4", 1.75)


def test_what_was_told_to_everybody_counts_for_all():
    odometer = br.Odometer(2.0, peers=6)
    task = br.tasks.Mean.uniform(6, seed=0)
    told = br.run(br.Averaging(), "ring:6", task, privacy=noise(4.0), steps=1, seed=3)
    assert odometer.fits(told, told=True)
    odometer.add(told, told=True)
    assert np.allclose(odometer.spent[~np.eye(6, dtype=bool)], 1 / 16)
    fresh = br.Odometer(2.0, peers=6)
    fresh.add(told)
    assert fresh.spent[3, 0] == 0.0 < odometer.spent[3, 0]


def test_a_run_that_passes_a_cap_voids_the_promise():
    odometer = br.Odometer(1.0, peers=4)
    task = br.tasks.Mean.uniform(4, seed=0)
    run = br.run(br.Averaging(), "ring:4", task, privacy=noise(1.0), steps=2)
    assert not odometer.fits(run)
    with pytest.raises(PrivacyError, match="passed the cap of what peer 1 may learn of peer 0"):
        odometer.add(run)
    assert odometer.epsilon(0, 1) == np.inf
    assert "passed the cap" in odometer.epsilon(0, 1).why()


def test_runs_that_cannot_be_counted():
    task = br.tasks.Mean.uniform(4, seed=0)
    options = {"steps": 1, "evaluate_every": 0}
    run = br.run(br.Averaging(), "ring:4", task, privacy=noise(9.0), **options)
    odometer = br.Odometer(np.inf, peers=4)
    odometer.add(run)
    with pytest.raises(PrivacyError, match="share its noise"):
        odometer.add(run)
    assert odometer.epsilon(0, 1) == np.inf
    assert "could not be counted" in odometer.void
    again = br.Odometer(5.0, peers=4)
    longer = br.chain(run, task, **options)
    ideal = br.Gaussian(clip=0.5, sigma=9.0, arithmetic="ideal")
    real = br.run(br.Averaging(), "ring:4", task, privacy=ideal, **options)
    other = br.run(
        br.Averaging(), "ring:5", br.tasks.Mean.uniform(5), privacy=noise(9.0), **options
    )
    laplace = br.Laplace(clip=0.5, scale=9.0)
    odd = br.run(br.Averaging(), "ring:4", task, privacy=laplace, **options)
    for wrong, words in (
        (longer, "begin anew"),
        (real, "ideal"),
        (other, "is of 4 peers"),
        (odd, "Gaussian"),
    ):
        with pytest.raises(PrivacyError, match=words):
            again.fits(wrong)


@pytest.mark.parametrize(
    ("made", "error", "words"),
    [
        (lambda: br.Odometer(1.0), ConfigError, "peers="),
        (lambda: br.Odometer(np.ones((2, 3))), ConfigError, "shape"),
        (lambda: br.Odometer(np.ones((129, 129))), ConfigError, "2 to 128 peers"),
        (lambda: br.Odometer(0.0, peers=3), PrivacyError, "every pair needs a cap"),
        (lambda: br.Odometer(np.full((3, 3), np.nan)), PrivacyError, "every pair needs a cap"),
        (lambda: br.Odometer(1.0, peers=3).rounds("ring:4", 1.0), ConfigError, "graph of 3 peers"),
        (lambda: br.Odometer(1.0, peers=4).rounds("butterfly:4", 1.0), ConfigError, "one graph"),
        (lambda: br.Odometer(1.0, peers=3).release(1.0, 0.0), PrivacyError, "1e-100"),
        (lambda: br.Odometer(1.0, peers=3).epsilon(1, 1), PrivacyError, "two peers of 0..2"),
        (lambda: br.Odometer(9.0, peers=3).release(9.0).meet([(0, 1), (1, 2)]), ConfigError, "one"),
    ],
)
def test_bad_input_is_refused(made, error, words):
    with pytest.raises(error, match=words):
        made()


def test_meetings_are_a_graph_that_has_a_name():
    graph = named("meetings:0-1+2-3//1-2,peers=5")
    assert (graph.n, graph.name) == (5, "meetings:0-1+2-3//1-2,peers=5")
    assert [one.edges().tolist() for one in graph.graphs] == [[[0, 1], [2, 3]], [], [[1, 2]]]
    assert graph.at(0).weights[0, 1] == 0.5
    for text, words in (
        ("meetings:0-1-2", "pairs of peers"),
        ("meetings:0-1+1-2", "two meetings"),
        ("meetings:0-5,peers=3", "there are 3 peers"),
        ("meetings:0-x", "pairs of peers"),
    ):
        with pytest.raises(ConfigError, match=words):
            named(text)


@pytest.mark.parametrize("delta", [0.0, -1.0, 2.0, np.inf, np.nan])
def test_a_delta_that_is_none_is_refused(delta):
    with pytest.raises(PrivacyError, match="caps are at a delta between 0 and 1"):
        br.Odometer(1.0, peers=3, delta=delta)


@pytest.mark.parametrize(("z", "tau"), [(np.inf, 0.1), (1e200, 0.1), (1e-200, 0.1), (3.0, np.inf)])
def test_noise_whose_square_is_no_number_is_refused(z, tau):
    with pytest.raises(PrivacyError, match="both are from 1e-100 to 1e\\+100"):
        br.Odometer(1.0, peers=4).rounds("complete:4", z, tau)


@pytest.mark.parametrize("pairs", [[], [(1, 1)], [(3, -1)], [(1, 7)], [(0, 1), (1, 2)]])
def test_a_round_is_pairs_of_peers(pairs):
    """-1 is no other name for the last peer: with that, peer 3 met itself."""
    with pytest.raises(ConfigError, match=r"a round is pairs of peers|peers are 0\.\.3, found"):
        br.Odometer(9.0, peers=4).release(3.0).meet(pairs)


def test_nobody_else_is_wanted():
    with pytest.raises(ConfigError, match=r"peers are 0\.\.3, found a meeting of \(0, 9\)"):
        br.Odometer(9.0, peers=4).release(3.0).go_on([(1, 2), (0, 9)])


def test_no_rounds_are_not_told_to_raise_the_noise():
    with pytest.raises(ConfigError, match="at least one round, found steps = 0"):
        br.Odometer(1.0, peers=4).rounds("complete:4", 30.0, steps=0)


def test_full_trust_stays_after_all_was_told():
    odometer = br.Odometer(np.inf, peers=4)
    odometer.add(br.run(br.Averaging(), "ring:4", br.tasks.Mean.uniform(4, seed=0), steps=2))
    assert np.all(odometer.left() == np.inf)
    assert odometer.rounds("complete:4", 3.0, steps=1).name == "meetings:0-1+2-3"


def test_a_run_without_an_account_voids_the_promise():
    class Lost:
        def accountant(self):
            raise ConfigError("its ledger is gone")

    odometer = br.Odometer(1.0, peers=4)
    with pytest.raises(ConfigError, match="ledger is gone"):
        odometer.add(Lost())
    assert odometer.epsilon(0, 1) == np.inf


def test_a_run_with_the_noise_of_another_one_does_not_fit():
    """It fit, took place, could not be counted, and nothing was promised any more."""
    odometer, task = br.Odometer(3.0, peers=4), br.tasks.Mean.uniform(4, seed=0)
    run = br.run(br.Averaging(), "ring:4", task, privacy=noise(9.0), steps=2, seed=1)
    odometer.add(run)
    with pytest.raises(PrivacyError, match="may share its noise with one that was counted"):
        odometer.fits(run)
    assert odometer.epsilon(0, 1) <= 3.0


def test_rounding_that_is_too_much_is_not_called_a_pair(monkeypatch):
    odometer, task = br.Odometer(np.inf, peers=4), br.tasks.Mean.uniform(4, seed=0)
    run = br.run(br.Averaging(), "ring:4", task, privacy=noise(9.0), steps=2)
    monkeypatch.setattr("bruit.privacy.odometer.ROUNDING", 0.0)
    with pytest.raises(PrivacyError, match=r"R of all runs is .* 0 is inside the caps"):
        odometer.add(run)


def ring_of_four(seed, sigma=9.0):
    """The rehearsal of a run, and how to begin it."""
    learner, mechanism = br.Averaging(), noise(sigma)
    ahead = br.rehearse(learner, "ring:4", mechanism, 2, seed=seed)
    task = br.tasks.Mean.uniform(4, seed=0)
    return ahead, lambda: br.run(learner, "ring:4", task, privacy=mechanism, steps=2, seed=seed)


def test_a_run_that_does_not_fit_is_not_begun():
    odometer, begun = br.Odometer(1.0, peers=4), []
    run = odometer.within(*ring_of_four(1))
    assert np.allclose(odometer.spent[~np.eye(4, dtype=bool)].max(), 1 / 81)
    assert run.epsilon(of=1, seen_by=0) <= odometer.epsilon(1, 0)
    ahead, _ = ring_of_four(2, sigma=1.0)
    with pytest.raises(PrivacyError, match=r"peer 1 may learn of peer 0.*it was not begun"):
        odometer.within(ahead, lambda: begun.append(1))
    assert not begun
    assert odometer.epsilon(0, 1) <= 1.0


def test_a_run_that_breaks_off_was_begun():
    """It is not known what it said, so that it cannot be counted."""
    odometer, (ahead, _) = br.Odometer(1.0, peers=4), ring_of_four(1)

    def broken():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        odometer.within(ahead, broken)
    assert odometer.epsilon(0, 1) == np.inf
    with pytest.raises(PrivacyError, match="broke off before it was counted"):
        odometer.within(*ring_of_four(2))


def test_what_the_account_of_a_run_assumes_is_in_the_promise():
    """Nothing was said of secret seeds, nor of the public model that was started from."""
    odometer, task = br.Odometer(30.0, peers=4), br.tasks.Mean.uniform(4, seed=0)
    run = br.run(br.Decor(ratio=3.0), "ring:4", task, privacy=noise(9.0), steps=2)
    odometer.add(run)
    needed = [one for one in run.guarantee(of=0, seen_by=1).hypotheses if not one.checked]
    promised = odometer.guarantee(0, 1).hypotheses
    assert any("their seeds stay secret" in one.text for one in needed)
    assert {one for one in needed if "do not depend on the data" not in one.text} <= {*promised}
    assert not any("number of steps and dropouts do not depend" in one.text for one in promised)
