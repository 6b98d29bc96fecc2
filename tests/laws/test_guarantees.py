"""Every guarantee of the package passes the public checks, with brute force where it is
possible."""

import importlib
import math
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.errors import ConformanceError, PrivacyError
from bruit.graphs import path, ring
from bruit.privacy.ahead.ring import ring_losses
from bruit.privacy.checks import check_guarantee
from bruit.privacy.exact.rows import meeting_loss
from bruit.privacy.guarantee import REAL
from bruit.privacy.profile import GaussianProfile, MixtureProfile, RenyiProfile
from bruit.privacy.theorem import EXACT, Theorem
from bruit.privacy.theorems.published import published_pairwise, source_6_4
from bruit.privacy.theorems.published_descent import source_c4
from bruit.privacy.toolbox.sampled_renyi import poisson
from bruit.runs.engines.forms import exact_losses
from docs import theorems
from papers.printed import admm as published_admm
from papers.printed import walk_complete as published_walk_complete
from papers.printed.classical import classical
from papers.printed.private_graph import published_stranger_divergence
from papers.printed.ring import published_shared_noise
from papers.printed.subsampling import published_dp6
from papers.printed.walk import published_walk_guarantee
from papers.printed.walk_sum import published_sum
from tests.laws import guarantee_truths as truths
from tests.laws.gossip_cases import GOSSIP, matrices
from tests.laws.slow_case import SlowCase
from tests.laws.token_cases import TOKENS
from tests.laws.toolbox_cases import TOOLBOX, duals

CASES = {**GOSSIP, **TOKENS, **TOOLBOX}
MARKED = [
    pytest.param(
        case,
        id=f"{module}: {case.name}",
        marks=[pytest.mark.slow] if isinstance(case, SlowCase) else [],
    )
    for module, cases in CASES.items()
    for case in cases
]


@pytest.mark.parametrize("case", MARKED)
def test_the_guarantee_holds_its_promises(case):
    check_guarantee(case)


PROVEN = [module for module in theorems.modules() if not module.printed]


def test_every_module_that_states_a_guarantee_has_a_case():
    assert {module.name for module in PROVEN} == set(CASES)


@pytest.mark.parametrize("module", PROVEN, ids=lambda module: module.name)
def test_the_cases_are_about_the_theorems_of_their_module(module):
    found = importlib.import_module(module.dotted)
    own = [
        kind
        for kind in vars(found).values()
        if isinstance(kind, type)
        and issubclass(kind, Theorem)
        and kind.__module__ == found.__name__
        and kind.status == "proven"
    ]
    stated = [case.make(*next(case.points())) for case in CASES[module.name]]
    assert {kind.title for kind in own} <= {about.theorem for about in stated}
    assert {about.status for about in stated} <= set(module.statuses)


A, B = np.array([0, 1, 0]), np.array([1, 2, 1])
# What is printed, and what is true: in the same units.
REFUTED = {
    "published": lambda: (
        published_pairwise(path(3), 2)[2, 0],
        exact_losses(br.Averaging(), path(3), 2, (0,))[2],
    ),
    "printed/admm": lambda: (
        published_admm.published_centralized(duals(0.5), 5, 1).loss / 0.25,
        truths.centralized(5, 1, 0.5, 0.5, 0.0)[0],
    ),
    "published_descent": lambda: (
        source_c4(path(6), 6, 3, 2, 0)[2],
        truths.reacting(matrices(path(6), 2), 3, (0,), 2, 1.0).mu ** 2,
    ),
    "printed/private_graph": lambda: (
        20 * published_stranger_divergence(2.0, 2.0, 12, 1, 2),
        math.log(0.9 + 0.1 * math.exp(5)),
    ),
    "printed/ring": lambda: (3.0, np.nanmax(ring_losses(5, published_shared_noise(5, 3), 2))),
    "printed/subsampling": lambda: (published_dp6(83, 0.1, 4.0), poisson(83, 0.1, 4.0)),
}
PRINTED = {
    "printed/walk": lambda: published_walk_guarantee(ring(5), 0, 1, 4.0, 50),
    "printed/walk_complete": lambda: published_walk_complete.published_walk(2000, 12, 10.0, 1e-6),
    "printed/walk_sum": lambda: published_sum(100, 10_000, 0.1, 1e-7),
}


