"""Records have the same bits on every processor: one bit of a record is enough for a run to draw
other noise, and so to have another result from the same seed."""

import os
import subprocess
import sys

import numpy as np
import pytest

from bruit.tasks import Logistic
from bruit.tasks.data.recipe import along

PRINTED = """
from bruit.tasks import Logistic, Softmax
print(Logistic.load("breast_cancer", peers=10, components=6).digest(b"").hex())
print(Softmax.load("digits", peers=10, components=12).digest(b"").hex())
"""


def told_on(kernels: str) -> str:
    """What a process prints whose linear algebra is that of another kind of processor."""
    found = subprocess.run(
        [sys.executable, "-c", PRINTED],
        env={**os.environ, "OPENBLAS_CORETYPE": kernels, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout


@pytest.mark.slow
def test_principal_directions_do_not_depend_on_the_processor():
    """Before: `bruit run ten-clinics` had 0.9469 where kernels are SkylakeX's, 0.9735 where they
    are Haswell's."""
    assert told_on("Haswell") == told_on("Prescott") == told_on("Nehalem")


def test_rows_are_projected_alike_alone_and_together():
    rng = np.random.default_rng(0)
    rows, directions = rng.normal(size=(50, 31)), rng.normal(size=(7, 31))
    whole = along(rows, directions)
    assert all(np.array_equal(along(rows[i : i + 1], directions)[0], whole[i]) for i in range(50))
    assert np.array_equal(along(rows[11:29], directions), whole[11:29])
    assert np.allclose(whole, rows @ directions.T, rtol=0, atol=1e-13)


def test_directions_are_multiples_of_2_to_the_minus_24():
    recipe = Logistic.load("breast_cancer", peers=4, components=6).records.recipe
    directions = recipe.directions
    assert directions.shape == (6, 30)
    assert np.array_equal(directions * 2.0**24, np.round(directions * 2.0**24))
    assert np.allclose(directions @ directions.T, np.eye(6), atol=1e-6)
