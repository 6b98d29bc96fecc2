"""Private descent between real peers that hold different numbers of records: what each is charged is
what was agreed on, and what it says hides its own records by their number (perso:PERSO-9)."""

import numpy as np

from tests.unit.peers.small_network import found_small, live_together
from tests.unit.peers.test_entrance import BY_SIZE


def test_each_peer_is_charged_what_was_agreed_on(tmp_path):
    """A model and three updates: the epsilons of the ledger's lines add up to the agreed 6, on
    every peer, though the noise of the first is a third as large."""
    text = BY_SIZE.replace("[12, 12, 12]", "[30, 10, 10]").replace("steps = 12", "steps = 30")
    people, reports = live_together(found_small(tmp_path, text, pace=0.01))
    for one, report in zip(people, reports, strict=True):
        ledger = one.host.ledger
        lines = np.array([1 / event.noise_multiplier for event in ledger.events])
        spent = float(ledger.counts()[one.host.me] @ lines)
        assert report["done"]
        assert (report["releases"], report["contributions_left_out"]) == (4, [])
        assert 5.99 < spent <= 6.0
        assert 5.99 < report["epsilon"] <= 6.0
    scales = people[0].privacy.measured_for("gradient").scales
    assert np.allclose(scales[1:] / scales[0], 3.0)
