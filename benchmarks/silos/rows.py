"""Real tables as rows of numbers, prepared by an agreed columns file: nothing is taken from the rows
themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bruit.arrays import Array, Ints
from bruit.tasks.data.agreed_columns import read_agreed
from bruit.tasks.data.agreed_rows import fitting, ready
from bruit.tasks.data.catalog import folders
from bruit.tasks.data.columns import Columns
from bruit.tasks.data.formats.csv_file import read_csv
from bruit.tasks.data.sources import texts
from bruit.tasks.data.table import number_owners

HERE = Path(__file__).parent
DIABETES = "diabetes130/diabetic_data.csv.gz"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Features (r, d) with the intercept last, labels (r,) of 0 and 1, and whose each row is."""

    features: Array
    labels: Array
    owners: Ints


@dataclass(frozen=True, kw_only=True)
class Splits:
    """Several random splits of one table  # (splits, records, d), (splits, records)."""

    features: Array
    labels: Array
    owners: Ints  # (records,): the same in all splits
    fresh: Array
    answers: Array
    fresh_owners: Ints


def heart() -> Rows:
    """Fed-Heart-Disease as FLamby prepares it: 303, 261, 46 and 130 patients."""
    return _prepared(texts("heart_disease"), "heart_disease")


def adult() -> Rows:
    """All 48,842 persons; the published split is not used, since there are many splits here."""
    return _prepared(texts("adult"), str(HERE / "adult.toml"))


def diabetes() -> Rows:
    """The first stay of each of 71,518 patients: one record a patient."""
    file = next(
        (path for one in folders() if (path := one / DIABETES).is_file()),
        None,
    )
    if file is None:
        raise SystemExit(f"there is no {DIABETES}; set BRUIT_DATA to the folder that holds it")
    table = read_csv(file)
    first: dict[str, tuple[int, int]] = {}
    for row, (patient, stay) in enumerate(
        zip(table.of("patient_nbr"), table.of("encounter_id"), strict=True)
    ):
        if patient not in first or int(stay) < first[patient][0]:
            first[patient] = int(stay), row
    return _prepared(
        table.rows(sorted(row for _, row in first.values())), str(HERE / "diabetes130.toml")
    )


def split(rows: Rows, splits: int, share: float = 2 / 3, first: int = 0) -> Splits:
    """Of every owner's rows a share for training, in so many random ways, from the `first` on."""
    owners = np.unique(rows.owners)
    counts = {owner: round(share * int((rows.owners == owner).sum())) for owner in owners.tolist()}
    train, test = [], []
    for seed in range(first, first + splits):
        draws = np.random.default_rng([seed, 5])
        order = [draws.permutation(np.flatnonzero(rows.owners == owner)) for owner in owners]
        train.append(
            np.concatenate(
                [part[: counts[u]] for u, part in zip(owners.tolist(), order, strict=True)]
            )
        )
        test.append(
            np.concatenate(
                [part[counts[u] :] for u, part in zip(owners.tolist(), order, strict=True)]
            )
        )
    ours, theirs = np.stack(train), np.stack(test)
    return Splits(
        features=rows.features[ours],
        labels=rows.labels[ours],
        owners=rows.owners[ours[0]],
        fresh=rows.features[theirs],
        answers=rows.labels[theirs],
        fresh_owners=rows.owners[theirs[0]],
    )


def _prepared(table: Columns, columns: str) -> Rows:
    agreed = read_agreed(columns)
    found = fitting(agreed, table)
    features, _ = ready(agreed, found, "none")
    owners = np.zeros(len(features), np.int64)
    if agreed.owner is not None:
        owners = np.asarray(number_owners(found.table.of(agreed.owner))[0], np.int64)
    return Rows(features=features, labels=found.labels.astype(np.float64), owners=owners)
