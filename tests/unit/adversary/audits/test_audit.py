"""The record of an audit, its words, its defence, its errors, and the command."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from bruit.adversary.audits import audit, audit_mechanism, battery, check_releases
from bruit.adversary.audits.bounds import Bound, count_against, needed_trials
from bruit.adversary.audits.experiments import audit_experiment, audit_made, hardest_pair
from bruit.adversary.audits.power import power
from bruit.adversary.audits.scores import shape_of
from bruit.adversary.audits.verdict import Finding
from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.algorithms.gossip.pair_averaging import PairAveraging
from bruit.algorithms.gossip.renoised import Renoised
from bruit.algorithms.server.federated_admm import FederatedADMM
from bruit.algorithms.tokens.walk_sgd import WalkSGD
from bruit.commands.attacks.audit import audit as command
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import graph
from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace, RecordNoise
from bruit.privacy.events import GaussianEvent
from bruit.privacy.guarantee import Guarantee, gaussian
from bruit.privacy.ledger import Budget
from bruit.privacy.profile import StatementProfile
from bruit.runs.build import build
from bruit.runs.engines.events import Events
from bruit.runs.file import parse
from bruit.runs.run import rehearse
from bruit.trace import Received

NOISE = Gaussian(clip=1.0, sigma=2.0)
CHECKED = ["one release", "every release", "the engine", "impulses", "lattice attack"]
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
    return Guarantee(
        theorem="a claim",
        spec="none",
        status="heuristic",
        level="user",
        of="peer 2",
        against="peer 0",
        hypotheses=(),
        profile=profile,
    )


def test_record_and_words():
    found = audit(Averaging(), "path:3", NOISE, 2, 0, 2, 2000, seed=3)
    assert (found.verdict, found.refuted, found.trials, found.status) == (
        "not refuted",
        False,
        2000,
        "proven",
    )
    assert found.lower == max(found.clopper_pearson, found.gaussian_fit) < found.claimed
    assert 0.99 <= found.power <= 1
    assert found.worlds == ("ends", "reacting")
    assert [(bug.bug, bug.world, bug.refuted) for bug in found.planted] == [
        ("noise half as large", "ends", True)
    ]
    assert found.scores == ("likelihood ratio", "learned")
    lines = str(found).splitlines()
    first = "not refuted: epsilon = 4.887 at delta = 1e-06, user level, was claimed for peer 2 against peer 0"
    assert lines[0] == first
    assert lines[-1] == found.defence
    assert json.loads(json.dumps(found.to_dict()))["lower"] == found.lower


def test_defence_gives_the_planners_numbers():
    """A loss of 1 and mu = 2 clip / sigma: epsilon 1 at 1e-6 needs sigma = calibrate_pair(1, 1e-6,
    1)."""
    found = audit(Averaging(), "path:3", NOISE, 2, 0, 6, 2000, target=1.0)
    needed = NOISE.calibrate_pair(1.0, 1e-6, 1.0).sigma
    assert f"epsilon = 1 (now 4.89 proven) needs sigma = {needed:.4g} instead of 2" in found.defence
    assert (
        "re-noised" not in found.defence
    )  # a neighbor's neighbor of three hears almost everything anyway
    assert found.defence.endswith("at most 1 round instead of 6.")
    assert "\n" not in found.defence


def test_defence_names_renoised_gossip_with_its_epsilon():
    """Far away on a ring, re-noised gossip loses less; its epsilon is that of the library for the
    same sigma."""
    found = audit(Averaging(), "ring:9", NOISE, 4, 0, 8, 2000)
    other = rehearse(Renoised(), graph("ring:9"), NOISE, 8).epsilon(4, 0)
    assert (
        f"re-noised gossip (tau = 0.1) at the same sigma has epsilon = {other:.3g}" in found.defence
    )
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
    wrong = audit_mechanism(mechanism, 8000, dim=3, claimed=claim(StatementProfile(0.1, 0.0)))
    assert wrong.refuted
    assert wrong.defence == ""
    assert "where 0.1 was claimed" in wrong.reason


def test_noise_measured_by_record_is_audited_release_by_release():
    """Peer 2 needs twice the noise of the others, and has it; the noise of others would not do for
    it."""
    noise = RecordNoise((1.0, 1.0, 2.0), 3, noise_multiplier=1.0)
    assert not audit_mechanism(noise, 4000, of=2).refuted
    small = replace(noise, sensitivities=(1.0, 1.0, 1.0))
    wrong = Pretended(small, noise)
    assert audit_mechanism(wrong, 8000, 1e-2, of=2).refuted


class Pretended(RecordNoise):
    """One mechanism's noise under another's sensitivities."""

    def __init__(self, real, said):
        super().__init__(said.sensitivities, said.dim, noise_multiplier=said.noise_multiplier)
        object.__setattr__(self, "real", real)

    def noise(self, *address):
        return self.real.noise(*address)


def test_laplace_with_a_given_claim():
    found = audit_mechanism(
        Laplace(clip=1.0, scale=1.0), 4000, claimed=claim(StatementProfile(2.0, 0.0))
    )
    assert found.verdict == "not refuted"
    assert "scale = 2 instead of 1" in found.defence


def test_a_claim_is_refuted_at_any_point_of_its_curve():
    """500 of 500 hits and no false alarm prove epsilon = log((p - delta) / q), p and q the limits
    of 500 counts: less than what mu = 2 has at 1e-6, and more than what it has at 0.3. They leave a
    flat statement of that size alone."""
    left, right = np.zeros(1000), np.ones(1000)
    halves = (left[:500], right[:500]), (left[500:], right[500:])
    curve = claim(gaussian(4.0, 1.0))
    says = {delta: float(curve.epsilon(delta)) for delta in (1e-6, 1e-2, 0.3)}
    found = count_against(*halves, says, 1 - 1e-6)
    limit = (5e-7) ** (1 / 500)
    assert found.delta == 0.3
    assert found.epsilon == pytest.approx(math.log((limit - 0.3) / (1 - limit)))
    assert says[0.3] < found.epsilon < says[1e-6]
    assert count_against(*halves, dict.fromkeys(says, says[1e-6]), 1 - 1e-6).epsilon < says[1e-6]


def test_power_is_measured_and_grows_with_what_was_seen():
    """A bug that was never seen has no power; one that separates everything has all of it, if
    counts can reach."""

    def counted(hits, alarms, trials=1000):
        return Bound(
            method="Clopper-Pearson",
            epsilon=0.0,
            delta=1e-6,
            confidence=1 - 1e-6,
            trials=trials,
            hits=(hits, trials),
            alarms=(alarms, trials),
        )

    assert power([]) == power([(counted(500, 500), 1.0)]) == 0.0
    assert power([(counted(1000, 0), 2.0)]) == 0.999  # all of 1000 simulated audits
    assert power([(counted(1000, 0), 20.0)]) == power([(counted(1000, 0), math.inf)]) == 0.0
    some = [power([(counted(900, alarms), 1.5)]) for alarms in (20, 100, 140, 300)]
    assert 1.0 >= some[0] > some[1] > 0 == some[3]
    fits = [
        power(
            [
                (
                    Bound(
                        method="Gaussian fit",
                        epsilon=0.0,
                        delta=1e-6,
                        confidence=1 - 1e-6,
                        trials=2000,
                        reach=reach,
                    ),
                    4.887,
                )
            ]
        )
        for reach in (1.0, 1.4, 1.5)
    ]
    assert fits[0] == 0 < fits[1] < fits[2]


@pytest.mark.slow
def test_the_stated_power_is_kept():
    """Thirty fresh audits of two thirds of the noise: the stated power, at least that much at 95 %,
    is a lower bound for what happens. Over seeds a false alarm has probability 0.05 (the limits) +
    1e-3; here all draws are seeded. The part of the noise was chosen so that the power is neither 0
    nor 1."""
    from scipy.stats import binom

    def quieter(door, at, raw, bare, answer):
        return bare + 0.65 * (answer - bare)

    said = [
        audit(
            algorithm=Averaging(),
            graph="path:3",
            mechanism=NOISE,
            of=2,
            seen_by=0,
            steps=2,
            trials=700,
            delta=1e-6,
            confidence=0.999,
            seed=seed,
            plant={"less noise": quieter},
        )
        for seed in range(30)
    ]
    happened = sum(found.planted[0].refuted for found in said)
    stated = said[0].planted[0].power
    assert 0 < stated < 1
    assert happened >= binom.isf(1 - 1e-3, 30, stated)


def test_power_is_small_where_the_claim_is_loose():
    """Gossip SGD on a ring claims nearly local DP; a single observer sees less, even of noise half
    as large. The power was computed as if the claim were tight, and said 100 %."""
    found = audit(GossipSGD(), "ring:5", NOISE, 2, 0, 4, 2000)
    assert found.verdict == "not refuted"
    assert found.power < 0.05


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: audit(Averaging(), "path:3", NOISE, 2, 7, 2),
            r"there is no peer 7 \(`seen_by`\): the peers are 0..2",
        ),
        (lambda: audit(Averaging(), "path:3", NOISE, 2, 2, 2), "nobody has secrets from oneself"),
        (lambda: audit(Averaging(), "path:3", NOISE, 2, (), 2), "`seen_by` names no peer"),
        (lambda: audit(Averaging(), "path:3", NOISE, 9, 0, 2), "there is no peer 9"),
        (lambda: audit(Averaging(), "path:3", NOISE, 2, 0, 2, confidence=1.0), "between 0.5 and 1"),
        (lambda: audit_mechanism(NOISE, dim=0), "at least 1 number"),
        (
            lambda: audit(
                GossipSGD(),
                "path:3",
                RecordNoise((1.0, 1.0, 2.0), 1, noise_multiplier=2.0),
                2,
                0,
                2,
            ),
            "audit one of its releases",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((ConfigError, PrivacyError), match=words):
        call()


def test_too_few_trials_say_how_many_are_needed():
    """Counting alone: `needed_trials` at the share of the error that each of twelve bounds gets."""
    needed = needed_trials(5.0, 1e-6, 1 - 1e-6 / 12)
    with pytest.raises(
        ConfigError,
        match=f"100 trials are too few to refute epsilon = 5 .*at least {needed} are need",
    ):
        audit_mechanism(
            Laplace(clip=1.0, scale=0.4), 100, claimed=claim(StatementProfile(5.0, 0.0))
        )
    with pytest.raises(ConfigError, match=r"20 trials are too few to refute epsilon = 4\.887"):
        audit(Averaging(), "path:3", NOISE, 2, 0, 2, 20)


def test_bad_delta():
    with pytest.raises(PrivacyError, match="strictly between 0 and 1"):
        audit(Averaging(), "path:3", NOISE, 2, 0, 2, delta=0.0)


def test_check_of_releases_returns_the_ledger():
    ledger = check_releases(WalkSGD(cap=1), graph("ring:4"), NOISE, 12, phases=1)
    assert len(ledger) == 12


@pytest.mark.parametrize("step", [0.5, 1.0])
def test_honest_noise_on_a_coarse_grid_is_fresh(step):
    """Three whole numbers repeat by chance, and were called noise used twice; rows are wide enough
    to tell."""
    noise = DiscreteGaussian(clip=1.0, sigma=2.0, grid=step)
    assert len(check_releases(GossipSGD(), graph("ring:5"), noise, 20)) == 200


@pytest.mark.parametrize("algorithm", [PairAveraging(), Averaging(), Renoised()])
def test_noise_that_was_handed_out_is_remembered_as_it_was(algorithm):
    """Engines write states in place, and a state may be an array that the door gave: what is looked at
    afterwards is a copy, or honest noise is said to repeat."""
    assert len(check_releases(algorithm, "ring:5", NOISE, steps=4)) > 20


def test_budget_within_is_fine():
    ledger = check_releases(Averaging(), graph("ring:4"), NOISE, 2, phases=2, budget=Budget(5.0))
    kinds = [isinstance(event, GaussianEvent) for event in ledger.events]
    assert ledger.counts()[:, kinds].sum() == 4  # one release of each within the budget, then masks


@pytest.fixture
def experiment(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text(TOML)
    return file


def test_experiments_and_their_published_claims(experiment):
    ours = audit_experiment(experiment, 2, 0, trials=2000)
    printed = audit_experiment(experiment, 2, [0], trials=2000, status="published")
    assert (ours.verdict, ours.status) == ("not refuted", "proven")
    assert (printed.verdict, printed.status) == ("refuted", "published")
    assert [finding.check for finding in ours.findings] == CHECKED
    assert ours.worlds == ("ends", "reacting", "records")
    assert [bug.bug for bug in ours.planted] == ["noise half as large", "no clipping"]
    assert all(bug.refuted for bug in ours.planted)


def test_a_pair_is_found_where_noise_has_no_loss_of_pairs():
    """A token leaves some hops bare: those who are told everything are no claim to refute."""
    text = TOML.replace("path:3", "ring:3").replace("averaging", "ring-sum")
    text = text.replace("sigma = 2.0", 'mechanism = "laplace"\nscale = 2.0')
    done = build(parse(text)).run()
    with pytest.raises(PrivacyError, match="losses of pairs are for Gaussian noise"):
        done.losses()
    of, seen_by = hardest_pair(done)
    assert (seen_by, done.facts().releases()[of] > 0) == ((of + 1) % 3, True)


@pytest.mark.parametrize("mechanism", ["laplace", "discrete-gaussian"])
def test_noise_that_no_impulse_speaks_of_is_not_refuted_by_impulses(mechanism):
    """No mu is what it costs: 0 was charged, and whatever was sent refuted it."""
    size = {"laplace": "scale", "discrete-gaussian": "sigma"}[mechanism]
    text = TOML.replace("sigma = 2.0", f'mechanism = "{mechanism}"\n{size} = 2.0')
    made = build(parse(text))
    asked = {"of": 2, "observers": (0,), "trials": 1, "delta": 1e-6, "confidence": 0.99}
    found = battery.impulses(battery.AuditCase(made=made, done=made.run(), **asked))
    assert (found.verdict, "claims about Gaussian noise" in found.sentence) == ("not asked", True)


def test_the_engine_and_faults_of_the_file_are_audited():
    """In this run links were down when they mattered, and peer 0 hears nothing of peer 3: epsilon 0
    is claimed, and the trials without these links find nothing. Trials that ignored the engine
    would refute it: in the calm 0 hears it."""
    text = TOML.replace("path:3", "path:4").replace("steps = 2", "steps = 6")
    text += '[engine]\nname = "events"\nchurn = 0.3\n'
    calm = audit_made(
        build(parse(text.replace("churn = 0.3", "churn = 0.0"))), 3, 0, 1000, plant={}
    )
    found = audit_made(build(parse(text)), 3, 0, 1000, plant={})
    assert "churn 0.3, 13 links down" in found.engine
    assert found.claimed == found.lower == 0
    assert not found.refuted
    assert calm.claimed == pytest.approx(4.887, abs=1e-3)
    assert calm.lower > 2


@dataclass(frozen=True)
class Gossiping(Events):
    """An engine that tells observers one thing more than the protocol says."""

    def execute(self, job):
        outcome = super().execute(job)
        if job.watch:
            outcome.trace.received.append(Received(0, 2, 0, np.array([[0.123]])))
        return outcome


@dataclass(frozen=True)
class Frugal(Events):
    """An engine that saves half of the noise."""

    def execute(self, job):
        door = job.door
        return super().execute(
            replace(job, door=replace(door, mechanism=replace(door.mechanism, sigma=1.0)))
        )


@pytest.mark.parametrize(
    ("task", "algorithm"),
    [
        ('kind = "personal"\nmodel = "logistic"\nsplit = "sized:8:12"', "graph-learning"),
        ('kind = "pairwise"', "dual-averaging"),
    ],
)
def test_what_no_impulse_goes_through_is_not_asked(task, algorithm):
    """Losses that are read, and losses of two points, are not linear: the audit goes on without."""
    text = (
        f'graph = "complete:5"\nsteps = 4\n[task]\n{task}\ndata = "breast_cancer"\n'
        f'[algorithm]\nname = "{algorithm}"\n[privacy]\nsigma = 3.0\n'
    )
    made = build(parse(text))
    asked = {"of": 2, "observers": (0,), "trials": 1, "delta": 1e-6, "confidence": 0.99}
    found = battery.impulses(battery.AuditCase(made=made, done=made.run(), **asked))
    assert found.verdict == "not asked"
    assert shape_of(made.algorithm, made.graph, made.steps, (0,)).pairs


@pytest.mark.parametrize("weather", ["latency = 0.3", "loss = 0.2"])
def test_ballots_that_end_late_are_not_refuted_for_it(weather):
    """Who fetches a sum, or needs a voice for the end (zeros), depends on what came late: the replay, in
    which nothing does, has none."""
    text = (
        'graph = "complete:5"\nsteps = 3\nseed = 2\nwatch = [1]\n[task]\nkind = "logistic"\n'
        'data = "breast_cancer"\n[algorithm]\nname = "masked-sgd"\nrate = 1.0\n'
        f'[privacy]\nsigma = 3.0\n[engine]\nname = "events"\n{weather}\n'
    )
    made = build(parse(text))
    done = made.run()
    asked = {"of": 2, "observers": (1,), "trials": 1, "delta": 1e-6, "confidence": 0.99}
    found = battery.same_engine(battery.AuditCase(made=made, done=done, **asked))
    assert found.verdict == "not refuted", found.sentence
    assert "12 messages heard, and " in found.sentence


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (Gossiping(), "peer 0 heard something of peer 2 that the replay does not say"),
        (Frugal(), "differ"),
    ],
)
def test_an_engine_that_does_something_else_is_refuted(engine, words):
    made = replace(build(parse(TOML)), engine=engine)
    found = audit_made(made, 2, 0, 1000, plant={})
    assert found.refuted
    assert words in found.findings[2].sentence
    assert words in found.reason


def test_a_fused_engine_is_compared_by_its_states():
    text = (
        TOML.replace("sigma = 2.0", 'sigma = 2.0\narithmetic = "ideal"')
        + "[engine]\nfused = true\n"
    )
    found = audit_made(build(parse(text)), 2, 0, 1000, plant={})
    assert not found.refuted
    assert "a fused path keeps no messages" in found.findings[2].sentence


def test_a_histogram_of_answers_is_audited_on_answers():
    """Randomized response takes rows with a single 1 and no others: canaries are such rows."""
    text = (
        TOML.replace("path:3", "ring:4")
        .replace("steps = 2", "steps = 8")
        .replace("averaging", "token-histogram")
    )
    text = text.replace('"mean"', '"histogram"\ndim = 3')
    text = text.replace("sigma = 2.0", 'mechanism = "randomized-response"\ngamma = 0.5')
    found = audit_made(build(parse(text)), 1, 3, 2000)
    assert not found.refuted
    assert [finding.verdict for finding in found.findings] == ["not refuted"] * 3 + [
        "not asked"
    ] * 2


def test_a_new_check_is_one_function(monkeypatch, experiment):
    """A check that refutes makes the verdict, whatever the others say."""

    def oracle(case):
        return Finding("an oracle", "refuted", f"peer {case.of} loses more than {case.done.n}")

    monkeypatch.setattr(battery, "CHECKS", [*battery.CHECKS, oracle])
    found = audit_experiment(experiment, 2, 0, trials=1000)
    assert found.refuted
    assert found.defence == ""
    assert found.reason == "an oracle: refuted; peer 2 loses more than 3"


def test_command(experiment):
    app = typer.Typer()
    app.command()(command)
    said = CliRunner().invoke(
        app, [str(experiment), "--of", "2", "--seen-by", "0", "--trials", "2000", "--json"]
    )
    assert said.exit_code == 0
    about = json.loads(said.stdout)
    assert about["verdict"] == "not refuted"
    assert about["claimed"] == pytest.approx(4.887, abs=1e-3)
    told = CliRunner().invoke(
        app, [str(experiment), "--of", "2", "--seen-by", "everybody", "--trials", "2000"]
    )
    assert "Defence: " in told.stdout.splitlines()[-1]
    wrong = CliRunner().invoke(app, [str(experiment), "--of", "2", "--seen-by", "zero"])
    assert isinstance(wrong.exception, ConfigError)


def test_a_refuted_claim_ends_with_exit_code_1(experiment):
    """And says what was refuted, on which pair, with what confidence, and gives no advice about
    it."""
    app = typer.Typer()
    app.command()(command)
    told = CliRunner().invoke(app, [str(experiment), "--trials", "2000", "--published"])
    assert told.exit_code == 1
    first, second = told.stdout.splitlines()[:2]
    assert first.startswith(
        "refuted: epsilon = 2.641 at delta = 1e-06, user level, was claimed for peer"
    )
    assert second.startswith("refuted because about peer ")
    assert "against peer " in second
    assert "confidence 0.999999" in second
    assert "Defence" not in told.stdout
    plain = CliRunner().invoke(app, [str(experiment), "--trials", "2000", "--published", "--json"])
    assert plain.exit_code == 1
    about = json.loads(plain.stdout)
    assert (about["verdict"], about["defence"], about["level"]) == ("refuted", "", "user")
    assert {
        "lower",
        "claimed",
        "power",
        "planted",
        "findings",
        "evidence",
        "engine",
        "worlds",
        "reason",
    } <= set(about)


def test_progress_counts_the_paired_runs():
    """Chunk by chunk, up to all of them: two worlds and a planted bug."""
    told = []
    audit(
        Averaging(),
        "path:3",
        Gaussian(clip=1.0, sigma=2.0),
        0,
        1,
        2,
        trials=2000,
        delta=1e-4,
        confidence=0.95,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == sorted(told)
    assert told[-1] == (6000, 6000)
