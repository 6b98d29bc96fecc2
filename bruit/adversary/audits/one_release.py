"""One release on trial: rows as far apart as a mechanism allows, released many times."""

from __future__ import annotations

import math
import time

import numpy as np

from bruit.adversary.audits.bounds import (
    check_confidence,
)
from bruit.adversary.audits.defence import noise_for
from bruit.adversary.audits.evidence import (
    CONFIDENCE,
    Found,
    claimed_at,
    enough,
    evidence,
    half_of,
    planted_bug,
)
from bruit.adversary.audits.power import Planted
from bruit.adversary.audits.scores import (
    ViewScore,
)
from bruit.adversary.audits.trials import Views
from bruit.adversary.audits.verdict import HALF, Audit, verdict
from bruit.adversary.audits.worlds import FAR
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.mechanisms import Mechanism, RandomizedResponse, RecordNoise, RecordSums
from bruit.privacy.guarantee import REAL, Guarantee, Hypothesis
from bruit.privacy.profile import EventsProfile, check_delta
from bruit.randomness import Replay
from bruit.randomness.dice import RUN_BITS


def audit_mechanism(
    mechanism: Mechanism,
    trials: int = 10_000,
    delta: float = 1e-6,
    confidence: float = CONFIDENCE,
    dim: int = 8,
    claimed: Guarantee | None = None,
    seed: int = 0,
    of: int = 0,
) -> Audit:
    """Try to refute what one release claims, on rows that are far apart: along an axis, along the
    diagonal, at the ends of the ball and far outside of it. Where a release lies between the points
    of its lattice is looked at too."""
    begin = time.perf_counter()
    check_delta(delta)
    check_confidence(confidence)
    claim = _cost_of_one_release(mechanism, dim) if claimed is None else claimed
    pairs = _rows_far_apart(mechanism, dim, of)
    says = claimed_at(claim, delta)
    normal = has_normal_scores(mechanism)
    each = 1 - (1 - confidence) / ((2 + normal) * (1 + normal) * len(pairs))
    enough(trials, says, delta, each, normal)

    def found_in(name: str, left: Array, right: Array, views: Views) -> Found:
        scores = _best_scores(mechanism, left, right, views, normal)
        return evidence(name, scores, views, says, delta, each, normal)

    found = [
        found_in(*pair, _releases(mechanism, *pair[1:], trials, seed, number, of))
        for number, pair in enumerate(pairs)
    ]
    proof = [one for more, _ in found for one in more]
    planted = list[Planted]()
    refuted, sentence = any(one.refutes for one in proof), ""
    if 0 < says[delta] < math.inf and not refuted:
        halved = _with_half_the_noise(mechanism, *pairs[0][1:], trials, seed, of)
        wrong = found_in(*pairs[0], halved)[0]
        planted.append(planted_bug(HALF, pairs[0][0], wrong, trials))
    if not refuted:
        aim = half_of(says[delta])
        sentence = f"Defence: epsilon = {aim:.3g} needs {noise_for(mechanism, aim, delta, 1.0, 1)}."
    return verdict(
        claim=claim,
        epsilon=says[delta],
        proof=proof,
        planted=planted,
        names=tuple(dict.fromkeys(name for _, used in found for name in used)),
        places=tuple(name for name, _, _ in pairs),
        delta=delta,
        confidence=confidence,
        trials=trials,
        begin=begin,
        sentence=sentence,
    )


def _cost_of_one_release(mechanism: Mechanism, dim: int) -> Guarantee:
    """What a mechanism claims of one release of so many numbers."""
    ideal = mechanism.arithmetic == "ideal"
    return Guarantee(
        theorem="the cost of one release",
        spec="gossip:DP-4",
        status="ideal" if ideal else "proven",
        level=mechanism.level,
        of="one row",
        against="everybody",
        hypotheses=(
            Hypothesis("noise as declared, after clipping", checked=False),
            *((REAL,) if ideal else ()),
        ),
        profile=EventsProfile(((mechanism.event_of(dim), 1),)),
        loss=1.0,
        adjacency=mechanism.adjacency,
    )


