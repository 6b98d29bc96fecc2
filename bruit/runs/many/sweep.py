"""Sweeps: one experiment for every combination of values and several seeds, one row per run.

Rows are kept as they are done, one line of JSON each, under a name of all that a row depends on. So
a sweep that was interrupted goes on where it was. One with more seeds runs only those, and a
changed file shares nothing with it.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from bruit.errors import BruitError, ConfigError
from bruit.files import plain, write_whole
from bruit.on import Workplace, chosen, place_for
from bruit.on.place import GONE, each
from bruit.privacy.guarantee import level_words
from bruit.runs.build import build, check_protocol
from bruit.runs.file import from_dict, identity, read
from bruit.runs.many.repeat import check_workers
from bruit.runs.model import NO_NOISE
from bruit.runs.settings import change, read_value, with_key
from bruit.tasks.scores.joining import Joining

Row = dict[str, Any]
Progress = Callable[[int, int], None]
RUNS, SUFFIX, FILE = Path("runs"), ".sweep", "rows.jsonl"
ERROR = "error"
NOISELESS = "no noise"
UNSHOWN = ("alone_worst", "central_worst")  # in files and JSON only: a table has room for so much


class SweepRun(NamedTuple):
    """One run of a sweep: what was varied, the experiment, its name, delta, and a name of all of
    it."""

    named: Row
    content: dict[str, Any]
    experiment: str
    delta: float
    key: str


def parse_vary(texts: list[str]) -> list[tuple[str, list[Any]]]:
    """`privacy.sigma=0.5,1` as a dotted key and its values, read as TOML."""
    found = []
    for text in texts:
        key, sign, values = text.partition("=")
        if not sign or not values:
            raise ConfigError(f"--vary {text!r} is not of the form key=value,value,...")
        read_values = [read_value(part) for part in values.split(",")]
        again = [value for place, value in enumerate(read_values) if value in read_values[:place]]
        if again:
            raise ConfigError(
                f"--vary {text!r} names {again[0]} twice; --seeds repeats a setting with other "
                f"draws"
            )
        found.append((key.strip(), read_values))
    return found


def planned(
    experiment: str, vary: list[str], seeds: int, delta: float | None, settings: Sequence[str] = ()
) -> list[SweepRun]:
    """All runs, in order; a setting that could never run is refused before anything starts.
    `settings` hold for all runs, as `bruit run --set` takes them; epsilons are told at `delta`, by
    default at that of the experiment."""
    content = tomllib.loads(change(read(experiment)[1], settings, experiment).text)
    grid = parse_vary(vary)
    keys = [key for key, _ in grid]
    twice = [key for key in keys if keys.count(key) > 1]
    if twice:
        raise ConfigError(
            f"{twice[0]} is varied twice; give all its values in one --vary "
            f"{twice[0]}=value,value,..."
        )
    both = [
        key for key, _ in grid if any(text.partition("=")[0].strip() == key for text in settings)
    ]
    if both:
        raise ConfigError(f"{both[0]} is set and varied; keep --set or --vary")
    found = []
    for values in itertools.product(*(values for _, values in grid)):
        named = {key: value for (key, _), value in zip(grid, values, strict=True)}
        for seed in range(seeds):
            changed = {**content, "seed": int(content.get("seed", 0)) + seed}
            for key, value in named.items():
                changed = with_key(changed, key, value)
            file = from_dict(changed, where=experiment)
            if not seed:
                check_protocol(file)
            told = file.delta if delta is None else delta
            found.append(SweepRun(named, changed, experiment, told, identity(file, delta=told)))
    return found


def sweep(
    experiment: str,
    vary: list[str],
    seeds: int,
    delta: float | None = None,
    progress: Progress | None = None,
    jobs: int = 1,
    settings: Sequence[str] = (),
    on: Workplace | str | None = None,
) -> list[Row]:
    """All runs, in order; every row names its setting, seed, final metrics and epsilons. `jobs` run
    at the same time, or they are done `on` another place.

    A run that fails has the reason in its row, under "error"; if all of them fail, the first reason
    is raised. More than one job takes processes, each of which imports bruit once: a script that
    sweeps so needs the usual `if __name__ == "__main__":`. `settings` hold for all runs, as `bruit
    run --set` takes them.
    """
    return work(planned(experiment, vary, seeds, delta, settings), Kept(), progress, jobs, on)


@dataclass
class Kept:
    """What came of runs, by their name: of earlier sweeps, and new ones, written down at once if
    there is a file."""

    path: Path | None = None
    rows: dict[str, Row] = field(default_factory=dict)

    @staticmethod
    def of(experiment: str, anew: bool = False) -> Kept:
        """The file of an experiment's sweeps; `anew`: without what is in it. Where nothing may be
        written there is none."""
        path = RUNS / f"{Path(experiment).stem}{SUFFIX}" / FILE
        there = next(place for place in (path, *path.parents) if place.exists())
        rows = {} if anew else dict(_lines(path))
        return Kept(path if os.access(there, os.W_OK) else None, rows)

    @property
    def where(self) -> str:
        """Where the rows are, in words."""
        return (
            "memory only (this folder may not be written)" if self.path is None else str(self.path)
        )

    def count(self, plan: list[SweepRun]) -> int:
        """How many of these runs are over."""
        return sum(one.key in self.rows for one in plan)

    def rows_done(self, plan: list[SweepRun]) -> list[Row]:
        """The rows of these runs that are over, in order, each after what was varied and its
        seed."""
        return [
            one.named | {"seed": one.content["seed"]} | self.rows[one.key]
            for one in plan
            if one.key in self.rows
        ]

    def add(self, one: SweepRun, row: Row) -> None:
        """What came of a run; one that failed is shown and not kept: it is tried again next
        time."""
        self.rows[one.key] = row
        if self.path is None or ERROR in row:
            return
        line = (
            json.dumps(
                {"key": one.key, "seed": one.content["seed"], "row": plain(row)}, allow_nan=False
            )
            + "\n"
        )
        made = [folder for folder in self.path.parents if not folder.exists()]
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab") as stream:
                stream.write(line.encode())
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):  # no half line stays behind
                os.truncate(self.path, size) if size else self.path.unlink()
            for folder in made:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            raise ConfigError(
                f"cannot keep a row of this sweep in {self.path}: {error.strerror or error}"
            ) from None


def _lines(path: Path) -> Iterator[tuple[str, Row]]:
    """What is written there; a line that was cut off, or is no row, is left out."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            content = json.loads(line)
            yield (
                str(content["key"]),
                {name: _number(value) for name, value in dict(content["row"]).items()},
            )
        except (ValueError, KeyError, TypeError):
            continue


