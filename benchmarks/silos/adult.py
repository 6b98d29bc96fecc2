"""Adult, 48,842 persons: who earns more than 50,000 dollars?

`python -m benchmarks.silos adult [--splits 20 --draws 1] [--json]`
"""

from benchmarks.silos.larger import compare
from benchmarks.silos.rows import adult
from benchmarks.silos.tables import Measured


def run(splits: int = 20, draws: int = 1) -> list[Measured]:
    """All rows of the table."""
    return compare(adult(), splits, draws)
