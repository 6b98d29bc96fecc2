"""A columns file suggested by public rows: complete, for everybody to read, correct and agree on.

    number     center and scale: mean and standard deviation, in two digits
    date       the same of days; written as 2024-03-01, or in a usual form that fits all rows
    category   the values that occur in at least one of 100 rows, and "other" for all that come later
    two        the two values
    holes      where a column has some, they have a feature of their own; elsewhere they are refused
    left out   ids, texts that differ in most rows, columns of one value, texts among numbers
    alike      values that differ in capitals or spaces only are pointed at: one value, or several?
    strange    so is a number such as -9 or 999 that lies far from all others: a hole?

Whoever is in these rows is protected by nothing: they must be public, such as a published survey or
an earlier cohort that consented. Nothing else is read, and no private row is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.how_many import how_many
from bruit.tasks.data.agreed_columns import AgreedColumns, parse_agreed
from bruit.tasks.data.agreed_rows import fitting
from bruit.tasks.data.choice import FEWEST_IDS, ID_NAME
from bruit.tasks.data.columns import (
    MOST_CATEGORIES,
    Columns,
    is_missing,
    kind_of,
    number,
    numbers,
    spelled,
    values_of,
    with_commas,
)
from bruit.tasks.data.drafts.words import key, quoted
from bruit.tasks.data.formats.dates import ISO, are_dates, day, days, usual_forms
from bruit.tasks.data.formats.frames import ROWS
from bruit.tasks.data.table import LABEL_NAMES, OWNER_NAMES, the_one

RARE = 0.01  # values that occur in a smaller share of the rows are taken for "other"
MOST_CLASSES = 10  # whole numbers with more different values are predicted as numbers
LARGEST = 1e150  # squares of larger numbers are none
SHOWN = 5  # texts among numbers that are written out
HEAD = """\
# SUGGESTED by the {rows} rows of {file}, which are PUBLIC: everybody may see them, and no epsilon protects
# whoever is in them. If that is not so, throw this file away. Read it, correct it by what you know, and let
# everybody who takes part read it and say yes.