def _with_half_the_noise(
    mechanism: Mechanism, left: Array, right: Array, trials: int, seed: int, of: int
) -> Views:
    """Releases of two rows by a mechanism with a bug: half of the noise that it claims."""
    if isinstance(mechanism, RecordSums):
        return _releases(mechanism.scaled(0.5), left, right, trials, seed, 0, of)
    honest = _releases(mechanism, left, right, trials, seed, 0, of)
    return Views(
        *(
            _halve_noise(mechanism, views, row)
            for views, row in zip(honest, (left, right), strict=True)
        )
    )


def has_normal_scores(mechanism: Mechanism) -> bool:
    """Whether linear scores of its releases are normal: not where a coin decides who is in."""
    gaussian = mechanism.kind == "gaussian" or (
        isinstance(mechanism, RecordSums) and mechanism.sample_rate == 1
    )
    return gaussian and mechanism.sigma > 0


def _best_scores(
    mechanism: Mechanism, left: Array, right: Array, views: Views, normal: bool
) -> list[ViewScore]:
    """The best score of equal normal noise on every coordinate: the component along what was
    moved."""
    if not normal:
        return []
    here = np.zeros(1, np.int64)
    moved = (mechanism.bare(right[None], here) - mechanism.bare(left[None], here))[0]
    return [
        ViewScore(
            "likelihood ratio", np.pad(moved, (0, views.left.shape[1] - len(moved))), fitted=False
        )
    ]


def _halve_noise(mechanism: Mechanism, views: Array, row: Array) -> Array:
    """The same releases with half of their noise; of randomized response, with half of the uniform
    answers."""
    bare = mechanism.bare(row[None], np.zeros(1, np.int64))
    d = bare.shape[1]
    wrong = views.copy()
    if isinstance(mechanism, RandomizedResponse):
        wrong[::2, :d] = bare
    else:
        wrong[:, :d] = bare + 0.5 * (views[:, :d] - bare)
    return wrong


def _rows_far_apart(mechanism: Mechanism, dim: int, of: int) -> list[tuple[str, Array, Array]]:
    """Neighboring rows that a mistake would show on, by name."""
    if isinstance(mechanism, RandomizedResponse):
        values = np.eye(mechanism.values)
        return [("the first and the last value", values[0], values[-1])]
    if isinstance(mechanism, RecordNoise):
        half = np.eye(mechanism.dim)[0] * mechanism.sensitivities[of] / 2
        return [("as far apart as one record moves them", -half, half)]
    if dim < 1:
        raise ConfigError(f"a release has at least 1 number, found dim = {dim}")
    first, last, diagonal = np.eye(dim)[0], np.eye(dim)[-1], np.ones(dim)
    diagonal /= np.linalg.norm(diagonal, mechanism.norm)
    c = mechanism.clip
    rows = {
        "first axis": first * c,
        "last axis": last * c,
        "diagonal": diagonal * c,
        "first axis, outside": FAR * first * c,
        "diagonal, outside": FAR * diagonal * c,
    }
    goes = 0.0 if mechanism.adjacency == "add-remove" else -1.0  # a record of zeros is none
    ends = [(name, goes * row, row) for name, row in rows.items()]
    return [*ends, ("zero and almost the end", 0 * first, 0.9999 * c * diagonal)]


def _releases(
    mechanism: Mechanism, left: Array, right: Array, trials: int, seed: int, number: int, of: int
) -> Views:
    """Independent releases of both rows by peer `of`; beside each number, where it lies within its
    lattice cell."""
    sides, lanes = [], np.full(trials, of, np.int64)
    rounds, phase = np.divmod(np.arange(trials), 1 << RUN_BITS)
    for side, row in enumerate((left, right)):
        place, values = (lanes, 2 * rounds + side, number), np.tile(row, (trials, 1))
        if isinstance(mechanism, RecordSums):
            coins = Replay(seed).uniform("coins", *place, 1, phase)
            values = mechanism.of_one_record(values, coins)
        seen = mechanism.release(values, Replay(seed), *place, phase)
        if mechanism.spacing:
            inside = seen / mechanism.spacing
            seen = np.concatenate((seen, inside - np.rint(inside)), axis=1)
        sides.append(seen)
    return Views(*sides)
