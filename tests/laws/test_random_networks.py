"""Networks nobody chose: random links with random weights, some peers alone, graphs that change, links
that fail; one observer, and several. What each algorithm charges, against impulses through its code."""

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits.oracle import broken_claims
from bruit.graphs.written_out import of_links, of_meetings

LEARNERS = {
    "averaging": br.Averaging(),
    "renoised": br.Renoised(tau=0.3),
    "pair-averaging": br.PairAveraging(),
    "gossip-sgd": br.GossipSGD(mixing=2),
    "masked-consensus": br.MaskedConsensus(mixing=2, tau=0.3, omega=0.7),
    "decor": br.Decor(rate=0.2, ratio=5.0, mixing=2),
    "decor by degree": br.Decor(rate=0.2, ratio=5.0, by_degree=True),
    "mafalda": br.Mafalda(rate=0.2, own=2.0, pair=3.0, back=(0.5, 0.25)),
}


def links(rng, n):
    """Links by coins, some of whose peers have none, with weights below the usual ones."""
    pairs = [(a, b) for a in range(n) for b in range(a) if rng.random() < 0.4] or [(1, 0)]
    degree = np.bincount(np.ravel(pairs), minlength=n)
    return of_links(
        [(a, b, float(rng.uniform(0.2, 1) / (1 + max(degree[a], degree[b])))) for b, a in pairs],
        n,
    )


def meetings(rng, n):
    """Three rounds of pairs, one of which may be empty."""
    orders = [rng.permutation(n).tolist() for _ in range(3)]
    return of_meetings(
        [
            [(a, b) for a, b in zip(one[::2], one[1::2], strict=False) if k or rng.random() < 0.6]
            for k, one in enumerate(orders)
        ],
        n,
    )


def ran(name, place, seed, **more):
    n, learner = place.n, LEARNERS[name]
    task = br.tasks.Mean(np.linspace(-0.4, 0.4, 2 * n).reshape(n, 2))
    privacy = more.pop("privacy", br.Gaussian(0.5, 1.0))
    steps = 2 * getattr(learner, "mixing", 1)
    return br.run(
        learner, place, task, privacy=privacy, steps=steps, seed=seed, evaluate_every=0, **more
    )


def views(rng, n):
    together = rng.choice(n, size=min(3, n - 1), replace=False).tolist()
    return [*((v,) for v in range(n)), tuple(together[:2]), tuple(together)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", LEARNERS)
def test_no_claim_is_below_what_impulses_reach(name, seed):
    rng = np.random.default_rng(seed)
    place = links(rng, int(rng.integers(3, 8)))
    run = ran(name, place, seed)
    assert broken_claims(run, views(rng, place.n)) == []


@pytest.mark.parametrize("name", ["averaging", "renoised", "masked-consensus", "decor"])
def test_nor_where_the_graph_changes(name):
    rng = np.random.default_rng(7)
    run = ran(name, meetings(rng, 6), 7)
    assert broken_claims(run, views(rng, 6)) == []


@pytest.mark.parametrize("name", ["averaging", "pair-averaging"])
def test_nor_where_noises_are_far_apart_and_links_fail(name):
    rng = np.random.default_rng(11)
    place, sizes = links(rng, 6), tuple(np.exp(rng.normal(0, 2, 6)).tolist())
    noise = br.GaussianPerPeer(clip=0.5, sigmas=sizes)
    run = ran(name, place, 11, privacy=noise, engine=br.Events(churn=0.3, loss=0.1))
    assert broken_claims(run, views(rng, 6)) == []
