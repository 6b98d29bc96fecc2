"""All questions of reliability: `python -m benchmarks.reliability [--full] [--json] [kills frames
...]`.

Each runs in a process of its own and stops by itself; traffic stays on loopback. Exit code 1: a
goal was missed.
"""

import json
import subprocess
import sys

import benchmarks.reliability
from benchmarks.questions import questions
from benchmarks.reliability.counts import Count, show

QUESTIONS = questions(benchmarks.reliability)


def ask(name: str, *options: str) -> list[Count]:
    """Runs one question to its end; its progress is shown as it comes."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.reliability.{name}", "--json", *options],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    try:
        return [Count(**one) for one in json.loads(done.stdout)]
    except ValueError:
        return [Count(name, "the question came to its end", 0, "1", held=False)]


def run() -> None:
    unknown = [word for word in sys.argv[1:] if word not in (*QUESTIONS, "--full", "--json")]
    if unknown:
        raise SystemExit(
            f"unknown word {unknown[0]!r}; there are --full, --json and {', '.join(QUESTIONS)}"
        )
    chosen = [name for name in QUESTIONS if name in sys.argv] or QUESTIONS
    full = [word for word in sys.argv[1:] if word == "--full"]
    counts = [count for name in chosen for count in ask(name, *full)]
    if "--json" in sys.argv:
        print(json.dumps([vars(one) for one in counts], indent=1))
    else:
        show(counts)
    raise SystemExit(0 if all(one.held for one in counts) else 1)


if __name__ == "__main__":
    run()
