"""What was slow without a reason, each beside what it was: walks, sums, scores, long sums, many
questions."""

from __future__ import annotations

import numpy as np

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.graphs import butterfly, complete, ring
from bruit.privacy.theorems.consensus import digit_losses
from bruit.privacy.toolbox import renewal
from bruit.privacy.toolbox.renewal import UniformWalk, moments
from bruit.tasks import Logistic, Mean, Records, Ridge

NOISE = br.Gaussian(clip=1.0, sigma=1.0)
GENERAL = br.Bulk(fused=False)


def records(peers: int, each: int, columns: int) -> Records:
    rng = np.random.default_rng(0)
    labels = np.sign(rng.normal(size=peers * each))
    return Records.of(
        rng.normal(size=(peers * each, columns)),
        labels,
        np.repeat(np.arange(peers), each),
        rows="unit",
    )


def walks(answer: Answer, hops: int) -> None:
    task, graph, few = Logistic(records(2000, 8, 8)), complete(2000), hops // 100

    def walk(engine: br.Bulk, steps: int) -> br.Run:
        return br.run(
            br.WalkSGD(), graph, task, privacy=NOISE, steps=steps, evaluate_every=0, engine=engine
        )

    cost = interleaved(
        {
            "general": lambda: walk(GENERAL, few),
            "default": lambda: walk(br.Bulk(), hops),
            "fused": lambda: walk(br.Bulk(fused=True), hops),
        }
    )
    each = {
        "general": cost["general"] / few,
        "default": cost["default"] / hops,
        "fused": cost["fused"] / hops,
    }
    for name, seconds in each.items():
        answer.add(f"walk-sgd, 2000 peers of 8 records, {name}", 1e6 * seconds, "CPU us a hop")
    ratio = each["general"] / each["default"]
    answer.goals.append(
        Goal("a default walk, times faster than the general path", ratio, 50, at_least=True)
    )


def sums(answer: Answer, hops: int) -> None:
    graph, task, few = ring(1000), Mean.uniform(1000, 1, 0), hops // 20

    def collect(engine: br.Bulk, steps: int) -> br.Run:
        return br.run(
            br.RingSum(), graph, task, privacy=NOISE, steps=steps, evaluate_every=0, engine=engine
        )

    done = collect(br.Bulk(), hops)
    cost = interleaved(
        {
            "general": lambda: collect(GENERAL, few),
            "default": lambda: collect(br.Bulk(), hops),
            "question": lambda: done.epsilon(of=0, seen_by=5),
        }
    )
    answer.add(f"ring-sum of {hops} hops", cost["default"], "CPU s")
    answer.add("  a question about it", cost["question"], "CPU s")
    ratio = cost["general"] / few / (cost["default"] / hops)
    answer.goals.append(
        Goal("a default ring-sum, times faster than the general path", ratio, 50, at_least=True)
    )


def scores(answer: Answer, peers: int) -> None:
    task = Ridge(records(peers, 10, 64))
    rows = np.random.default_rng(1).normal(size=(peers, task.dim))
    cost = interleaved(
        {
            "different": lambda: task.evaluate(rows),
            "equal": lambda: task.evaluate(rows[[0] * peers]),
        }
    )
    answer.add(
        f"scores of {peers} different models on {10 * peers} records", cost["different"], "CPU s"
    )
    answer.add("  of as many equal ones, which a server told", cost["equal"], "CPU s")
    ratio = cost["different"] / cost["equal"]
    answer.goals.append(
        Goal("scores of one model told to all, times faster", ratio, 5, at_least=True)
    )


def long_sums(answer: Answer, steps: int) -> None:
    walk = UniformWalk(1000)
    factors = moments(0.05, walk.chance, steps)

    def renewed(longest: int) -> float:
        before, renewal.LONG = renewal.LONG, longest
        try:
            return renewal._renewed(walk, factors, True)
        finally:
            renewal.LONG = before

    cost = interleaved(
        {"recursion": lambda: renewed(steps), "transforms": lambda: renewed(0)}, repeats=1
    )
    answer.add(f"moment of a sum of {steps} steps, by the recursion", cost["recursion"], "CPU s")
    answer.add("  by Fourier transforms, rounded up", cost["transforms"], "CPU s")
    ratio = cost["recursion"] / cost["transforms"]
    answer.goals.append(Goal("the moment of a long sum, times faster", ratio, 3, at_least=True))


def questions(answer: Answer, peers: int) -> None:
    graph = butterfly(peers)
    cost = interleaved(
        {"all": lambda: digit_losses(graph, 0), "one": lambda: digit_losses(graph, 0, 3)}
    )
    answer.add(f"one round of butterfly:{peers}, all pairs", 1e3 * cost["all"], "CPU ms")
    answer.add("  one observer", 1e3 * cost["one"], "CPU ms")
    answer.goals.append(
        Goal(
            "one observer of a butterfly, times faster than all",
            cost["all"] / cost["one"],
            20,
            at_least=True,
        )
    )


def measure(quick: bool = False) -> Answer:
    answer = Answer("What was slow without a reason?", quick)
    walks(answer, 20_000 if quick else 100_000)
    sums(answer, 10_000 if quick else 100_000)
    scores(answer, 200 if quick else 1000)
    long_sums(answer, 6_000 if quick else 40_000)
    questions(answer, 256 if quick else 1024)
    return answer


if __name__ == "__main__":
    main(measure)
