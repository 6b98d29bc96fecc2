"""Beyond one process: what two workers are worth, what blocks of peers cost, and whether the cost
model of `scale_model` is true where it can be checked.

Everything is a ratio of two things that were done in one call. Walls are compared where two workers
are compared with one, and say nothing on a machine whose cores are taken: its load is told.
CPU seconds count this process and all of its workers. `--save` keeps the measured costs for the
figure (`python -m docs.scale_picture`); `--blocks` leaves the sweep and the pairs out.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, suppress
from datetime import UTC, datetime
from itertools import pairwise as pairs_of
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import bruit as br
from benchmarks.speed.scale_model import NUMBER, Costs, random_rows, torus_rows
from benchmarks.timing import Answer, Goal, main
from bruit.graphs import Graph, erdos_renyi, regular, torus
from bruit.privacy.exact import pairwise
from bruit.runs.many.sweep import sweep
from bruit.tasks import Mean

D, DEGREE, BLOCKS = 10, 6, 2


class Spent(NamedTuple):
    """CPU seconds of this process and of those it has waited for, and wall seconds."""

    cpu: float
    wall: float


class Played(NamedTuple):
    """One run: a round by CPU and by wall, the most memory of a worker, what crossed in a round."""

    cpu: float
    wall: float
    gib: float
    crossed: float


def spent(work: Callable[[], object]) -> Spent:
    """What it took."""
    cpu, wall = used(), time.perf_counter()
    work()
    return Spent(used() - cpu, time.perf_counter() - wall)


def used() -> float:
    """CPU seconds so far."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in map(resource.getrusage, kinds))


def now() -> Spent:
    """What this process and those it has now have used so far, and the time."""
    cpu = time.process_time()
    for child in multiprocessing.active_children():
        ticks = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        cpu += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return Spent(cpu, time.perf_counter())


@contextmanager
def most_memory() -> Iterator[list[float]]:
    """The most memory of a worker so far, in GiB, by the kernel's own mark: that of a child which
    was waited for would count what this process had when the child began."""
    found, over = [0.0], threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            for child in multiprocessing.active_children():
                with suppress(OSError, StopIteration):  # it has just ended
                    lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
                    mark = next(line for line in lines if line.startswith("VmHWM"))
                    found.append(int(mark.split()[1]) / 2**20)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield found
    finally:
        over.set()
        looking.join()


