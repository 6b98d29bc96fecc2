"""An experiment for a table of one's own, that runs as it is written (`bruit init --data`).

    label     two values: logistic; up to ten: softmax; other numbers: ridge. A columns file says it
    owner     a peer is an owner; without one, rows are dealt to ten peers, which is a simulation
    columns   ids, dates, texts without end and columns of holes are left out, unless a columns file
              says how they are read
    noise     on masked sums, at record level; its numbers are the same for every table

What had to be read off the rows for it is told in `read` and in the head of the file: no epsilon
covers it. No value of a row is in it, and no statistic besides those counts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bruit.errors import ConfigError
from bruit.how_many import how_many
from bruit.tasks.data.agreed_columns import AgreedColumns, columns_name, read_agreed
from bruit.tasks.data.catalog import catalog
from bruit.tasks.data.choice import Choice, refuse_ids
from bruit.tasks.data.columns import (
    MOST_CATEGORIES,
    Columns,
    is_missing,
    kind_of,
    number,
    spelled,
    values_of,
    with_commas,
)
from bruit.tasks.data.drafts.public_rows import MOST_CLASSES, spellings
from bruit.tasks.data.drafts.words import quoted
from bruit.tasks.data.formats.dates import are_dates, usual_forms
from bruit.tasks.data.public import listed
from bruit.tasks.data.public_part import drawn
from bruit.tasks.data.sources import load, texts
from bruit.tasks.data.table import LABEL_NAMES, OWNER_NAMES, Table

PEERS = 10  # where nobody says whose a row is
MOST = 50  # each pair of peers has a mask: far more are slow to begin with
FEWEST = 3  # a sum of two answers hides neither from the other
TEST = 0.2  # the public part, by which columns are centered and scaled
RATES = {"logistic": 5.0, "softmax": 5.0, "ridge": 1.0}  # rows have length 1
RATES_OF_COLUMNS = {"logistic": 2.0, "softmax": 2.0, "ridge": 0.2}  # rows may be longer
TEXT = """\
# {learns} learn together to tell {label}, from {data}.
# Every record that they hold is protected: what any one of them sees is nearly the same if it were another (epsilon
# 1 at delta 1e-6). Public records are not, and in a simulation nobody is: its noise can be drawn again.
# Read off the rows to write this file, and covered by no epsilon:
{read}graph = "complete:{count}"{space}# who talks to whom: everybody with everybody, there is no server
steps = 40                            # rounds: one masked sum of everybody's gradients each
seed = 0                              # of the split, the noise and everything else that is drawn

[task]
kind = "{kind}"
data = {data}
{keys}

[algorithm]
name = "masked-sgd"                   # masks that cancel: of each peer's answer only the sum of all is seen
rate = {rate:g}
colluders = 1                         # no one peer, with all that it sees, learns more
spare = 10                            # attempts that may fail (a peer that is away) and are paid for beforehand

