"""GOPA's accountant: worked numbers of the specification, and brute force on the joint Gaussian
law."""

import math

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.gossip.gopa import Gopa
from bruit.errors import PrivacyError
from bruit.graphs import complete, from_edges, k_out, path, ring, star
from bruit.privacy.ahead.gopa_k_out import (
    Crowd,
    calibrated,
    conditions,
    k_out_guarantee,
    kappa_of,
    least_k,
    own_noise,
)
from bruit.privacy.exact import gopa_spectrum
from bruit.privacy.exact.gopa_spectrum import (
    Quadrature,
    inverse_diagonal,
    laplacian_among,
    pseudo_inverse_diagonal,
)
from bruit.privacy.theorems.gopa import (
    GopaView,
    complete_theta,
    gopa_guarantee,
    residual_variance,
    sufficient_epsilon,
    theta_bounds,
    thetas,
    worst_curious,
)
from bruit.privacy.toolbox.gaussian import delta_of, epsilon_of
from papers.figures.gopa_search import draw, smallest_k

EDGES = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]
FOUR = from_edges(4, EDGES)
GRAPHS = [FOUR, path(5), ring(6), star(6), complete(5), k_out(12, 2, seed=3)]


def brute_force(graph, own, pair, of, observers):
    """mu^2 of the view of the observers: masked values of all, and every noise the observers know,
    by hand.

    Sources: own noises, then one per edge. mu^2 = a^T (B B^T)^+ a for a change of `of` by 1.
    """
    n, edges = graph.n, graph.edges()
    rows = np.zeros((n, n + len(edges)))
    rows[np.arange(n), np.arange(n)] = own
    for k, (a, b) in enumerate(edges):
        rows[a, n + k], rows[b, n + k] = pair, -pair
    known = [np.eye(n + len(edges))[v] for v in observers]
    known += [
        np.eye(n + len(edges))[n + k]
        for k, ends in enumerate(edges)
        if set(ends.tolist()) & set(observers)
    ]
    noise = np.concatenate([rows, np.array(known).reshape(-1, n + len(edges))])
    shift = np.zeros(len(noise))
    shift[of] = 1.0
    return shift @ np.linalg.pinv(noise @ noise.T, rcond=1e-13) @ shift


def test_worked_example_of_the_exact_view():
    """perso:GOPA-3."""
    own, pair = math.sqrt(0.5), math.sqrt(10)
    found = thetas(FOUR, own, pair)
    assert found == pytest.approx([0.518518519, 0.530563083, 0.518518519, 0.530563083], rel=2e-9)
    assert theta_bounds(FOUR, own, pair) == pytest.approx(
        [0.51875, 0.53125, 0.51875, 0.53125], rel=1e-8
    )
    assert sufficient_epsilon(found.max(), 1e-5) == pytest.approx(3.7260723986, rel=1e-8)
    assert epsilon_of(math.sqrt(found.max()), 1e-5) == pytest.approx(3.0439895811, rel=1e-8)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
@pytest.mark.parametrize("observers", [(0,), (1, 3)])
def test_exact_view_equals_the_joint_gaussian_law(graph, observers):
    """perso:GOPA-3: divergence of the whole view, colluders' own noises and exchanges included, by
    pseudo-inverse."""
    own, pair = 0.7, 3.0
    honest = np.setdiff1d(np.arange(graph.n), observers)
    found = thetas(graph, own, pair, honest)
    for u in honest:
        assert found[u] == pytest.approx(brute_force(graph, own, pair, int(u), observers), rel=1e-7)


def test_delta_of_the_view_equals_quadrature():
    """The exact curve of perso:GOPA-3 against numerical integration of max(0, p - e^eps q) in two
    dimensions."""
    own, pair, epsilon = 1.0, 1.5, 0.4
    cov = own**2 * np.eye(2) + pair**2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    axis = np.linspace(-14, 14, 1401)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    inverse = np.linalg.inv(cov)

    def density(a, b):
        form = inverse[0, 0] * a * a + 2 * inverse[0, 1] * a * b + inverse[1, 1] * b * b
        return np.exp(-form / 2) / (2 * math.pi * math.sqrt(np.linalg.det(cov)))

    gap = (
        np.maximum(density(x - 1, y) - math.exp(epsilon) * density(x, y), 0).sum()
        * (axis[1] - axis[0]) ** 2
    )
    theta = thetas(path(2), own, pair)[0]
    assert delta_of(epsilon, math.sqrt(theta)) == pytest.approx(gap, rel=1e-4)


