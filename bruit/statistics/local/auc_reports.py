"""The AUC of rows that many holders keep: each writes one-bit reports, anybody pools the files
(perso:LDP-8, LDP-9).

    file of a holder:    one row (user, label, sign) for each of its users, in random order
    question of a user:  (level, row) by the public seed `questions` of the file and the user's number in it
    pooled:              all answers together, as if one table had been reported on

Every file draws its own questions, so users of different holders are asked independently, and what
is pooled has the law of the reports of the joined table. Holders agree beforehand on epsilon,
levels, low and high: never measured on the scores. Protected is the score: epsilon-DP for each user
(one bit, level: user, against everybody, the aggregator first). Labels, hence counts of both
classes in each file, are public: that is the hypothesis of the theorem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from bruit.arrays import Array, Bools, Ints, Words
from bruit.errors import ConfigError
from bruit.privacy.events import Event
from bruit.randomness import Dice
from bruit.statistics.local.hierarchical import HadamardTree
from bruit.statistics.local.private_auc import AucEstimate, PrivateAuc
from bruit.statistics.local.protocol import check_ends, in_range
from bruit.statistics.local.quantized import bins_of
from bruit.statistics.local.reports import Reports

LEVELS = 6  # 64 bins: what holders use unless they agree on something else
MOST_USERS = 2**40


@final
@dataclass(frozen=True)
class ScoreReports:
    """What all holders agree on: 2**levels bins of low..high, and the epsilon of each user's
    bit."""

    levels: int
    epsilon: float
    low: float = 0.0
    high: float = 1.0
    kind: ClassVar[str] = "auc"

    def __post_init__(self) -> None:
        HadamardTree(self.levels, self.epsilon)
        check_ends(self.low, self.high)

    def describe(self) -> dict[str, Any]:
        """What is written into every file, beside its own questions."""
        return {
            "kind": self.kind,
            "levels": self.levels,
            "epsilon": self.epsilon,
            "low": self.low,
            "high": self.high,
        }

    def event(self) -> Event:
        """What the bit costs the user who sends it; a second file about the same users costs it
        again."""
        return HadamardTree(self.levels, self.epsilon).event()

    def report(self, scores: Any, labels: Array | Ints, dice: Dice) -> Reports:
        """One holder's side: a row a user, shuffled, since the order of a table may tell its
        scores."""
        bins, classes = bins_of(scores, 1 << self.levels, self.low, self.high), np.asarray(labels)
        if classes.shape != bins.shape or not np.isin(classes, (0, 1)).all():
            raise ConfigError(
                f"every score needs a label, 0 or 1; found {len(bins)} scores and labels of shape "
                f"{classes.shape}"
            )
        users = np.arange(len(bins), dtype=np.int64)
        order = np.argsort(dice.words("local-dp order", users, 0, 0, 1)[:, 0], kind="stable")
        first = np.zeros(1, dtype=np.int64)
        questions = int(dice.words("local-dp question seed", first, 0, 0, 1)[0, 0]) >> 1
        signs = HadamardTree(self.levels, self.epsilon, questions).report(bins[order], dice, users)
        columns: dict[str, NDArray[Any]] = {
            "user": users,
            "label": classes[order].astype(np.int8),
            "sign": signs,
        }
        return Reports({**self.describe(), "questions": questions, "users": len(users)}, columns)


class Pooled(NamedTuple):
    """All answers of some files; refused: rows that are no reports; missing: announced reports that
    are not there."""

    agreed: ScoreReports
    signs: Ints
    labels: Ints
    level: Ints
    row: Words
    refused: int
    missing: int

    def estimate(self, confidence: float = 0.95) -> AucEstimate:
        """The AUC over the users of all files, ties within a bin counted by half; both classes must
        be there."""
        if not len(self.signs):
            raise ConfigError(
                f"not one of {self.refused} rows is a possible report of a score; nothing to "
                f"estimate"
            )
        asked = PrivateAuc(self.agreed.levels, self.agreed.epsilon, ties="half")
        return asked.estimate_answers(self.signs, self.labels, self.level, self.row, confidence)


def pool(parts: Sequence[Reports]) -> Pooled:
    """The answers of all files; refused if holders did not agree on the parameters, or a file is
    there twice."""
    if not parts:
        raise ConfigError("there are no reports to estimate from; name at least one file")
    read = [_described(part) for part in parts]
    for agreed, _, _ in read[1:]:
        if agreed != read[0][0]:
            raise ConfigError(
                f"these holders did not agree: one reports with {read[0][0].describe()}, another"
                f" with {agreed.describe()}; report again with the same --epsilon, --levels, --low"
                " and --high"
            )
    seeds = [questions for _, questions, _ in read]
    if len(set(seeds)) < len(seeds):
        raise ConfigError(
            "two of these files answer the same questions: a file is named twice, or rehearsals"
            " share one --seed; name each file once, and give each holder a seed of its own"
        )
    found = [_answers(part, *about) for part, about in zip(parts, read, strict=True)]
    columns = ("signs", "labels", "level", "row")
    joined = {name: np.concatenate([getattr(one, name) for one in found]) for name in columns}
    return Pooled(
        read[0][0],
        **joined,
        refused=sum(one.refused for one in found),
        missing=sum(one.missing for one in found),
    )


def _described(part: Reports) -> tuple[ScoreReports, int, int]:
    """What a file says about itself: the agreement, the seed of its questions, how many reports it
    announces."""
    fields = dict(part.protocol)
    kind, questions, users = (fields.pop(name, None) for name in ("kind", "questions", "users"))
    if kind != ScoreReports.kind:
        raise ConfigError(
            f"reports of scores and reports by {kind!r} cannot be counted together;"
            " estimate from each alone"
        )
    wrong = [
        name
        for name, value in fields.items()
        if isinstance(value, bool) or not isinstance(value, int | float)
    ]
    if wrong:
        raise ConfigError(
            f"reports of scores have numbers as parameters, found {wrong[0]} = {fields[wrong[0]]!r}"
        )
    for name, value, most in (("questions", questions, 2**63), ("users", users, MOST_USERS)):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < most:
            raise ConfigError(
                f"reports of scores need {name!r}, a whole number of 0..{most:.3g}, found {value!r}"
            )
    try:
        return ScoreReports(**fields), int(questions or 0), int(users or 0)
    except TypeError as error:
        raise ConfigError(
            f"reports of scores cannot be read from {part.protocol!r}: {error}"
        ) from None


def _answers(part: Reports, agreed: ScoreReports, questions: int, users: int) -> Pooled:
    """One file: the rows that can be reports; how many cannot, and how many are not there."""
    good = _possible(part, users)
    signs, labels, lanes = (
        part.column(name)[good].astype(np.int64) for name in ("sign", "label", "user")
    )
    level, row = HadamardTree(agreed.levels, agreed.epsilon, questions).questions(lanes)
    refused = len(part) - len(lanes) + part.unreadable
    return Pooled(agreed, signs, labels, level, row, refused, max(0, users - len(lanes) - refused))


def _possible(part: Reports, users: int) -> Bools:
    """Rows with a sign, a label and a user that no other row has: of a user named twice nothing is
    used."""
    sign, label, user = (part.column(name) for name in ("sign", "label", "user"))
    if any(column.ndim != 1 or column.dtype.kind not in "iuf" for column in (sign, label, user)):
        return np.zeros(len(part), dtype=np.bool_)
    good = in_range(user, users) & in_range(label, 2) & np.isin(sign, (-1, 1))
    lanes = user[good].astype(np.int64)
    _, place, times = np.unique(lanes, return_inverse=True, return_counts=True)
    good[np.flatnonzero(good)[times[place] > 1]] = False
    return good
