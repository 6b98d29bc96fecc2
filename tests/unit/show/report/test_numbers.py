"""The numbers behind the figures, against independent ways to get them."""

import csv

import networkx as nx
import numpy as np
import pytest

import bruit as br
from bruit.graphs import ring
from bruit.privacy.ledger import Budget
from bruit.show.report.numbers import distance, pairs, spending, utility, write_csv
from bruit.show.report.pairs import joined, levels_of
from bruit.show.report.story import open_story, tell
from bruit.testing import small_task

NOISE = br.Gaussian(clip=1.0, sigma=2.0)


def test_the_story_is_the_runs(averaging):
    story = tell(averaging)
    assert story.summary == averaging.summary()
    assert np.array_equal(story.losses, averaging.losses(), equal_nan=True)
    of, seen_by = story.worst
    assert story.losses[of, seen_by] == story.summary.losses[0]


def test_loss_by_distance_against_networkx(averaging):
    hops = dict(nx.all_pairs_shortest_path_length(averaging.graph.to_networkx()))
    losses, found = averaging.losses(), {}
    for u in range(averaging.n):
        for v in range(averaging.n):
            if u != v:
                found.setdefault(hops[v][u], []).append(losses[u, v])
    rows = distance(tell(averaging)).rows
    assert [row[0] for row in rows] == sorted(found)
    for far, count, least, mean, largest, _ in rows:
        assert count == len(found[far])
        assert (least, mean, largest) == pytest.approx(
            (min(found[far]), np.mean(found[far]), max(found[far]))
        )


def test_spending_against_the_ledgers_own_composition():
    """gossip:DP-8: at the end each peer has spent what composing all its lines says."""
    run = br.run(br.GossipSGD(mixing=2), ring(6), small_task(6), privacy=NOISE, steps=6, seed=2)
    story = tell(run)
    found = spending(story)
    for peer in (0, 3):
        assert found.epsilons[-1, peer] == pytest.approx(
            Budget(100.0, 1e-6).spent(run.ledger, peer), rel=1e-3
        )
    assert found.epsilons[-1].max() == pytest.approx(story.summary.local_epsilon, rel=1e-12)
    assert np.all(np.diff(found.epsilons, axis=0) >= 0)


def test_scores_and_pairs(averaging):
    story = tell(averaging)
    assert utility(story).column("mse").tolist() == averaging.metrics.column("mse").tolist()
    found = pairs(story)
    assert len(found.rows) == 24 * 23
    of, seen_by, loss, epsilon = found.rows[100]
    assert loss == averaging.losses()[of, seen_by]
    assert epsilon == pytest.approx(float(averaging.epsilon(of=of, seen_by=seen_by)), rel=1e-9)


def test_csv_files_hold_the_same(folder, tmp_path):
    story = open_story(folder)
    written = write_csv(story, tmp_path / "numbers")
    assert [path.name for path in written] == [
        "utility.csv",
        "distance.csv",
        "budget.csv",
        "losses.csv",
    ]
    with open(tmp_path / "numbers" / "losses.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert max(float(row["epsilon"]) for row in rows) == pytest.approx(
        story.summary.epsilons[0], rel=1e-12
    )


def test_levels_round_up_and_never_down():
    losses = np.exp(np.random.default_rng(1).normal(size=(60, 60)) * 3)
    losses[3, 4], losses[5, 6] = 0.0, np.inf
    np.fill_diagonal(losses, np.nan)
    levels = levels_of(losses, 250)
    codes = levels.codes(losses)
    off = ~np.isnan(losses)
    assert not levels.exact
    assert len(levels.losses) <= 250
    shown = levels.losses[codes[off]]
    assert np.all(shown >= losses[off])
    finite = np.isfinite(losses[off]) & (losses[off] > 0)
    assert np.all(shown[finite] <= losses[off][finite] * 1.2)
    assert levels.losses[codes[3, 4]] == 0
    assert levels.losses[codes[5, 6]] == np.inf
    assert np.all(codes[~off] == len(levels.losses))
    assert levels_of(np.array([[np.nan, 1.0], [0.25, np.nan]]), 250).losses.tolist() == [0.25, 1.0]


def test_joining_keeps_the_largest():
    losses = np.arange(25.0).reshape(5, 5)
    np.fill_diagonal(losses, np.nan)
    largest = [[5.0, 8.0, 9.0], [16.0, 17.0, 19.0], [21.0, 23.0, np.nan]]
    assert np.array_equal(joined(losses, 2), largest, equal_nan=True)


def test_too_many_peers_are_refused(averaging, monkeypatch):
    monkeypatch.setattr("bruit.show.report.story.MOST_PEERS", 10)
    with pytest.raises(br.ConfigError, match="at most 10 peers, found 24"):
        tell(averaging)
