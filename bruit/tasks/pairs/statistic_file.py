"""A statistic of the columns of a file or of a named data set, dealt to peers.

A point is the chosen columns, in order; auc and scatter take the label last (two classes as 0 and
1, clusters as numbers). With `bins`, every other column is rounded to the middles of equal bins
between the declared low and high, and a peer shows which combination is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.tasks.counted import counted
from bruit.tasks.data import catalog
from bruit.tasks.data.choice import Choice, Fill, Reading, select
from bruit.tasks.data.columns import Columns, codes, numbers
from bruit.tasks.data.formats.tables import is_table, read_table
from bruit.tasks.data.own_rows import Agreement
from bruit.tasks.data.points import Points
from bruit.tasks.data.public import NOTHING, Agreed, Fact, Source
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.sources import load
from bruit.tasks.data.split import parse
from bruit.tasks.data.table import number_owners
from bruit.tasks.data.use import Use
from bruit.tasks.kinds.kind import FILE, TaskKind, common_keys
from bruit.tasks.pairs.kernels import KERNELS
from bruit.tasks.pairs.own_points import (
    agreed_points,
    codebook,
    from_statistic_csv,
    kept,
    points_of,
)
from bruit.tasks.pairs.statistic import Statistic, named_kernel
from bruit.tasks.task import Task

if TYPE_CHECKING:
    from bruit.tasks.kinds.section import TaskSection

WITH_LABEL = ("auc", "scatter")


def load_statistic(
    data: str,
    kernel: str,
    columns: list[str],
    peers: int | None = None,
    split: str = "iid",
    seed: int = 0,
    *,
    label: str | None = None,
    owner: str | None = None,
    bins: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    positives: int | None = None,
    room: int | None = None,
    agreed: Agreed = NOTHING,
    fill: Fill = None,
    holes: Literal["refuse", "drop"] = "refuse",
) -> Statistic:
    """The statistic of a kernel by name; one record a peer, or several (auc: one).

    positives and room are what participants agree on who do not see each other's records: how many
    peers hold the second class, and how many points a peer shows at most. Data that differ from
    them are refused.
    """
    chosen, labeled = named_kernel(kernel), kernel in WITH_LABEL
    choice = Choice(columns, fill=fill, holes=holes)
    _check_choice(kernel, choice, label is not None or bool(agreed.classes))
    if bins is None and (low, high) != (0.0, 1.0):
        raise ConfigError("low and high are the ends of bins; give bins as well, or leave them out")
    read = _read(data, choice, label if labeled else None, owner, labeled, agreed)
    values, marks, owners = read.values, read.marks, read.owners
    dealt = parse(split, np.zeros(len(values)), owners, peers, seed)
    rows = values if marks is None else np.column_stack((values, marks))
    points = replace(
        Points.of(rows[dealt.rows], np.repeat(np.arange(dealt.peers), dealt.sizes)), room=room
    )
    levels, label_facts = _levels(marks, agreed)
    facts: tuple[Fact, ...] = (*read.reading.facts(), *label_facts)
    if bins is not None:
        points = points.coded(
            codebook(points.rows, bins, low, high, levels), 0 if levels is None else 1
        )
        facts += (Fact(f"the {bins} bins between {low:g} and {high:g}", "agreed"),)
    if kernel == "auc" and levels is not None and len(levels) > 2:
        raise ConfigError(f"an AUC compares two classes, but the label has {len(levels)} values")
    held = len(np.unique(dealt.rows))
    use = Use(
        reading=read.reading,
        peers=dealt.peers,
        held=held,
        left_over=len(values) - held,
        sizes=(int(dealt.sizes.min()), int(dealt.sizes.max())),
    )
    if kernel != "auc":
        if positives is not None:
            raise ConfigError(
                f"positives is about the two classes of an AUC, found the statistic {kernel}; "
                "leave it out"
            )
        return Statistic(points, chosen, name=data, facts=facts, use=use)
    if points.most > 1:
        raise ConfigError(
            f"an AUC is of one record a peer, found {points.most} for some; use split = "
            f'"sized:1:1", '
            "or as many peers as there are records"
        )
    made = Statistic.auc(points.rows[:, 0], points.rows[:, 1])  # ties count half
    if positives is not None and positives != made.positives:
        raise ConfigError(
            f"{positives} peers of the second class were agreed on (task.positives), and "
            f"{made.positives} hold it"
        )
    return replace(made, points=points, name=data, facts=(*made.facts, *facts), use=use)


def _check_choice(kernel: str, choice: Choice, labeled: bool) -> None:
    """Refuse columns, labels and fills that the statistic does not take."""
    if not choice.columns:
        raise ConfigError(f'say of which columns the statistic {kernel} is: columns = ["..."]')
    if labeled and kernel not in WITH_LABEL:
        raise ConfigError(
            f"the statistic {kernel} is of the columns alone; leave label and classes out"
        )
    if choice.by_public_mean():
        raise ConfigError(
            "a statistic has no public rows whose mean could fill holes; give a constant in fill"
        )


def _levels(marks: Array | None, agreed: Agreed) -> tuple[Array | None, tuple[Fact, ...]]:
    """The values a label may have, and what everybody learns by knowing them."""
    if marks is None:
        return None, ()
    levels = (
        np.arange(len(agreed.classes), dtype=np.float64) if agreed.classes else np.unique(marks)
    )
    source: Source = "agreed" if agreed.classes else "private rows"
    return levels, (Fact(f"how many different labels there are, {len(levels)}", source),)


class Read(NamedTuple):
    """The chosen columns, the label if wanted, the owners if there are, and what was left out."""

    values: Array
    marks: Array | None
    owners: Ints | None
    reading: Reading

    def __repr__(self) -> str:
        return counted("Read", self._asdict())


def _read(
    data: str, choice: Choice, label: str | None, owner: str | None, labeled: bool, agreed: Agreed
) -> Read:
    if data not in catalog.BUNDLED and data not in catalog.SHARED:
        path = Path(data)
        if path.is_file() and is_table(path):
            return _from_columns(read_table(path), choice, label, owner, labeled, agreed)
    table = load(data, label, owner, agreed, choice)
    if not labeled:
        return Read(table.features, None, table.owners, table.reading)
    marks = table.labels if agreed.classes else _classes(table.labels)
    return Read(table.features, marks, table.owners, table.reading)


def _from_columns(
    table: Columns,
    choice: Choice,
    label: str | None,
    owner: str | None,
    labeled: bool,
    agreed: Agreed,
) -> Read:
    if labeled and label is None:
        raise ConfigError(
            f"{table.file} does not say which column is the label; give label =, one of: "
            f"{', '.join(table.names[:20])}"
        )
    table, reading = select(table, choice, label, owner)
    found = [numbers(table, name) for name in reading.used]
    text = next(
        (name for name, column in zip(reading.used, found, strict=True) if column is None), None
    )
    if text is not None:
        raise ConfigError(
            f"{table.file}: the column {text!r} holds text; a statistic is of numbers"
        )
    marks = None
    if label is not None and agreed.classes:
        marks = codes(table, label, agreed.classes).codes
    elif label is not None:
        marks = numbers(table, label)
        marks = _classes(codes(table, label).codes if marks is None else marks)
    owners = None if owner is None else number_owners(table.of(owner))[0]
    return Read(
        np.column_stack([column for column in found if column is not None]), marks, owners, reading
    )


def _classes(labels: Array) -> Array:
    """Labels numbered in order: two classes are 0 and 1."""
    return np.unique(labels, return_inverse=True)[1].astype(np.float64)


class StatisticKind(TaskKind):
    """Points of the peers and a symmetric kernel of two of them."""

    name = "statistic"
    task = Statistic
    keys = FILE | {
        "split",
        "owner",
        "columns",
        "fill",
        "classes",
        "kernel",
        "bins",
        "low",
        "high",
    }
    own_keys: ClassVar[Mapping[str, Any]] = {
        "points": Annotated[int, Field(ge=1)],
        "positives": Annotated[int, Field(ge=1)],
    }
    of_pairs = True
    held = True

    def build(self, section: TaskSection, peers: int, seed: int) -> Statistic:
        return load_statistic(
            section.data or "",
            section.kernel,
            section.columns,
            bins=section.bins,
            low=section.low,
            high=section.high,
            positives=getattr(section, "positives", None),
            room=getattr(section, "points", None),
            fill=section.fill,
            holes=section.holes,
            **common_keys(section, peers, seed),
        )

    def share(self, task: Task, peer: int) -> dict[str, Any]:
        if not isinstance(task, Statistic) or task.kernel.name not in KERNELS:
            return super().share(task, peer)
        mine = task.points.of_peer(peer)
        counted = {} if task.positives is None else {"positives": np.int64(task.positives)}
        return {
            "values": mine.rows,
            "kernel": np.str_(task.kernel.name),
            **kept(mine),
            **counted,
        }

    def agreed(self, section: TaskSection) -> Mapping[str, Any]:
        """The kernel, and what else the file says of what a peer shows."""
        ends = {"bins": section.bins, "low": section.low, "high": section.high}
        told = {} if section.bins is None else ends
        positives = getattr(section, "positives", None)
        counted = {} if positives is None else {"positives": positives}
        return {"kernel": section.kernel, **agreed_points(section), **told, **counted}

    def own_task(self, columns: Mapping[str, Any], recipe: Recipe | None, among: int) -> Statistic:
        name = str(columns["kernel"])
        points = points_of(columns["values"], columns)
        positives = int(columns["positives"]) if "positives" in columns else None
        return Statistic.part(points, name, positives, among)

    def from_csv(
        self, path: Path, agreement: Agreement, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        task, labeled = agreement.task, agreement.task.kernel in WITH_LABEL
        named_kernel(task.kernel)
        _check_choice(task.kernel, task.choice(), agreement.label is not None)
        return from_statistic_csv(path, agreement, labeled, tell)
