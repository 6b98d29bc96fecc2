"""What a walk may give away, said before it goes: over all the ways it may go, at this noise, cap
and cool-down.

The accountant of a run answers after the walk: for the very path that the token took (walk:RW-6).
Before the walk the path is drawn, and delta is a mean over paths (walk:RW-14). Both are true of the
same run; for some paths the epsilon after the walk is larger than the one before it, for most pairs
it is smaller.
"""

from __future__ import annotations

import math
from dataclasses import replace

from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.tokens.walk_sgd import WalkSGD
from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.mechanisms import Gaussian
from bruit.planning.walk import ALIKE, ALL_PAIRS, BEFORE, EXACT_PAIRS
from bruit.privacy.ahead.walk_ahead import Ending, complete_law, walk_ahead
from bruit.privacy.ahead.walk_pairs import pair_guarantee, summary
from bruit.privacy.guarantee import REAL, Guarantee
from bruit.privacy.profile import Rounded
from bruit.privacy.theorem import EXACT
from bruit.privacy.theorems.consensus import is_uniform
from bruit.privacy.theorems.walk_hypotheses import FLOATS, Descent
from bruit.runs.result import Run


def before_walk(
    run: Run,
    of: int | None = None,
    seen_by: list[int] | None = None,
    delta: float = 1e-6,
    *,
    blank: bool = False,
) -> Guarantee:
    """The guarantee of a walk before it goes: of one peer against named observers, or of the worst
    pair at delta.

    `run` is a run of the walk, and the hypotheses of its theorem are checked; or a rehearsal on
    blank data, of which convex and smooth losses may be assumed.
    """
    walk, graph, noise = _walk_with_known_law(run)
    constants = (
        run.constants if run.constants is not None and run.constants.lipschitz < math.inf else None
    )
    if not blank or constants is not None:
        for theorem in walk.guarantees():
            theorem.conditions(run.facts())
    smoothness = None if constants is None else constants.smoothness
    descent, z = Descent(step=walk.rate, smoothness=smoothness), noise.noise_multiplier
    if (of is None) != (seen_by is None):
        raise PrivacyError(
            "before a walk name both, --of and --seen-by, or neither for the worst pair"
        )
    if of is not None and seen_by is not None:
        found = pair_guarantee(
            graph,
            of,
            tuple(seen_by),
            z,
            walk.cap or 1,
            walk.rest,
            descent=descent,
            ending=Ending(walk.published, walk.flush),
        )
    else:
        found = _of_worst_pair(walk, graph, z, delta, descent)
    return _for_what_is_sent(run, noise, found)


def _of_worst_pair(
    walk: WalkSGD, graph: Graph, z: float, delta: float, descent: Descent
) -> Guarantee:
    """By one law where all pairs are alike, pair by pair on a small graph, else by a bound of all."""
    cap, ending = walk.cap or 1, Ending(walk.published, walk.flush)
    if is_uniform(graph):
        return walk_ahead(
            complete_law(graph.n, 1, walk.rest), cap, z, descent=descent, ending=ending
        )
    if graph.n <= EXACT_PAIRS:
        first = range(1 if graph.group is not None else graph.n)
        pairs = [
            pair_guarantee(graph, u, v, z, cap, walk.rest, descent=descent, ending=ending)
            for u in first
            for v in range(graph.n)
            if u != v
        ]
        return max(pairs, key=lambda one: float(one.epsilon(delta)))
    if graph.n <= (ALL_PAIRS if graph.group is None else ALIKE) and not walk.published:
        return summary(graph, walk.rest).guarantee(z, cap, descent)
    raise PrivacyError(
        f"all pairs of the {graph.n} peers of {graph.name} take too long, or their last token is"
        " published; name a pair with --of and --seen-by"
    )


def _walk_with_known_law(run: Run) -> tuple[WalkSGD, Graph, Gaussian]:
    """The parts of a walk whose law is known beforehand; everything else is refused."""
    walk, graph, noise = run.algorithm, run.graph, run.privacy
    if not isinstance(walk, WalkSGD):
        raise PrivacyError(
            f"only a walk has a before and an after, found {walk.name()}; leave --before out"
        )
    if walk.cap is None:
        raise PrivacyError(
            "before a walk somebody must say how often a peer contributes at most;"
            " set a cap, e.g. --set algorithm.cap=12"
        )
    if walk.decay:
        raise PrivacyError(
            "before a walk all steps are of one size, found a decay; after it, they are covered"
        )
    if not isinstance(graph, Graph) or walk.schedule.order != Walk().order:
        raise PrivacyError(
            "before a walk its law must be known: a token on one fixed graph, whose next holder is"
            " drawn by the weights"
        )
    if not isinstance(noise, Gaussian) or noise.unequal or noise.level != "user":
        raise PrivacyError(
            "the energies of a walk are those of one Gaussian noise for all, at user level; leave"
            " --before out"
        )
    if run.interrupted is not None:
        raise PrivacyError(
            f"before a walk means a whole walk, and this one was {run.stopped_words()};"
            " leave --before out, and every release that was made is charged"
        )
    if run.engine.get("name") != "bulk" or run.phase or run.carried != "nothing":
        raise PrivacyError(
            "before a walk means one walk, alone, of which no message is lost; leave --before out"
        )
    return walk, graph, noise


def _for_what_is_sent(run: Run, noise: Gaussian, found: Guarantee) -> Guarantee:
    """With the rounding of every hop inside, which is the same for all paths; ideal arithmetic
    stays ideal."""
    found = replace(found, notes=(*found.notes, BEFORE))
    if noise.arithmetic == "ideal" or found.status != "ideal":
        return found
    hypotheses = (*(one for one in found.hypotheses if one != REAL), *run.declared, FLOATS, EXACT)
    profile = Rounded(found.profile, run.facts().all_rounding())
    return replace(found, status="proven", hypotheses=hypotheses, profile=profile)
