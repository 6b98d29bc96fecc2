"""What everybody knows of prepared data, fact by fact, and what of it was used for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array, Bools
from bruit.how_many import how_many
from bruit.tasks.data.public import Fact, counts, listed, said
from bruit.tasks.data.split import Split, is_by_owner
from bruit.tasks.data.standard_columns import STANDARD_LIMIT
from bruit.tasks.data.table import Table
from bruit.tasks.data.use import Use
from bruit.tasks.task import Manifest

if TYPE_CHECKING:
    from bruit.tasks.data.preparation import Preparation


def note_on_constant_columns(table: Table, public: Bools) -> tuple[str, ...]:
    """A word on columns that are the same in all public rows: they are centered and not scaled."""
    shown = table.features[public]
    flat = np.flatnonzero((shown == shown[:1]).all(axis=0))
    same = [table.feature_names[place] for place in flat.tolist()]
    return (
        (f"the same in all public rows, so centered and not scaled: {listed(same)}",)
        if same
        else ()
    )


def note_on_unseen_classes(shown: Array, classes: tuple[str, ...]) -> tuple[str, ...]:
    """A word on classes that the public rows lack: scores say nothing of them."""
    if not classes or not len(shown):
        return ()
    lacking = len(classes) - len(np.unique(shown))
    notes = (
        f"{lacking} of {how_many(len(classes), 'class')} {'is' if lacking == 1 else 'are'} in no "
        f"public row, so scores say nothing of {'it' if lacking == 1 else 'them'}"
    )
    return (notes,) if lacking else ()


def use_of(
    table: Table, public: Bools, split: Split, choices: Preparation, notes: tuple[str, ...]
) -> Use:
    """Who holds how many rows, how many are public or left over, and the notes on them."""
    held = np.unique(split.rows)
    left = ~public
    left[held] = False
    absent: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    if is_by_owner(choices.split) and table.owners is not None:
        absent = tuple(table.owner_names[owner] for owner in np.unique(table.owners[left]).tolist())
        first = split.rows[split.starts[:-1]]
        names = tuple(table.owner_names[owner] for owner in table.owners[first].tolist())
    return Use(
        reading=table.reading,
        peers=split.peers,
        held=len(held),
        public=int(public.sum()),
        left_over=int(left.sum()),
        sizes=(int(split.sizes.min()), int(split.sizes.max())),
        owners_left_out=absent,
        peer_names=names,
        notes=notes,
    )


def known_facts(
    table: Table, choices: Preparation, classes: tuple[str, ...], note: str, dealt: Split
) -> tuple[Fact, ...]:
    """What everybody knows besides the public part."""
    facts = list(table.facts)
    limit = f"standardized numbers are clipped to [-{STANDARD_LIMIT:g}, {STANDARD_LIMIT:g}]"
    if choices.standardize == "public":
        facts.append(
            Fact(f"column means and scales: those of the public records; {limit}", "public rows")
        )
    if choices.standardize == "agreed":
        facts.append(Fact(f"column centers and scales, as given; {limit}", "agreed"))
    if choices.components is not None:
        facts.append(
            Fact(
                f"the first {choices.components} principal directions of the public records, "
                f"labels unseen",
                "public rows",
            )
        )
    facts.append(Fact("the names of columns", "agreed"))
    facts.append(
        Fact(f"{table.classes_fact(classes).text} ({note})", table.classes_fact(classes).source)
        if classes
        else Fact(note, "agreed")
    )
    return (*facts, *_known_of_split(table, choices, dealt))


def _known_of_split(table: Table, choices: Preparation, dealt: Split) -> list[Fact]:
    """What everybody knows of who holds how much."""
    owned, facts = is_by_owner(choices.split), []
    facts.append(
        Fact(
            f"the number of peers, {dealt.peers}"
            + (", and which owner each of them is" if owned else ""),
            "private rows" if owned else "agreed",
        )
    )
    facts.append(counts(dealt.sizes))
    if table.owners is not None and not owned:
        facts.append(
            Fact(
                "rows of one owner are dealt to several peers: an epsilon is about the rows of a"
                " peer, not about an owner",
                "agreed",
            )
        )
    if len(np.unique(dealt.rows)) < len(dealt.rows):
        facts.append(
            Fact(
                "a record may be held by several peers: an epsilon is about one peer's copy of it",
                "agreed",
            )
        )
    return facts


def manifest_of(
    table: Table, choices: Preparation, public: Bools, unused: int, facts: tuple[Fact, ...]
) -> Manifest:
    """What was done to the data, as plain data for the run's manifest."""
    rows = {
        "unit": "each record divided by its norm, intercept included: norm at most 1",
        "none": "as they are",
    }
    data = {"name": table.name, "notes": list(table.notes)}
    return {
        "data": data | ({"file_sha256": table.file_sha256} if table.file_sha256 else {}),
        "split": choices.split,
        "seed": choices.seed,
        "test": float(public.mean()),
        "standardize": choices.standardize if table.recipe is None else "columns file",
        "components": choices.components,
        "rows": rows[choices.rows],
        "intercept": choices.intercept,
        "unused_records": unused,
        "public": said(facts),
    }
