"""Preparation: from a table to peers' records, with every use of data declared.

First (1) the public part is held out. Rows are then made ready: (2) fill holes with its means if
asked to, (3) center and scale columns by the statistics of that part only, or by agreed constants,
(4) keep its principal components if asked to, (5) append an intercept, (6) divide each row by its
norm. Last, (7) the other records are dealt to peers. Where peers are owners, the public part is
whole owners, who have no epsilon: a part of everybody's rows would be outside of an epsilon that
speaks of all of them. What everybody knows is in the manifest, fact by fact, with what is read off
private rows said so.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.tasks.counted import Counted
from bruit.tasks.data.known_facts import (
    known_facts,
    manifest_of,
    note_on_constant_columns,
    note_on_unseen_classes,
    use_of,
)
from bruit.tasks.data.public import Agreed, listed
from bruit.tasks.data.public_part import public_part
from bruit.tasks.data.recipe import Recipe, along
from bruit.tasks.data.split import Split, divide, parse
from bruit.tasks.data.standard_columns import fill_holes, principal_directions, recipe_of, scaled
from bruit.tasks.data.table import Table
from bruit.tasks.records import Records, Sample, finish_rows, pack
from bruit.tasks.task import Manifest

STANDARDS = ("public", "agreed", "none")


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What was asked for; the words are those of `LinearTask.load`."""

    peers: int | None
    split: str
    seed: int
    standardize: str
    rows: str
    test: float
    components: int | None = None
    agreed: Agreed = field(default_factory=Agreed)
    own_test: float | None = (
        None  # share of each peer's own records that it is judged on; None: on public ones
    )
    intercept: bool = True  # whether rows get a column of one constant


@dataclass(frozen=True, eq=False, kw_only=True)
class PreparedData(Counted):
    """Rows that are ready, and who holds which; `judged` are records of peers that they do not
    learn from."""

    rows: Array  # (r, p)
    targets: Array  # (r,)
    split: Split
    judged: Split | None
    held_out: Sample | None
    classes: tuple[str, ...]
    row_bound: float
    label_unit: float
    manifest: Manifest
    used: Manifest
    recipe: Recipe

    def records(self) -> Records:
        """What every peer learns from."""
        return self._pack(self.split)

    def own_test(self) -> Records | None:
        """What every peer is judged on, if that is apart from what it learns from."""
        return None if self.judged is None else self._pack(self.judged)

    def _pack(self, split: Split) -> Records:
        return pack(
            self.rows,
            self.targets,
            split,
            held_out=self.held_out,
            classes=self.classes,
            row_bound=self.row_bound,
            label_unit=self.label_unit,
            manifest=self.manifest,
            used=self.used,
            recipe=self.recipe,
        )


def prepare(
    table: Table, targets: Array, classes: tuple[str, ...], note: str, choices: Preparation
) -> PreparedData:
    """The rows of every peer, and the public part."""
    _check(choices)
    _check_columns(table, choices)
    public, facts = public_part(table, targets if classes else np.zeros(len(targets)), choices)
    table = fill_holes(table, public)
    constant = note_on_constant_columns(table, public) if choices.standardize == "public" else ()
    features, targets, unit = scaled(table, targets, public, bool(classes), choices)
    directions = (
        None
        if choices.components is None
        else principal_directions(features, public, choices.components)
    )
    if directions is not None:
        features = along(features, directions)
    recipe = recipe_of(table, public, choices, classes, directions)
    ready, bound = finish_rows(features, choices.rows, choices.intercept, recipe.constant)
    if table.recipe is not None:
        bound = recipe.row_bound()  # public: every column has a range, or it is infinite
    mine = np.flatnonzero(~public)
    owners = None if table.owners is None else table.owners[mine]
    _refuse_lost(table, owners, choices)
    dealt = parse(choices.split, targets[mine], owners, choices.peers, choices.seed)
    held_out = Sample(ready[public], targets[public]) if public.any() else None
    facts += known_facts(table, choices, classes, note, dealt)
    split = Split(mine[dealt.rows], dealt.starts)
    unseen = note_on_unseen_classes(targets[public], classes) if choices.own_test is None else ()
    use = use_of(table, public, split, choices, (*constant, *unseen))
    judged = None
    if choices.own_test:
        split, judged = divide(split, choices.own_test, choices.seed)
        use = replace(
            use,
            notes=(
                *use.notes,
                f"{len(judged.rows)} of the records that peers hold are for judging "
                f"their own models, the other {len(split.rows)} for learning them",
            ),
        )
    return PreparedData(
        rows=ready,
        targets=targets,
        split=split,
        judged=judged,
        held_out=held_out,
        classes=classes,
        row_bound=bound,
        label_unit=unit,
        used=use.describe(),
        manifest=manifest_of(table, choices, public, use.left_over, facts),
        recipe=recipe,
    )


def _refuse_lost(table: Table, owners: Ints | None, choices: Preparation) -> None:
    """Owners that are to be peers and have no record left: what the number of owners would not
    tell."""
    lost = table.reading.lost
    if choices.split != "owner" or owners is None or not lost or choices.peers is None:
        return
    left = len(np.unique(owners))
    if choices.peers != left:
        raise ConfigError(
            f"every record of {listed(lost)} has a hole and is left out, so {left} owners are left "
            f"for {choices.peers} peers; say what stands in holes, or ask for {left} peers"
        )


def _check(choices: Preparation) -> None:
    if choices.standardize not in STANDARDS:
        raise ConfigError(
            f"standardize={choices.standardize!r} is not known; use 'public' (statistics of the "
            f"held-out "
            "part, which belongs to no peer), 'agreed' (constants you give in scales) or 'none'"
        )
    if (choices.standardize == "agreed") != bool(choices.agreed.scales):
        raise ConfigError(
            "agreed scales and standardize='agreed' belong together; give both, or none"
        )
    if choices.components is not None and choices.standardize != "public":
        raise ConfigError(
            "components are those of the standardized public part; use standardize='public' with "
            "them"
        )
    if choices.own_test is not None and not 0 <= choices.own_test < 1:
        raise ConfigError(
            f"own_test is {choices.own_test}; it is the share of a peer's own records that it is"
            " judged on, 0 <= own_test < 1"
        )
    if not 0 <= choices.test < 1:
        raise ConfigError(
            f"test is {choices.test}; it is the share of records held out, 0 <= test < 1"
        )
    if choices.standardize == "public" and choices.test == 0 and not choices.agreed.public:
        raise ConfigError(
            "standardize='public' takes its statistics from the held-out part, but test is 0; "
            "hold out some records, or use standardize='agreed' or 'none'"
        )


def _check_columns(table: Table, choices: Preparation) -> None:
    """Refuses columns that are prepared in two ways, or used twice."""
    if table.recipe is not None and (choices.standardize != "none" or choices.components):
        raise ConfigError(
            "how columns are centered and scaled is said in the columns file; leave standardize "
            "and components out"
        )
    twice = next(
        (name for name in table.feature_names if table.feature_names.count(name) > 1), None
    )
    if twice is not None:
        raise ConfigError(f"the column {twice!r} would be used twice; name it once in columns")
