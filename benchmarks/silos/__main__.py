"""`python -m benchmarks.silos heart|adult|diabetes|library [--splits N] [--draws N] [--json]`.

Exit code 1: a goal was missed.
"""

import argparse
from importlib import import_module

from benchmarks.silos.tables import show

TABLES = ("heart", "adult", "diabetes", "library")


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.silos")
    asked.add_argument("table", choices=TABLES)
    asked.add_argument("--splits", type=int, help="random splits; heart 40, library 1, others 20")
    asked.add_argument(
        "--draws", type=int, help="draws of noise a split; heart 12, library 40, others 1"
    )
    asked.add_argument("--json", action="store_true")
    words = asked.parse_args()
    given = {
        name: value
        for name, value in (("splits", words.splits), ("draws", words.draws))
        if value is not None
    }
    rows = import_module(f"benchmarks.silos.{words.table}").run(**given)
    show(words.table, rows, words.json)
    raise SystemExit(0 if all(row.held for row in rows) else 1)


if __name__ == "__main__":
    main()
