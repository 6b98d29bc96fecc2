"""A graph of one peer, of every family, with every algorithm: it runs and is accounted for, or a
sentence says why not."""

import math
import warnings

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import catalog
from bruit.errors import ConfigError
from bruit.graphs import GraphSequence
from bruit.graphs.names import families
from bruit.testing import small_task

ONE = {
    "path": "path:1",
    "ring": "ring:1",
    "star": "star:1",
    "complete": "complete:1",
    "grid": "grid:1x1",
    "torus": "torus:1x1",
    "hypercube": "hypercube:0",
    "exponential": "exponential:1",
    "tree": "tree:1",
    "butterfly": "butterfly:1",
    "er": "er:1,q=0.5",
    "geometric": "geometric:1,radius=0.1",
    "regular": "regular:1,degree=0",
    "ws": "ws:1,k=0,p=0",
    "ba": "ba:1,m=1",
    "sbm": "sbm:1,p_in=1,p_out=0",
    "kout": "kout:1,k=0",
}
KINDS = ("path", "ring", "torus", "hypercube", "complete", "butterfly")
NOISES = (
    None,
    br.Gaussian(clip=2.0, sigma=0.5),
    br.Gaussian(clip=2.0, sigma=0.5, arithmetic="ideal"),
)


def test_every_family_that_has_a_size_is_tried():
    never_one = {"hamming", "rook", "paley", "kneser", "moore"}  # their least graphs are larger
    not_by_size = {"florentine", "karate", "women", "ego", "file", "circles", "meetings", "links"}
    assert set(ONE) == set(families()) - not_by_size - never_one


def kind_of(graph):
    """All that a run can see of a graph of one peer."""
    if isinstance(graph, GraphSequence):
        return type(graph)
    return type(graph), graph.group, graph.weights.toarray().tolist(), graph.degrees.tolist()


def test_every_family_of_one_peer_is_one_of_the_kinds_that_are_run():
    seen = [kind_of(br.graphs.graph(ONE[family])) for family in KINDS]
    with pytest.raises(ConfigError, match="ba needs m between 1 and n - 1 = 0"):
        br.graphs.graph(ONE["ba"])
    for family in set(ONE) - {"ba"}:
        assert kind_of(br.graphs.graph(ONE[family])) in seen, family


@pytest.mark.parametrize("family", KINDS)
@pytest.mark.parametrize("name", catalog())
def test_a_single_peer_works_or_is_refused(name, family):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("ignore")
        for noise, engine, steps in [
            (one, kind, 4) for one in NOISES for kind in (br.Bulk(), br.Events())
        ]:
            try:
                run = br.run(
                    catalog()[name](),
                    ONE[family],
                    small_task(1),
                    privacy=noise,
                    steps=steps,
                    engine=engine,
                    evaluate_every=0,
                )
                epsilon = run.epsilon()
                losses = run.losses()
            except br.BruitError:
                continue
            assert np.isfinite(run.estimates).all()
            assert epsilon >= 0
            assert math.isnan(losses[0, 0])


@pytest.mark.parametrize("relabel", [None, 3])
def test_gossip_sgd_on_a_butterfly_of_one(relabel):
    """It divided by the number of digits, which is 0."""
    noise = br.Gaussian(clip=2.0, sigma=0.5)
    run = br.run(
        br.GossipSGD(), br.graphs.butterfly(1, relabel), small_task(1), privacy=noise, steps=5
    )
    alone = br.run(br.GossipSGD(), "complete:1", small_task(1), privacy=noise, steps=5)
    assert run.epsilon() == pytest.approx(alone.epsilon())
    assert run.facts().data_lines().sum() == 5
