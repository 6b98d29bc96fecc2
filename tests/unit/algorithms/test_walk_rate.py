"""Constant steps from the utility statement, and walks with a regularizer in a ball (walk:RW-7)."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.expectation import Expectation
from bruit.algorithms.tokens.walk_rate import WalkUtility, declared_utility
from bruit.graphs import butterfly, complete, ring
from bruit.privacy.theorems.walk import RealizedWalk
from bruit.runs.engines.replay import compare
from bruit.runs.expected import expected
from bruit.tasks import Constants, Logistic, Mean, Records

KNOWN = WalkUtility(
    smoothness=1, convexity=0.1, distance=10, mixing=8, heterogeneity=0.5, variance=5 * 2**2 * 2**2
)


def logistic(peers, l2, rows="unit"):
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(4 * peers, 3)), np.sign(rng.normal(size=4 * peers))
    return Logistic(Records.of(features, labels, np.repeat(np.arange(peers), 4), rows=rows), l2=l2)


def test_worked_example():
    # walk:RW-7: T = 10^4, L = 1, mu = .1, d = 5, z = 2, Delta = 2, tau = 8, zeta^2 = .5, D = 10
    assert KNOWN.rate(10_000) == pytest.approx(0.00185789927, abs=1e-11)
    assert KNOWN.bound(10_000) == pytest.approx(30.4695480564, abs=1e-9)


def test_the_bound_at_a_rate_is_the_statement_before_the_rate_is_put_in():
    """With the rate Lambda / (T mu), D.6 is the statement and 2 exp(-Lambda) D, which the statement
    leaves out."""
    for steps in (2000, 10_000, 10**6):
        rate = KNOWN.rate(steps)
        missing = 78 * 1 * 8 * 0.5 / (steps * 0.1**2)
        assert KNOWN.bound(steps) < KNOWN.bound_at(rate, steps) <= KNOWN.bound(steps) + missing
        by_hand = 2 * (1 - rate * 0.1) ** steps * 10 + 39 * rate / 0.01 * 8 * 0.5 + rate / 0.1 * 80
        assert KNOWN.bound_at(rate, steps) == pytest.approx(by_hand)


def test_a_walk_too_short_for_the_statement():
    # Lambda <= 0: fall back to 1 / L and report no bound
    assert KNOWN.rate(10) == 1.0
    assert KNOWN.bound(10) == np.inf


def test_the_mean_error_stays_below_the_bound():
    """Acceptance of RW-7, smaller: averaging linspace(-1, 1, 16) from mean + 2 on the complete
    graph."""
    y, steps, runs, rng = np.linspace(-1, 1, 16), 2000, 60, np.random.default_rng(1)
    known = WalkUtility(
        smoothness=2.0,
        convexity=2.0,
        distance=4.0,
        mixing=1,
        heterogeneity=float((2 * y).max() ** 2),
        variance=1.0,
    )
    rate, x = known.rate(steps), np.full(runs, 2.0)
    for _ in range(steps):
        x -= rate * (2 * (x - y[rng.integers(16, size=runs)]) + rng.normal(size=runs))
    assert (x**2).mean() < known.bound(steps) <= known.bound_at(rate, steps)


def test_only_declared_constants_count():
    found = declared_utility(
        logistic(8, 0.1).constants(), complete(8), 3, sigma=2.0, bound=5.0, batch=4
    )
    assert found == WalkUtility(
        smoothness=0.35,
        convexity=0.1,
        distance=25.0,
        mixing=1,
        heterogeneity=4.0,
        variance=3 * 4.0 + 0.25,
    )
    assert declared_utility(logistic(8, 0.1).constants(), complete(8), 3).distance == pytest.approx(
        100.0
    )
    assert (
        declared_utility(Mean.uniform(8, 3, 0).constants(), complete(8), 3, clip=2.0).distance
        == 4.0
    )


@pytest.mark.parametrize(
    ("constants", "graph", "words"),
    [
        (Constants(1.0, 0.25, 0.0, "declared"), ring(5), "needs a strongly convex objective"),
        (Constants(1.0, 1.0, 0.5, "records"), ring(5), "declared constants only"),
        (Constants(np.inf, 1.0, 0.5, "declared"), ring(5), "no bound on the gradients is declared"),
        (Constants(1.0, 1.0, 0.5, "declared"), butterfly(8), "one fixed graph"),
        (Constants(1.0, 1.0, 0.5, "declared"), ring(6, plus=0), "finite, positive bounds"),
    ],
    ids=str,
)
def test_what_is_not_declared(constants, graph, words):
    with pytest.raises(br.ConfigError, match=words):
        declared_utility(constants, graph, 3)


def test_impossible_numbers():
    with pytest.raises(br.ConfigError, match="smoothness >= strong convexity > 0"):
        WalkUtility(
            smoothness=1.0, convexity=2.0, distance=1.0, mixing=1.0, heterogeneity=1.0, variance=0.0
        )
    with pytest.raises(br.ConfigError, match="at least one step, found 0"):
        KNOWN.rate(0)
    with pytest.raises(br.ConfigError, match="needs a rate <= 1/L = 1, found 2"):
        KNOWN.bound_at(2.0, 10)


class TestBall:
    """With a regularizer gradients grow with the model; in a ball of radius R they stay below G +
    l2 R."""

    def run(self, bound, clip, engine=None, **options):
        noise = br.Gaussian(clip=clip, sigma=1.0)
        return br.run(
            br.WalkSGD(rate=0.5, bound=bound, **options),
            ring(8),
            logistic(8, 0.2),
            privacy=noise,
            steps=90,
            seed=2,
            evaluate_every=0,
            engine=engine,
        )

    def test_the_theorem_holds(self):
        run = self.run(2.0, 1.4)
        assert run.summary().theorem == RealizedWalk.title
        assert run.guarantee(of=1, seen_by=4).status == "proven"
        assert np.linalg.norm(run.estimates, axis=1).max() <= 2.0 * (1 + 1e-12)

    def test_gradients_in_the_ball_are_never_cut(self):
        task, rng = logistic(8, 0.2), np.random.default_rng(0)
        x = rng.normal(size=(8, 3))
        x *= 2.0 / np.linalg.norm(x, axis=1, keepdims=True)
        assert np.linalg.norm(task.gradient(np.arange(8), x), axis=1).max() <= 1.0 + 0.2 * 2.0

    @pytest.mark.parametrize(
        ("bound", "clip", "words"),
        [
            (None, 5.0, "keep the model in a ball"),
            (2.0, 1.3, "gradients as long as 1.4"),
        ],
    )
    def test_refusals(self, bound, clip, words):
        assert any(words in reason for reason in self.run(bound, clip).summary().refused)

    def test_compiled(self):
        compare(self.run(0.3, 1.4), self.run(0.3, 1.4, br.Bulk(fused=True)))

    def test_a_model_from_outside_is_brought_in_first(self):
        """Models of an earlier run may be anywhere: the gradient is taken at the projected
        point."""
        first = self.run(None, 9.0)
        noise, task = br.Gaussian(clip=1.4, sigma=1.0), logistic(8, 0.2)
        runs = [
            br.run(
                br.WalkSGD(rate=0.5, bound=0.1),
                ring(8),
                task,
                privacy=noise,
                steps=40,
                after=first,
                carry="model",
                evaluate_every=0,
                engine=engine,
            )
            for engine in (br.Bulk(fused=False), br.Bulk(fused=True))
        ]
        compare(*runs)
        assert np.linalg.norm(runs[0].estimates[runs[0].trace.meetings.b], axis=1).max() <= 0.1 * (
            1 + 1e-12
        )


class TestExpected:
    def of(self, algorithm, graph, l2=0.2, steps=50, **options):
        task = logistic(graph.n, l2, **options)
        noise = br.Gaussian(clip=2.0, sigma=0.1)
        return expected(
            br.run(algorithm, graph, task, privacy=noise, steps=steps, evaluate_every=0)
        )

    def test_walks(self):
        found = self.of(br.WalkSGD(rate=0.5), complete(8))
        known = declared_utility(logistic(8, 0.2).constants(), complete(8), 3, sigma=0.1)
        assert isinstance(found, Expectation)
        assert found.bound == pytest.approx(known.bound_at(0.5, 50))
        assert "utility (walk:RW-7): E|x - x*|^2 <=" in found.sentence()

    def test_admm(self):
        # walk:ADMM-3, zeta = 0: E <- (1 - q) E + q ((1 - l (1 - tau))^2 E + l^2 p sigma^2), sigma =
        # 2 gamma sigma_door
        found = self.of(br.WalkADMM(gamma=2.0), complete(8))
        tau = max((2 * 0.45 - 1) / (2 * 0.45 + 1), (1 - 0.4) / (1 + 0.4))
        bound = start = 8 * (1 / 0.2 + 2 * 2.0) ** 2
        for _ in range(50):
            bound = 7 / 8 * bound + ((1 - (1 - tau) / 2) ** 2 * bound + 0.25 * 24 * 0.4**2) / 8
        assert (found.start, found.bound) == (pytest.approx(start), pytest.approx(bound))
        assert found.facts["contraction, declared"] == pytest.approx(tau)

    def test_federated(self):
        all_of_them = self.of(br.FederatedADMM(), br.graphs.star(8))
        some = self.of(br.FederatedADMM(participants=2), br.graphs.star(8))
        assert some.facts["chance to take part"] == 0.25
        assert some.bound > all_of_them.bound

    @pytest.mark.parametrize(
        ("algorithm", "graph", "options", "words"),
        [
            (br.WalkSGD(cap=2), complete(8), {}, "everybody always contributes"),
            (br.WalkSGD(), complete(8), {"l2": 0.0}, "strongly convex"),
            (br.WalkADMM(), ring(8), {}, "as on the complete graph"),
            (br.WalkADMM(), complete(8), {"l2": 0.0}, "give the task an l2"),
            (br.WalkADMM(), complete(8), {"rows": "none"}, "not declared before the run"),
        ],
        ids=str,
    )
    def test_reasons(self, algorithm, graph, options, words):
        assert words in self.of(algorithm, graph, **options)

    def test_other_algorithms(self):
        assert self.of(br.GossipSGD(), ring(8), steps=3) is None
