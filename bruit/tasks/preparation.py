"""Preparation: from a table to peers' records, with every use of data declared.

Order: (1) hold out the public test part, (2) center and scale columns by the statistics of that part only, (3) keep
its principal components if asked to, (4) append an intercept, (5) divide each row by its norm, (6) deal the other
records to peers. No statistic of any peer's records is used; what is public is written in the manifest in words.
"""

from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.tasks.records import Records, Sample, finish_rows, pack
from bruit.tasks.split import Split, parse
from bruit.tasks.table import Table
from bruit.tasks.task import Manifest

# Standardized numbers are clipped here, so that a column almost constant in the public part cannot blow up elsewhere.
STANDARD_LIMIT = 10.0


@dataclass(frozen=True)
class Preparation:
    """What was asked for; the words are those of `LinearTask.load`."""

    peers: int | None
    split: str
    seed: int
    standardize: str
    rows: str
    test: float
    components: int | None = None


def prepare(table: Table, targets: Array, classes: tuple[str, ...], note: str, choices: Preparation) -> Records:
    """The records of every peer, and the public part."""
    _check(choices)
    by_owner = choices.split == "owner" and table.owners is not None
    strata = table.owners if by_owner else (targets if classes else np.zeros(len(targets)))
    public = _held_out(np.asarray(strata), choices.test, choices.seed)
    features, unit = table.features, 1.0
    if choices.standardize == "public":
        features = _standardize(features, public)
        if not classes:
            targets, unit = _standardize(targets[:, None], public)[:, 0], _scale(targets[public])
    if choices.components is not None:
        features = _project(features, public, choices.components)
    ready, bound = finish_rows(features, choices.rows, intercept=True)
    mine = np.flatnonzero(~public)
    owners = None if table.owners is None else table.owners[mine]
    dealt = parse(choices.split, targets[mine], owners, choices.peers, choices.seed)
    held_out = Sample(ready[public], targets[public]) if public.any() else None
    manifest = _manifest(table, choices, note, int(public.sum()), len(mine) - len(np.unique(dealt.rows)))
    return pack(ready, targets, Split(mine[dealt.rows], dealt.starts), held_out=held_out, classes=classes,
                row_bound=bound, label_unit=unit, manifest=manifest)


def _check(choices: Preparation) -> None:
    if choices.standardize not in ("public", "none"):
        raise ConfigError(f"standardize={choices.standardize!r} is not known; use 'public' (statistics of the held-out "
                          "part, which belongs to no peer) or 'none'")
    if choices.components is not None and choices.standardize != "public":
        raise ConfigError("components are those of the standardized public part; use standardize='public' with them")
    if not 0 <= choices.test < 1:
        raise ConfigError(f"test is {choices.test}; it is the share of records held out, 0 <= test < 1")
    if choices.standardize == "public" and choices.test == 0:
        raise ConfigError("standardize='public' takes its statistics from the held-out part, but test is 0; "
                          "hold out some records or use standardize='none'")


def _held_out(strata: Array | Ints, share: float, seed: int) -> Bools:
    """A share of every stratum (class, or owner), by an explicit seed; at least two records in all unless share = 0."""
    generator = np.random.default_rng([seed, 2])
    public = np.zeros(len(strata), dtype=np.bool_)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        public[generator.permutation(members)[: round(share * len(members))]] = True
    if share > 0 and public.sum() < 2:
        raise ConfigError(f"test={share:g} holds out {int(public.sum())} of {len(strata)} records; at least 2 are "
                          "needed: raise test, or use test=0 with standardize='none'")
    return public


def _standardize(columns: Array, public: Bools) -> Array:
    center = columns[public].mean(axis=0)
    scale = np.array([_scale(column) for column in columns[public].T])
    standard: Array = np.clip((columns - center) / scale, -STANDARD_LIMIT, STANDARD_LIMIT)
    return standard


def _project(columns: Array, public: Bools, components: int) -> Array:
    """Coordinates along the public part's first principal directions: fewer numbers for the noise to cover."""
    most = min(columns.shape[1], int(public.sum()))
    if not 1 <= components <= most:
        raise ConfigError(f"components={components}: this data has between 1 and {most} public principal components")
    directions = np.linalg.svd(columns[public], full_matrices=False)[2][:components]
    signs = np.sign(directions[np.arange(components), np.abs(directions).argmax(axis=1)])
    return np.asarray(columns @ (directions * signs[:, None]).T)


def _scale(column: Array) -> float:
    spread = float(column.std())
    return spread if spread > 1e-12 * max(1.0, float(np.abs(column).max())) else 1.0


def _manifest(table: Table, choices: Preparation, note: str, public: int, unused: int) -> Manifest:
    words = [f"the {public} held-out records: they belong to no peer and are used for evaluation"] if public else []
    if choices.standardize == "public":
        words.append("column means and scales: those of the held-out records, of no peer's; standardized numbers are "
                     f"clipped to [-{STANDARD_LIMIT:g}, {STANDARD_LIMIT:g}]")
    if choices.components is not None:
        words.append(f"the first {choices.components} principal directions of the held-out records, labels unseen")
    words += ["the names of columns, the set of labels, the number of peers and of records each holds", note]
    rows = {"unit": "each record divided by its norm, intercept included: norm at most 1", "none": "as they are"}
    return {"data": {"name": table.name, "sha256": table.sha256, "file_sha256": table.file_sha256,
                     "notes": list(table.notes)},
            "split": choices.split, "seed": choices.seed, "test": choices.test, "standardize": choices.standardize,
            "components": choices.components,
            "rows": rows[choices.rows], "intercept": True, "unused_records": unused, "public": words}
