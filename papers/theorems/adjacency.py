"""Levels of adjacency: what is replaced, and how far that moves a release (gossip:DP-11,
perso:DP-1, DP-7).

    record   one record of one user            sensitivity s
    user     all records of one user           s * records
    group    all records of a set of users     s * records * users

Every guarantee states its level, and `bruit.privacy.guarantee.together` refuses to compose
different ones. Going from one level to a wider one is never implicit: `widened` does it for what k
neighboring steps can prove.

    Gaussian, mixtures     mu becomes k mu
    (epsilon, delta)       (k epsilon, delta (e**(k epsilon) - 1) / (e**epsilon - 1))
"""

import math
from dataclasses import replace
from typing import Literal

from bruit.errors import PrivacyError
from bruit.privacy.guarantee import Guarantee, Hypothesis
from bruit.privacy.profile import GaussianProfile, MixtureProfile, Profile, StatementProfile

LEVELS = ("record", "user", "group")
"""From the narrowest to the widest."""


def sensitivity(level: str, per_record: float, records: int = 1, users: int = 1) -> float:
    """How far the release moves at that level, when one record moves it by at most `per_record`.

    >>> sensitivity("record", 0.2, 5), sensitivity("user", 0.2, 5), sensitivity("group", 0.2, 5, 3)
    (0.2, 1.0, 3.0)
    """
    _rank(level)
    if not 0 <= per_record < math.inf or records < 1 or users < 1:
        raise PrivacyError(
            "a sensitivity needs a movement per record >= 0, and at least one record and user,"
            f" found {per_record}, {records} and {users}"
        )
    return per_record * (
        1 if level == "record" else records if level == "user" else records * users
    )


def gradient_sensitivity(lipschitz: float, records: int, norm: Literal["l1", "l2"] = "l2") -> float:
    """How far replacing one of m records moves an average gradient: 2 L / m (perso:DP-7).

    Laplace noise needs it in the l1 norm, and then L is the Lipschitz constant with respect to the
    *l-infinity* norm (the gradients' l1 norm); Gaussian noise needs both in the l2 norm. Clip
    inputs or gradients to make L true.
    """
    if norm not in ("l1", "l2"):
        raise PrivacyError(f"gradients are bounded in the l1 or the l2 norm, found {norm!r}")
    if not 0 <= lipschitz < math.inf or records < 1:
        raise PrivacyError(
            f"a gradient needs a bound >= 0 and at least one record, found {lipschitz} and "
            f"{records}"
        )
    return 2 * lipschitz / records


def widened(guarantee: Guarantee, level: str, count: int) -> Guarantee:
    """The same release at a wider level, at which up to `count` units of the old level are replaced
    together.

    >>> from bruit.privacy.ahead.iteration import last_iterate
    >>> five = widened(last_iterate([1.0], 4.0), "group", 5)
    >>> five.level, five.profile.mu
    ('group', 1.25)
    """
    if _rank(level) <= _rank(guarantee.level):
        raise PrivacyError(
            f"a guarantee at {guarantee.level} level says nothing more at {level} level;"
            " widen from record to user to group only"
        )
    if count < 1:
        raise PrivacyError(f"at least one {guarantee.level} is replaced, found {count}")
    held = Hypothesis(
        f"at most {count} of the {guarantee.level} level change together", checked=False
    )
    return replace(
        guarantee,
        level=level,
        profile=_of_group(guarantee.profile, count),
        loss=guarantee.loss * count**2,
        hypotheses=(*guarantee.hypotheses, held),
        notes=(
            *guarantee.notes,
            f"widened from {guarantee.level} to {level} level, {count} at once",
        ),
    )


def _of_group(profile: Profile, count: int) -> Profile:
    if isinstance(profile, GaussianProfile):
        return GaussianProfile(count * profile.mu)
    if isinstance(profile, MixtureProfile):
        return MixtureProfile(count**2 * profile.energies, profile.weights)
    if isinstance(profile, StatementProfile):
        return StatementProfile(
            count * profile.bound, min(1.0, profile.failure * _growth(profile.bound, count))
        )
    raise PrivacyError(
        f"a {type(profile).__name__} cannot be widened to a group; account with the sensitivity of "
        f"the level"
    )


def _growth(epsilon: float, count: int) -> float:
    """(e**(k epsilon) - 1) / (e**epsilon - 1), the sum of e**(i epsilon) over i < k."""
    if count * epsilon > 700:
        return math.inf
    return float(count) if epsilon == 0 else math.expm1(count * epsilon) / math.expm1(epsilon)


def _rank(level: str) -> int:
    if level not in LEVELS:
        raise PrivacyError(f"the levels of adjacency are {', '.join(LEVELS)}, found {level!r}")
    return LEVELS.index(level)
