"""Several tokens between real peers are runs of their own, one for each: their walks and noises are
drawn apart, and the account of the records adds up what all of them cost (walk:RW-6)."""

import pytest

from bruit.accounts.account import beside
from bruit.privacy.toolbox.pld import compose_epsilon
from tests.unit.peers.small_network import found_small, live_together

WALK = """\
graph = "complete:3"
steps = 60
seed = 3

[task]
kind = "ridge"
data = "diabetes"
components = 2

[algorithm]
name = "walk-sgd"
schedule = {name = "walk", token = 0, first = 0}

[privacy]
sigma = 20.0
"""


@pytest.mark.slow
def test_the_account_of_the_records_adds_up_what_the_tokens_cost(tmp_path):
    first = found_small(tmp_path / "a", WALK, pace=0.01)
    other = WALK.replace("token = 0, first = 0", "token = 1, first = 1")
    second = found_small(tmp_path / "b", other, pace=0.01)
    for old, new in zip(first, second, strict=True):
        new.write_text(f'records = "{old.parent / "records.npz"}"\n' + new.read_text())
    runs = [live_together(sites) for sites in (first, second)]
    for peer, site in enumerate(first):  # one that no token visits in 60 hops has a chance of 1e-10
        charged = beside(site.parent / "records.npz").balance().charged
        assert len(charged) == 2
        lines = [
            [(one.events[row], int(count)) for row, count in enumerate(one.counts()[peer]) if count]
            for one in (people[peer].host.ledger for people, _ in runs)
        ]
        alone = [reports[peer]["epsilon"] for _, reports in runs]
        both = compose_epsilon([line for one in lines for line in one], 1e-6)
        paid = compose_epsilon([event for one in charged for event in one.price.events], 1e-6)
        assert all(one.settled for one in charged)
        assert paid == both > max(alone)