def played(graph: Graph, engine: br.Bulk | br.Blocks) -> Played:
    """Averaging, from the end of the first round to that of the last."""
    task, seen = Mean.uniform(graph.n, D, 1), list[Spent]()
    rounds = 1 + min(100, max(4, 2 * 10**7 // graph.n))
    options: dict[str, Any] = {"progress": lambda *_: seen.append(now()), "engine": engine}
    with most_memory() as peak:
        run = br.run(br.Averaging(), graph, task, steps=rounds, evaluate_every=0, **options)
    wall = median(after.wall - before.wall for before, after in pairs_of(seen))
    cpu = (seen[-1].cpu - seen[0].cpu) / (rounds - 1)
    return Played(cpu, wall, max(peak), float(run.engine.get("bytes_crossed", 0)) / rounds)


def two_workers(answer: Answer, quick: bool) -> None:
    """A sweep of runs of about a CPU second, and all pairs of a random graph, on one worker and on
    two. (A worker takes some two CPU seconds to begin: runs of a tenth of a second are not worth
    one.)"""
    seeds, steps, peers = (2, 36, 256) if quick else (32, 600, 2048)
    graph = erdos_renyi(peers, c=1.5, seed=1)

    def swept(jobs: int) -> None:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            sweep("breast-cancer", ["privacy.epsilon=4,8", f"steps={steps}"], seeds, jobs=jobs)

    def paired(jobs: int) -> None:
        with br.on.chosen(br.on.Processes(jobs)):
            pairwise(graph, 22)

    for what, work in (
        (f"sweep of {2 * seeds} short runs", swept),
        (f"all pairs of {graph.name}", paired),
    ):
        one, two = spent(lambda: work(1)), spent(lambda: work(2))  # noqa: B023  asked at once
        answer.add(f"{what}: one process", one.wall, "wall s")
        answer.add(f"{what}: two workers", two.wall, "wall s")
        answer.add(f"{what}: CPU of two workers by that of one", two.cpu / one.cpu, "times")
        answer.goals.append(Goal(f"{what}: times faster on two", one.wall / two.wall, 1.7, True))


def compared(answer: Answer, graph: Graph) -> tuple[Played, Played]:
    """Averaging in blocks, and all at once, on one graph."""
    there = played(graph, br.Blocks(br.on.Processes(BLOCKS, checkpoint=0)))
    here = played(graph, br.Bulk(fused=False))
    name = f"{graph.name} in {BLOCKS} blocks"
    answer.add(f"{name}: a round", there.wall, "wall s")
    answer.add(f"{name}: a round", there.cpu, "CPU s")
    answer.add(f"{name}: crossed in a round", there.crossed / 1e6, "MB")
    answer.add(f"{name}: most memory of a worker", there.gib, "GiB")
    answer.add(f"{graph.name} in one process: a round", here.cpu, "CPU s")
    return there, here


def tori(answer: Answer, sides: tuple[int, ...]) -> dict[int, tuple[Played, Played]]:
    """Averaging on tori of three dimensions, and what is asked of it."""
    found = {}
    for side in sides:
        graph = torus(side, side, side)
        there, here = found[side] = compared(answer, graph)
        name = f"{graph.n:.3g} peers in {BLOCKS} blocks"
        ratio, asked = there.cpu / here.cpu, graph.n > 5 * 10**6
        what = f"{name}: CPU of a round by that of one process"
        if asked:
            answer.goals.append(Goal(what, ratio, 1.5))
        else:
            answer.add(what, ratio, "times")
        answer.goals.append(Goal(f"{name}: GiB of a worker", there.gib, 4))
    return found


def costs(answer: Answer, found: tuple[Played, Played], peers: int) -> Costs:
    """The constants of the model: from a torus of so many peers, from a random graph, most of whose
    rows cross, and from hardly any peers."""
    (torus_there, torus_here), work = found, peers * (DEGREE + 1) * D
    least = played(torus(4, 4, 4), br.Blocks(br.on.Processes(BLOCKS, checkpoint=0)))
    there, here = compared(answer, regular(peers, DEGREE, seed=1))
    what = f"{peers:.3g} peers at random in {BLOCKS} blocks: CPU of a round by that of one process"
    answer.goals.append(Goal(what, there.cpu / here.cpu, 1.5))
    more = there.cpu - here.cpu - (torus_there.cpu - torus_here.cpu)
    load, today = os.getloadavg()[1], datetime.now(UTC)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {load:.0f}, {today:%Y-%m-%d}"
    return Costs(
        near=torus_there.cpu / work,
        far=here.cpu / work,
        byte=max(0.0, more) / (there.crossed - torus_there.crossed),
        round=least.wall,
        machine=machine,
    )


def checked(answer: Answer, model: Costs, found: dict[int, tuple[Played, Played]]) -> None:
    """What the model says beside what was measured, by CPU: walls depend on who else is there."""
    answer.add("model: one weight times one number, near", model.near * 1e9, "ns")
    answer.add("model: one weight times one number, far", model.far * 1e9, "ns")
    answer.add("model: one byte that crosses", model.byte * 1e9, "ns")
    answer.add("model: a round of hardly any peers", model.round * 1e3, "ms")
    for side, (there, _) in found.items():
        crossing = NUMBER * D * torus_rows(side**3, BLOCKS)
        says = model.cpu(side**3 * (DEGREE + 1) * D, crossing, random=False)
        name = f"{side**3:.3g} peers: measured by what the model says"
        answer.goals.append(Goal(f"{name}, bytes", there.crossed / crossing, 1.01))
        answer.goals.append(Goal(f"{name}, CPU s", there.cpu / says, 1.5))
    for workers in (100, 1000):
        for random, name in ((False, "torus"), (True, "random graph")):
            rows = random_rows(1e9, workers, DEGREE) if random else torus_rows(1e9, workers)
            what = f"1e9 peers, {name}, {workers} workers: a round"
            answer.add(what, NUMBER * D * rows / 1e9, "GB")
            answer.add(what, model.seconds(1e9, DEGREE, D, workers, random), "s")


def measure(quick: bool = False) -> Answer:
    load = os.getloadavg()[0]
    answer = Answer(f"How far do workers carry? (load {load:.1f}, {os.cpu_count()} cores)", quick)
    if "--blocks" not in sys.argv:
        two_workers(answer, quick)
    sides = (12, 24) if quick else (46, 100, 216)
    found = tori(answer, sides)
    model = costs(answer, found[sides[1]], sides[1] ** 3)
    checked(answer, model, found)
    if "--save" in sys.argv:
        model.save()
    return answer


if __name__ == "__main__":
    main(measure)
