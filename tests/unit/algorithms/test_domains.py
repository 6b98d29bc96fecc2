"""Every numeric field of every algorithm, schedule and theorem has a domain with two ends, found by
looking.

A test by discovery: a new field without a domain fails here, in the sentence of the missing
refusal.
"""

import dataclasses
import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable
from typing import get_args, get_origin, get_type_hints

import numpy as np
import pytest

import bruit as br
import bruit.privacy.theorems as theorems_folder
from bruit.algorithms.algorithm import algorithm_from, catalog
from bruit.algorithms.schedules.schedule import schedules
from bruit.domains import LARGEST, MOST, chance, counts, fraction, nonnegative, positive, whole
from bruit.errors import BruitError, ConfigError, PrivacyError
from bruit.graphs import complete
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.walk import RealizedWalk
from bruit.runs.run import rehearse
from bruit.tasks.task import Constants

ZERO = {  # where 0 means something: nothing of it, or the peer of that number
    "l1",
    ("graph-learning", "least"),
    "l2",
    "momentum",
    "decay",
    "burn_in",
    "flush",
    "flat",
    "inner",
    "updates",
    ("private-descent", "warm"),
    "confidences",
    "server",
    "chosen",
    "token",
    "first",
    "activations",
    "tau",
    "own",
    "pair",
    "back",  # nothing is taken back
    ("decor", "ratio"),
    "tolerate",  # nobody lies
    "liars",
    "strength",
    ("robust-sgd", "floor"),
    "omega",  # no mask: allowed, and without a theorem
    "dropouts",
    "spare",
    "colluders",
    "grace",
    ("fed-avg", "ratio"),
    ("serverrounds", "ratio"),
    ("boosting", "coupling"),
}


def theorems():
    for module in pkgutil.iter_modules(theorems_folder.__path__):
        for kind in vars(
            importlib.import_module(f"{theorems_folder.__name__}.{module.name}")
        ).values():
            if (
                inspect.isclass(kind)
                and issubclass(kind, Theorem)
                and dataclasses.is_dataclass(kind)
            ):
                yield kind


RECORDS = {
    **catalog(),
    **schedules(),
    **{kind.__name__.lower(): kind for kind in theorems()},
}


def parts(hint):
    """The plain types in a hint: float | None and tuple[float, ...] hold a float."""
    if get_origin(hint) is Callable or isinstance(hint, list):
        return set()
    inner = get_args(hint)
    return {hint} if not inner else set().union(*(parts(one) for one in inner))


def needed(kind):
    """Something for every field without a default."""
    hints = get_type_hints(kind)
    empty = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return {name: 1 if hints[name] in (int, float) else False for name in empty}


def numeric_fields():
    for name, kind in RECORDS.items():
        hints = get_type_hints(kind)
        for field in dataclasses.fields(kind):
            held = parts(hints[field.name])
            if held & {int, float}:
                yield pytest.param(name, field.name, hints[field.name], id=f"{name}.{field.name}")


def test_the_catalog_is_looked_at():
    found = {param.id for param in numeric_fields()}
    assert {
        "walk-sgd.rate",
        "gopa.ratio",
        "fed-avg.shares",
        "walk.first",
        "realizedwalk.rate",
    } <= found
    assert len(found) > 50


@pytest.mark.parametrize(("name", "field", "hint"), list(numeric_fields()))
def test_both_ends_are_refused(name, field, hint):
    kind, held = RECORDS[name], parts(hint)
    bad = [-1, math.nan, math.inf, -math.inf, 1e300, True]
    bad += [0] if not {field, (name, field)} & ZERO else []
    bad += [2**40, 1.5] if float not in held else []
    several = not {int, float} & ({hint} | set(get_args(hint)))
    for value in bad:
        with pytest.raises(BruitError, match=rf"\b{field}\b.* found {field}"):
            kind(**{**needed(kind), field: (1, value) if several else value})


@pytest.mark.parametrize(
    ("ask", "inside", "outside"),
    [
        (positive, (1e-300, 1, LARGEST), (0, -1e-300, 2 * LARGEST)),
        (nonnegative, (0, 0.0, 3), (-1e-300, math.nan)),
        (fraction, (1e-9, 1), (0, 1.0000001)),
        (chance, (0, 1, np.float64(0.5)), (-0.1, 1.1)),
        (counts, (1, MOST, np.int64(3)), (0, MOST + 1, 1.0)),
        (whole, (0, MOST), (-1, 2.5, False)),
    ],
)
def test_the_ends_of_every_domain(ask, inside, outside):
    made = dataclasses.make_dataclass("Made", ["x"])
    for value in (*inside, None, tuple(inside), list(inside)):
        ask(made(value), "x")
    for value in outside:
        with pytest.raises(ConfigError, match="made needs x"):
            ask(made(value), "x")
        with pytest.raises(PrivacyError, match=r"found x\[1\]"):
            ask(made((inside[0], value)), "x", error=PrivacyError)


def test_a_negative_step_is_refused_by_algorithm_and_theorem():
    """`--set rate=-8` was "checked: constant step -8 <= 2/beta": a walk uphill expands, and no
    noise was charged."""
    for rate in (-8.0, 0.0, math.nan, math.inf):
        with pytest.raises(ConfigError, match="walk-sgd needs rate > 0"):
            algorithm_from({"name": "walk-sgd", "rate": rate})
        with pytest.raises(PrivacyError, match="needs rate > 0"):
            RealizedWalk(rate=rate)
    run = rehearse(br.WalkSGD(rate=2.0), complete(4), br.Gaussian(clip=0.5, sigma=4.0), 6)
    run.constants = Constants(0.5, 0.25, 0.0, "declared")
    assert RealizedWalk(rate=2.0).check(run.facts())[0].text.endswith("2 <= 2/beta = 8")
    forged = RealizedWalk(rate=2.0)
    object.__setattr__(forged, "rate", -8.0)
    with pytest.raises(PrivacyError, match="step size above 0 and of at most 2/beta = 8, found -8"):
        forged.check(run.facts())


@pytest.mark.parametrize("numbers", [(math.nan, 1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, math.nan)])
def test_constants_that_are_no_bounds_are_refused(numbers):
    """A smoothness or gradient bound of nan passed every `>` of the walk theorem; -1 made 2/beta
    negative."""
    with pytest.raises(ConfigError, match="of a task is a number >= 0"):
        Constants(*numbers, "declared")


def test_a_linear_loss_may_take_any_step():
    run = rehearse(br.WalkSGD(rate=50.0), complete(4), br.Gaussian(clip=0.5, sigma=4.0), 6)
    run.constants = Constants(0.5, 0.0, 0.0, "declared")
    assert RealizedWalk(rate=50.0).check(run.facts())[0].checked


def test_lists_of_lists_are_asked_to_the_bottom():
    made = dataclasses.make_dataclass("Made", ["x"])
    whole(made(((0, 1), (2,), ())), "x")
    for value, place in ((((0, 1), (2, -1)), r"1\]\[1"), (((0, None),), r"0\]\[1"), ((None,), "0")):
        with pytest.raises(ConfigError, match=rf"found x\[{place}\] = "):
            whole(made(value), "x")
