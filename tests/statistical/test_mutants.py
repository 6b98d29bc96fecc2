"""Planted bugs, each caught by the check that is named with it; the honest twin passes the same
check.

Audits: false alarm at most 1e-6 each (the honest twins), 1e-9 for a check of releases. Power: over
fresh seeds the bounds of the least visible bugs lie 4 (a wrong norm) to 9 standard deviations above
their claims, so each is caught with probability > 0.999; here all draws are seeded.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from bruit.adversary.audits import audit, audit_mechanism, check_releases
from bruit.adversary.audits.experiments import audit_made
from bruit.adversary.audits.worlds import Neighbors
from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.algorithms.gossip.renoised import Renoised
from bruit.algorithms.tokens.walk_sgd import WalkSGD
from bruit.errors import BruitError, ConformanceError, PrivacyError
from bruit.graphs import graph
from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace
from bruit.privacy.guarantee import Guarantee, gaussian
from bruit.privacy.ledger import Budget, Ledger
from bruit.privacy.profile import StatementProfile
from bruit.privacy.theorem import STANDING
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.runs.run import run
from bruit.testing import check_algorithm
from tests.statistical import mutants

pytestmark = pytest.mark.slow

DELTA = 1e-6
NOISE = Gaussian(clip=1.0, sigma=2.0)
WIDE = {"clip": 1.0, "sigma": 2.0}
RINGS = {
    "ring": graph("ring:5"),
    "path": graph("path:3"),
    "torus": graph("torus:4x4"),
    "full": graph("complete:4"),
}


def stated(profile, loss=math.nan):
    return Guarantee(
        theorem="a claim",
        spec="none",
        status="heuristic",
        level="user",
        of="peer",
        against="peer",
        hypotheses=STANDING,
        profile=profile,
        loss=loss,
    )


# Caught by the audit of one release: (the bug, its honest twin, trials).
RELEASES = {
    "noise half as large": (mutants.HalfNoise(**WIDE), NOISE, 2000),
    "variance used as standard deviation": (
        mutants.VarianceAsDeviation(clip=1.0, sigma=0.6),
        Gaussian(clip=1.0, sigma=0.6),
        2000,
    ),
    "clip after noise": (mutants.ClipAfterNoise(**WIDE), NOISE, 2000),
    "no clipping": (mutants.NoClip(**WIDE), NOISE, 2000),
    "each coordinate clipped instead of the row": (mutants.ClipEachCoordinate(**WIDE), NOISE, 2000),
    "noise on some coordinates only": (mutants.NoiseOnFirstHalf(**WIDE), NOISE, 2000),
    "one draw for all coordinates": (mutants.OneDrawForAllCoordinates(**WIDE), NOISE, 2000),
    "rounded out of the ball": (
        mutants.RoundsOutward(clip=0.3, sigma=1.0, grid=1.0),
        DiscreteGaussian(clip=0.3, sigma=1.0, grid=1.0),
        2000,
    ),
    "lattice before clip": (mutants.LatticeBeforeClip(**WIDE), NOISE, 2000),
    "sensitivity of clip instead of 2 clip": (mutants.SensitivityIsClip(**WIDE), NOISE, 2000),
    "noise cut at one sigma": (mutants.BoundedNoise(**WIDE), NOISE, 5000),
}


@pytest.mark.parametrize("bug", RELEASES)
def test_audit_of_a_release_catches(bug):
    wrong, honest, trials = RELEASES[bug]
    assert audit_mechanism(wrong, trials).refuted
    assert not audit_mechanism(honest, trials).refuted


def test_audit_of_a_release_catches_an_L2_clip_under_L1_noise():
    """Sensitivity 2 sqrt(8) in L1 where 2 was meant; the claim is the pure epsilon 2 clip / scale =
    4."""
    claim = stated(StatementProfile(4.0, 0.0))
    assert audit_mechanism(
        mutants.LaplaceClippedInL2(clip=1.0, scale=0.5), 40_000, claimed=claim
    ).refuted
    assert not audit_mechanism(Laplace(clip=1.0, scale=0.5), 40_000, claimed=claim).refuted


def test_audit_of_a_release_catches_integer_noise_of_a_third():
    """Counts alone, at delta = 0.01, where they see most."""
    wrong, honest = (
        mutants.ThirdOfIntegers(clip=1.0, sigma=2.0),
        DiscreteGaussian(clip=1.0, sigma=2.0),
    )
    assert audit_mechanism(wrong, 10_000, 1e-2).refuted
    assert not audit_mechanism(honest, 10_000, 1e-2).refuted


def claim_of(algorithm, where, noise, of, seen_by, steps, status="proven"):
    """What the library says about the honest protocol."""
    data = Neighbors.opposite(where.n, of, noise.clip)
    made = run(algorithm, where, data, privacy=noise, steps=steps, evaluate_every=0)
    return made.guarantee(of, seen_by, DELTA, status)


# Caught by the audit of a protocol: (bug, mechanism, honest algorithm, graph, of, seen by, steps).
PROTOCOLS = {
    "one seed for all peers": (
        Averaging(),
        mutants.SameForAllPeers(**WIDE, peers=5),
        Averaging(),
        RINGS["ring"],
        1,
        0,
        3,
    ),
    "raw values sent": (mutants.RawMessages(), NOISE, Averaging(), RINGS["path"], 2, 0, 3),
    "first message raw": (mutants.RawFirstMessage(), NOISE, Averaging(), RINGS["path"], 1, 0, 3),
    "noise taken back later": (
        mutants.TakesNoiseBack(),
        NOISE,
        Averaging(),
        RINGS["path"],
        1,
        0,
        3,
    ),
    "one noise for all copies of a message": (
        mutants.SharedCopyNoise(tau=1.0),
        NOISE,
        Renoised(tau=1.0),
        RINGS["full"],
        1,
        0,
        2,
    ),
}


def is_refused(audited):
    """Whether an audit refutes its claim, or the run itself refuses to send what was to stay at
    home."""
    try:
        return audited().refuted
    except PrivacyError as error:
        return "home.keep" in str(error)


@pytest.mark.parametrize("bug", PROTOCOLS)
def test_audit_of_a_protocol_catches(bug):
    """The claim is that of the honest protocol, which the honest protocol keeps."""
    wrong, mechanism, honest, where, of, seen_by, steps = PROTOCOLS[bug]
    claim, trials = claim_of(honest, where, NOISE, of, seen_by, steps), 20_000
    assert is_refused(
        lambda: audit(wrong, where, mechanism, of, seen_by, steps, trials, DELTA, claimed=claim)
    )
    assert not audit(honest, where, NOISE, of, seen_by, steps, trials, DELTA, claimed=claim).refuted


def forgets_own_row(of, seen_by, steps, where):
    """The loss without what the observer knows of itself."""
    heard, state = [], np.eye(where.n)
    for _ in range(steps):
        heard.append(state[where.neighbors(seen_by)])
        state = where.weights @ state
    rows = np.concatenate(heard)
    return float(np.diag(np.linalg.pinv(rows) @ rows)[of])


def claims():
    """Wrong claims about honest protocols: (claim, algorithm, graph, of, seen by, steps)."""
    path, torus, ring, z = RINGS["path"], RINGS["torus"], RINGS["ring"], NOISE.noise_multiplier
    proven = claim_of(Averaging(), torus, NOISE, 1, 0, 2)
    data = Neighbors.opposite(ring.n, 2, 1.0)
    descent = run(GossipSGD(), ring, data, privacy=NOISE, steps=4, evaluate_every=0)
    everyone = run(
        Averaging(), torus, Neighbors.opposite(16, 1, 1.0), privacy=NOISE, steps=2, evaluate_every=0
    )
    singles = max(
        (claim_of(Averaging(), torus, NOISE, 6, v, 2) for v in (0, 1)), key=lambda found: found.loss
    )
    return {
        "the published formula, path of 3": (
            claim_of(Averaging(), path, NOISE, 2, 0, 2, "published"),
            Averaging(),
            path,
            2,
            0,
            2,
        ),
        "the published formula, torus": (
            claim_of(Averaging(), torus, NOISE, 5, 0, 2, "published"),
            Averaging(),
            torus,
            5,
            0,
            2,
        ),
        "the observer's own value not counted": (
            stated(gaussian(forgets_own_row(2, 0, 2, path), z)),
            Averaging(),
            path,
            2,
            0,
            2,
        ),
        "a round not counted": (
            claim_of(Averaging(), path, NOISE, 2, 0, 1),
            Averaging(),
            path,
            2,
            0,
            2,
        ),
        "the mean pair sold as every pair": (
            stated(gaussian(float(np.nanmean(everyone.losses())), z)),
            Averaging(),
            torus,
            1,
            0,
            2,
        ),
        "a coalition charged as its worst member": (singles, Averaging(), torus, 6, (0, 1), 2),
        "delta of another epsilon": (
            stated(StatementProfile(float(proven.epsilon(1e-2)), DELTA)),
            Averaging(),
            torus,
            1,
            0,
            2,
        ),
        "ledger lines merged": (
            mutants.merged(descent).guarantee(2, None, DELTA),
            GossipSGD(),
            ring,
            2,
            None,
            4,
        ),
    }


WRONG = claims()


@pytest.mark.parametrize("bug", WRONG)
def test_audit_catches_a_wrong_claim(bug):
    claim, algorithm, where, of, seen_by, steps = WRONG[bug]
    assert audit(algorithm, where, NOISE, of, seen_by, steps, 10_000, DELTA, claimed=claim).refuted
    assert not audit(algorithm, where, NOISE, of, seen_by, steps, 10_000, DELTA).refuted


def releases(algorithm, mechanism, **options):
    return check_releases(algorithm, RINGS["ring"], mechanism, 6, **options)


# Caught by the check of releases: (what is run with the bug, the same without it, the words of the
# error).
FRESHNESS = {
    "noise reused across steps": (
        lambda: releases(GossipSGD(), mutants.SameForAllSteps(**WIDE)),
        lambda: releases(GossipSGD(), NOISE),
        "again",
    ),
    "noise reused across phases": (
        lambda: releases(Averaging(), mutants.SameForAllPhases(**WIDE)),
        lambda: releases(Averaging(), NOISE),
        "again",
    ),
    "noise reused across the reads of a step": (
        lambda: releases(mutants.ReadsTwice(), mutants.SameForAllUses(**WIDE)),
        lambda: releases(mutants.ReadsTwice(), NOISE),
        "again",
    ),
    "noise reused across peers": (
        lambda: releases(Averaging(), mutants.SameForAllPeers(**WIDE, peers=5)),
        lambda: releases(Averaging(), NOISE),
        "again",
    ),
    "a ledger line missing": (
        lambda: releases(Averaging(), NOISE, ledger=mutants.ForgetsPeerZero(peers=5)),
        lambda: releases(Averaging(), NOISE, ledger=Ledger(peers=5)),
        "4 lines",
    ),
    "a budget ignored": (
        lambda: releases(GossipSGD(), NOISE, budget=mutants.Lenient(10.0)),
        lambda: releases(GossipSGD(), NOISE, budget=Budget(10.0)),
        "of a budget of 10",
    ),
    "message noise tapered to zero": (
        lambda: releases(mutants.TaperToZero(), NOISE),
        lambda: releases(Renoised(), NOISE),
        "no noise at all",
    ),
}


@pytest.mark.parametrize("bug", FRESHNESS)
def test_check_of_releases_catches(bug):
    wrong, honest, words = FRESHNESS[bug]
    with pytest.raises(ConformanceError, match=words):
        wrong()
    honest()


# Caught because the theorem's hypotheses fail, so that the answer falls back to local DP: (bug,
# honest).
HYPOTHESES = {
    "silent walk steps without noise": (
        mutants.SilentWithoutNoise(cap=1),
        WalkSGD(cap=1),
        graph("complete:5"),
        20,
    ),
    "silent walk steps with less noise": (
        mutants.SilentWithoutNoise(cap=1, share=0.1),
        WalkSGD(cap=1),
        graph("complete:5"),
        20,
    ),
    "taper to zero": (mutants.TaperToZero(), Renoised(), RINGS["torus"], 6),
    "two reads in averaging": (mutants.ReadsTwice(), Averaging(), RINGS["torus"], 3),
}


@pytest.mark.parametrize("bug", HYPOTHESES)
def test_hypotheses_catch(bug):
    wrong, honest, where, steps = HYPOTHESES[bug]
    data = Neighbors.opposite(where.n, 1, 1.0)
    said = [
        run(algorithm, where, data, privacy=NOISE, steps=steps, seed=3, evaluate_every=0).guarantee(
            1, 0, DELTA
        )
        for algorithm in (wrong, honest)
    ]
    assert "local DP" in said[0].theorem
    assert "local DP" not in said[1].theorem


# Caught by the conformance checks of every algorithm.
CONFORMANCE = {
    "a private field in the message": (
        mutants.SendsPrivateField(),
        "of numbers up to|differ|private",
    ),
    "a kernel that sees other peers": (mutants.PeeksAtOthers(), "differ"),
    "a linear algorithm that is not": (mutants.ClaimsToBeLinear(), "superposition"),
    "a message that changes when sent again": (
        mutants.SpeaksDifferentlyEachTime(),
        "differ|two different",
    ),
}


@pytest.mark.parametrize("bug", CONFORMANCE)
def test_conformance_catches(bug):
    wrong, words = CONFORMANCE[bug]
    with pytest.raises(BruitError, match=words):
        check_algorithm(wrong)


# Caught by `bruit audit` as a user runs it, on four protocols, for neighbors and for a distant
# pair:
# the bug and the part of the audit that must catch it. Trials, noise and steps were chosen so that
# paired runs can.
FILES = {
    "averaging": ("ring:6", 8),
    "gossip-sgd": ("ring:6", 4),
    "walk-sgd": ("ring:6", 24),
    "gopa": ("ring:6", 3),
}
PAIRS = {"neighbors": (1, 0), "distant": (3, 0)}
SEVEN = {
    "halved noise": {"one release"},
    "shared noise": {"every release"},
    "clip after noise": {"one release"},
    "no clip": {"one release"},
    "second release behind the door": {"paired runs"},
    "wrong sensitivity": {"one release"},
    "dropped ledger lines": {"every release"},
}
FILE = """graph = "{graph}"
steps = {steps}
[task]
kind = "mean"
dim = 2
[algorithm]
name = "{name}"
[privacy]
sigma = 2.0
"""


def built(protocol):
    where, steps = FILES[protocol]
    return build(parse(FILE.format(graph=where, steps=steps, name=protocol)))


def with_bug(made, bug, monkeypatch):
    """The experiment with one of the seven bugs in it."""
    mechanisms = {
        "halved noise": mutants.HalfNoise(**WIDE),
        "clip after noise": mutants.ClipAfterNoise(**WIDE),
        "no clip": mutants.NoClip(**WIDE),
        "wrong sensitivity": mutants.SensitivityIsClip(**WIDE),
        "shared noise": mutants.SameForAllPeers(**WIDE, peers=6),
    }
    if bug in mechanisms:
        return replace(made, privacy=mechanisms[bug])
    if bug == "dropped ledger lines":
        monkeypatch.setattr(Ledger, "record", mutants.forgetful(Ledger.record))
        return made
    return replace(made, algorithm=mutants.LEAKY[made.algorithm.name()]())


def catchers(found):
    """The parts of an audit that refuted the claim."""
    checks = {finding.check for finding in found.findings if finding.refuted}
    return checks | ({"paired runs"} if any(one.refutes for one in found.evidence) else set())


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("protocol", FILES)
@pytest.mark.parametrize("bug", SEVEN)
def test_the_audit_of_an_experiment_catches(bug, protocol, pair, monkeypatch):
    of, seen_by = PAIRS[pair]
    made = with_bug(built(protocol), bug, monkeypatch)
    found = []

    def audited():
        found.append(audit_made(made, of, seen_by, 2000, plant={}))
        return found[0]

    assert is_refused(audited)
    for one in found:  # none if the run itself refused to speak
        assert SEVEN[bug] <= catchers(one)
        assert one.reason
        assert not one.defence


@pytest.mark.parametrize("protocol", ["gossip-sgd", "walk-sgd"])
def test_the_audit_of_an_experiment_catches_noise_shared_between_steps(protocol):
    found = audit_made(
        replace(built(protocol), privacy=mutants.SameForAllSteps(**WIDE)), 1, 0, 2000, plant={}
    )
    assert found.refuted
    assert "every release" in catchers(found)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("protocol", FILES)
def test_the_audit_of_an_honest_experiment_refutes_nothing(protocol, pair):
    of, seen_by = PAIRS[pair]
    found = audit_made(built(protocol), of, seen_by, 2000, plant={})
    assert not found.refuted
    lattice = "not refuted" if protocol == "averaging" else "not asked"
    assert [finding.verdict for finding in found.findings] == ["not refuted"] * 4 + [lattice]


def test_none_was_lost():
    """The planted bugs of every list, two of them tests of their own, and the seven."""
    lists = (RELEASES, PROTOCOLS, WRONG, FRESHNESS, HYPOTHESES, CONFORMANCE)
    assert sum(map(len, lists)) + 2 >= 41
    assert len(SEVEN) == 7
