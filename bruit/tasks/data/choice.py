"""Choices: which columns of a data set are used, and what becomes of its holes.

A hole is a cell without a value (empty, ?, na, n/a, #n/a, <na>, nan, null, none). Unless something
is chosen it is refused with its line. It may be filled with a constant that was chosen without looking at the
rows or with the mean of the public rows, or its record may be left out. What was left out or filled
is counted in a `Reading`, so that it can be said.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

import numpy as np

from bruit.arrays import Array, Bools
from bruit.errors import ConfigError
from bruit.how_many import how_many
from bruit.tasks.data.columns import Columns, kind_of, missing, nearest, number, values_of
from bruit.tasks.data.formats.dates import are_dates
from bruit.tasks.data.public import Fact, listed

PUBLIC = "public"
ID_NAME = re.compile(
    r"(?i:(^|[^a-z])(id|ids|idx|index|key|nr|no|row|uuid)$)|[a-z]I[dD]$|^$|(?i:^unnamed)"
    r"|^__index_level_\d+__$"
)
FEWEST_IDS = 8  # a column of fewer different values is never taken for one of ids
Fill = float | str | Mapping[str, float | str] | None


@dataclass(frozen=True)
class Choice:
    """What is used of a data set.

    columns: the features, in this order; all if none is named. drop: columns that are no features.
    fill: what stands in a hole: a number (in all columns of numbers), a constant for each named
    column, or "public", the mean of the public rows. holes: what becomes of a record with a hole
    that is not filled, "refuse" or "drop".
    """

    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    fill: Fill = None
    holes: Literal["refuse", "drop"] = "refuse"

    def __post_init__(self) -> None:
        both = next((name for name in self.columns if name in self.drop), None)
        if both is not None:
            raise ConfigError(
                f"the column {both!r} is named in columns and in drop; name it in one of them"
            )
        if self.holes not in ("refuse", "drop"):
            raise ConfigError(
                f"holes={self.holes!r} is not known; use 'refuse', or 'drop' to leave out records"
                " with holes"
            )
        if isinstance(self.fill, str) and self.fill != PUBLIC:
            raise ConfigError(
                f"fill={self.fill!r} is not known; use a number, 'public' (the mean of the public"
                " rows) or a constant for each column: {column: constant}"
            )
        constants = self.fill.values() if isinstance(self.fill, Mapping) else (self.fill,)
        if not all(isfinite(value) for value in constants if isinstance(value, int | float)):
            raise ConfigError("fill holds a number that is not finite; give finite ones")

    def is_everything(self) -> bool:
        """Whether all is used as it is, and holes are refused."""
        return not self.columns and not self.drop and self.fill is None and self.holes == "refuse"

    def by_public_mean(self) -> bool:
        """Whether holes wait for the public rows to be known."""
        return self.fill == PUBLIC

    def constant(self, name: str) -> float | str | None:
        """What is put into the holes of a column; None if nothing is."""
        if isinstance(self.fill, Mapping):
            return self.fill.get(name)
        return None if isinstance(self.fill, str) else self.fill


EVERYTHING = Choice()


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a data set held and what was not used of it: names and counts, never a cell.

    records: in the data set. used: the columns that became features; unused: those that did not,
    label and owner not counted. dropped: records left out because of a hole, of which `holes` in
    each column (one record may have several). filled: holes filled, by column, and with what.
    fills: what stands in the holes of a column, in new rows too. lost: owners who have no record
    left.
    """

    records: int
    used: tuple[str, ...]
    unused: tuple[str, ...] = ()
    dropped: int = 0
    holes: Mapping[str, int] = field(default_factory=dict)
    filled: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    fills: Mapping[str, str] = field(default_factory=dict)
    lost: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """In words, for people: what was left out, used and filled."""
        lines = []
        if self.dropped:
            lines.append(
                f"left out: {how_many(self.dropped, 'record')} with holes ({by_column(self.holes)})"
            )
        if self.lost:
            lines.append(
                f"left out: {how_many(len(self.lost), 'owner')} with a hole in every record: "
                f"{listed(self.lost)}"
            )
        if self.used:
            lines.append(f"{how_many(len(self.used), 'column')} used: {listed(self.used)}")
        if self.unused:
            lines.append(f"{how_many(len(self.unused), 'column')} not used: {listed(self.unused)}")
        return [
            *lines,
            *(
                f"filled: {how_many(count, 'hole')} of {name!r} with {text}"
                for name, (count, text) in self.filled.items()
            ),
        ]

    def facts(self) -> tuple[Fact, ...]:
        """What these counts tell everybody: they are read off private rows."""
        found = []
        if self.dropped:
            found.append(
                Fact(
                    f"{self.dropped} of {self.records} records with missing values left out "
                    f"({by_column(self.holes)})",
                    "private rows",
                )
            )
        if self.filled:
            counted = {name: count for name, (count, _) in self.filled.items()}
            found.append(Fact(f"how many holes were filled ({by_column(counted)})", "private rows"))
        return tuple(found)


