"""Masked consensus as it runs: its account on any graph, and what voids it (gossip:MUF-X3)."""

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits.oracle import broken_claims
from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.exact import MaskedRound, masked_losses
from bruit.runs.build import build
from bruit.runs.file import from_dict

ONE = br.MaskedConsensus(rate=0.2, mixing=3, tau=0.3, omega=0.4)


def ran(algorithm=ONE, graph="ring:6", steps=6, noise=None, **more):
    n = br.graphs.graph(graph).n
    task = br.tasks.Mean(np.linspace(-0.4, 0.4, 2 * n).reshape(n, 2))
    privacy = br.Gaussian(0.5, 1.0) if noise is None else noise
    return br.run(algorithm, graph, task, privacy=privacy, steps=steps, **more)


@pytest.mark.parametrize(
    "graph", ["ring:6", "star:6", "path:4", "er:8,c=1.5,seed=1", "butterfly:6"]
)
def test_no_impulse_passes_the_claim(graph):
    run = ran(graph=graph)
    told = run.guarantee(of=3, seen_by=0)
    assert (told.spec, told.status) == ("gossip:MUF-X3", "proven")
    assert broken_claims(run, [(v,) for v in range(run.n)] + [(0, 2)]) == []


def test_the_loss_is_that_of_the_statement():
    run = ran(graph="grid:2x3", steps=9)
    expected = 3 * masked_losses(run.graph, [MaskedRound(3, 0.3, 0.4)], [1])
    m = run.losses()
    assert m[[0, 2, 3, 4, 5], 1] == pytest.approx(np.minimum(expected, 3)[[0, 2, 3, 4, 5]])


def test_an_expander_costs_a_part_of_a_unit_a_round():
    """64 peers of degree 6, 20 rounds: a typical pair; gossip-sgd is charged a unit a round."""
    learner = br.MaskedConsensus(rate=0.1, mixing=12, tau=0.2, omega=1.0)
    noise = br.Gaussian(0.5, 1.0)
    run = br.rehearse(learner, "regular:64,degree=6", noise, steps=240)
    told = run.accountant().charge(0).loss / 20
    assert np.median(told[1:]) < 0.15
    plain = br.rehearse(br.GossipSGD(mixing=12), "regular:64,degree=6", noise, steps=24)
    assert np.median(plain.accountant().charge(0).loss[1:]) / 2 > 0.5


def test_it_learns_the_mean():
    still = br.Gaussian(0.5, 0.0)
    run = ran(br.MaskedConsensus(rate=0.5, mixing=4, tau=0.1, omega=0.1), steps=80, noise=still)
    assert run.metrics.last("mse") < 0.05


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"algorithm": br.MaskedConsensus(mixing=3, tau=0.0)}, "noise in every message"),
        ({"algorithm": br.MaskedConsensus(mixing=3, omega=0.0)}, "in every mask"),
        ({"engine": br.Events(churn=0.4)}, "links failed"),
        ({"steps": 5}, "no whole number of rounds"),
    ],
)
def test_what_voids_the_account(change, words):
    run = ran(**change)
    told = run.guarantee(of=3, seen_by=0)
    assert told.spec == "gossip:DP-8"
    assert words in " ".join(told.notes)


def test_broken_rounds_and_numbers_are_refused():
    with pytest.raises(ConfigError):
        br.MaskedConsensus(tau=-1.0)
    with pytest.raises(ConfigError):
        br.MaskedConsensus(mixing=0)
    file = {
        "graph": "ring:6",
        "steps": 5,
        "task": {"kind": "mean"},
        "algorithm": {"name": "masked-consensus", "mixing": 3},
        "privacy": {"sigma": 1.0},
    }
    with pytest.raises(ConfigError, match="multiple of mixing = 3"):
        build(from_dict(file))
    with pytest.raises(PrivacyError, match="it is about masked-consensus"):
        ONE.guarantees()[0].check(ran(br.Averaging()).facts())