def _number(value: Any) -> Any:
    """An infinite or undefined number is a word in JSON."""
    return float(value) if value in ("inf", "-inf", "nan") else value


def work(
    plan: list[SweepRun],
    kept: Kept,
    progress: Progress | None = None,
    jobs: int = 1,
    on: Workplace | str | None = None,
) -> list[Row]:
    """Do what is missing; every row is kept as soon as it is done. Returns all rows, in order."""
    missing = list({one.key: one for one in plan if one.key not in kept.rows}.values())
    with chosen(place_for(check_workers(jobs), on) if len(missing) > 1 else None):
        for one, row in each(_row, missing, _gone):
            kept.add(one, row)
            if progress is not None:
                progress(kept.count(plan), len(plan))
    rows = kept.rows_done(plan)
    if rows and len(failed(rows)) == len(rows):
        raise ConfigError(str(rows[0][ERROR]))
    return rows


def _gone(_asked: SweepRun) -> Row:
    return {ERROR: GONE}


def _row(asked: SweepRun) -> Row:
    """What came of one run, for its row; what goes wrong in it is said there, and ends no other
    run."""
    try:
        result = build(from_dict(asked.content, where=asked.experiment)).run()
        summary = result.summary(asked.delta)
    except BruitError as error:
        return {ERROR: str(error)}
    except (
        Exception
    ) as error:  # a bug, or memory that is not there: the other rows are worth having
        return {ERROR: f"{type(error).__name__}: {error}"}
    verdict = result.verdict()
    return (
        {name: result.metrics.last(name) for name in result.metrics.names()}
        | _own_part(result.joining)
        | result.references
        | ({} if verdict is None else {"gain": verdict.gain})
        | {"epsilon_worst": summary.epsilons[0], "epsilon_typical": summary.epsilons[1]}
        | {
            "epsilon_local": summary.local_epsilon,
            "delta": asked.delta,
            "level": level_words(summary.level, summary.adjacency),
            "status": NOISELESS if result.privacy is None else summary.status,
        }
    )


def _own_part(joining: Joining | None) -> Row:
    """The mean over peers with the parts that they keep at home, if there are some."""
    if joining is None or joining.own_part is None:
        return {}
    return {"own_part": joining.mean()}


def failed(rows: list[Row]) -> list[Row]:
    """The rows of runs that failed."""
    return [row for row in rows if ERROR in row]


def to_table(rows: list[Row]) -> Table:
    """One line a run, and the mean of each setting; what is the same for all epsilons is said once,
    below."""
    shared = (
        {
            name: rows[0][name]
            for name in ("delta", "level", "status")
            if len({row.get(name) for row in rows}) == 1 and name in rows[0]
        }
        if rows
        else {}
    )
    shared_facts = [
        f"delta = {shared['delta']:g}" if name == "delta" else str(shared[name]) for name in shared
    ]
    caption = f"epsilons: {', '.join(shared_facts)}" if shared_facts else None
    names = [name for name in _columns(rows) if name not in shared and name not in UNSHOWN]
    if shared.get("status") == NOISELESS:
        caption, names = (
            NO_NOISE,
            [name for name in names if not name.startswith("epsilon_") and name != "delta"],
        )
    table = Table(caption=caption, caption_justify="left")
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(name, "")) for name in names))
    for setting, group in _settings(rows).items():
        if len(group) > 1:
            table.add_section()
            numbers = {
                name: [row[name] for row in group if isinstance(row.get(name), float)]
                for name in names
            }
            means = {
                name: sum(found) / len(found)
                for name, found in numbers.items()
                if len(found) == len(group)
            }
            shown = {**means, **dict(zip(names, setting, strict=False)), "seed": "mean"}
            table.add_row(*(_cell(shown.get(name, "")) for name in names))
    return table


def _settings(rows: list[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by what was varied: the columns before the seed."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        names = list(row)
        groups.setdefault(tuple(row[name] for name in names[: names.index("seed")]), []).append(row)
    return groups


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def to_csv(rows: list[Row], path: Path) -> None:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, fieldnames=_columns(rows))
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, lambda file: file.write(stream.getvalue().encode()))


def _columns(rows: list[Row]) -> list[str]:
    """All names in order of appearance: tasks with different metrics may share a sweep."""
    return list(dict.fromkeys(name for row in rows for name in row))
