"""Every guarantee of the toolbox passes the public checks (gossip:DP-3, DP-4, DP-9, DP-11, perso:DP-4, FL-4)."""

import math
from dataclasses import dataclass

import pytest

from bruit.privacy.accountants.adjacency import widened
from bruit.privacy.accountants.classical import classical
from bruit.privacy.accountants.heterogeneous import statements
from bruit.privacy.accountants.randomized_response import answer
from bruit.privacy.accountants.shuffling import amplified
from bruit.privacy.accountants.subsampled import dp_sgd
from bruit.privacy.checks import Case, check_guarantee
from bruit.privacy.profile import GaussianProfile, Profile, StatementProfile, least_epsilon


@dataclass(frozen=True)
class OneSample(Profile):
    """One Poisson sample: removing the record is the worse direction, q delta_z(log(1 + (e**epsilon - 1) / q))."""

    rate: float
    noise_multiplier: float

    def delta(self, epsilon):
        inner = math.log1p(math.expm1(epsilon) / self.rate)
        return self.rate * GaussianProfile(1 / self.noise_multiplier).delta(inner)

    def epsilon(self, delta):
        return least_epsilon(self.delta, delta)

    def divergence(self, order):
        return math.inf


CASES = (
    Case("private SGD", lambda z, steps, _: dp_sgd(100, 5, z, steps), truth=lambda z, steps, _: OneSample(0.05, z),
         refused=(lambda: dp_sgd(5, 6, 1.0, 1), lambda: dp_sgd(5, 1, -1.0, 1))),
    Case("private SGD, replace", lambda z, steps, _: dp_sgd(100, 5, z, steps, "replace")),
    Case("classical noise", lambda z, steps, _: classical(1 / z, 1e-5), noises=(1.0, 2.0, 9.0),
         truth=lambda z, steps, _: GaussianProfile(1 / z / math.sqrt(2 * math.log(1.25e5))), exact=True,
         refused=(lambda: classical(1.5, 1e-5),)),
    Case("a group", lambda z, steps, _: widened(classical(1 / z, 1e-5), "group", steps), noises=(1.0, 2.0, 9.0),
         truth=lambda z, steps, _: GaussianProfile(steps / z / math.sqrt(2 * math.log(1.25e5))), exact=True),
    Case("a randomized answer", lambda z, steps, _: answer(3, 1 / z), noises=(1.0, 9.0), steps=(1,),
         truth=lambda z, steps, _: StatementProfile(1 / z, 0.0)),
    Case("a shuffler", lambda z, steps, _: amplified(1 / z, 1000, 1e-7), noises=(0.7, 9.0), steps=(1,)),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_guarantee_holds_its_promises(case):
    check_guarantee(case)


@pytest.mark.slow
def test_statements_hold_their_promises():
    check_guarantee(Case("statements", lambda z, steps, _: statements([1 / z] * steps), noises=(2.0,), steps=(1, 2)))
