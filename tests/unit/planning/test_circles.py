"""Circles of trust: one noise leaves, and trust is not passed on (silo:SILO-11)."""

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits.oracle import broken_claims
from bruit.errors import ConfigError
from bruit.graphs import graph as named
from bruit.graphs.sequence import after_circles
from bruit.planning.trust import plan_trust
from bruit.planning.trust.unequal_trust import cliques
from bruit.privacy.exact import sequence_rows, unequal_rows_loss


def clinics(inside, outside=1.0, n=12, size=4):
    caps = np.full((n, n), outside)
    for first in range(0, n, size):
        caps[first : first + size, first : first + size] = inside
    np.fill_diagonal(caps, np.nan)
    return caps


@pytest.mark.parametrize("inside", [8.0, np.inf], ids=["epsilon 8", "full trust"])
def test_three_clinics(inside):
    found = plan_trust(clinics(inside))
    assert found.error == pytest.approx(0.610, abs=5e-4)  # 0.862 without circles
    assert found.circles == ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11))
    assert (found.status, found.graph.name) == ("proven", "circles:0+1+2+3/4+5+6+7/8+9+10+11")
    off = ~np.eye(12, dtype=bool)
    assert np.all(found.epsilon[off] <= clinics(inside)[off])
    assert (
        np.nanmax(found.epsilon) < 2.2
    )  # members see noisy shares, whatever they were trusted with


@pytest.mark.parametrize("links", [None, [(0, 3), (2, 5)], [(1, 4), (3, 5), (0, 5)]])
def test_outsiders_see_one_noise_whatever_comes_later(links):
    graph, sizes = after_circles([[0, 1, 2], [3, 4], [5]], links), [1.0, 0.5, 2.0, 1.0, 3.0, 1.5]
    bound = {0: 5.25, 3: 10.0, 5: 2.25}  # the variance of each circle
    for v, known in ((0, {3, 5}), (4, {0, 5}), (5, {0, 3})):
        rows = sequence_rows(graph.at, 6, 6, [v])
        mu2 = unequal_rows_loss(rows, sizes).loss / np.array(sizes) ** 2
        for first in known:
            for u in {0: (0, 1, 2), 3: (3, 4), 5: (5,)}[first]:
                assert mu2[u] <= 1 / bound[first] + 1e-9
    rows = sequence_rows(graph.at, 6, 6, [0, 3])  # 3 leaves the noise of 4 alone
    assert unequal_rows_loss(rows, sizes).loss[4] == pytest.approx(1.0)


def test_a_run_in_circles_agrees_with_impulses():
    noise = br.GaussianPerPeer(clip=0.5, sigmas=[1.0, 1.0, 2.0, 0.5, 1.0, 1.0])
    task = br.tasks.Mean(np.linspace(-0.4, 0.4, 6)[:, None])
    run = br.run(br.Averaging(), "circles:0-2/3+4/5", task, privacy=noise, steps=6)
    assert run.guarantee(of=0, seen_by=5).spec == "silo:SILO-8"
    assert broken_claims(run, [(v,) for v in range(6)]) == []
    assert run.guarantee(of=0, seen_by=5).loss <= 4 / 6 + 1e-9
    assert np.ptp(run.estimates) < 0.05


def test_equal_noise_in_circles_is_the_old_theorem():
    task = br.tasks.Mean(np.zeros((6, 1)))
    run = br.run(br.Averaging(), "circles:0-2/3-5", task, privacy=br.Gaussian(0.5, 1.0), steps=4)
    told = run.guarantee(of=0, seen_by=4)
    assert (told.spec, told.status) == ("gossip:MUF-2", "proven")
    assert told.loss == pytest.approx(1 / 3)


def test_trust_is_not_passed_on():
    mutual = np.full((4, 4), 1.0)
    for u, v in ((0, 1), (1, 2)):
        mutual[u, v] = mutual[v, u] = 9.0
    assert cliques(mutual, 9.0) == ((0, 1), (2,), (3,))
    caps = mutual.copy()
    np.fill_diagonal(caps, np.nan)
    found = plan_trust(caps)
    off = ~np.eye(4, dtype=bool)
    assert np.all(found.epsilon[off] <= caps[off])
    with pytest.raises(ConfigError, match="peer 1 is in two circles: trust is not passed on"):
        named("circles:0+1/1+2")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("circles:0-2/4", "divide the peers"),
        ("circles:0-x", "circles of peers"),
        ("circles:0-2/3,links=0-3-4", "pairs of peers"),
        ("circles:0-2/3,links=0-9", "9"),
    ],
)
def test_circles_that_mean_nothing_are_refused(text, words):
    with pytest.raises(ConfigError, match=words):
        named(text)