def test_spreads_of_known_graphs():
    """perso:GOPA-2: complete (1 - 1/n) / n, end of a path (n - 1)(2n - 1) / (6n); n = 10: 0.09 and
    2.85."""
    everybody = np.arange(10)
    assert pseudo_inverse_diagonal(laplacian_among(complete(10), everybody)) == pytest.approx(
        [0.09] * 10, rel=1e-8
    )
    assert pseudo_inverse_diagonal(laplacian_among(path(10), everybody))[0] == pytest.approx(
        2.85, rel=1e-8
    )
    assert complete_theta(10, 0.5, 2.0) == pytest.approx(
        thetas(complete(10), 0.5, 2.0)[0], rel=1e-8
    )


def test_disconnected_honest_peers_count_their_component_only():
    """perso:GOPA-2: with the middle of a path colluding, each half hides by itself."""
    found = thetas(path(7), 1.0, 1e4, [0, 1, 2, 4, 5])
    assert found[[0, 1, 2]] == pytest.approx([1 / 3] * 3, rel=1e-6)
    assert found[[4, 5]] == pytest.approx([1 / 2] * 2, rel=1e-6)
    assert np.isnan(found[[3, 6]]).all()


def test_a_curious_center_of_a_star():
    """perso:GOPA-8: exact theta 1, where the n_H - 1 rule would say 0.1112."""
    assert worst_curious(star(10), 1.0, 100.0) == pytest.approx(1.0, rel=1e-8)
    spread = pseudo_inverse_diagonal(laplacian_among(star(10), np.arange(10))).max()
    assert 1 / 9 + spread / 1e4 == pytest.approx(0.1112, abs=5e-5)
    assert worst_curious(complete(10), 1.0, 100.0) == pytest.approx(
        complete_theta(9, 1.0, 100.0), rel=1e-8
    )


@pytest.mark.parametrize(
    "graph", [k_out(300, 8, seed=1), path(40), ring(30)], ids=lambda graph: graph.name
)
def test_quadrature_is_never_below_the_truth(graph, monkeypatch):
    found = laplacian_among(graph, np.arange(graph.n))
    for own, pair in ((1.0, 10.0), (0.05, 1.0), (1.0, 0.1)):
        truth = np.diagonal(
            np.linalg.inv(own**2 * np.eye(graph.n) + pair**2 * found.matrix.toarray())
        )
        dense = inverse_diagonal(found, own, pair)
        upper = Quadrature.of(found, np.arange(graph.n)).at(own, pair)
        assert np.all(dense >= truth * (1 - 1e-10))
        assert dense == pytest.approx(truth, rel=1e-8)
        assert np.all(upper >= truth * (1 - 1e-10))
    monkeypatch.setattr(gopa_spectrum, "DENSE", 10)
    assert np.all(
        inverse_diagonal(found, 1.0, 10.0)
        >= np.diagonal(np.linalg.inv(np.eye(graph.n) + 100.0 * found.matrix.toarray()))
        * (1 - 1e-10)
    )


@pytest.mark.slow
def test_quadrature_is_exact_on_expanders():
    graph = k_out(400, 12, seed=2)
    found = laplacian_among(graph, np.arange(350))
    exact = np.diagonal(np.linalg.pinv(found.matrix.toarray()))
    measure = Quadrature.of(found, np.arange(350), steps=20)
    assert measure.pseudo() == pytest.approx(exact, rel=1e-6)
    assert measure.at(0.3, 5.0) == pytest.approx(inverse_diagonal(found, 0.3, 5.0), rel=1e-6)


def test_guarantee_of_one_peer_names_what_protects_it():
    hidden = gopa_guarantee(complete(10), 1.0, 50.0, 3, [0, 1], sensitivity=2.0)
    assert hidden.loss == pytest.approx(complete_theta(8, 1.0, 50.0), rel=1e-8)
    assert float(hidden.epsilon(1e-6)) == pytest.approx(
        epsilon_of(2 * math.sqrt(hidden.loss), 1e-6), rel=1e-9
    )
    assert hidden.status == "ideal"
    bare = gopa_guarantee(ring(6), 1.0, 50.0, 3, [2, 4])
    assert bare.loss == pytest.approx(1.0, rel=1e-8)
    assert any("only its own noise protects it" in note for note in bare.notes)
    gone = gopa_guarantee(ring(6), 1.0, 50.0, 3, 2, dropped=[4])
    assert gone.loss == pytest.approx(1.0, rel=1e-8)


