"""All questions of speed, one after the other: `python -m benchmarks.speed [--quick] [--json]
[walk gopa ...]`.

Each runs in its own process, so that one question's memory and caches do not color the next.
"""

import json
import subprocess
import sys

import benchmarks.speed
from benchmarks.questions import questions


def ask(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs one question to its end."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.speed.{name}", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return done


def run() -> None:
    known = questions(benchmarks.speed)
    unknown = [word for word in sys.argv[1:] if word not in (*known, "--quick", "--json")]
    if unknown:
        raise SystemExit(
            f"unknown word {unknown[0]!r}; there are --quick, --json and {', '.join(known)}"
        )
    chosen = [name for name in known if name in sys.argv] or known
    quick = [option for option in sys.argv[1:] if option == "--quick"]
    if "--json" in sys.argv:
        answers = {name: json.loads(ask(name, "--json", *quick).stdout) for name in chosen}
        print(json.dumps(answers, indent=1))
        return
    for name in chosen:
        print(ask(name, *quick).stdout, flush=True)


if __name__ == "__main__":
    run()