[privacy]
level = "record"                      # hide one record; "user" would hide all that a peer holds
clip = 0.38                           # no record moves a sum further than this
epsilon = 1.0
delta = 1e-6
# Steps, rate and clip are the same for every table; `bruit plan --silos {count}` chooses them by public numbers.
"""


@dataclass(frozen=True, kw_only=True)
class OwnExperiment:
    """The text of an experiment; what was read off the rows for it; which columns are left out, and
    why; how many records or owners are public."""

    text: str
    read: tuple[str, ...]
    left_out: Mapping[str, str]
    public: str


def own_experiment(
    data: str,
    folder: Path,
    label: str | None = None,
    owner: str | None = None,
    columns: str | None = None,
) -> OwnExperiment:
    """An experiment in this folder for a table; label and owner name columns, as `columns` names a
    columns file."""
    if data in catalog():
        raise ConfigError(
            f"{data} is a data set that is known, found where your own table is asked for;"
            f' start from a template and write data = "{data}" there'
        )
    cells = texts(data)
    if owner is not None:
        cells.of(owner)
    if columns is not None:
        return _by_columns_file(data, folder, label, owner, columns)
    label = label or _usual_label(cells)
    cells.of(label)
    owner = owner or next((name for name in OWNER_NAMES if name in cells.names), None)
    features = [name for name in cells.names if name not in (label, owner)]
    left_out = {name: why for name in features if (why := _why_not(cells, name))}
    used = [name for name in features if name not in left_out]
    if not used:
        raise ConfigError(
            f"{cells.file} has no column to learn from: {listed([*left_out])} cannot be used as"
            " they are; `bruit columns init` drafts a file that says how columns are read"
        )
    holes = any(map(is_missing, (cell for n in (label, owner, *used) if n for cell in cells.of(n))))
    choice = Choice(drop=tuple(left_out), holes="drop" if holes else "refuse")
    table = load(data, label, owner, choice=choice)
    kind, count = _kind(table), _peers(table, TEST)
    public = _public(table)
    keys = [
        f"label = {quoted(label)}",
        *_who(owner),
        f"test = {TEST}                            # PUBLIC: {public}, by which columns are scaled",
        *([f"drop = [{', '.join(map(quoted, left_out))}]"] if left_out else []),
        *(['holes = "drop"                        # records with a hole are left out'] * holes),
    ]
    read = [
        f"what the label holds: {_what(kind)}",
        *_owners_read(table),
        *(f"the column {name!r} {why}" for name, why in left_out.items()),
        *(["that there are holes"] if holes else []),
    ]
    names = {"label": label, "data": _beside(data, folder)}
    text = _text(names, kind, _who_learns(table, count), keys, read, RATES[kind])
    return OwnExperiment(text=text, read=tuple(read), left_out=left_out, public=public)


def _by_columns_file(
    data: str, folder: Path, label: str | None, owner: str | None, columns: str
) -> OwnExperiment:
    """The same, where a columns file says all about columns: no row is public then."""
    agreed = read_agreed(columns)
    if label not in (None, agreed.label.name):
        raise ConfigError(
            f"{columns} agrees on the label {agreed.label.name!r}, found --label {label}; leave"
            " --label out, or use another columns file"
        )
    owner = owner or agreed.owner
    table = load(data, None, owner, columns=agreed)
    kind, count = _agreed_kind(agreed), _peers(table, 0.0)
    named = columns_name(columns)
    written = columns.replace(named, _beside(named, folder), 1) if named else columns
    keys = [
        f"columns_file = {quoted(written)}         # label, classes and all about columns",
        *_who(owner if table.owners is not None else None),
        'rows = "none"                         # the columns file bounds them',
        "test = 0.0                            # nobody's records are public",
        "own_test = 0.3                        # a share of its own records to judge each peer's model on",
    ]
    off = agreed.off_these(Path(data).name)
    read = [*_owners_read(table), *([off] if off else [])]
    names = {"label": agreed.label.name, "data": _beside(data, folder)}
    text = _text(names, kind, _who_learns(table, count), keys, read, RATES_OF_COLUMNS[kind])
    return OwnExperiment(text=text, read=tuple(read), left_out={}, public="")


def _usual_label(table: Columns) -> str:
    found = [name for name in LABEL_NAMES if name in table.names]
    if len(found) != 1:
        raise ConfigError(
            f"{table.file} does not say which column is the label; name it with --label, one of:"
            f" {listed(table.names)}"
        )
    return found[0]


def _text(
    names: Mapping[str, str],
    kind: str,
    learns: str,
    keys: list[str],
    read: list[str],
    rate: float,
) -> str:
    count = learns.split()[0]
    return TEXT.format(
        learns=learns,
        **{key: quoted(name) for key, name in names.items()},
        read="".join(f"#   {line}\n" for line in read or ["nothing"]),
        count=count,
        space=" " * (19 - len(count)),
        kind=kind,
        keys="\n".join(keys),
        rate=rate,
    )


def _who_learns(table: Table, count: int) -> str:
    return how_many(count, "peer" if table.owners is None else "owner")


def _why_not(table: Columns, name: str) -> str:
    """Why a column cannot be used as it is; nothing if it can. No cell is told."""
    cells = table.of(name)
    values = values_of(cells)
    if len({spelled(cell) for cell in values}) < 2:
        return "holds one value or none"
    if are_dates(cells) or usual_forms(cells):
        return "holds dates, which a columns file reads"
    if 2 * sum(values.values()) < len(cells):
        return "is mostly holes"
    if with_commas(cells):
        return "holds numbers with a comma"
    try:
        refuse_ids(table, (name,), (), ())
    except ConfigError:
        return "tells records apart, as names and ids do"
    if kind_of(cells) == "texts":
        return "holds too many different texts" if len(values) > MOST_CATEGORIES else ""
    stray = not np.isfinite([number(cell) for cell in values]).all()
    return "holds numbers with texts among them" if stray else ""


def _kind(table: Table) -> str:
    """What is learned: one of two classes, one of several, or a number."""
    values = table.label_values()
    if len(table.label_names) > MOST_CATEGORIES:
        raise ConfigError(
            f"the label {table.label!r} of {table.name} holds {len(table.label_names)} different"
            f" texts, and a class is one of at most {MOST_CATEGORIES}; name another column with"
            " --label"
        )
    _refuse_spellings(table)
    if len(values) == 2:
        return "logistic"
    whole = bool((values == np.round(values)).all())
    return "softmax" if table.label_names or (whole and len(values) <= MOST_CLASSES) else "ridge"


def _refuse_spellings(table: Table) -> None:
    """Classes that differ in capitals or spaces only would be learned apart, unasked."""
    found = spellings(dict.fromkeys(table.label_names, 1))
    if found:
        one, other, *_ = found[0]
        raise ConfigError(
            f"the label {table.label!r} of {table.name} holds {one!r} and {other!r}, which would be two"
            " classes; write them alike, or agree on classes with their spellings in a columns file"
            " (--columns)"
        )


def _agreed_kind(agreed: AgreedColumns) -> str:
    if not agreed.classes:
        return "ridge"
    return "logistic" if len(agreed.classes) == 2 else "softmax"


def _what(kind: str) -> str:
    return {"logistic": "two classes", "softmax": "several classes", "ridge": "numbers"}[kind]


def _peers(table: Table, test: float) -> int:
    """Owners who are not public; or a usual number of peers."""
    if table.owners is None:
        return PEERS
    owners = len(table.owner_names)
    count = owners - drawn(owners, test)
    if FEWEST <= count <= MOST:
        return count
    if count > MOST:
        raise ConfigError(
            f"{table.name} has {how_many(owners, 'owner')}, and masks of pairs are for at most {MOST}"
            " peers; leave --owner out to deal the rows to fewer, or see `bruit plan` for many"
        )
    aside = f", of whom {drawn(owners, test)} would be public" if test else ""
    mend = "an agreed columns file (--columns) makes nobody public, or " if test else ""
    raise ConfigError(
        f"{table.name} has {how_many(owners, 'owner')}{aside}, and {FEWEST} peers are the least that"
        f" hide in a sum; {mend}deal the rows to peers in a simulation: write an experiment by"
        " `bruit init --template ten-clinics`"
    )


def _who(owner: str | None) -> list[str]:
    """Whose a row is."""
    if owner is None:
        return ['split = "iid"                         # rows are dealt at random: a simulation']
    return [
        f"owner = {quoted(owner)}",
        'split = "owner"                       # a peer is an owner',
    ]


def _owners_read(table: Table) -> list[str]:
    return [] if table.owners is None else [f"how many owners there are, {len(table.owner_names)}"]


def _public(table: Table) -> str:
    """Which rows become public, in words."""
    if table.owners is None:
        return f"{TEST:.0%} of the records"
    many = drawn(len(table.owner_names), TEST)
    return f"{how_many(many, 'owner')} of {len(table.owner_names)}, with all records"


def _beside(name: str, folder: Path) -> str:
    """A path as it is seen from the folder of the experiment."""
    if Path(name).is_absolute():
        return name
    return os.path.relpath(name, folder)
