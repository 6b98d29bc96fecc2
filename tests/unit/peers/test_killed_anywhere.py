"""Peers on ballots that are killed at any line of an attempt, hundreds of times: nothing is said in
two ways, no mask has two messages, every attempt is charged (silo:SILO-5)."""

import random

import numpy as np
import pytest

from tests.e2e.assemblies import TEXT, Told
from tests.unit.peers.killed_hosts import KilledHosts
from tests.unit.peers.small_network import found_small

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_line(tmp_path, seed):
    """Two times straight, then along a tree, then by a butterfly."""
    text = TEXT.format(peers=4, steps=20, dropouts=1, spare=90)
    route = ("complete", "complete", "tree", "butterfly")[seed]
    text = text.replace("[privacy]", f'route = "{route}"\n\n[privacy]')
    tried = KilledHosts(found_small(tmp_path, text, 4), random.Random(seed))
    while tried.step(deadly=tried.kills < 60):
        pass
    machines = [tried.hosts[peer].machine for peer in range(4)]
    reports = [{"peer": peer, **machine.told()} for peer, machine in enumerate(machines)]
    tried.close()
    told = Told(tried, range(4))
    told.check(reports, route)
    assert tried.kills == 60
    assert sum(len(keys) for keys in told.keys.values()) > 50  # starts, nearly all after a kill
    assert {machine.count for machine in machines} == {20}
    assert max(machine.charges for machine in machines) > 20  # some attempts were lost
    models = [machine.state.model for machine in machines]
    assert all(np.array_equal(model, models[0]) for model in models)
    assert 0 < np.abs(models[0]).max() < 100  # a mask that is left over is some 2^60 grains
