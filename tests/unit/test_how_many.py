"""Counts in sentences agree with their nouns: 1 peer, 2 peers."""

import numpy as np
import pytest

import bruit as br
from bruit.errors import PrivacyError
from bruit.how_many import how_many
from bruit.planning.silos.question import SilosQuestion
from bruit.show.terminal import degree_line


def test_a_count_and_its_noun():
    assert [how_many(n, "peer") for n in (0, 1, 2)] == ["0 peers", "1 peer", "2 peers"]
    assert (how_many(1.0, "message"), how_many(2.5, "message")) == ("1 message", "2.5 messages")
    assert (how_many(np.int64(1), "class"), how_many(3, "class")) == ("1 class", "3 classes")


def test_two_peers_have_one_link_and_one_neighbor():
    assert degree_line(br.graphs.graph("path:2")) == "2 peers, 1 link, 1 neighbor each"


def test_one_colluder_is_one():
    with pytest.raises(PrivacyError, match="1 colluder and 1 dropout of 3 silos"):
        SilosQuestion(records=(9, 9, 9), dim=1, epsilon=1.0, colluders=1, dropouts=1)
