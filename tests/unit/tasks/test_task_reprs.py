"""Printed tasks show counts and shapes, never a record: by discovery, with a canary that must not
be seen."""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits.members import RecordPool
from bruit.adversary.audits.worlds import Canary, Neighbors, Reacting
from bruit.algorithms.gossip.averaging import Averaging
from bruit.graphs import complete
from bruit.peers.site.own_records import OwnTask
from bruit.personal.alternate import Losses
from bruit.runs.build import build
from bruit.runs.engines.held_part import HeldPart
from bruit.runs.file import parse
from bruit.sklearn.holders import hold
from bruit.tasks import (
    Boosted,
    Logistic,
    Mean,
    Pairwise,
    Personal,
    Records,
    Ridge,
    Softmax,
    Statistic,
    Torch,
)
from bruit.tasks.data.columns import codes
from bruit.tasks.data.formats.csv_file import read_csv
from bruit.tasks.data.preparation import Preparation, prepare
from bruit.tasks.data.public import Fact
from bruit.tasks.data.sources import load
from bruit.tasks.data.split import iid
from bruit.tasks.task import Task
from bruit.testing import Swapped

CANARY = 98765.4321
SEEN = ("98765", "9.8765", "9.877e+04", "canary")
FEATURES = np.full((6, 2), CANARY)
OWNERS = np.arange(6) // 2
SIGNS = np.array([1.0, -1, 1, -1, 1, -1])
FILE = "size,word,owner,label\n" + "".join(f"{CANARY},canary,o{k // 2},{k % 2}\n" for k in range(6))


def records(targets):
    return Records.of(FEATURES, targets, OWNERS)


SAMPLES = {
    Mean: lambda: Mean(FEATURES),
    Ridge: lambda: Ridge(records(FEATURES[:, 0]), l2=0.1),
    Logistic: lambda: Logistic(records(SIGNS)),
    Softmax: lambda: Softmax(records((SIGNS + 1) / 2)),
    Statistic: lambda: Statistic.of(FEATURES[:, 0], "variance"),
    Pairwise: lambda: Pairwise.of(FEATURES, SIGNS),
    Personal: lambda: Personal(Logistic(records(SIGNS)), np.ones(3), records(SIGNS)),
    Boosted: lambda: Boosted(records(SIGNS), records(SIGNS)),
    Torch: lambda: Torch("mlp:2", records=records((SIGNS + 1) / 2)),
    OwnTask: lambda: OwnTask(Mean(FEATURES[:1]), 0, 3),
    Losses: lambda: Losses(FEATURES[:, :1], "losses"),
    Swapped: lambda: Swapped(Mean(FEATURES)),
    Neighbors: lambda: Neighbors(FEATURES, FEATURES),
    Reacting: lambda: Reacting(Neighbors(FEATURES, FEATURES), 1.0, 1.0),
    Canary: lambda: Canary(Mean(FEATURES), 0, Mean(FEATURES)),
    HeldPart: lambda: HeldPart(Mean(FEATURES), np.arange(6), 6),
}


def kinds():
    """Every concrete task of the package."""
    for module in pkgutil.walk_packages(br.__path__, "bruit."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, queue = set(), [Task]
    while queue:
        for kind in queue.pop().__subclasses__():
            queue.append(kind)
            public = not kind.__name__.startswith("_")  # private ones hold blank values
            if public and not kind.__abstractmethods__ and kind.__module__.startswith("bruit."):
                found.add(kind)
    return found


def written(thing):
    """All ways to write a thing, alone and inside of others."""
    html = getattr(thing, "_repr_html_", None)
    return [
        repr(thing),
        str(thing),
        f"{thing}",
        f"{thing!r}",
        repr([thing]),
        repr({"it": thing}),
        repr((thing, 1)),
        html() if html else "",
    ]


def hidden(thing):
    for text in written(thing):
        assert not any(word in text for word in SEEN), text


def inside(thing, depth=3):
    """A thing and the parts of it that are records of the package, without facts, which are said to
    be public."""
    if isinstance(thing, Fact):
        return
    yield thing
    if depth and (is_dataclass(thing) or hasattr(thing, "_fields")):
        names = [field.name for field in fields(thing)] if is_dataclass(thing) else thing._fields
        for name in names:
            part = getattr(thing, name)
            parts = (
                part.values()
                if isinstance(part, Mapping)
                else part
                if isinstance(part, tuple | list)
                else [part]
            )
            for one in parts:
                if type(one).__module__.startswith("bruit.") or is_dataclass(one):
                    yield from inside(one, depth - 1)


def test_every_task_is_tried():
    """A new kind of task needs a sample here."""
    assert kinds() == set(SAMPLES)


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_no_way_to_print_a_task_shows_a_record(kind):
    """print(task) showed the values of all peers."""
    for part in inside(SAMPLES[kind]()):
        hidden(part)


def test_a_printed_task_says_how_much_there_is():
    assert repr(Mean(FEATURES)) == "<Mean task: 6 peers, models of 2 numbers, mse>"
    assert (
        repr(SAMPLES[Logistic]())
        == "<Logistic task: 3 peers, 6 records, models of 2 numbers, accuracy>"
    )
    assert (
        repr(SAMPLES[Statistic]())
        == "<Statistic task: 6 peers, 6 points, models of 1 numbers, mse>"
    )
    assert repr(records(SIGNS)).startswith("Records(blocks=1 items, sizes=array of shape (3,), ")


def test_a_task_of_ones_own_is_hidden_without_a_word():
    """A dataclass would write all fields; whoever writes a task need not remember that."""

    @dataclass(frozen=True, eq=False)
    class Own(Mean):
        secret: float = CANARY
        words: tuple[str, ...] = ("canary",)

    hidden(Own(FEATURES))

    class Loud(Mean):
        def __repr__(self):
            return "as its author wants"

    assert repr(Loud(FEATURES)) == "as its author wants"


def test_what_tasks_are_made_of_is_hidden_too(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(FILE)
    table = load(str(path))
    ready = prepare(
        table,
        *Logistic._encode(table),
        Preparation(peers=2, split="iid", seed=0, standardize="none", rows="none", test=0.0),
    )
    columns = read_csv(path)
    task = SAMPLES[Logistic]()
    for thing in (
        table,
        ready,
        ready.records(),
        columns,
        codes(columns, "word"),
        iid(np.zeros(6), 2, 0),
        next(task.records.parts(np.arange(3), 1)),
        task.records.together(),
        hold(np.repeat(["canary", "other"], 3), 6, 2, 0),
        RecordPool(task, FEATURES, SIGNS, OWNERS),
    ):
        for part in inside(thing):
            hidden(part)


def test_runs_and_experiments_hide_them(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(FILE.replace("canary", "w"))
    text = (
        f'graph = "complete:3"\nsteps = 2\n[task]\nkind = "logistic"\ndata = "{path}"\nstandardize '
        f'= "none"\n'
        'rows = "none"\ntest = 0.0\n[algorithm]\nname = "gossip-sgd"\n'
    )
    hidden(build(parse(text), text))
    run = br.run(Averaging(), complete(6), Mean(FEATURES), steps=1, watch=[0])
    for text in (repr(run), str(run), repr([run])):
        assert not any(word in text for word in SEEN)
