"""Runs that the tests of reports share."""

import pytest

import bruit as br
from bruit.graphs import erdos_renyi
from bruit.testing import small_task

NOISE = br.Gaussian(clip=1.0, sigma=2.0)


@pytest.fixture(scope="session")
def averaging():
    """Averaging on 24 peers with noise."""
    graph = erdos_renyi(24, c=2.0, seed=1)
    return br.run(br.Averaging(), graph, small_task(24), privacy=NOISE, steps=6, seed=1, watch=[0])


@pytest.fixture(scope="session")
def folder(averaging, tmp_path_factory):
    """The same as a run folder."""
    return averaging.save(tmp_path_factory.mktemp("runs") / "avg.run")
