"""Personal models on real data, and a learned graph among many peers (perso:EXP-4, PERSO-7)."""

import tracemalloc

import numpy as np
import pytest

from bruit.graphs.learn import Collaboration
from bruit.personal.learn import learn_graph
from bruit.randomness import Replay
from papers.figures.personal_sets import SETS, held_back
from papers.figures.personal_tables import SOURCE, accuracies, available, means


def needs(name):
    if not available(name):
        pytest.skip(f"the files of {name} are not on this machine (BRUIT_DATA)")


FACTS = {
    "school": (139, 15362, 11472, 17, 5),
    "computer_buyers": (190, 3800, None, 14, 2),
    "har": (30, 10411, None, 562, 2),
    "landmine": (29, 1808, None, 10, 10),
    "parkinsons": (42, 5875, None, 20, 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FACTS)
def test_sets_are_those_of_the_source(name):
    """perso:EXP-4: peers, records, training records, features (with the constant), stumps a
    feature."""
    needs(name)
    peers, records, train, columns, stumps = FACTS[name]
    data = SETS[name](0)
    assert (data.peers, len(data.labels), data.features.shape[1], data.stumps) == (
        peers,
        records,
        columns,
        stumps,
    )
    assert train is None or data.train.sum() == train
    for part in (data.train, ~data.train):
        assert set(data.owners[part]) == set(range(peers))
    kept = held_back(data, 0)
    assert len(kept.labels) == data.train.sum()
    assert set(kept.owners[kept.train]) == set(range(peers))
    if name == "computer_buyers":
        sizes = np.bincount(data.owners[data.train])
        assert sizes.min() >= 5
        assert sizes.max() <= 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("school", lambda name: np.array(accuracies(name, "boost", 0))),
        ("computer_buyers", lambda name: means(name, "boost")[0]),
    ],
    ids=["school", "computer_buyers"],
)
def test_learned_boosting_is_best(name, found):
    """perso:EXP-4: learned above local and global, all within 3 points of Table 2.1. Means over
    three splits; of school, of 15,362 records, the first of them, which is as near."""
    needs(name)
    mean = found(name)
    assert mean[2] > max(mean[0], mean[1]), mean
    assert np.abs(mean - SOURCE[name, "boost"]).max() <= 3, mean


@pytest.mark.slow
def test_learned_linear_models_are_best_on_a_split_of_school():
    """perso:EXP-4: one of the three splits; the source's hinge loss is a logistic loss here."""
    needs("school")
    everyone, local, learned = accuracies("school", "linear", 0)
    assert learned > max(everyone, local)


@pytest.mark.slow
def test_a_graph_among_very_many_peers_stays_sparse():
    """perso:PERSO-7: 10^5 peers of four kinds, five sampled at a time; memory O(weights + n p).

    Most of the weight is between peers of a kind (a quarter by chance): what an early step gave to
    others stays there, because so many peers hardly ever sample the same pair again.
    """
    peers, sweeps, sampled = 100_000, 10, 5
    rng = np.random.default_rng(0)
    kinds = np.arange(peers) % 4
    models = 3 * np.eye(4)[kinds] + 0.1 * rng.standard_normal((peers, 4))
    tracemalloc.start()
    learned = learn_graph(
        Collaboration(1.0, 1.0, 0.5, 0.1),
        models,
        np.full(peers, 0.1),
        wakes=sweeps * peers,
        dice=Replay(0),
        sampled=sampled,
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    a, b = learned.pairs.T
    assert len(a) > peers
    assert len(a) <= sweeps * sampled * peers
    # set after 0.81 was measured, chance being 0.25: uniform sampling hardly meets a pair twice
    # among so many
    assert learned.weights[kinds[a] == kinds[b]].sum() > 0.7 * learned.weights.sum()
    assert peak < 200 * (len(a) + sampled * peers) + 64 * models.size
    assert np.diff(learned.history).max() <= 0
