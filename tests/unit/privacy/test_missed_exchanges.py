"""When a real peer was missed, the views are not those of the agreed rounds, and no theorem on them
speaks."""

import numpy as np
import pytest

import bruit as br
from bruit.graphs import ring
from bruit.peers.engine import Network
from bruit.peers.founding.founding import plan_network
from bruit.show.demonstration import _summary

NOISE = br.Gaussian(clip=1.0, sigma=2.0)
TASK = br.tasks.Mean(np.linspace(-1, 1, 6)[:, None])
EXPERIMENT = """
graph = "ring:6"
steps = 4
[task]
kind = "mean"
[algorithm]
name = "{name}"
[privacy]
sigma = 1.5
"""


def test_a_missed_exchange_leaves_local_dp(tmp_path):
    run = br.run(br.Averaging(), ring(6), TASK, privacy=NOISE, steps=2)
    assert run.epsilon(of=3, seen_by=0) < run.epsilon(of=3)
    run.trace.missed = 1
    for one in (run, br.load(run.save(tmp_path / "missed.run"))):
        answer = one.epsilon(of=3, seen_by=0)
        assert float(answer) == pytest.approx(float(one.epsilon(of=3)))
        assert "missed" in answer.why()
        assert np.nanmin(one.losses()) == 1.0


def test_impatient_hosts_report_what_they_missed():
    """With no patience at all some exchange is missed, the trace says so, and the pair falls back
    to local DP."""
    run = br.run(
        br.Averaging(),
        ring(6),
        TASK,
        privacy=NOISE,
        steps=12,
        engine=Network(timeout=1e-4),
        evaluate_every=0,
    )
    assert run.trace.missed > 0
    assert float(run.epsilon(of=3, seen_by=0)) == pytest.approx(float(run.epsilon(of=3)))


def test_a_patient_network_keeps_its_theorem():
    run = br.run(
        br.Averaging(), ring(6), TASK, privacy=NOISE, steps=2, engine=Network(), evaluate_every=0
    )
    assert run.trace.missed == 0
    assert "MUF-2" in run.epsilon(of=3, seen_by=0).why()


def test_a_demonstration_claims_pairs_only_of_agreed_rounds(tmp_path):
    """Real meetings are drawn by the peers: a rehearsal of other meetings says nothing about
    them."""
    file = tmp_path / "agreed.toml"
    file.write_text(EXPERIMENT.format(name="averaging"))
    assert _summary(plan_network(str(file), 6))[0] is not None
    file.write_text(EXPERIMENT.format(name="pair-averaging"))
    summary, why = _summary(plan_network(str(file), 6))
    assert summary is None
    assert "meetings" in why


def test_realized_losses_say_that_they_are_of_one_draw():
    run = br.run(br.PairAveraging(), ring(6), TASK, privacy=NOISE, steps=3)
    assert "another draw" in run.epsilon(of=3, seen_by=0).why()
