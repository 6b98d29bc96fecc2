"""All questions of speed, one after the other: `python -m benchmarks.speed [--quick] [--json]`.

Each runs in its own process, so that one question's memory and caches do not color the next.
"""

import json
import subprocess
import sys

QUESTIONS = (
    "cold_start", "gossip_sgd", "averaging", "chebyshev", "meetings", "walk", "noise", "one_source", "exact_loss",
    "peers", "reconstruction", "renoised", "walk_noise", "walk_pairs", "admm", "audit", "local_dp", "gopa",
    "gosta", "two_party", "report", "ui", "personal", "proven", "reasons",
)  # fmt: skip


def ask(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs one question to its end."""
    done = subprocess.run([sys.executable, "-m", f"benchmarks.speed.{name}", *options], capture_output=True, text=True,
                          check=False)  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return done


def run() -> None:
    quick = [option for option in sys.argv[1:] if option == "--quick"]
    if "--json" in sys.argv:
        print(json.dumps({name: json.loads(ask(name, "--json", *quick).stdout) for name in QUESTIONS}, indent=1))
        return
    for name in QUESTIONS:
        print(ask(name, *quick).stdout, flush=True)


if __name__ == "__main__":
    run()
