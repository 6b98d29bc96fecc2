"""Verified averages: what proofs cost a user, what checking them costs, and two libraries for the
group."""

from __future__ import annotations

import hashlib
import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.graphs import complete, k_out
from bruit.statistics.average.board import BoardFile, Prover, Record, agree, verify
from bruit.statistics.average.board.checks import proof_equations, sum_equations
from bruit.statistics.average.board.verified_run import drive, signing_keys
from bruit.statistics.average.proofs.equations import Equation, all_hold
from bruit.statistics.average.proofs.group import generator, hashed_point, random_scalar, total
from bruit.statistics.average.proofs.multi_scalar import table, weighted_sum

LEVELS = 15


def board(peers: int, k: int, noise_bits: int, place: Path) -> Record:
    """A whole run on a random k-out graph, which must be accepted."""
    public, signs = signing_keys(peers)
    agreement = agree(
        public, k_out(peers, k, seed=1), 0.0, 1.0, levels=LEVELS, noise_bits=noise_bits
    )
    provers = [Prover(agreement, u, np.array([0.5]), signs[u]) for u in range(peers)]
    with BoardFile(place, durable=False) as opened:
        record = drive(opened, agreement, provers, signs, {}, {})
    checked = verify(place)
    if not checked.accepted:
        raise SystemExit(f"an honest run was refused: {checked.findings}")
    return record


def prover_parts(record: Record, k: int) -> dict[str, float]:
    """CPU milliseconds of one peer: commitments, and masked value with proof; beside 2 k + 1 others
    of its kind."""
    public, signs = signing_keys(2 * k + 2)
    told = record.agreement
    agreement = agree(
        public, complete(2 * k + 2), 0.0, 1.0, levels=told.levels, noise_bits=told.noise_bits
    )
    provers = [Prover(agreement, u, np.array([0.5]), signs[u]) for u in range(agreement.peers)]
    with (
        tempfile.TemporaryDirectory() as folder,
        BoardFile(Path(folder) / "board.db", durable=False) as opened,
    ):
        again = drive(opened, agreement, provers, signs, {}, {})
    times = interleaved(
        {"commit": lambda: provers[1].commit(again), "proof": lambda: provers[1].proof(again)}, 3
    )
    return {name: 1e3 * seconds for name, seconds in times.items()}


def verifier(record: Record) -> dict[str, float]:
    """CPU milliseconds per user: all in one batch, and one by one."""
    users = sorted(record.masks)

    def equations(u: int) -> list[Equation]:
        return [
            *sum_equations(record, u, record.masks[u]),
            *proof_equations(record, u, record.proofs[u]),
        ]

    def batch() -> None:
        if not all_hold([e for u in users for e in equations(u)]):
            raise SystemExit("an honest proof was refused")

    few = users[:8]
    times = interleaved({"batch": batch, "alone": lambda: [all_hold(equations(u)) for u in few]}, 3)
    return {"batch": 1e3 * times["batch"] / len(users), "alone": 1e3 * times["alone"] / len(few)}


def groups(count: int) -> dict[str, float]:
    """CPU microseconds in coincurve and, where it is installed, rbcl: one addition, one
    multiplication, a large sum."""
    points = [hashed_point(b"%d" % k) for k in range(count)]
    scalars = [random_scalar() for _ in points]
    rows = table(points)
    cases: dict[str, Callable[[], object]] = {
        "coincurve: addition, one of many": lambda: total(points),
        "coincurve: multiplication": lambda: [s * generator() for s in scalars[:50]],
        "coincurve: term of a multi-scalar sum": lambda: weighted_sum(rows, scalars),
    }
    sizes = [count, 50, count]
    try:
        rbcl: Any = importlib.import_module("rbcl")
    except ImportError:
        rbcl = None
    if rbcl is not None:
        held = [
            rbcl.crypto_core_ristretto255_from_hash(hashlib.sha512(b"%d" % k).digest())
            for k in range(50)
        ]
        factor = rbcl.crypto_core_ristretto255_scalar_random()
        cases["rbcl: addition"] = lambda: [
            rbcl.crypto_core_ristretto255_add(held[0], p) for p in held
        ]
        cases["rbcl: multiplication"] = lambda: [
            rbcl.crypto_scalarmult_ristretto255(factor, p) for p in held
        ]
        sizes += [50, 50]
    times = interleaved(cases, 3)
    return {name: 1e6 * times[name] / size for name, size in zip(cases, sizes, strict=True)}


def measure(quick: bool = False) -> Answer:
    answer = Answer("Verified averages: what do proofs cost, and is a batch worth it?", quick)
    peers, k, noise_bits = (8, 2, 60) if quick else (64, 5, 252)
    for name, cost in groups(400 if quick else 4000).items():
        answer.add(name, cost, "us")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "board.db"
        record = board(peers, k, noise_bits, place)
        posted = sum(len(post.to_bytes()) for post in record.said.values()) / peers
    proof = len(record.proofs[0].proof.encoded())
    parts, judge = prover_parts(record, k), verifier(record)
    answer.add(f"prover: commitments, {2 * k + 1} neighbors", parts["commit"], "ms")
    answer.add(f"prover: proof of {noise_bits + 4} bits", parts["proof"], "ms")
    answer.add(f"verifier, one by one, {peers} users: each", judge["alone"], "ms")
    answer.add(f"verifier, one batch of {peers} users: each", judge["batch"], "ms")
    answer.add("a proof", proof, "bytes")
    answer.add("all posts of a user", posted, "bytes")
    answer.goals.append(
        Goal("one by one / batch", judge["alone"] / judge["batch"], 5, at_least=True)
    )
    return answer


if __name__ == "__main__":
    main(measure)
