"""Peers on ballots as real processes: killed with -9 again and again, or never there at all; one
chain, no words twice, no mask twice, every attempt charged (silo:SILO-5)."""

import time

import numpy as np
import pytest

from tests.e2e.assemblies import Assembly, Told, models
from tests.e2e.villages import until

pytestmark = pytest.mark.slow


@pytest.fixture
def assembly(tmp_path):
    made = []

    def make(**terms):
        made.append(Assembly(tmp_path, **terms))
        return made[-1]

    yield make
    for one in made:
        one.end()


def check_models(ended, people):
    """The same everywhere, to the last bit; and all masks have canceled, since a single word that
    is left over moves a model by a rate times some 2^60 grains, a million or more."""
    found = models(ended, people)
    assert all(model == found[0] for model in found)
    assert 0 < np.abs(found[0]).max() < 100


@pytest.mark.parametrize("seed", [1])
def test_killed_at_random_moments(assembly, seed):
    kills, chance = 30, np.random.default_rng(seed)
    tried = assembly(steps=10 * kills + 20, spare=200, dropouts=1, timeout=3.0)
    tried.start()
    for kill in range(kills):
        tried.hold(10 * (kill + 1))  # nobody is at the end before the last kill
        came = tried.furthest()
        until(lambda came=came: tried.furthest() > came, "one more round")
        time.sleep(float(chance.uniform(0.0, 0.3)))
        peer = int(chance.integers(tried.peers))
        tried.kill(peer)
        tried.start(peer)
    for peer in range(tried.peers):  # who is left at the end alone may not end with 0
        tried.wait_for(peer, lambda now: now["connected"] == tried.peers - 1, "all its lines")
    tried.let_go()
    codes, reports = tried.ended()
    print(tried.kills, codes, [(r["charges"], r["step"]) for r in reports])
    people = range(tried.peers)
    told = Told(tried, people)
    told.check(reports)
    check_models(tried, people)
    assert tried.kills >= 20
    assert codes == [0] * tried.peers, [tried.log(peer) for peer in people]
    assert sum(len(keys) for keys in told.keys.values()) > tried.peers


def test_one_that_never_comes(assembly):
    tried = assembly(steps=6, spare=6, dropouts=1, timeout=1.5)
    tried.start(0, 1, 2)
    codes, reports = tried.ended(0, 1, 2)
    assert codes == [0, 0, 0], [tried.log(peer) for peer in range(3)]  # it was planned for
    assert [report["missing"] for report in reports] == [["peer-3"]] * 3
    assert all(one["members"] == [0, 1, 2] for report in reports for one in report["rounds"])
    Told(tried, range(3)).check(reports)
    check_models(tried, range(3))