{by}intercept = 0.3         # the constant of the intercept column
cut = 3.0               # numbers are cut at so many scales from their center
size = 0.5              # what a number one scale from its center becomes
"""


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """The text of a columns file, what it agrees on, why columns are left out, which values may be
    spellings of one, and which numbers may stand for a hole."""

    text: str
    agreed: AgreedColumns
    rows: int
    left_out: dict[str, str]
    alike: dict[str, list[tuple[str, ...]]]
    strange: dict[str, tuple[str, ...]]


def suggest(table: Columns, label: str | None = None, owner: str | None = None) -> Suggestion:
    """A complete columns file from rows that are public."""
    label = label or the_one(table.file, table.names, LABEL_NAMES, "label")
    owner = owner or next((name for name in OWNER_NAMES if name in table.names), None)
    table.of(label)
    features = [name for name in table.names if name not in (label, owner)]
    left_out = {name: why for name in features if (why := _why_not(table, name))}
    used = [name for name in features if name not in left_out]
    if not used:
        raise ConfigError(f"{table.file} has no column that something can be learned from")
    named = table.file != ROWS  # a table in hand has no name
    by = f"suggested_by = {quoted(table.file)}\n" if named else ""
    text = HEAD.format(rows=len(table.lines), file=table.file, by=by)
    if owner is not None:
        table.of(owner)
        text += f"owner = {quoted(owner)}\n"
    text += f"drop = [{', '.join(quoted(name) for name in left_out)}]\n"
    text += "".join(f"# {key(name)}: {why}\n" for name, why in left_out.items())
    often = {name: _values(table, name) for name in (label, *used)}
    strange = {name: found for name in used if (found := _strange(table, name, often[name]))}
    text += "\n" + "\n".join(_label(table, label, often[label])) + "\n"
    for name in used:
        text += "\n" + "\n".join(_column(table, name, often[name], strange.get(name, ()))) + "\n"
    agreed = parse_agreed(tomllib.loads(text), "the suggestion")
    fitting(agreed, table)
    alike = {name: group for name in often if (group := spellings(often[name]))}
    return Suggestion(
        text=text,
        agreed=agreed,
        rows=len(table.lines),
        left_out=left_out,
        alike=alike,
        strange=strange,
    )


def _why_not(table: Columns, name: str) -> str:
    """Why a column is left out; nothing if it is used."""
    cells = table.of(name)
    values = values_of(cells)
    rows = sum(values.values())
    if len({spelled(cell) for cell in values}) < 2:
        return "it holds one value only" if values else "it holds no value"
    if are_dates(cells):
        return ""
    forms = usual_forms(cells)
    if len(forms) > 1:
        return (
            f"dates that may be read as {' or '.join(forms)}; write a section with one as its form"
        )
    if forms:
        return ""
    if kind_of(cells) == "numbers":
        strays = [cell for cell in values if not np.isfinite(number(cell))]
        if strays:
            line = table.lines[cells.index(strays[0])]
            listed = ", ".join(map(quoted, strays[:SHOWN]))
            return (
                f"numbers, but {strays[0]!r} in line {line}; repair such cells to use it, or write a "
                f"section: missing = [{listed}] if these are holes"
            )
        if max(abs(number(cell)) for cell in values) > LARGEST:
            return f"a number above {LARGEST:g} has no scale; repair it to use the column"
        whole = all(number(cell).is_integer() for cell in values)
        apart = len(values) == rows >= FEWEST_IDS and whole
        return "another whole number in every row: ids" if apart and ID_NAME.search(name) else ""
    if with_commas(cells):
        return "numbers with a comma; write them with a point to use them"
    if len(values) >= FEWEST_IDS and 2 * len(values) > rows:
        return f"{len(values)} different texts in {rows} rows: names, ids, or dates of another form"
    often = _values(table, name).values()
    if len(often) > 2 and max(often) < RARE * len(cells):
        return f"{len(often)} different texts, each in less than one of 100 rows"
    return ""


def _label(table: Columns, name: str, often: Mapping[str, int]) -> Iterator[str]:
    holds = kind_of(table.of(name))
    yield "[label]"
    yield f"name = {quoted(name)}"
    whole = all(number(value).is_integer() for value in often)
    if holds == "numbers" and (len(often) > MOST_CLASSES or not whole):
        if max(abs(number(value)) for value in often) > LARGEST:
            raise ConfigError(
                f"{table.file}: the label {name!r} holds a number above {LARGEST:g}, which has no "
                "scale; repair it"
            )
        center, scale = _rounded(_numbers(table, name))
        yield f"center = {center}"
        yield f"scale = {scale}"
    elif 2 <= len(often) <= MOST_CATEGORIES:
        yield f"classes = [{', '.join(quoted(value) for value in often)}]"
        if alike := spellings(often):
            yield f"# one class in several spellings? then: classes = {_grouped(often, alike)}"
    else:
        raise ConfigError(
            f"{table.file}: the label {name!r} holds {how_many(len(often), 'different text')}; a "
            f"class is one of 2 to {MOST_CATEGORIES}: choose another column, or group its values"
        )


def _column(
    table: Columns, name: str, often: Mapping[str, int], strange: Sequence[str]
) -> Iterator[str]:
    cells = table.of(name)
    yield f"[columns.{key(name)}]"
    if len(often) == 2:
        yield 'kind = "two"'
        yield f"values = [{', '.join(quoted(value) for value in often)}]"
    elif (form := _form(cells)) is not None:
        found = [days(cell, form) for cell in cells if not is_missing(cell)]
        center, scale = _rounded(np.array(found))
        yield 'kind = "date"'
        if form != ISO:
            yield f"form = {quoted(form)}"
        yield f"center = {day(center)}"
        yield f"scale = {scale}  # days"
    elif kind_of(cells) == "numbers":
        center, scale = _rounded(_numbers(table, name))
        yield 'kind = "number"'
        yield f"center = {center}"
        yield f"scale = {scale}"
        if strange:
            listed = ", ".join(map(quoted, strange))
            yield f"# far from all others: a hole? then: missing = [{listed}], and center and scale anew"
    else:
        yield from _category(often, len(cells))
    pairs = [
        f"{quoted(other)} = {quoted(first)}"
        for first, *others in spellings(often)
        for other in others
    ]
    if pairs:
        yield f"# one value in several spellings? then: instead = {{ {', '.join(pairs)} }}"
    if sum(values_of(cells).values()) < len(cells):
        yield 'hole = "indicator"  # a feature of its own says that there is none'
    else:
        yield '# hole = "indicator"  # these rows have no hole here; left out, one is refused'


def _form(cells: Sequence[str]) -> str | None:
    """How the dates of a column are written; None if it holds none."""
    if are_dates(cells):
        return ISO
    forms = usual_forms(cells)
    return forms[0] if len(forms) == 1 else None


def _strange(table: Columns, name: str, often: Mapping[str, int]) -> tuple[str, ...]:
    """Numbers that may stand for a hole: -1 or -9 (-99, ..) as the only negative one, or nines more
    than twice as large as any other; each in more than one row."""
    cells = table.of(name)
    if _form(cells) is not None or kind_of(cells) != "numbers" or len(often) < 4:
        return ()
    first, second, *_, before, last = often
    lowest = number(first) < 0 <= number(second) and first.strip("9") in ("-", "-1")
    highest = len(last) > 1 and set(last) == {"9"} and number(last) > 2 * number(before)
    return tuple(
        value for value, far in ((first, lowest), (last, highest)) if far and often[value] > 1
    )


def _category(often: Mapping[str, int], rows: int) -> Iterator[str]:
    usual = [value for value, count in often.items() if count >= RARE * rows]
    other = next((value for value in usual if value.lower() == "other"), "other")
    values = list(dict.fromkeys([*usual, other]))
    yield 'kind = "category"'
    yield f"values = [{', '.join(quoted(value) for value in values)}]"
    yield f"base = {quoted(max(usual, key=lambda value: often[value]))}"
    rare = len(often) - len(usual)
    yield f"other = {quoted(other)}" + (f"  # {rare} rare values are taken for it" if rare else "")


def spellings(often: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Values that differ in capitals and spaces only, the most frequent of them first."""
    groups: dict[str, list[str]] = {}
    for value in often:
        groups.setdefault("".join(value.split()).casefold(), []).append(value)
    return [
        tuple(sorted(group, key=lambda value: -often[value]))
        for group in groups.values()
        if len(group) > 1
    ]


