"""Digests name what things are, not where their code lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from bruit.digests import digest
from bruit.tasks.data.points import Points


def record(module: str) -> Any:
    @dataclass(frozen=True)
    class Scale:
        sigma: float

    Scale.__module__ = module
    return Scale(2.0)


def function(module: str) -> Any:
    def scale(x: float) -> float:
        return 2 * x

    scale.__module__ = module
    return scale


@pytest.mark.parametrize("make", [record, function, lambda module: type(record(module))])
def test_a_class_or_function_that_moves_within_the_package_keeps_its_digest(
    make: Callable[[str], Any],
) -> None:
    assert digest(b"", make("bruit.old.place")) == digest(b"", make("bruit.new"))


@pytest.mark.parametrize("make", [record, function, lambda module: type(record(module))])
def test_those_of_others_are_told_apart_by_their_module(make: Callable[[str], Any]) -> None:
    found = {digest(b"", make(module)) for module in ("mine", "yours", "bruit.ours", "bruits")}
    assert len(found) == 4


def test_a_field_that_came_later_changes_nothing_until_it_is_set() -> None:
    rows, owners = np.ones((1, 2)), np.zeros(1, np.int64)
    two, three = (Points(rows, owners, room=room) for room in (2, 3))
    assert digest(b"", two) != digest(b"", three)
    before = digest(b"", Points(np.ones((2, 2)), np.arange(2)))
    assert before.hex() == "488f9e2a58b1893c69c0758e48c08251c22b98793a1c15dbc315c96efd897f10"
