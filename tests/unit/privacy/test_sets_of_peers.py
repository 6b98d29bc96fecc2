"""Sets of peers whose data all change at once, wherever an epsilon is asked for (gossip:MUF-12)."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import bruit as br
from bruit.commands.cli import app
from bruit.errors import ConfigError, PrivacyError

SIZES = [1.0, 2.0, 0.5, 1.5, 1.0, 1.0, 3.0, 1.0]
RUNS = {
    "averaging": (br.Averaging(), "ring:8", br.Gaussian(0.5, 1.0)),
    "sizes": (br.Averaging(), "ring:8", br.GaussianPerPeer(0.5, SIZES)),
    "pairs": (br.PairAveraging(), "ring:8", br.Gaussian(0.5, 1.0)),
    "chebyshev": (br.Chebyshev(), "hypercube:3", br.Gaussian(0.5, 1.0)),
    "renoised": (br.Renoised(), "ring:8", br.Gaussian(0.5, 1.0)),
    "butterfly": (br.Averaging(), "butterfly:8", br.Gaussian(0.5, 1.0)),
    "gossip-sgd": (br.GossipSGD(), "ring:8", br.Gaussian(0.5, 1.0)),
    "walk": (br.WalkSGD(), "complete:8", br.Gaussian(0.5, 1.0)),
    "ring-sum": (br.RingSum(), "ring:8", br.Gaussian(0.5, 1.0)),
    "laplace": (br.Averaging(), "ring:8", br.Laplace(0.5, 1.0)),
}


@pytest.mark.parametrize("name", sorted(RUNS))
def test_a_set_costs_more_than_a_member_and_less_than_all_releases(name):
    algorithm, graph, noise = RUNS[name]
    task = br.tasks.Mean(np.zeros((8, 1)))
    run = br.run(algorithm, graph, task, privacy=noise, steps=3)
    for seen_by in (0, {0, 1}, None):
        both = run.epsilon(of={5, 6}, seen_by=seen_by)
        alone = [float(run.epsilon(of=u, seen_by=seen_by)) for u in (5, 6)]
        assert float(both) >= max(alone) * (1 - 1e-9)
        assert float(both) <= float(run.epsilon(of={5, 6})) * (1 + 1e-5)  # R of views
        assert "peers 5, 6 together" in both.why()
    assert float(run.epsilon(of=(5,), seen_by=0)) == float(run.epsilon(of=5, seen_by=0))
    with pytest.raises(PrivacyError, match="peer 5 is among the observers"):
        run.epsilon(of={5, 6}, seen_by=5)


def test_the_command_takes_sets(tmp_path):
    words = ["epsilon", "--graph", "ring:8", "--steps", "3", "--sigma", "2", "--seen-by", "0"]
    said = CliRunner().invoke(app, [*words, "--of", "5,6", "--json"])
    assert said.exit_code == 0, said.output
    about = json.loads(said.output)
    one = json.loads(CliRunner().invoke(app, [*words, "--of", "5", "--json"]).output)
    assert about["of"] == "peers 5, 6 together"
    assert about["epsilon"] > one["epsilon"]
    assert isinstance(CliRunner().invoke(app, [*words, "--of", "5;6"]).exception, ConfigError)
    assert isinstance(
        CliRunner().invoke(app, [*words, "--of", "5,6", "--before"]).exception, ConfigError
    )
