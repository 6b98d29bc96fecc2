"""Thesis, Figure 6.1(c): gossip on fresh graphs and a server are read after as many gradients."""

import numpy as np
import pytest

from papers.catalog import descent


@pytest.mark.slow
def test_without_noise_gossip_and_the_server_agree_after_every_gradient(monkeypatch):
    """gossip:EXP-15: a server that is read one gradient early begins where nothing was learned."""
    course = descent.Course.drawn(200)
    monkeypatch.setattr(descent, "SIGMA", 1e-9)
    _, gossip, server = descent.learned(200, course, 1)
    assert len(gossip) == len(server) == descent.ROUNDS
    np.testing.assert_allclose(gossip, server, atol=0.01)
