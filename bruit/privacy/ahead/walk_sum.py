"""A private sum collected by a token on the complete graph: exact divergence, exact delta
(walk:RW-1).

T times the token goes to a peer drawn uniformly, who adds a value of range Delta and Gaussian noise
of standard deviation z Delta. Between two visits of the observers M other steps were made, k of
them by u: the pair is exactly mu-GDP with mu^2 = k^2 / (M z^2). Averaged over the walk, which may
be known, a walk of T steps costs

    divergence(alpha) = log A_T / (alpha - 1),   delta(epsilon) = E delta_GDP(sqrt(X) / z; epsilon)

by the renewal recursion of `bruit.privacy.toolbox.renewal`; no bound on the number of visits is
needed. Every peer, observers too, must draw the next holder uniformly. The first holder counts as
well: `first`, as in `Walk`, says whether it is drawn ("uniform") or known by its number, and then
the claim is about that very peer, who is worst off. For n = 4, T = 6, z = 1.5 and epsilon 0.5 the
one is delta = 0.0440, the other 0.0940.
"""

from __future__ import annotations

from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.ahead.walk_ahead import check_noise
from bruit.privacy.guarantee import Guarantee, Status
from bruit.privacy.profile import Failing, Profile, RenyiProfile
from bruit.privacy.theorems.walk_hypotheses import first_holder, standing
from bruit.privacy.toolbox.contributions import binomial_quantile, binomial_tail, is_drawn
from bruit.privacy.toolbox.renewal import (
    UniformWalk,
    cycle_moment,
    cycles_law,
    too_long,
    walk_law,
    walk_moment,
)

FEW_ORDERS = (
    1.25,
    1.5,
    1.75,
    *(float(order) for order in range(2, 33)),
    40.0,
    48.0,
    64.0,
    96.0,
    128.0,
    192.0,
    256.0,
)


def sum_divergence(
    n: int,
    steps: int,
    order: float,
    noise_multiplier: float,
    published: bool = True,
    observers: int = 1,
    first: int | str = 0,
) -> float:
    """Renyi divergence of the view of a whole walk, exact when the walk is known.

    >>> [round(sum_divergence(3, 6, 2.0, 1.5, first=first), 9) for first in ("uniform", 0)]
    [0.774356546, 1.046056897]
    """
    _check(steps, noise_multiplier, order)
    scale = order * (order - 1) / (2 * noise_multiplier**2)
    return walk_moment(UniformWalk(n, observers, not is_drawn(first)), scale, steps, published) / (
        order - 1
    )


def cycle_divergence(n: int, order: float, noise_multiplier: float, observers: int = 1) -> float:
    """Renyi divergence of one cycle between two visits; infinite when lambda is about log n or
    more.

    >>> round(cycle_divergence(20, 2.0, 3.0), 11)
    0.01131739713
    """
    _check(1, noise_multiplier, order)
    return cycle_moment(
        UniformWalk(n, observers), order * (order - 1) / (2 * noise_multiplier**2)
    ) / (order - 1)


def summation(
    n: int,
    steps: int,
    noise_multiplier: float,
    *,
    first: int | str = 0,
    published: bool = True,
    observers: int = 1,
    route: str | None = None,
    grid: float | None = None,
    tail: float = 1e-8,
    approximate: bool = False,
) -> Guarantee:
    """What the observers can learn about any other peer from the sum (walk:RW-1).

    route: `exact` (delta by Fourier recursion), `renyi`, or `cycles`: N whole cycles, N a quantile
    exceeded with probability at most `tail`. Left out, it is exact, and renyi where that is too
    long to compute; a note says which. Cycles do not cover a published sum, whose last cycle is
    cut; `approximate` counts one cycle more for it, which is no bound. `first` is that of the walk:
    drawn, or a peer whom everybody knows.

    >>> said = summation(3, 6, 1.5, first="uniform", grid=0.002)
    >>> round(said.delta(1.0), 4), said.status
    (0.0719, 'ideal')
    """
    _check(steps, noise_multiplier, 2.0)
    drawn = is_drawn(first)
    walk = UniformWalk(n, observers, not drawn)
    status: Status = "ideal"
    if route is None:
        route = "renyi" if grid is None and too_long(walk, steps) else "exact"
    notes = [
        "the observers may know the whole walk: this costs nothing more",
        f"{steps} steps, {route} route",
    ]
    profile: Profile
    if route == "exact":
        profile = walk_law(walk, steps, published, grid).profile(noise_multiplier)
    elif route == "renyi":
        profile = RenyiProfile(
            lambda order: sum_divergence(
                n, steps, order, noise_multiplier, published, observers, first
            ),
            FEW_ORDERS,
        )
    elif route == "cycles":
        profile, status = _cycles(walk, steps, noise_multiplier, published, tail, approximate)
        notes += (
            ["one more cycle stands for the published sum: an approximation, no bound"]
            if published
            else []
        )
    else:
        raise ConfigError(
            f"a sum is accounted for by route 'exact', 'renyi' or 'cycles', found {route!r}"
        )
    ending = "only the last sum is published" if published else "the last sum is not published"
    return Guarantee(
        theorem="the private sum of a walk on the complete graph",
        spec="walk:RW-1",
        status=status,
        level="user",
        of="any peer",
        against="another peer" if observers == 1 else f"{observers} colluding peers",
        hypotheses=(first_holder(drawn), *standing(None, capped=False, published=ending)),
        profile=profile,
        noise_multiplier=noise_multiplier,
        seen="the token each time it reaches an observer"
        + (", and the last sum" if published else ""),
        notes=tuple(notes),
        advice=("do not publish the last sum: few have seen it",) if published else (),
    )


def _cycles(
    walk: UniformWalk,
    steps: int,
    noise_multiplier: float,
    published: bool,
    tail: float,
    approximate: bool,
) -> tuple[Profile, Status]:
    """At most N + 1 visits leave N whole cycles before a visit, but for a chance of `tail`."""
    if published and not approximate:
        raise PrivacyError(
            "whole cycles do not cover a published sum, whose last cycle is cut (walk:RW-1);"
            " use route='exact' or 'renyi', or ask for the approximation by one more cycle"
        )
    most = max(1, binomial_quantile(steps, walk.seen, tail))
    inner = cycles_law(walk, most + int(published)).profile(noise_multiplier)
    return Failing(
        inner, binomial_tail(steps, walk.seen, most)
    ), "heuristic" if published else "ideal"


def _check(steps: int, noise_multiplier: float, order: float) -> None:
    if steps < 1:
        raise PrivacyError(f"a walk has at least one step, found {steps}")
    if not order > 1:
        raise PrivacyError(f"a Renyi order must be above 1, found {order}")
    check_noise(noise_multiplier)


ASK = {
    "walk-sum": summation,
}
