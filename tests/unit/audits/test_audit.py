"""The record of an audit, its words, its defence, its errors, and the command."""

import json
import math

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from bruit.algorithms.averaging import Averaging
from bruit.algorithms.federated_admm import FederatedADMM
from bruit.algorithms.renoised import Renoised
from bruit.algorithms.walk_sgd import WalkSGD
from bruit.audit_cli import audit as command
from bruit.audits import audit, audit_mechanism, check_releases
from bruit.audits.bounds import needed_trials
from bruit.audits.experiments import audit_experiment
from bruit.audits.power import best_hits, power
from bruit.errors import ConfigError, PrivacyError
from bruit.experiment import rehearse
from bruit.graphs import graph
from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace
from bruit.privacy.guarantee import Guarantee, gaussian
from bruit.privacy.ledger import Budget
from bruit.privacy.profile import StatementProfile

NOISE = Gaussian(clip=1.0, sigma=2.0)
TOML = """
graph = "path:3"
steps = 2
seed = 1
[task]
kind = "mean"
[algorithm]
name = "averaging"
[privacy]
sigma = 2.0
"""


def claim(profile):
    return Guarantee("a claim", "none", "heuristic", "user", "peer 2", "peer 0", (), profile)


def test_record_and_words():
    found = audit(Averaging(), "path:3", NOISE, 2, 0, 2, 2000, seed=3)
    assert (found.verdict, found.refuted, found.trials, found.status) == ("not refuted", False, 2000, "proven")
    assert found.lower == max(found.clopper_pearson, found.gaussian_fit) < found.claimed
    assert 0.99 <= found.power <= 1
    assert found.scores == ("likelihood ratio", "learned")
    lines = str(found).splitlines()
    assert lines[0].startswith("not refuted: epsilon = 4.887 at delta = 1e-06 was claimed for peer 2 against peer 0")
    assert lines[-1] == found.defence
    assert json.loads(json.dumps(found.to_dict()))["lower"] == found.lower


def test_defence_gives_the_planners_numbers():
    """A loss of 1 and mu = 2 clip / sigma: epsilon 1 at 1e-6 needs sigma = calibrate_pair(1, 1e-6, 1)."""
    found = audit(Averaging(), "path:3", NOISE, 2, 0, 6, 2000, target=1.0)
    needed = NOISE.calibrate_pair(1.0, 1e-6, 1.0).sigma
    assert f"epsilon = 1 (now 4.89 proven) needs sigma = {needed:.4g} instead of 2" in found.defence
    assert "re-noised" not in found.defence  # a neighbor's neighbor of three hears almost everything anyway
    assert found.defence.endswith("at most 1 rounds instead of 6.")
    assert "\n" not in found.defence


def test_defence_names_renoised_gossip_with_its_epsilon():
    """Far away on a ring, re-noised gossip loses less; its epsilon is that of the library for the same sigma."""
    found = audit(Averaging(), "ring:9", NOISE, 4, 0, 8, 2000)
    other = rehearse(Renoised(), graph("ring:9"), NOISE, 8).epsilon(4, 0)
    assert f"re-noised gossip (tau = 0.1) at the same sigma has epsilon = {other:.3g}" in found.defence
    assert other < 0.9 * found.claimed


def test_defence_without_noise():
    found = audit(Averaging(), "path:3", None, 2, 0, 2, 100)
    assert found.claimed == math.inf
    assert found.verdict == "not refuted"
    assert "without noise nothing is hidden" in found.defence


def test_a_view_that_is_not_normal_is_counted_only():
    found = audit(FederatedADMM(l1=0.1), "star:4", Gaussian(clip=1.0, sigma=4.0), 2, 0, 4, 4000)
    assert math.isnan(found.gaussian_fit)
    assert found.scores == ("learned",)
    assert "does not apply" in str(found)


@pytest.mark.parametrize("mechanism", [NOISE, DiscreteGaussian(clip=1.0, sigma=4.0)])
def test_mechanism_alone(mechanism):
    found = audit_mechanism(mechanism, 8000, dim=3)
    assert found.verdict == "not refuted"
    assert found.defence.startswith("Defence: epsilon = ")
    assert audit_mechanism(mechanism, 8000, dim=3, claimed=claim(StatementProfile(0.1, 0.0))).refuted


def test_laplace_with_a_given_claim():
    found = audit_mechanism(Laplace(clip=1.0, scale=1.0), 4000, claimed=claim(StatementProfile(2.0, 0.0)))
    assert found.verdict == "not refuted"
    assert "scale = 2 instead of 1" in found.defence


