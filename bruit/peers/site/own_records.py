"""A participant's own records: one file that never leaves its folder, and the task it makes.

The file holds prepared rows (the preparation was agreed on, see the experiment), labels, and the
public held-out part for scores. A peer knows only its own row of the task: a question about anybody
else is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, LocalProtocolError
from bruit.files import write_whole
from bruit.tasks import Mean, Statistic, Task
from bruit.tasks.data.own_rows import recipe_column
from bruit.tasks.data.recipe import recipe_from
from bruit.tasks.kinds.kind import held_kinds, kinds
from bruit.tasks.linear import LinearTask
from bruit.tasks.networks.network_task import Torch
from bruit.tasks.pairs.pairwise import Pairwise
from bruit.tasks.renumbered import Renumbered
from bruit.tasks.task import Score, Sensitivities

UNSCORED = "nothing: there are no public records, and a score on this peer's own would tell of them without noise"


@dataclass(frozen=True, eq=False)
class OwnTask(Renumbered):
    """The part of a task that one peer holds: `inner` has one peer, which is peer `me` of
    `among`."""

    me: int
    among: int

    @property
    def peers(self) -> int:
        return self.among

    def _inner_ids(self, ids: Ints) -> Ints:
        if np.any(ids != self.me):
            raise LocalProtocolError(
                f"peer {self.me} was asked for the records of peer {ids[ids != self.me][0]}"
            )
        return np.zeros_like(ids)

    def record_counts(self) -> Ints:
        """Of the other peers nothing is known here."""
        counts = np.zeros(self.among, np.int64)
        counts[self.me] = self.inner.record_counts()[0]
        return counts

    def sensitivities(self, answer: str, order: int) -> Sensitivities:
        """Of this peer's own answer; what the others release rests on theirs, which they compare."""
        mine, values = self.inner.sensitivities(answer, order), np.zeros(self.among)
        values[self.me] = mine.values[0]
        return mine._replace(values=tuple(values.tolist()))

    @property
    def scored_on(self) -> str:
        """What `evaluate` measures a model on, in words."""
        if isinstance(self.inner, Mean | Statistic):
            return "nothing: no peer knows the true answer"
        return "public records" if self._public else UNSCORED

    @property
    def _public(self) -> bool:
        if isinstance(self.inner, Pairwise):
            return self.inner.held_out is not None
        return (
            isinstance(self.inner, LinearTask | Torch) and self.inner.records.held_out is not None
        )

    def evaluate(self, models: Array) -> dict[str, float]:
        """How good models are on public records. A score on private ones would be a release that no
        door has charged: there is none; nor of a mean, whose own value is no reference."""
        return self.inner.evaluate(models) if self._public else {}

    def references(self) -> dict[str, float]:
        """None: what a peer would learn alone is for whoever simulates all of them."""
        return {}

    def judge(self, models: Array, peer: int) -> Score:
        """On public records; on private ones nobody is judged, not even at home."""
        return self.inner.judge(models, peer) if self._public else Score(math.nan, public=False)


def write_share(
    task: Task,
    kind: str,
    peer: int,
    path: Path,
    columns_file: str = "",
    options: Mapping[str, Any] | None = None,
) -> None:
    """One peer's records of a whole task, for demonstrations and rehearsals on data one may lose;
    `columns_file` is the digest of the file they were prepared by, `options` what else the
    experiment says of what is in the file."""
    columns: dict[str, Any] = {"kind": np.str_(kind), **(options or {})}
    if columns_file:
        columns["columns_file"] = np.str_(columns_file)
    # Shares of two demonstrations on the same bundled data are no copies of each other.
    columns["network"] = np.str_(os.urandom(16).hex())
    columns |= kinds()[kind].share(task, peer)
    columns |= recipe_column(task.recipe())
    write_whole(path, lambda file: np.savez_compressed(file, **columns), private=True)


def read_share(
    path: Path,
    me: int,
    among: int,
    agreed: str | None = None,
    columns_file: str | None = None,
    local: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> tuple[OwnTask, str]:
    """The task of peer `me` from its own file, and the file's digest; `agreed` is the kind the
    experiment names, `columns_file` the digest of its columns file ("" if it names none), `local`
    the parts of a model that stay at home, `options` what the experiment says of what is in the file
    too."""
    if not path.is_file():
        raise ConfigError(
            f"the records {path} are missing; every participant keeps its own file there"
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        with np.load(path, allow_pickle=False) as stored:
            columns = {name: stored[name] for name in stored.files}
        kind = str(columns["kind"])
        if agreed is not None and kind != agreed:
            raise ConfigError(
                f"the records {path} are for a task of kind {kind!r}, but {agreed!r} was agreed on"
            )
        _same_columns(path, str(columns.get("columns_file", "")), columns_file)
        _same_options(path, columns, options or {})
        recipe = recipe_from(json.loads(str(columns["recipe"]))) if "recipe" in columns else None
        if kind not in (held := held_kinds()):
            raise ConfigError(f"records are of kind {kind!r}; known: {', '.join(held)}")
        inner = held[kind].own_task(columns, recipe, among)
        if local and isinstance(inner, LinearTask | Torch):
            inner = replace(inner, local=tuple(local))
    except (KeyError, ValueError, TypeError, OSError, EOFError, BadZipFile) as error:
        raise ConfigError(f"the records {path} cannot be read: {error}") from None
    return OwnTask(inner, me, among), digest


def _same_options(path: Path, columns: Mapping[str, Any], agreed: Mapping[str, Any]) -> None:
    """Who begins at other weights, or with another network, would learn another model."""
    for name, wanted in agreed.items():
        found = np.asarray(columns[name]).tolist()
        if found != np.asarray(wanted).tolist():
            raise ConfigError(
                f"the records {path} were prepared for {name} = {found!r}, but the experiment agrees "
                f"on {wanted!r}; prepare them again with `bruit peer data`"
            )


def _same_columns(path: Path, used: str, agreed: str | None) -> None:
    """Records that were prepared by another columns file are not those that were agreed on."""
    if agreed is None or used == agreed:
        return
    by = f"a columns file of sha256 {used}" if used else "no columns file"
    what = f"one of sha256 {agreed}" if agreed else "none"
    raise ConfigError(
        f"the records {path} were prepared by {by}, but the experiment agrees on {what}; prepare "
        "them again with `bruit peer data`"
    )