@pytest.mark.parametrize("name", REFUTED)
def test_the_printed_formula_is_refuted(name):
    printed, truth = REFUTED[name]()
    assert printed < truth * (1 - 1e-3)


def test_the_printed_formula_of_meetings_is_refuted():
    assert source_6_4(3, A, B, 0)[2] < meeting_loss(3, A, B, (0,)).loss[2] * (1 - 1e-3)


@pytest.mark.parametrize("name", PRINTED)
def test_the_printed_formula_says_that_it_is_printed(name):
    found = PRINTED[name]()
    assert found.status == "published"
    assert found.notes


def test_every_printed_module_is_refuted_or_labelled():
    assert {module.name for module in theorems.modules() if module.printed} == {*REFUTED, *PRINTED}


def test_the_suite_finds_what_is_wrong():
    """A theorem that under-reports, one that forgets the noise, one that refuses nothing."""
    right = CASES["printed/classical"][0]
    with pytest.raises(ConformanceError, match="the truth is"):
        check_guarantee(replace(right, truth=lambda z, *_: GaussianProfile(1 / z)))
    with pytest.raises(ConformanceError, match="more noise costs more"):
        check_guarantee(
            replace(right, make=lambda z, *_: classical(min(1.0, z / 9), 1e-5), truth=None)
        )
    with pytest.raises(ConformanceError, match="not refused"):
        check_guarantee(replace(right, refused=(lambda: classical(0.5, 1e-5),)))
    with pytest.raises(ConformanceError, match="more steps cost less"):
        check_guarantee(replace(right, make=lambda z, k, _: classical(1 / z / k, 1e-5), truth=None))


# What is true of real numbers is not proven of what is sent.


def test_nothing_that_assumes_real_numbers_is_proven():
    formula = classical(0.5, 1e-5)
    assert (formula.status, REAL in formula.hypotheses) == ("ideal", True)
    with pytest.raises(PrivacyError, match="assumes that numbers are real: what it says is ideal"):
        replace(formula, status="proven")
    right = CASES["printed/classical"][0]
    with pytest.raises(ConformanceError, match="does not say that numbers are real"):
        check_guarantee(
            replace(right, make=lambda *given: replace(right.make(*given), hypotheses=(EXACT,)))
        )


@pytest.mark.parametrize("module", PROVEN, ids=lambda module: module.name)
def test_a_formula_with_gaussian_noise_is_ideal(module):
    """Without a run nobody knows what would be sent. Statements of runs carry their rounding, or
    other noise."""
    for case in CASES[module.name]:
        found = case.make(*next(case.points()))
        if found.status == "proven":
            noisy = isinstance(found.profile, GaussianProfile | MixtureProfile | RenyiProfile)
            assert not noisy or found.epsilon(1e-6) == 0, case.name
            assert REAL not in found.hypotheses


@pytest.mark.parametrize(
    ("first", "second"), [("ideal", "grid"), ("grid", "ideal"), ("ideal", "ideal")]
)
def test_a_run_after_an_ideal_one_is_ideal(first, second):
    """The status was that of the last part: a run on the grid after an ideal one was called
    proven."""
    task = br.tasks.Mean.uniform(5, seed=0)
    one, other = (br.Gaussian(clip=0.5, sigma=1.0, arithmetic=kind) for kind in (first, second))
    before = br.run(br.Averaging(), ring(5), task, privacy=one, steps=2)
    after = br.run(
        br.Averaging(), ring(5), task, privacy=other, steps=2, seed=1, after=before, carry="nothing"
    )
    for found in (
        after.guarantee(1, 0),
        after.guarantee(),
        after.guarantee([1, 2], 0),
        after.summary(),
    ):
        assert found.status == "ideal"
        assert REAL in found.hypotheses
