"""Releases that arrived: against brute force over chains of wake-ups, by hand, and what is
refused."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.personal.model_propagation import ModelPropagation
from bruit.algorithms.personal.personalized import Personalized
from bruit.graphs import graph
from bruit.graphs.similarity import similarity
from bruit.privacy.theorems.arrived import Arrived, last_told
from bruit.tasks import Mean
from bruit.trace import Meetings, Trace

NOISE = br.Gaussian(clip=1.0, sigma=2.0)


def known_forward(space, woken, observers):
    """The other way round: everybody's set of (peer, wake-up) pairs it may know of, message by
    message."""
    knows = [{(u, 0)} for u in range(space.n)]
    heard = [set(knows[u]) for u in range(space.n)]
    for u in range(space.n):
        for v in space.neighbors(u):
            heard[v] |= knows[u]
    count = [0] * space.n
    for u in woken:
        count[u] += 1
        knows[u] |= heard[u] | {(u, count[u])}
        for v in space.neighbors(u):
            heard[v] |= knows[u]
    return set().union(*(heard[v] | knows[v] for v in observers))


@pytest.mark.parametrize("seed", range(8))
def test_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    space = graph(["path:6", "ring:7", "star:5", "grid:2x3"][seed % 4])
    woken = rng.integers(0, space.n, 10)
    observers = tuple(rng.choice(space.n, 1 + seed % 2, replace=False).tolist())
    told, known = (
        last_told(space, woken, observers),
        known_forward(space, woken.tolist(), observers),
    )
    for u in range(space.n):
        if u not in observers:
            assert told[u] == max((step for peer, step in known if peer == u), default=-1)


def runs(order, algorithm=None, noise=NOISE):
    given = Trace(
        peers=4,
        steps=len(order),
        meetings=Meetings(np.arange(float(len(order))), np.array(order), np.array(order)),
    )
    return br.run(
        algorithm or Personalized(),
        "path:4",
        Mean(np.ones((4, 1))),
        privacy=noise,
        steps=len(order),
        given=given,
        evaluate_every=0,
    )


def test_by_hand():
    """On the path 0-1-2-3, peer 2 wakes twice and 1 in between: 0 knows of one release of 2, 3 of
    both."""
    done = runs([2, 1, 2])
    assert done.losses()[2].tolist()[:2] + done.losses()[2].tolist()[3:] == [1, 2, 2]
    assert done.losses()[1].tolist()[2:] == [1, 1]  # what 1 said was in the second word of 2
    guarantee = done.guarantee(of=2, seen_by=0)
    assert guarantee.status == "proven"
    assert "2 of 3 releases" in " ".join(guarantee.notes)
    assert done.epsilon(of=2, seen_by=0) < done.epsilon(of=2, seen_by=1) == done.epsilon(of=2)


def test_models_fitted_alone_are_told_before_anybody_wakes():
    """perso:PERSO-13: one release, at the start: neighbors know it, others when somebody between
    them woke."""
    done = runs([1], ModelPropagation())
    assert done.losses()[2].tolist()[:2] + done.losses()[2].tolist()[3:] == [1, 1, 1]
    assert done.losses()[3].tolist()[:3] == [0, 0, 1]


def test_other_components_learn_nothing():
    weights = np.zeros((4, 4))
    weights[0, 1] = weights[1, 0] = weights[2, 3] = weights[3, 2] = 1.0
    done = br.run(
        Personalized(),
        similarity(weights),
        Mean(np.ones((4, 1))),
        privacy=NOISE,
        steps=5,
        evaluate_every=0,
    )
    assert done.epsilon(of=0, seen_by={2, 3}) == 0
    assert done.epsilon(of=0, seen_by=1) > 0


@pytest.mark.parametrize("noise", [None, br.Laplace(clip=1.0, scale=2.0)], ids=["exact", "laplace"])
def test_other_noise_is_charged_locally(noise):
    done = runs([2, 1, 2], noise=noise)
    assert done.guarantee(of=2, seen_by=0).theorem.startswith("local DP")
    assert "one Gaussian mechanism" in " ".join(done.guarantee(of=2, seen_by=0).notes)


def test_a_model_handed_on_is_charged_as_seen():
    """What had not arrived in the first phase may arrive in the next."""
    first = runs([2, 1, 2])
    then = br.run(
        Personalized(updates=0),
        "path:4",
        Mean(np.ones((4, 1))),
        privacy=NOISE,
        steps=4,
        after=first,
        carry="model",
        evaluate_every=0,
    )
    assert then.epsilon(of=2, seen_by=0) == pytest.approx(first.epsilon(of=2))


def test_meetings_of_two_are_refused():
    done = br.run(
        br.PairAveraging(),
        "path:4",
        Mean(np.ones((4, 1))),
        privacy=NOISE,
        steps=4,
        evaluate_every=0,
    )
    with pytest.raises(br.PrivacyError, match="from wake-up to wake-up, found meetings of two"):
        Arrived(about=("pair-averaging",)).check(done.facts())
