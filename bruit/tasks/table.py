"""A table: features, labels and owners of all records as numbers, with digests and a word on what was done to them."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.tasks.columns import MISSING, Columns, codes, encode, numbers

LABEL_NAMES = ("label", "target", "y", "class", "labels")
OWNER_NAMES = ("owner", "owners")


@dataclass(frozen=True, eq=False)
class Table:
    """Features (r, p), labels (r,), owners (r,) or None; text labels are codes into label_names.

    threshold: where a numeric label is cut into two classes, for sets that declare it.
    notes: what was done to the file, in words. sha256: digest of features, labels and owners.
    file_sha256: digest of the file read, empty for sets bundled with scikit-learn.
    """

    name: str
    features: Array
    labels: Array
    owners: Ints | None
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    owner_names: tuple[str, ...]
    sha256: str
    file_sha256: str = ""
    threshold: float | None = None
    notes: tuple[str, ...] = ()

    def label_text(self, value: float) -> str:
        """A label as its users write it."""
        return self.label_names[int(value)] if self.label_names else f"{value:g}"


def from_columns(columns: Columns, name: str, label: str | None, owner: str | None, digest: str, *,
                 categories: frozenset[str] = frozenset(), threshold: float | None = None,
                 notes: tuple[str, ...] = ()) -> Table:
    """A table from text columns: label and owner set apart, the rest encoded as features."""
    label = label or the_one(columns.file, columns.names, LABEL_NAMES, "label")
    if owner is None:
        owner = next((word for word in OWNER_NAMES if word in columns.names), None)
    label_names: tuple[str, ...] = ()
    labels = numbers(columns, label)
    if labels is None:
        labels, label_names = codes(columns, label)
    owners: Ints | None = None
    owner_names: tuple[str, ...] = ()
    if owner is not None:
        columns.refuse(owner, MISSING)
        owners, owner_names = number_owners(columns.of(owner))
    rest = columns.without(frozenset({label} | ({owner} if owner else set())))
    features, feature_names, encoded = encode(rest, categories)
    if encoded:
        notes = (*notes, f"one 0/1 column a value for: {', '.join(encoded)} (the set of values is public)")
    return make_table(name, features, labels, owners, feature_names=feature_names, label_names=label_names,
                      owner_names=owner_names, file_digest=digest, threshold=threshold, notes=notes)


def make_table(name: str, features: Array, labels: Array, owners: Ints | None, *, feature_names: tuple[str, ...],
               label_names: tuple[str, ...] = (), owner_names: tuple[str, ...] = (), file_digest: str = "",
               threshold: float | None = None, notes: tuple[str, ...] = ()) -> Table:
    """Check the arrays and digest them."""
    if len(np.unique(labels)) < 2:
        raise ConfigError(f"the label of {name} has one value only ({labels[0]:g} on all {len(labels)} records); "
                          "there is nothing to learn: choose another label column")
    digest = hashlib.sha256()
    for array in (features, labels) if owners is None else (features, labels, owners):
        digest.update(np.ascontiguousarray(array).data)
    return Table(name, features, labels, owners, feature_names, label_names, owner_names, digest.hexdigest(),
                 file_digest, threshold, notes)


def file_sha256(path: Path) -> str:
    """Digest of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def number_owners(cells: tuple[str, ...]) -> tuple[Ints, tuple[str, ...]]:
    """Owners numbered in order: by value when all are numbers, else alphabetically."""
    try:
        values, found = np.unique(np.array(cells, dtype=np.float64), return_inverse=True)
        names = tuple(f"{value:g}" for value in values)
    except ValueError:
        texts, found = np.unique(np.array(cells, dtype=np.str_), return_inverse=True)
        names = tuple(texts.tolist())
    return found.astype(np.int64), names


def the_one(file: str, names: tuple[str, ...], usual: tuple[str, ...], role: str) -> str:
    """The only name that usually plays this role; otherwise the user must say which."""
    found = [word for word in usual if word in names]
    if len(found) == 1:
        return found[0]
    raise ConfigError(f"{file} does not say which column is the {role}; give {role}=, one of: {', '.join(names[:20])}"
                      + (", .." if len(names) > 20 else ""))