def _grouped(often: Mapping[str, int], alike: list[tuple[str, ...]]) -> str:
    """Classes with their spellings, as a columns file writes them."""
    together = {value for group in alike for value in group}
    groups = [*alike, *((value,) for value in often if value not in together)]
    written = (f"{key(group[0])} = [{', '.join(map(quoted, group))}]" for group in groups)
    return f"{{ {', '.join(written)} }}"


def _values(table: Columns, name: str) -> dict[str, int]:
    """The different values and how often each occurs, in order."""
    often: dict[str, int] = {}
    for cell, count in values_of(table.of(name)).items():
        often[spelled(cell)] = often.get(spelled(cell), 0) + count
    return dict(sorted(often.items(), key=lambda pair: _place(pair[0])))


def _place(value: str) -> tuple[bool, float, str]:
    found = number(value)
    return np.isnan(found), 0.0 if np.isnan(found) else found, value


def _numbers(table: Columns, name: str) -> Array:
    """The numbers of a column without its holes; a stray text among them is refused."""
    found = numbers(table, name, holes=True)
    return np.zeros(0) if found is None else found[np.isfinite(found)]


def _rounded(values: Array) -> tuple[float, float]:
    """Mean and standard deviation, to two digits of the latter."""
    spread = float(values.std())
    digits = 1 - floor(log10(spread)) if spread > 0 else 0
    return round(float(values.mean()), digits), round(spread, digits)
