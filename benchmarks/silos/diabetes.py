"""Diabetes, the first stay of 71,518 patients: who comes back?

`python -m benchmarks.silos diabetes [--splits 20 --draws 1] [--json]`
"""

from benchmarks.silos.larger import compare
from benchmarks.silos.rows import diabetes
from benchmarks.silos.tables import Measured


def run(splits: int = 20, draws: int = 1) -> list[Measured]:
    """All rows of the table."""
    return compare(diabetes(), splits, draws)