def test_opening_after_publishing_leaves_own_noise_only():
    """perso:GOPA-7: n = 1000, epsilon = 0.5, delta' = 1e-6: epsilon = 18.04 at 1e-6 for that
    user."""
    own = own_noise(1000, 0.5, 1e-6)
    shown = gopa_guarantee(k_out(1000, 4, seed=1), own, 100.0, 5, 0, opened=[5])
    assert float(shown.epsilon(1e-6)) == pytest.approx(18.04, abs=5e-3)


def test_residual_variance():
    """perso:GOPA-7: one exchange of 10 left among three: 100 / 9 more."""
    assert residual_variance(0.1, 10.0, 3, 1) - residual_variance(0.1, 10.0, 3) == pytest.approx(
        11.1111111, rel=1e-8
    )


def test_k_out_conditions_and_calibration():
    """perso:GOPA-4, GOPA-5."""
    assert conditions(Crowd(10_000), 1e-7 / 3) == pytest.approx(
        (104.086333, 48.670368, 44.047174), rel=1e-7
    )
    assert least_k(Crowd(10_000), 1e-7 / 3) == 105
    crowd = Crowd(2000, 0.8)
    found = calibrated(crowd, 0.5, 1e-6, 1e-5)
    assert conditions(crowd, 1e-5 / 3) == pytest.approx((78.335326, 37.674880, 33.685541), rel=1e-7)
    assert (found.k, found.kappa) == (98, pytest.approx(10.6602750983, rel=1e-9))
    wanted = (0.2649401263, 9.5910592526, 0.0768332626, 0.0097392368)
    assert (found.own_sigma, found.pair_sigma, found.spread, found.theta) == pytest.approx(
        wanted, rel=1e-8
    )
    stated = k_out_guarantee(crowd, 98, found.own_sigma, found.pair_sigma, 1e-5)
    assert stated.status == "quoted"  # that a random graph is good enough is the source's theorem
    assert float(stated.epsilon(1e-5)) == pytest.approx(0.3631408114, rel=1e-8)
    assert float(stated.epsilon(1e-5)) <= sufficient_epsilon(found.theta, 1e-5 / 3) <= 0.5


def test_as_kappa_grows_delta_falls_to_three_delta_prime():
    """perso:GOPA-5, corrected: 3.75 (delta' / 1.25)^r tends to 3 delta' as r tends to 1."""
    assert kappa_of(1e-6, 3.0001e-6) > 1e4
    with pytest.raises(PrivacyError, match="above 3 delta'"):
        kappa_of(1e-6, 3e-6)


def test_a_curious_honest_peer_costs_one():
    """perso:GOPA-8: n_H - 1 everywhere."""
    crowd = Crowd(2000, 0.8, curious=True)
    assert crowd.honest == pytest.approx(1599)
    assert (
        calibrated(crowd, 0.5, 1e-6, 1e-5).own_sigma
        > calibrated(Crowd(2000, 0.8), 0.5, 1e-6, 1e-5).own_sigma
    )


def test_a_drawn_graph_needs_less_and_its_guarantee_holds():
    seen = draw(600, 12, 0.8, seed=4)
    own = own_noise(480, 0.5, 1e-6)
    pair = seen.exact_pair(own, 0.5, 1e-5)
    exact = thetas(k_out(600, 12, seed=4, connected=False), own, pair, range(480))
    assert epsilon_of(math.sqrt(np.nanmax(exact)), 1e-5) == pytest.approx(0.5, rel=1e-4)
    assert pair < seen.corollary_pair(0.5, 1e-6, 1e-5)


def test_the_smallest_k_is_the_first_that_is_enough():
    found = smallest_k(300, 1.0, 0.5, 1e-6, 1e-5, 3.0, draws=2)
    assert found.pair_sigma <= 3.0
    assert found.status == "heuristic"
    below = [
        draw(300, found.k - 1, 1.0, seed).exact_pair(found.own_sigma, 0.5, 1e-5) for seed in (0, 1)
    ]
    assert max(below) > 3.0
    with pytest.raises(PrivacyError, match="no k is enough"):
        smallest_k(100, 1.0, 0.5, 1e-6, 1e-5, 1e-3, draws=1)


