"""How many real peers does one machine bear? 16 of them, four to a process, and 256, four or 32 to a
process, for 50 rounds: CPU a peer-round and memory a peer, keys, handshakes and farewells included.

Every peer has its own key, journal, site, records and account; lines are mutual TLS over loopback,
every peer talks to four neighbors, and the processes are forked from one that has read the program,
as those of `bruit network demo` are. CPU is what the system has counted for a process when it has
ended: what else the machine does changes it less than it changes seconds, but not little (caches).
Memory is the most that was seen while all were there. A page that several share is divided among
them; the process they are forked from is counted, too.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import Answer, Goal, main
from bruit.accounts.register import WHERE as REGISTER
from bruit.peers.founding.demo import orders, read_json
from bruit.peers.founding.founding import found
from bruit.peers.founding.nursery import Order, watch_lifeline
from bruit.peers.site.running import run_participants
from bruit.peers.site.site import participant, read_site

DEGREE, ROUNDS = 4, 50
FEW, BEST = 4, 32  # peers of a process; the second is the best of 4, 16, 32 and 64 that were tried
LOOK = 0.25  # seconds for each process between two looks at the memory: a look costs, too
TEXT = """\
graph = "regular:{peers},degree={degree}"
steps = {rounds}
seed = 3

[task]
kind = "softmax"
data = "digits"

[algorithm]
name = "gossip-sgd"
rate = 0.5

[privacy]
sigma = 1.0
"""


@dataclass(frozen=True)
class Load:
    """CPU milliseconds a peer-round, and of these in the system; MiB a peer; seconds in all."""

    cpu: float
    system: float
    memory: float
    seconds: float


def bear(peers: int, rounds: int, together: int) -> Load:
    """Found that many, start them, wait for their end."""
    with tempfile.TemporaryDirectory(prefix="bruit-load-") as folder:
        place = Path(folder) / "agreed.toml"
        place.write_text(TEXT.format(peers=peers, degree=DEGREE, rounds=rounds))
        sites = found(str(place), peers, None, Path(folder) / "network", timeout=600.0)
        began = time.monotonic()
        watched, lifeline = os.pipe()
        running = {_start(order, watched, lifeline): order for order in orders(sites, together)}
        try:
            user, system, memory = _end(running)
        finally:
            os.close(lifeline)
            os.close(watched)
        seconds = time.monotonic() - began
        steps = {read_json(site.parent / "state" / "report.json").get("step") for site in sites}
        if steps != {rounds}:
            raise SystemExit(f"peers made {sorted(steps, key=str)} of {rounds} rounds")
    each = 1e3 / peers / rounds
    return Load(each * (user + system), each * system, memory / peers, seconds)


def _start(order: Order, watched: int, lifeline: int) -> int:
    """A process of its own, which ends with this one."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 2
    try:
        os.close(lifeline)
        watch_lifeline(watched, [os.getpid()])
        os.environ[REGISTER] = str(Path(order.sites[0]).parents[1] / "register")
        log = os.open(order.log, os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(log, 2)
        code = run_participants([participant(read_site(site)) for site in order.sites])
    except BaseException as error:  # the child must never return into the parent's code
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _end(running: dict[int, Order]) -> tuple[float, float, float]:
    """Wait for all: seconds of CPU, in the programs and in the system, and the most MiB they had."""
    user = system = most = looked = 0.0
    left, pids = dict(running), [os.getpid(), *running]
    while left:
        if len(left) == len(running) and time.monotonic() > looked + LOOK * len(running):
            looked, most = time.monotonic(), max(most, _resident(pids))
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        if not pid:
            time.sleep(0.1)
            continue
        order = left.pop(pid)
        if status:
            words = Path(order.log).read_text(errors="replace")[-1000:]
            raise SystemExit(f"a process ended with {os.waitstatus_to_exitcode(status)}: {words}")
        user, system = user + usage.ru_utime, system + usage.ru_stime
    return user, system, most


def _resident(pids: Sequence[int]) -> float:
    """MiB of processes; a page that several share is counted once."""
    found = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):  # it has just ended
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            found += sum(float(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return found / 1024


def measure(quick: bool = False) -> Answer:
    answer = Answer("One machine, many real peers: what does each of them cost?", quick)
    few, many, rounds = (8, 16, 5) if quick else (16, 256, ROUNDS)
    costs = {
        (peers, together): bear(peers, rounds, together)
        for peers, together in ((few, FEW), (many, FEW), (many, BEST))
    }
    for (peers, together), cost in costs.items():
        answer.add(f"{peers} peers, {together} to a process", cost.cpu, "CPU ms a peer-round")
        answer.add("  of these in the system", cost.system, "CPU ms a peer-round")
        answer.add("  memory", cost.memory, "MiB a peer")
        answer.add("  from the first start to the last end", cost.seconds, "s")
    least = costs[few, FEW]
    for together in (FEW, BEST):
        cost, who = costs[many, together], f"{many} peers, {together} to a process, against {few}"
        answer.goals += [
            Goal(f"CPU, {who}", cost.cpu / least.cpu, 2),
            Goal(f"memory, {who}", cost.memory / least.memory, 2),
        ]
    return answer


if __name__ == "__main__":
    main(measure)
