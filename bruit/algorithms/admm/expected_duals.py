"""How close the duals of ADMM come to their fixed point, from declared constants (walk:ADMM-3)."""

from __future__ import annotations

from bruit.algorithms.admm.contraction import declared_contraction
from bruit.algorithms.admm.utility import Utility
from bruit.algorithms.expectation import DeclaredFacts, Expectation
from bruit.errors import ConfigError


def expected_duals(
    known: DeclaredFacts,
    *,
    gamma: float,
    relaxation: float,
    active: float,
    members: int,
    steps: int,
) -> Expectation:
    """The direct recursion of ADMM-3: |u_i*| <= |x*| + gamma |g_i(x*)| with gradients of losses up
    to G. Each of `members` takes part in a step with chance `active`."""
    constants = known.constants
    if constants is None or constants.source != "declared":
        raise ConfigError(
            'constants are not declared before the run; normalize the rows (task.rows = "unit")'
        )
    tau = declared_contraction(gamma, constants.smoothness, constants.strong_convexity)
    longest = known.longest_gradient(constants)
    far = longest / constants.strong_convexity
    start = members * (far + 2 * gamma * longest) ** 2
    bounds = Utility(
        contraction=tau,
        dim=members * known.dim,
        sigma=2 * gamma * known.sigma,
        distance=start,
        active=active,
    )
    facts = {"contraction, declared": tau}
    if known.measured is not None:
        facts["measured"] = known.measured
    facts |= {"relaxation": relaxation, "chance to take part": active}
    what = "E|u - u*|^2 of all duals, if no clip cuts"
    return Expectation("walk:ADMM-3", what, start, bounds.direct(steps, relaxation), facts)