def test_best_hits_are_the_trade_off_curve():
    """Gaussian: Phi(Phi^-1(q) + mu); randomized response: min(e^eps q, 1 - e^-eps (1 - q))."""
    q = np.array([0.01, 0.1, 0.4])
    assert best_hits(claim(gaussian(1.0, 1.0)), np.array([0.5]))[0] == pytest.approx(0.8413447460685429)
    pure = best_hits(claim(StatementProfile(1.0, 0.0)), q)
    np.testing.assert_allclose(pure, np.minimum(math.e * q, 1 - (1 - q) / math.e), atol=1e-6)


def test_power_grows_with_trials():
    about = claim(gaussian(1.0, 1.0))
    epsilon = float(about.epsilon(1e-6))
    few, many = (power(about, epsilon, 1e-6, trials, 0.999, True) for trials in (20, 2000))
    assert few < many == 1.0
    assert power(claim(gaussian(0.0, 1.0)), 0.0, 1e-6, 100, 0.9, True) == 0.0


@pytest.mark.parametrize(("call", "words"), [
    (lambda: audit(Averaging(), "path:3", NOISE, 2, 7, 2), "there is no observer 7: the peers are 0..2"),
    (lambda: audit(Averaging(), "path:3", NOISE, 2, 2, 2), "nobody has secrets from oneself"),
    (lambda: audit(Averaging(), "path:3", NOISE, 2, (), 2), "set of observers is empty"),
    (lambda: audit(Averaging(), "path:3", NOISE, 9, 0, 2), "there is no peer 9"),
    (lambda: audit(Averaging(), "path:3", NOISE, 2, 0, 2, confidence=1.0), "between 0.5 and 1"),
    (lambda: audit_mechanism(NOISE, dim=0), "at least 1 number"),
])
def test_bad_input(call, words):
    with pytest.raises(ConfigError, match=words):
        call()


def test_too_few_trials_say_how_many_are_needed():
    """Counting alone: `needed_trials` at the share of the error that each of six bounds gets."""
    needed = needed_trials(5.0, 1e-6, 1 - 1e-6 / 6)
    with pytest.raises(ConfigError, match=f"100 trials are too few to refute epsilon = 5 .*at least {needed} are need"):
        audit_mechanism(Laplace(clip=1.0, scale=0.4), 100, claimed=claim(StatementProfile(5.0, 0.0)))
    with pytest.raises(ConfigError, match=r"20 trials are too few to refute epsilon = 4\.887"):
        audit(Averaging(), "path:3", NOISE, 2, 0, 2, 20)


def test_bad_delta():
    with pytest.raises(PrivacyError, match="strictly between 0 and 1"):
        audit(Averaging(), "path:3", NOISE, 2, 0, 2, delta=0.0)


def test_check_of_releases_returns_the_ledger():
    ledger = check_releases(WalkSGD(cap=1), graph("ring:4"), NOISE, 12, phases=1)
    assert len(ledger) == 12


def test_budget_within_is_fine():
    ledger = check_releases(Averaging(), graph("ring:4"), NOISE, 2, phases=2, budget=Budget(5.0))
    assert len(ledger) == 8  # one release within the budget, one mask


@pytest.fixture
def experiment(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text(TOML)
    return file


def test_experiments_and_their_published_claims(experiment):
    ours = audit_experiment(experiment, 2, 0, trials=4000)
    printed = audit_experiment(experiment, 2, [0], trials=4000, status="published")
    assert (ours.verdict, ours.status) == ("not refuted", "proven")
    assert (printed.verdict, printed.status) == ("refuted", "published")


def test_command(experiment):
    app = typer.Typer()
    app.command()(command)
    said = CliRunner().invoke(app, [str(experiment), "--of", "2", "--seen-by", "0", "--trials", "2000", "--json"])
    assert said.exit_code == 0
    about = json.loads(said.stdout)
    assert about["verdict"] == "not refuted"
    assert about["claimed"] == pytest.approx(4.887, abs=1e-3)
    told = CliRunner().invoke(app, [str(experiment), "--of", "2", "--seen-by", "everybody", "--trials", "2000"])
    assert "Defence: " in told.stdout.splitlines()[-1]
    wrong = CliRunner().invoke(app, [str(experiment), "--of", "2", "--seen-by", "zero"])
    assert isinstance(wrong.exception, ConfigError)


def test_progress_counts_the_paired_runs():
    """Chunk by chunk, up to all of them."""
    told = []
    audit(Averaging(), "path:3", Gaussian(clip=1.0, sigma=2.0), 0, 1, 2, trials=2000, delta=1e-4,
          confidence=0.95, progress=lambda done, total: told.append((done, total)))  # fmt: skip
    assert told == sorted(told)
    assert told[-1] == (2000, 2000)