def by_column(counted: Mapping[str, int]) -> str:
    """Counts in words: 7 in 'age', 2 in 'weight'."""
    return listed([f"{count} in {name!r}" for name, count in counted.items()])


def select(
    table: Columns, choice: Choice, label: str | None, owner: str | None
) -> tuple[Columns, Reading]:
    """The chosen columns of a CSV file, label and owner after them, holes filled and records left
    out as chosen."""
    roles = tuple(dict.fromkeys(name for name in (label, owner) if name is not None))
    for name in roles:
        table.of(name)
    features = chosen_names(
        table.file, tuple(name for name in table.names if name not in roles), choice, roles
    )
    unused = tuple(name for name in table.names if name not in (*features, *roles))
    used = table.only((*features, *roles))
    filled: dict[str, tuple[int, str]] = {}
    fills: dict[str, str] = {}
    for name in features:
        constant = _constant(used, name, choice)
        if constant is not None:
            fills[name] = constant
        if constant is not None and (count := int(missing(used.of(name)).sum())):
            used, filled[name] = used.filled(name, constant), (count, constant)
    if choice.holes == "refuse":
        return used, Reading(
            records=len(table.lines), used=features, unused=unused, filled=filled, fills=fills
        )
    waiting = {
        name for name in features if choice.by_public_mean() and kind_of(used.of(name)) == "numbers"
    }
    empty = {name: missing(used.of(name)) for name in used.names if name not in waiting}
    kept, holes = complete(table.file, empty)
    rest = used.rows(np.flatnonzero(kept).tolist())
    lost = () if owner is None else tuple(sorted(set(used.of(owner)) - set(rest.of(owner)) - {""}))
    return rest, Reading(
        records=len(table.lines),
        used=features,
        unused=unused,
        dropped=int((~kept).sum()),
        holes=holes,
        filled=filled,
        fills=fills,
        lost=lost,
    )


def select_array(
    file: str, features: Array, names: tuple[str, ...], labels: Array, choice: Choice
) -> tuple[Array, Bools, Reading]:
    """The same for an array of numbers, whose holes are nan: its chosen columns, filled, and the
    rows that stay."""
    chosen = chosen_names(file, names, choice, ())
    table = features[:, [names.index(name) for name in chosen]]
    empty, filled = np.isnan(table), {}
    for place, name in enumerate(chosen):
        constant, count = choice.constant(name), int(empty[:, place].sum())
        if isinstance(constant, str):
            raise ConfigError(
                f"fill puts the text {constant!r} into {name!r} of {file}, which holds numbers;"
                " give a number"
            )
        if constant is not None and count:
            table[empty[:, place], place], filled[name] = constant, (count, f"{constant:g}")
    kept, holes = np.ones(len(table), np.bool_), dict[str, int]()
    if choice.holes == "drop":
        left = (
            {}
            if choice.by_public_mean()
            else {name: np.isnan(table[:, k]) for k, name in enumerate(chosen)}
        )
        kept, holes = complete(file, left | {"the label": np.isnan(labels)})
    unused = tuple(name for name in names if name not in chosen)
    return (
        table[kept],
        kept,
        Reading(
            records=len(features),
            used=chosen,
            unused=unused,
            dropped=int((~kept).sum()),
            holes=holes,
            filled=filled,
        ),
    )


