"""Which rows are public: a share of every class, or all rows of some owners, who then take no part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.tasks.data.columns import nearest
from bruit.tasks.data.public import Fact, listed
from bruit.tasks.data.split import is_by_owner
from bruit.tasks.data.table import Table

if TYPE_CHECKING:
    from bruit.tasks.data.preparation import Preparation


def public_part(
    table: Table, strata: Array, choices: Preparation
) -> tuple[Bools, tuple[Fact, ...]]:
    """The rows that are public, and a word on whose they are."""
    if choices.agreed.public:
        return _of_owners(table, _named(table, choices.agreed.public), choices, "named")
    if is_by_owner(choices.split) and table.owners is not None:
        return _of_owners(table, _drawn_owners(table, choices), choices, "drawn")
    public = _held_out(strata, choices.test, choices.seed)
    used = "are used for evaluation" if choices.own_test is None else "judge nobody"
    sentence = f"the {int(public.sum())} held-out records: they belong to no peer and {used}"
    if table.owners is not None and public.any():
        sentence += "; their owners may own rows of peers as well, so no epsilon speaks of an owner"
    return public, (Fact(sentence, "public rows"),) if public.any() else ()


def _named(table: Table, names: Sequence[str]) -> Ints:
    if table.owners is None:
        raise ConfigError(
            f"public names the owner {names[0]!r}, but this data has no owner column; name it in "
            f"owner"
        )
    strange = next((name for name in names if name not in table.owner_names), None)
    if strange is not None:
        raise ConfigError(
            f"public names the owner {strange!r}, who owns nothing here"
            f"{nearest(strange, table.owner_names)}"
        )
    return np.array(
        [table.owner_names.index(name) for name in dict.fromkeys(names)], dtype=np.int64
    )


def _drawn_owners(table: Table, choices: Preparation) -> Ints:
    """A share of the owners, at least one, by an explicit seed: whose rows they are does not depend
    on any row."""
    count = len(table.owner_names)
    wanted = drawn(count, choices.test)
    return np.sort(np.random.default_rng([choices.seed, 2]).permutation(count)[:wanted])


def drawn(owners: int, share: float) -> int:
    """How many of so many owners are public, if a share of them is to be."""
    return 0 if share == 0 else min(max(1, round(share * owners)), owners - 1)


def _of_owners(
    table: Table, chosen: Ints, choices: Preparation, how: str
) -> tuple[Bools, tuple[Fact, ...]]:
    """All rows of these owners, who take no part."""
    public = np.isin(np.asarray(table.owners), chosen)
    left = len(table.owner_names) - len(chosen)
    if (
        choices.split == "owner"
        and choices.peers is not None
        and choices.peers != left
        and len(chosen)
    ):
        raise ConfigError(
            f"{choices.peers} peers were asked for, but of the {left + len(chosen)} owners"
            f" {len(chosen)} are public (their rows are all held out), which leaves {left};"
            f" ask for {left} peers, or "
            + (
                f"split='owner:{choices.peers}' to leave out the last {left - choices.peers}"
                if choices.peers < left
                else 'hold nobody out: test = 0 with standardize = "agreed" or "none"'
            )
        )
    if not len(chosen):
        return public, ()
    if public.sum() < 2:
        raise ConfigError(
            "the public owners hold 1 record, and at least 2 are needed: name more owners, or "
            "raise test"
        )
    names = listed([table.owner_names[owner] for owner in chosen.tolist()])
    return public, (
        Fact(
            f"all {int(public.sum())} records of the {how} owners {names}:"
            " they take no part, and no epsilon is about them",
            "public rows",
        ),
    )


def _held_out(strata: Array, share: float, seed: int) -> Bools:
    """A share of every stratum (class), by an explicit seed; at least two records in all unless
    share = 0."""
    generator = np.random.default_rng([seed, 2])
    public = np.zeros(len(strata), dtype=np.bool_)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        public[generator.permutation(members)[: round(share * len(members))]] = True
    if share > 0 and public.sum() < 2:
        raise ConfigError(
            f"test={share:g} holds out {int(public.sum())} of {len(strata)} records;"
            " at least 2 are needed: raise test, or use test=0 with standardize='none'"
        )
    return public
