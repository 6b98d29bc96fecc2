"""A participant's records from its own CSV file, prepared by what was agreed on and by nothing
else.

What becomes of cells is said by the kind of task (`TaskKind.from_csv`).

Centers, scales, columns and classes are public constants, the same for everybody: a statistic of
the rows themselves would tell something about them that no ledger knows of, and would differ from
participant to participant.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bruit.accounts.account import beside
from bruit.errors import ConfigError
from bruit.files import check_place, write_whole
from bruit.runs.entrance import refuse_task_for_real_peers
from bruit.tasks.data.own_rows import Agreement, Constants
from bruit.tasks.kinds.kind import held_kinds, kinds


def read_scales(path: Path) -> Constants:
    """The agreed scales of a TOML file, one `name = [center, scale]` a line."""
    if not path.is_file():
        raise ConfigError(
            f"there is no file {path}; it names the agreed scales of columns, one `name = [center, scale]` a "
            f"line"
        )
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    found = {}
    for name, pair in content.items():
        right = (
            isinstance(pair, list)
            and len(pair) == 2
            and all(type(part) in (int, float) for part in pair)
        )
        if not (right and all(math.isfinite(part) for part in pair) and pair[1] > 0):
            raise ConfigError(
                f"{path}: {name} must be [center, scale], two numbers, the scale above 0, found "
                f"{pair!r}"
            )
        found[name] = (float(pair[0]), float(pair[1]))
    if not found:
        raise ConfigError(f"{path} names no column; write one `name = [center, scale]` a line")
    return found


def write_records(
    path: Path,
    agreement: Agreement,
    out: Path,
    public: Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[int, int]:
    """Prepare a CSV file, and one of records that belong to nobody; (records, features) that were
    written.

    `tell` is given what was left out and filled, for the owner's eyes.
    """
    check_place(out)
    kind = agreement.task.kind
    refuse_task_for_real_peers(kind)
    if agreement.task.components is not None:
        raise ConfigError(
            "the experiment asks for components, a projection that only a whole data set defines;"
            " leave `components` out of it, or make the columns of the projection yourself"
        )
    known = kinds()[kind]
    if agreement.prepared is not None and "columns_file" not in known.keys:
        able = [name for name, other in held_kinds().items() if "columns_file" in other.keys]
        raise ConfigError(f"a columns file is for {', '.join(able)} tasks, found {kind}")
    if public is not None and not known.scored:
        raise ConfigError(
            f"--public gives records to score a model on, and a {kind} is no model; leave it out"
        )
    content = known.from_csv(path, agreement, tell)
    if public is not None:
        shown = known.from_csv(public, agreement, tell)
        content |= {"public_features": shown["features"], "public_targets": shown["targets"]}
    beside(path).share_with(out)
    write_whole(
        out, lambda file: np.savez_compressed(file, kind=np.str_(kind), **content), private=True
    )
    beside(path).note_made(out)
    rows = content["values"] if "values" in content else content["features"]
    return len(rows), rows.shape[1]