def chosen_names(
    file: str, names: tuple[str, ...], choice: Choice, roles: tuple[str, ...]
) -> tuple[str, ...]:
    """The columns that become features; a name that is none of the data's is refused with the
    nearest."""
    filled = tuple(choice.fill) if isinstance(choice.fill, Mapping) else ()
    for key, asked in (("columns", choice.columns), ("drop", choice.drop), ("fill", filled)):
        for name in asked:
            if name in roles:
                role = "label" if name == roles[0] else "owner"
                raise ConfigError(
                    f"{key} names {name!r}, the {role} of {file}, which is no feature;"
                    " leave it out there"
                )
            if name not in names:
                raise ConfigError(
                    f"{file} has no column {name!r}, which {key} names{nearest(name, names)}"
                )
    chosen = tuple(choice.columns) or tuple(name for name in names if name not in choice.drop)
    strange = next((name for name in filled if name not in chosen), None)
    if strange is not None:
        raise ConfigError(
            f"fill names the column {strange!r}, which is not used; leave it out there"
        )
    return chosen


def complete(file: str, empty: Mapping[str, Bools]) -> tuple[Bools, dict[str, int]]:
    """Which records have no hole, and how many holes each column has; refused if none is left."""
    kept: Bools = ~np.any(list(empty.values()), axis=0)
    holes = {name: int(where.sum()) for name, where in empty.items() if where.any()}
    if not kept.any():
        raise ConfigError(
            f"every record of {file} has a hole ({by_column(holes)}), so none is left;"
            " fill them, or leave the columns out with drop"
        )
    return kept, holes


def _constant(table: Columns, name: str, choice: Choice) -> str | None:
    """What is put into the holes of a column, as text."""
    found, named = choice.constant(name), isinstance(choice.fill, Mapping)
    if found is None:
        return None
    kind = kind_of(table.of(name))
    if kind == "texts" and not named:
        return None  # one number for all is for columns of numbers
    if kind == "numbers" and isinstance(found, str):
        raise ConfigError(
            f"fill puts the text {found!r} into {name!r} of {table.file}, which holds numbers;"
            " give a number"
        )
    return found if isinstance(found, str) else f"{found:.17g}"


def _of_dates(values: Iterable[str]) -> str:
    return '; dates are read by a columns file (kind = "date")' if are_dates(values) else ""


def refuse_ids(
    table: Columns, names: Sequence[str], agreed: Sequence[str], asked: Sequence[str]
) -> None:
    """Refuse columns that tell records apart and nothing else: a text a record would be a
    coordinate each, and public.

    agreed: columns of texts that were agreed on. asked: columns somebody wants to be used, ids or
    not.
    """
    for name in names:
        _refuse_id(table, name, name in agreed, name in asked)


def _refuse_id(table: Columns, name: str, agreed: bool, asked: bool) -> None:
    kind = kind_of(table.of(name))
    if kind == "numbers" and not ID_NAME.search(name):
        return
    values = values_of(table.of(name))
    rows = sum(values.values())
    if not values:
        raise ConfigError(
            f"{table.file} column {name!r} holds no value in any row; leave it out: drop = "
            f'["{name}"]'
        )
    if kind == "texts" and not agreed and len(values) >= FEWEST_IDS and 2 * len(values) > rows:
        raise ConfigError(
            f"{table.file} column {name!r} holds {len(values)} different texts in {rows} rows, as "
            f"names "
            "and ids do, and would become as many public coordinates; leave it out: "
            f'drop = ["{name}"]{_of_dates(values)}'
        )
    apart = kind == "numbers" and not asked and len(values) == rows >= FEWEST_IDS
    if apart and all(number(cell).is_integer() for cell in values):
        raise ConfigError(
            f"{table.file} column {name!r} holds another whole number in every row, as ids do; "
            f"leave it "
            f'out with drop = ["{name}"], or name it in columns to use it all the same'
        )
