"""A table: features, labels and owners of all records as numbers, with a word on what was done to
them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.tasks.counted import Counted
from bruit.tasks.data.choice import EVERYTHING, Choice, Reading, refuse_ids, select, select_array
from bruit.tasks.data.columns import (
    MISSING,
    Columns,
    codes,
    encode,
    in_digits,
    nearest,
    number,
    numbers,
    spelled,
)
from bruit.tasks.data.public import NOTHING, Agreed, Fact, Source, listed
from bruit.tasks.data.recipe import Recipe

LABEL_NAMES = ("label", "target", "y", "class", "labels")
OWNER_NAMES = ("owner", "owners")


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Counted):
    """Features (r, p), labels (r,), owners (r,) or None; text labels are codes into label_names.

    A feature that is nan is a hole which the mean of the public rows will fill; otherwise there is
    none. reading: what was left out or filled on the way.

    threshold: where a numeric label is cut into two classes, for sets that declare it. notes: what
    was done to the file, in words. facts: what its features and classes tell everybody, and whence.
    file_sha256: digest of the file of a published set; a file of one's own has none, since a digest
    can be compared with guesses. label: the name of its column. classes_from: whether its values
    were agreed on (or published with the set), or are those that occur. texts: the columns that are
    one 0/1 feature a value. recipe: how an agreed columns file prepares the features; None: as the
    task asks.
    """

    name: str
    features: Array
    labels: Array
    owners: Ints | None
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    owner_names: tuple[str, ...]
    file_sha256: str = ""
    threshold: float | None = None
    notes: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    label: str = ""
    classes_from: Source = "private rows"
    texts: tuple[str, ...] = ()
    reading: Reading = Reading(records=0, used=())
    recipe: Recipe | None = None

    def classes_fact(self, classes: Sequence[str]) -> Fact:
        """The classes a task makes of the labels, and where they come from."""
        cut = None if self.threshold is None else (f"<={self.threshold:g}", f">{self.threshold:g}")
        return Fact(
            f"the classes of {self.label!r}: {listed(classes)}",
            "agreed" if tuple(classes) == cut else self.classes_from,
        )

    def label_text(self, value: float) -> str:
        """A label as its users write it."""
        return self.label_names[int(value)] if self.label_names else in_digits(float(value))

    def label_values(self) -> Array:
        """All values a label may have, in order: those that are named, else those that occur."""
        return (
            np.arange(len(self.label_names), dtype=np.float64)
            if self.label_names
            else np.unique(self.labels)
        )


def from_columns(
    columns: Columns,
    name: str,
    label: str | None,
    owner: str | None,
    digest: str = "",
    *,
    categories: frozenset[str] = frozenset(),
    threshold: float | None = None,
    notes: tuple[str, ...] = (),
    agreed: Agreed = NOTHING,
    choice: Choice = EVERYTHING,
    features: bool = True,
) -> Table:
    """A table from text columns: label and owner set apart, the rest encoded as features, unless
    none are wanted."""
    label = label or the_one(columns.file, columns.names, LABEL_NAMES, "label")
    if owner is None:
        owner = next((word for word in OWNER_NAMES if word in columns.names), None)
    if not features:
        columns = columns.only((label,) if owner in (None, label) else (label, str(owner)))
    columns, reading = select(columns, choice, label, owner)
    label_names: tuple[str, ...] = ()
    labels = None if agreed.classes else numbers(columns, label)
    if labels is None:
        labels, label_names = codes(columns, label, agreed.classes)
    owners: Ints | None = None
    owner_names: tuple[str, ...] = ()
    if owner is not None:
        columns.refuse(owner, MISSING)
        owners, owner_names = number_owners(columns.of(owner))
    check_labels(name, labels, bool(agreed.classes), label_names)
    refuse_ids(columns, reading.used, (*agreed.vocabulary, *categories), choice.columns)
    encoded: dict[str, tuple[str, ...]] = {}
    values, feature_names = np.zeros((len(labels), 0)), tuple[str, ...]()
    if features:
        values, feature_names, encoded = encode(
            columns.only(reading.used),
            categories & set(reading.used),
            agreed.vocabulary,
            choice.by_public_mean(),
        )
    if encoded:
        notes = (*notes, f"one 0/1 column a value for: {', '.join(encoded)}")
    source: Source = "agreed" if agreed.classes else "private rows"
    return make_table(
        name,
        values,
        labels,
        owners,
        feature_names=feature_names,
        label_names=label_names,
        owner_names=owner_names,
        file_digest=digest,
        threshold=None if agreed.classes else threshold,
        notes=notes,
        facts=reading.facts() + _vocabulary_facts(encoded, agreed),
        label=label,
        classes_from=source,
        texts=tuple(encoded),
        reading=reading,
    )


def _vocabulary_facts(encoded: dict[str, tuple[str, ...]], agreed: Agreed) -> tuple[Fact, ...]:
    """The values of text columns, which everybody is told, and where they come from."""
    return tuple(
        Fact(
            f"the {len(values)} values of the text column {column!r}: {listed(values)}",
            "agreed" if column in agreed.vocabulary else "private rows",
        )
        for column, values in encoded.items()
    )


def make_table(
    name: str,
    features: Array,
    labels: Array,
    owners: Ints | None,
    *,
    feature_names: tuple[str, ...],
    label_names: tuple[str, ...] = (),
    owner_names: tuple[str, ...] = (),
    file_digest: str = "",
    threshold: float | None = None,
    notes: tuple[str, ...] = (),
    facts: tuple[Fact, ...] = (),
    label: str = "label",
    classes_from: Source = "private rows",
    texts: tuple[str, ...] = (),
    reading: Reading | None = None,
    recipe: Recipe | None = None,
) -> Table:
    """A table of arrays that were checked."""
    return Table(
        name=name,
        features=features,
        labels=labels,
        owners=owners,
        feature_names=feature_names,
        label_names=label_names,
        owner_names=owner_names,
        file_sha256=file_digest,
        threshold=threshold,
        notes=notes,
        facts=facts,
        label=label,
        classes_from=classes_from,
        texts=texts,
        reading=reading or Reading(records=len(labels), used=feature_names),
        recipe=recipe,
    )


def choose(table: Table, choice: Choice) -> Table:
    """The chosen columns of a table of numbers, whose holes are nan, without the records that are
    left out."""
    if choice.is_everything():
        return table
    features, kept, reading = select_array(
        table.name, table.features, table.feature_names, table.labels, choice
    )
    owners, names = table.owners, table.owner_names
    if owners is not None:
        present, owners = np.unique(owners[kept], return_inverse=True)
        names = tuple(table.owner_names[owner] for owner in present.tolist())
        reading = replace(reading, lost=tuple(sorted(set(table.owner_names) - set(names))))
        owners = owners.astype(np.int64)
    return replace(
        table,
        features=features,
        labels=table.labels[kept],
        owners=owners,
        owner_names=names,
        feature_names=reading.used,
        reading=reading,
        facts=(*table.facts, *reading.facts()),
    )


def check_labels(name: str, labels: Array, agreed: bool, names: Sequence[str] = ()) -> None:
    """Classes that were not agreed on are those that occur, at least two."""
    if not agreed and len(np.unique(labels)) < 2:
        only = names[0] if names else f"{labels[0]:g}"
        raise ConfigError(
            f"the label of {name} has one value only ({only} on all {len(labels)} records); "
            "there is nothing to learn: choose another label column"
        )


def agreed_codes(
    file: str, cells: Sequence[str], classes: Sequence[str]
) -> tuple[Array, tuple[str, ...]]:
    """Labels as places in the agreed classes; one that is none of them is refused."""
    names = tuple(spelled(text) for text in classes)
    place = {text: float(number) for number, text in enumerate(names)}
    row = next((i for i, cell in enumerate(cells) if spelled(cell) not in place), None)
    if row is not None:
        raise ConfigError(
            f"{file} row {row}: the label is {cells[row]}, which is none of the agreed classes"
            f"{nearest(cells[row], names)}"
        )
    return np.array([place[spelled(cell)] for cell in cells]), names


def no_texts(file: str, agreed: Agreed) -> None:
    """Refuse a vocabulary of data that has no text column."""
    if agreed.vocabulary:
        column = next(iter(agreed.vocabulary))
        raise ConfigError(
            f"{file} holds numbers only, so it has no text column {column!r}; leave vocabulary out"
        )


def file_sha256(path: Path) -> str:
    """Digest of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def number_owners(cells: tuple[str, ...]) -> tuple[Ints, tuple[str, ...]]:
    """Owners numbered in order: by value when all are numbers, else alphabetically."""
    written = {cell: spelled(cell) for cell in set(cells)}
    names = tuple(sorted(set(written.values()), key=lambda name: (number(name), name)))
    if any(np.isnan(number(cell)) for cell in written):
        written, names = {cell: cell for cell in written}, tuple(sorted(written))
    place = {name: index for index, name in enumerate(names)}
    return np.array([place[written[cell]] for cell in cells], dtype=np.int64), names


def the_one(file: str, names: tuple[str, ...], usual: tuple[str, ...], role: str) -> str:
    """The only name that usually plays this role; otherwise the user must say which."""
    found = [word for word in usual if word in names]
    if len(found) == 1:
        return found[0]
    raise ConfigError(
        f"{file} does not say which column is the {role}; give {role}=, one of: "
        f"{', '.join(names[:20])}" + (", .." if len(names) > 20 else "")
    )
