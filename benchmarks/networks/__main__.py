"""`python -m benchmarks.networks accuracy|choosing|clipping|correlated|decor|houses|peers [--quick] [--json]`.

Exit code 1: a goal was missed.
"""

import argparse
import json
import sys
from importlib import import_module

import benchmarks.networks
from benchmarks.questions import questions


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.networks")
    asked.add_argument("question", choices=questions(benchmarks.networks))
    asked.add_argument("--quick", action="store_true", help="smaller cases, which are not judged")
    asked.add_argument("--json", action="store_true")
    words = asked.parse_args()
    answer = import_module(f"benchmarks.networks.{words.question}").measure(words.quick)
    print(json.dumps(answer.plain(), indent=1) if words.json else answer)
    sys.exit(0 if answer.quick or all(goal.met for goal in answer.goals) else 1)


if __name__ == "__main__":
    main()