def run(graph, steps=3, ratio=10.0, **options):
    task = br.tasks.Mean(np.zeros((graph.n, 1)))
    return br.run(
        Gopa(ratio), graph, task, privacy=br.Gaussian(clip=0.5, sigma=0.8), steps=steps, **options
    )


def test_theorem_on_a_run():
    made = run(complete(10))
    loss = complete_theta(9, 1.0, 10.0)
    answer = made.epsilon(of=3, seen_by=0)
    assert float(answer) == pytest.approx(epsilon_of(math.sqrt(loss) / 0.8, 1e-6), rel=1e-6)
    assert "the exact view of GOPA" in answer.why()
    assert made.losses()[3, 0] == pytest.approx(loss, rel=1e-6)
    assert float(made.epsilon(of=3)) == pytest.approx(
        epsilon_of(1 / 0.8, 1e-6), rel=1e-6
    )  # everybody else colludes


def test_theorem_says_who_has_only_own_noise():
    answer = run(star(5)).epsilon(of=2, seen_by=0)
    assert "only its own noise protects it" in answer.why()
    assert float(answer) == pytest.approx(epsilon_of(1 / 0.8, 1e-6), rel=1e-6)


def test_without_canceling_noise_in_the_ledger_the_theorem_refuses():
    facts = br.run(
        br.Averaging(),
        ring(5),
        br.tasks.Mean(np.zeros((5, 1))),
        privacy=br.Gaussian(clip=1.0, sigma=1.0),
        steps=2,
    ).facts()
    with pytest.raises(PrivacyError, match="no line of canceling noise"):
        GopaView(10.0, about=("averaging",)).check(facts)


def test_two_runs_compose():
    first = run(complete(8), seed=1)
    second = run(complete(8), seed=2, after=first, carry="nothing")
    loss = 2 * complete_theta(7, 1.0, 10.0)
    assert float(second.epsilon(of=3, seen_by=0)) == pytest.approx(
        epsilon_of(math.sqrt(loss) / 0.8, 1e-6), rel=1e-6
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: thetas(FOUR, 0.0, 1.0), "own noise must be positive"),
        (lambda: thetas(FOUR, 1.0, -1.0), "a number >= 0"),
        (lambda: thetas(FOUR, 1.0, 1.0, []), "nobody is honest"),
        (lambda: thetas(FOUR, 1.0, 1.0, [7]), "among 0..3"),
        (lambda: theta_bounds(FOUR, 1.0, 0.0), "needs noise between neighbors"),
        (lambda: worst_curious(FOUR, 1.0, 1.0, [0]), "two honest peers"),
        (lambda: complete_theta(0, 1.0, 1.0), "at least 1 honest"),
        (lambda: sufficient_epsilon(1.0, 0.0), "delta must be between"),
        (lambda: sufficient_epsilon(-1.0, 0.1), "theta is a number"),
        (lambda: residual_variance(1.0, 1.0, 0), "peers online"),
        (lambda: gopa_guarantee(FOUR, 1.0, 1.0, 0, 0), "nobody has secrets from oneself"),
        (lambda: gopa_guarantee(FOUR, 1.0, 1.0, 0, 1, dropped=[0]), "published nothing"),
        (lambda: gopa_guarantee(FOUR, 1.0, 1.0, 0, 1, sensitivity=0.0), "positive number"),
        (lambda: Crowd(100, 0.5), "at least 81 honest"),
        (lambda: Crowd(100, 0.0), "rho lies in"),
        (lambda: conditions(Crowd(100), 1.0), "delta must be between"),
        (lambda: least_k(Crowd(90), 1e-12), "use a complete graph"),
        (lambda: k_out_guarantee(Crowd(2000), 20, 1.0, 1.0, 1e-6), "needs k >="),
        (lambda: k_out_guarantee(Crowd(2000), 200, 1.0, 0.0, 1e-6), "needs both noises"),
        (lambda: k_out_guarantee(Crowd(2000), 200, 1.0, 1.0, 1e-6, 0.0), "positive number"),
        (lambda: calibrated(Crowd(2000), 0.5, 1e-6, 1e-5, 20), "needs k >="),
        (lambda: calibrated(Crowd(2000), 1.5, 1e-6, 1e-5), "epsilon in"),
        (lambda: draw(10, 2, 0.1), "two of them"),
        (lambda: draw(10, 2, 0.0), "rho lies in"),
    ],
)
def test_bad_input(wrong, words):
    with pytest.raises(PrivacyError, match=words):
        wrong()
