"""Decentralized gradient descent seen by attackers: closed form, knowledge, removal, covariance,
estimates."""

import numpy as np
import pytest

import bruit as br
from bruit.adversary.attacks.descent import (
    KnownDescent,
    covariance,
    half_steps,
    knowledge_matrix,
    knowledge_modulo,
    observations,
    round_blocks,
)
from bruit.adversary.attacks.gradients import estimable, estimate, from_run, from_view
from bruit.adversary.attacks.own_words import own_messages
from bruit.errors import ConfigError
from bruit.graphs import erdos_renyi, given, grid, hypercube, path, ring, star
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.exact.modular import PRIMES
from bruit.tasks import Mean, Records, Ridge
from bruit.trace import Faults, Received, Trace, View

UPDATES = np.array([[0.3], [0.5], [-1.0], [2.0]])
NOISE = np.array(
    [(0, 0.01, -0.02, 0.005), (0, -0.01, 0.03, 0), (0, 0.02, 0, -0.01), (0, 0.005, 0.01, 0.02)]
)[..., None]


def simulate(graphs, updates, mixing=1, gamma=1.0, start=None):
    """Plain descent of everybody with dense matrices; updates (rounds, n, d)  # (exchanges, n,
    d)."""
    model = np.zeros(updates.shape[1:]) if start is None else start
    said = []
    for t, graph in enumerate(graphs):
        now = model + updates[t // mixing] if t % mixing == 0 else model
        model = graph.weights.toarray() @ now
        if t % mixing and gamma != 1.0:
            model = gamma * model + (1 - gamma) * said[-1]
        said.append(now)
    return np.stack(said)


def heard(descent, said):
    return [said[t][descent.heard(t)] for t in range(descent.exchanges)]


def test_closed_form_example():
    """gossip:REC-4, path of 4."""
    said = half_steps(KnownDescent.on(path(4), 0, 3, own_known=False), UPDATES)[:, :, 0]
    np.testing.assert_allclose(said[1], [0.666666667, 0.433333333, -0.5, 3], atol=1e-9)
    np.testing.assert_allclose(said[2], [0.888888889, 0.7, -0.0222222222, 3.83333333], atol=1e-8)


def test_closed_form_is_the_printed_one_with_the_start():
    """gossip:REC-4, term by term with matrix powers, against the code and against plain descent."""
    graph, rng, t = erdos_renyi(9, c=2, seed=1), np.random.default_rng(0), 4
    attackers, targets = [2, 5], [0, 1, 3, 4, 6, 7, 8]
    start, noise = rng.normal(size=(9, 3)), rng.normal(size=(5, 9, 3))
    updates = rng.normal(size=(9, 3))
    said = simulate([graph] * 5, updates + noise, start=start)
    W = graph.weights.toarray()
    TT, TA = W[np.ix_(targets, targets)], W[np.ix_(targets, attackers)]

    def power(k):
        return np.linalg.matrix_power(TT, k)

    printed = power(t) @ start[targets] + sum(power(i) for i in range(t + 1)) @ updates[targets]
    printed += sum(power(i) @ noise[t - i][targets] for i in range(t + 1))
    printed += sum(power(t - 1 - i) @ TA @ said[i][attackers] for i in range(t))
    np.testing.assert_allclose(printed, said[t][targets], atol=1e-12)
    descent = KnownDescent.on(graph, attackers, 5)
    closed = half_steps(descent, updates[targets], noise[:, targets], said[:, attackers], start)
    np.testing.assert_allclose(closed, said[:, targets], atol=1e-12)


def test_knowledge_matrix_example():
    """gossip:REC-5, path of 4."""
    expected = [[1, 0, 0], [1.33333333, 0.333333333, 0], [1.55555556, 0.555555556, 0.111111111]]
    np.testing.assert_allclose(
        knowledge_matrix(KnownDescent.on(path(4), 0, 3)), expected, atol=1e-8
    )


def test_removal_example():
    """gossip:REC-6: raw messages, cleaned observations, least squares."""
    said, descent = simulate([path(4)] * 3, np.stack([UPDATES] * 3)), KnownDescent.on(path(4), 0, 3)
    np.testing.assert_allclose(said[:, 1, 0], [0.5, 0.433333333, 0.7], atol=1e-9)
    cleaned = observations(descent, heard(descent, said), said[:, [0]])
    np.testing.assert_allclose(cleaned[:, 0], [0.5, 0.333333333, 0.444444444], atol=1e-9)
    found = estimate(descent, cleaned)
    np.testing.assert_allclose(-found.values[:, 0], [0.5, -1, 2], atol=1e-9)
    assert found.residual < 1e-12


def test_removal_as_the_listing_says():
    """gossip:REC-6, its listing (free evolution of the start, then the attackers' part), on a
    coalition."""
    graph, rng = grid(3, 3), np.random.default_rng(2)
    attackers, targets = [0, 4], [1, 2, 3, 5, 6, 7, 8]
    start = rng.normal(size=(9, 2))
    said = simulate([graph] * 4, rng.normal(size=(4, 9, 2)), start=start)
    W, free, own = graph.weights.toarray(), start, np.zeros((7, 2))
    TT, TA = W[np.ix_(targets, targets)], W[np.ix_(targets, attackers)]
    descent, expected = KnownDescent.on(graph, attackers, 4), []
    for t in range(4):
        rest = said[t] - free
        expected.append((rest[targets] - own)[descent.places(t)])
        own = TT @ own + TA @ rest[attackers]
        free = W @ free
    cleaned = observations(descent, heard(descent, said), said[:, attackers], start)
    np.testing.assert_allclose(cleaned, np.concatenate(expected), atol=1e-12)


def test_covariance_examples():
    """gossip:REC-7: the printed entries, and the printed double sum on another graph."""
    expected = [
        [1, 0.333333333, 0.222222222],
        [0.333333333, 1.22222222, 0.481481481],
        [0.222222222, 0.481481481, 1.33333333],
    ]
    np.testing.assert_allclose(covariance(KnownDescent.on(path(4), 0, 3)), expected, atol=1e-8)
    graph = erdos_renyi(8, c=2, seed=3)
    descent = KnownDescent.on(graph, [1], 4)
    inside = np.delete(np.delete(graph.weights.toarray(), 1, 0), 1, 1)
    places = [(t, int(w)) for t in range(4) for w in descent.places(t)]
    brute = [
        [
            sum(np.linalg.matrix_power(inside, t + s - 2 * k)[w, x] for k in range(min(t, s) + 1))
            for s, x in places
        ]
        for t, w in places
    ]
    np.testing.assert_allclose(covariance(descent), brute, atol=1e-12)


def test_gls_and_ols_example():
    """gossip:REC-7, T = 4 with given noise: estimates and variances."""
    said, descent = simulate([path(4)] * 4, UPDATES + NOISE), KnownDescent.on(path(4), 0, 4)
    cleaned = observations(descent, heard(descent, said), said[:, [0]])
    gls, ols = (estimate(descent, cleaned, method=method) for method in ("gls", "ols"))
    np.testing.assert_allclose(-gls.values[:, 0], [0.5088645, -1.040256, 2.136392], rtol=1e-6)
    np.testing.assert_allclose(-ols.values[:, 0], [0.5078076, -1.034233, 2.131471], rtol=1e-6)
    np.testing.assert_allclose(gls.variance, [0.9981685, 16.75641, 80.38278], rtol=1e-6)
    assert (ols.variance >= gls.variance).all()  # Gauss-Markov


@pytest.mark.parametrize("method", ["ols", "gls"])
def test_variance_is_that_of_many_draws(method):
    """gossip:REC-7: the variance promised against 4000 coordinates of independent noise; two
    exchanges a gradient."""
    graph, rng = ring(6), np.random.default_rng(5)
    descent = KnownDescent.on(graph, [0], 8, mixing=2)
    said = simulate([graph] * 8, rng.normal(size=(4, 6, 4000)), mixing=2)
    found = estimate(
        descent, observations(descent, heard(descent, said), said[:, [0]]), method=method
    )
    spread = found.values.var(axis=1)
    np.testing.assert_allclose(spread[found.estimable], found.variance[found.estimable], rtol=0.12)


def test_several_gossip_steps_example():
    """gossip:REC-9, path of 4, K = 2, second round, second step."""
    descent = KnownDescent.on(path(4), 0, 4, mixing=2, own_known=False)
    blocks = round_blocks(descent)[3]
    np.testing.assert_allclose(
        blocks[0], [0.333333333, 0.296296296, 0.222222222, 0.148148148], atol=1e-9
    )
    np.testing.assert_allclose(blocks[1], [0.333333333, 0.333333333, 0.333333333, 0], atol=1e-9)
    summed = [0.666666667, 0.62962963, 0.555555556, 0.148148148]
    np.testing.assert_allclose(knowledge_matrix(descent)[3], summed, atol=1e-8)


@pytest.mark.parametrize(("mixing", "gamma"), [(1, 1.0), (2, 1.0), (3, 1.25), (4, 1.6)])
def test_blocks_explain_any_updates(mixing, gamma):
    """gossip:REC-9: observations are the blocks times the updates of each round, on changing graphs
    too."""
    one, two, rng = erdos_renyi(8, c=2, seed=4), ring(8), np.random.default_rng(6)
    for graphs in ([one] * 7, [one, two, two, one, two, one, one]):
        attackers = [1, 6]
        descent = KnownDescent(
            graphs=tuple(graphs), attackers=np.array(attackers), mixing=mixing, gamma=gamma
        )
        updates = rng.normal(size=(descent.rounds, 8, 2))
        said = simulate(graphs, updates, mixing, gamma)
        cleaned = observations(descent, heard(descent, said), said[:, attackers])
        explained = np.einsum("mst,std->md", round_blocks(descent), updates[:, descent.targets])
        np.testing.assert_allclose(cleaned, explained, atol=1e-11)
        np.testing.assert_allclose(
            knowledge_matrix(descent), round_blocks(descent).sum(axis=1), atol=1e-12
        )


@pytest.mark.parametrize("mixing", [1, 3])
def test_knowledge_modulo_a_prime_is_the_same_matrix(mixing):
    """Entries of path(4) have denominators 3^t: lift the residues back to fractions."""
    descent, prime = KnownDescent.on(path(4), 0, 4, mixing=mixing), PRIMES[0]
    scaled = knowledge_matrix(descent) * 3**3
    np.testing.assert_array_equal(
        knowledge_modulo(descent, prime) * 3**3 % prime, np.rint(scaled).astype(int)
    )


@pytest.mark.parametrize(
    "graph", [path(7), ring(8), star(6), hypercube(4), grid(3, 3), erdos_renyi(12, c=1.3, seed=0)]
)
@pytest.mark.parametrize(
    ("steps", "mixing", "gamma"), [(1, 1, 1.0), (4, 1, 1.0), (9, 1, 1.0), (9, 3, 1.5)]
)
def test_estimable_gradients_are_the_peers_gossip_averaging_reveals(graph, steps, mixing, gamma):
    """gossip:REC-5, fact: the same set as gossip averaging with as many exchanges, where the exact
    loss is 1."""
    for attackers in ([0], [1, 2]):
        descent = KnownDescent.on(graph, attackers, steps, mixing, gamma)
        loss = leverage(graph, attackers, steps).loss[descent.targets]
        np.testing.assert_array_equal(estimable(descent), loss > 1 - 1e-9)


def test_estimable_examples():
    """gossip:REC-2 examples through REC-5: path end-point, star leaf, hypercube(4)."""
    assert estimable(KnownDescent.on(path(6), 0, 3)).tolist() == [True, True, True, False, False]
    assert estimable(KnownDescent.on(star(6), 3, 20)).tolist() == [True, False, False, False, False]
    cube = KnownDescent.on(hypercube(4), 0, 4)
    assert cube.targets[estimable(cube)].tolist() == [1, 2, 4, 7, 8, 11, 13, 14, 15]


def test_what_is_not_estimable_says_so():
    said, descent = simulate([star(4)] * 3, np.ones((3, 4, 1))), KnownDescent.on(star(4), 1, 3)
    found = estimate(descent, observations(descent, heard(descent, said), said[:, [1]]))
    assert found.estimable.tolist() == [True, False, False]
    assert np.isinf(found.variance[1:]).all()
    assert found.of(0) == pytest.approx(-1.0)
    with pytest.raises(
        ConfigError, match=r"peer 2 is not determined by what was heard; estimable are \[0\]"
    ):
        found.of(2)
    with pytest.raises(ConfigError, match="peer 1 is no target"):
        found.of(1)


def ridge(peers, seed=0):
    rng = np.random.default_rng(seed)
    return Ridge(
        Records.of(
            rng.normal(size=(peers, 3)), rng.normal(size=peers), np.arange(peers), "unit", True
        )
    )


@pytest.mark.parametrize(
    ("mixing", "gamma", "batch"), [(1, 1.0, None), (3, 1.0, None), (3, 1.4, None), (2, 1.0, 1)]
)
@pytest.mark.parametrize("noise", [None, br.Gaussian(clip=1.0, sigma=0.5)])
def test_own_messages_are_what_was_said(mixing, gamma, batch, noise):
    """Attackers find their own words again, noise and draws included: their neighbors received the
    same."""
    graph, task = erdos_renyi(7, c=2, seed=2), ridge(7)
    algorithm = br.GossipSGD(0.2, mixing, batch, gamma)
    run = br.run(
        algorithm, graph, task, steps=6, watch=range(7), privacy=noise, seed=3, evaluate_every=0
    )
    said = own_messages(run, task, run.view({0, 4}), (graph,) * 6)
    for message in run.trace.received:
        if message.sender in (0, 4):
            place = (0, 4).index(message.sender)
            np.testing.assert_allclose(said[message.clock, place], message.row[0], atol=1e-12)


def test_first_gradients_of_a_run_are_exact():
    """gossip:REC-9: the K exchanges of the first round determine the first gradients without any
    approximation."""
    graph, task = path(6), ridge(6)
    run = br.run(
        br.GossipSGD(rate=0.7, mixing=5), graph, task, steps=10, watch=[0], evaluate_every=0
    )
    found = from_run(run, task, 0, steps=5)
    assert found.estimable.all()
    np.testing.assert_allclose(
        found.values, task.gradient(found.peers, np.zeros((5, task.dim))), atol=1e-8
    )
    np.testing.assert_allclose(found.residual, 0, atol=1e-9)


def test_coalitions_faults_and_changing_graphs():
    """Links that were down and graphs that change are part of the known linear forms."""
    task, algorithm = ridge(8), br.GossipSGD(rate=1e-5)
    faults = Faults(np.array([1, 1, 3]), np.array([0, 2, 5]), np.array([1, 3, 6]))
    for graph in (ring(8), given([ring(8), path(8), erdos_renyi(8, c=2, seed=1)])):
        run = br.run(
            algorithm,
            graph,
            task,
            steps=8,
            watch=[0, 3],
            evaluate_every=0,
            given=Trace(peers=8, steps=8, faults=faults),
        )
        found = from_run(run, task, [0, 3])
        truth = task.gradient(found.peers, np.zeros((6, task.dim)))
        assert found.estimable.sum() >= 4
        np.testing.assert_allclose(
            found.values[found.estimable], truth[found.estimable], rtol=1e-2, atol=1e-3
        )


def test_a_view_alone_is_enough_with_more_steps():
    """Without the attackers' own messages their update is one more unknown: n steps instead of n -
    1."""
    graph, task = path(4), ridge(4)
    run = br.run(br.GossipSGD(rate=1e-6), graph, task, steps=4, watch=[0], evaluate_every=0)
    found = from_view(run.view(0), graph, rate=1e-6, steps=4)
    assert found.peers.tolist() == [0, 1, 2, 3]
    assert found.estimable.all()
    truth = task.gradient(np.arange(4), np.zeros((4, task.dim)))
    np.testing.assert_allclose(found.values[1:], truth[1:], rtol=1e-3, atol=1e-4)
    assert not from_view(_first(run.view(0), 3), graph, rate=1e-6, steps=3).estimable[2:].any()


def _first(view, steps):
    kept = [message for message in view.messages if message.clock < steps]
    return View(view.observers, kept, kept)


def test_bad_attackers_and_shapes_are_refused():
    with pytest.raises(ConfigError, match=r"attacker 9 is not in path:4, whose peers are 0..3"):
        KnownDescent.on(path(4), 9, 3)
    with pytest.raises(ConfigError, match="at least one attacker"):
        KnownDescent.on(path(4), [], 3)
    with pytest.raises(ConfigError, match="at least one exchange"):
        KnownDescent.on(path(4), 0, 0)
    with pytest.raises(ConfigError, match="mixing = 0"):
        KnownDescent.on(path(4), 0, 3, mixing=0)
    with pytest.raises(ConfigError, match="every peer is an attacker"):
        KnownDescent.on(path(2), [0, 1], 3)
    descent = KnownDescent.on(path(4), 0, 3)
    rows = [np.zeros((1, 2))] * 3
    with pytest.raises(ConfigError, match="messages of 2 exchanges"):
        observations(descent, rows[:2], np.zeros((2, 1, 2)))
    with pytest.raises(ConfigError, match=r"exchange 1 are \(2, 2\)"):
        observations(descent, [rows[0], np.zeros((2, 2)), rows[0]], np.zeros((3, 1, 2)))
    with pytest.raises(ConfigError, match="what the attackers said is missing"):
        observations(descent, rows)
    with pytest.raises(ConfigError, match=r"own messages are \(2, 1, 2\); give \(3, 1, 2\)"):
        observations(descent, rows, np.zeros((2, 1, 2)))
    with pytest.raises(ConfigError, match=r"the start is \(5,\)"):
        observations(descent, rows, np.zeros((3, 1, 2)), np.zeros(5))
    with pytest.raises(ConfigError, match="one row for each of the 3 targets"):
        half_steps(descent, np.zeros((2, 2)))
    with pytest.raises(ConfigError, match="'ols' or 'gls', found 'ridge'"):
        estimate(descent, np.zeros((3, 2)), method="ridge")
    with pytest.raises(ConfigError, match="rate of the descent must be positive"):
        estimate(descent, np.zeros((3, 2)), rate=0.0)


def test_views_that_do_not_fit_are_refused():
    graph, task = path(4), ridge(4)
    run = br.run(br.GossipSGD(rate=0.1), graph, task, steps=4, watch=[0], evaluate_every=0)
    view = run.view(0)
    with pytest.raises(ConfigError, match="no message of peer 1 in exchange 4"):
        from_view(view, graph, rate=0.1, steps=5)
    with pytest.raises(
        ConfigError, match="a message of exchange 3, but the attack was told of 3 steps"
    ):
        from_view(view, graph, rate=0.1, steps=3)
    with pytest.raises(ConfigError, match="no message of peer 2 in exchange 0"):
        from_view(view, star(4), rate=0.1, steps=4)
    records = [Received(m.clock, m.sender, m.receiver, (m.row,)) for m in view.messages]
    with pytest.raises(ConfigError, match="records"):
        from_view(View(view.observers, records, records), graph, rate=0.1, steps=4)
    with pytest.raises(ConfigError, match="no neighbor outside the coalition"):
        from_view(View(frozenset({0, 1}), [], []), path(2), rate=0.1, steps=2)


def test_runs_that_cannot_be_attacked_are_refused():
    graph, task = path(4), ridge(4)
    run = br.run(br.GossipSGD(rate=0.1), graph, task, steps=4, watch=[0], evaluate_every=0)
    with pytest.raises(ConfigError, match="attacker 7 is not in path:4"):
        from_run(run, task, 7)
    with pytest.raises(ConfigError, match="peer 2 was not watched"):
        from_run(run, task, 2)
    with pytest.raises(ConfigError, match="these are not the records of this run"):
        from_run(run, ridge(4, seed=1), 0)
    with pytest.raises(ConfigError, match="between 1 and 4 exchanges of this run, found steps = 5"):
        from_run(run, task, 0, steps=5)
    with pytest.raises(ConfigError, match="phase 1 of a chain"):
        from_run(br.chain(run, task, steps=2, watch=[0]), task, 0)
    mean = Mean(np.ones((4, 2)))
    averaging = br.run(br.Averaging(), graph, mean, steps=4, watch=[0])
    with pytest.raises(
        ConfigError, match="reconstructed from gossip-sgd, but this run is averaging"
    ):
        from_run(averaging, mean, 0)
    run.trace.missed = 2
    with pytest.raises(ConfigError, match="went on without 2 messages"):
        from_run(run, task, 0)
    run.trace.missed = 0
    run.trace.received.pop()
    with pytest.raises(ConfigError, match="no message of peer 1 to attacker 0 in exchange 3"):
        from_run(run, task, 0)


def test_a_saved_run_is_attacked_as_well(tmp_path):
    """What a command needs: the folder, and the task built again."""
    run = br.run(br.GossipSGD(rate=1e-4), path(4), ridge(4), steps=4, watch=[0], evaluate_every=0)
    run.save(tmp_path / "run")
    again = from_run(br.load(tmp_path / "run"), ridge(4), 0)
    np.testing.assert_allclose(again.values, from_run(run, ridge(4), 0).values)


def test_the_event_engine_gives_the_same_view():
    run = br.run(
        br.GossipSGD(rate=1e-4),
        path(4),
        ridge(4),
        steps=4,
        watch=[0],
        evaluate_every=0,
        engine=br.Events(),
    )
    bulk = br.run(br.GossipSGD(rate=1e-4), path(4), ridge(4), steps=4, watch=[0], evaluate_every=0)
    found, expected = (from_run(one, ridge(4), 0).values for one in (run, bulk))
    np.testing.assert_allclose(found, expected, atol=1e-6)
