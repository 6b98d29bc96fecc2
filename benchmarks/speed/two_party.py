"""Two-party computation: the cost of a garbled 32-bit comparison with noise, both sides together,
in one process."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import numpy as np

from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.statistics.holders.base_transfer import Chooser, offer, random_bits
from bruit.statistics.holders.comparisons import STATISTICS
from bruit.statistics.holders.machine import converse
from bruit.statistics.holders.noisy_bit import NoisyBit
from bruit.statistics.holders.pair_machines import (
    BATCH,
    Evaluator,
    Garbler,
    PairJob,
    bytes_per_pair,
)


def setup_s() -> float:
    """Seconds of the 128 base transfers, both sides."""
    begin = time.perf_counter()
    session = os.urandom(32)
    chooser = Chooser(session, random_bits(os.urandom(16)))
    answer, _ = offer(session, chooser.message)
    chooser.keys(answer)
    return time.perf_counter() - begin


def whole(job: PairJob) -> None:
    """The whole conversation about random numbers."""
    rng = np.random.default_rng(1)
    x, y = (job.bit.numbers(rng.random((job.pairs, job.bit.comparison.columns))) for _ in range(2))
    garbler, evaluator = Garbler(job, x), Evaluator(job, y)
    converse(garbler, evaluator)
    if not np.array_equal(garbler.bits, evaluator.bits):
        raise RuntimeError("the two parties do not agree")


def bit_of(statistic: str) -> NoisyBit:
    """Of numbers from 0 to 1, where a range is declared."""
    if STATISTICS[statistic].ranged:
        return NoisyBit(statistic, 1.0, within=(0.0, 1.0))
    return NoisyBit(statistic, 1.0)


def per_pair_ms(statistic: str, pairs: int, batch: int, repeats: int) -> tuple[float, float]:
    """CPU milliseconds of one pair after setup, garbled and in the clear."""
    bit = bit_of(statistic)
    job, none = PairJob(bit, pairs, os.urandom(32), batch), PairJob(bit, 1, os.urandom(32), 1)
    zeros = np.zeros((pairs, bit.comparison.columns), dtype=np.uint32)
    cases = {
        "whole": lambda: whole(job),
        "setup": lambda: whole(replace(none, session=os.urandom(32))),
        "clear": lambda: bit.in_the_clear(zeros, zeros, os.urandom),
    }
    found = interleaved(cases, repeats)
    return 1e3 * (found["whole"] - found["setup"]) / max(pairs - 1, 1), 1e3 * found["clear"] / pairs


def measure(quick: bool = False) -> Answer:
    answer = Answer("Two parties: what does a garbled 32-bit comparison with noise cost?", quick)
    pairs, repeats = (BATCH, 1) if quick else (8 * BATCH, 3)
    setup_s()
    setup = float(np.median([setup_s() for _ in range(3)]))
    answer.add("128 base transfers, both sides", setup, "s")
    slowest = 0.0
    for statistic in STATISTICS:
        bit = bit_of(statistic)
        garbled, clear = per_pair_ms(statistic, pairs, BATCH, repeats)
        slowest = max(slowest, garbled)
        answer.add(f"{statistic}: {bit.circuit.ands} AND gates, a pair, both sides", garbled, "ms")
        answer.add(f"{statistic}: a pair on the wire", bytes_per_pair(bit), "bytes")
        answer.add(
            f"{statistic}: times a trusted pair's circuit in the clear", garbled / clear, "x"
        )
    alone, _ = per_pair_ms("auc", 16, 1, repeats)
    answer.add("auc, one pair at a time (a round trip each)", alone, "ms")
    answer.goals.append(
        Goal("a garbled 32-bit comparison with noise, in batches: ms per pair", slowest, 50)
    )
    answer.goals.append(Goal("the same, one pair at a time: ms", alone, 50))
    answer.goals.append(Goal("128 base transfers: s", setup, 1))
    return answer


if __name__ == "__main__":
    main(measure)
