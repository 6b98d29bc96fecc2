"""A verified average from beginning to end, all peers in one process: for tests, rehearsals and
examples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph, fixed_graph
from bruit.statistics.average.board.agreement import AverageAgreement, agree
from bruit.statistics.average.board.board_file import BoardFile
from bruit.statistics.average.board.organizer import Organizer
from bruit.statistics.average.board.posts import Post, Sign
from bruit.statistics.average.board.prover import Prover
from bruit.statistics.average.board.record import Record
from bruit.statistics.average.board.verify import Report, verify

Meddle = Callable[[Post, Sign], Post]
"""What a cheater sends instead of an honest post; it is given that post and the peer's
signature."""


@dataclass(frozen=True, eq=False)
class VerifiedRun:
    """The board that was written, and what its verification says."""

    path: Path
    report: Report

    @property
    def mean(self) -> Array | None:
        return self.report.mean


def signing_keys(count: int) -> tuple[list[bytes], list[Sign]]:
    """Fresh Ed25519 keys: public ones, raw, and signatures."""
    private = [Ed25519PrivateKey.generate() for _ in range(count)]
    return [key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw) for key in private], [
        k.sign for k in private
    ]


def verified_run(
    values: Array,
    graph: Graph | str,
    path: str | Path,
    low: float = 0.0,
    high: float = 1.0,
    *,
    levels: int = 8,
    noise_bits: int = 64,
    silent: Mapping[int, str] | None = None,
    meddle: Mapping[int, Meddle] | None = None,
    **more: Any,
) -> VerifiedRun:
    """Average the rows of `values` over the graph and write the board to a new file.

    `silent` names peers that fall silent from a kind of post on (`{3: "mask"}` drops out after its
    commitments), `meddle` changes what a cheater posts; `more` goes to the agreement (pair_sigma,
    title, partners ...).
    """
    graph = fixed_graph(graph)
    rows = np.asarray(values, np.float64).reshape(graph.n, -1)
    public, signs = signing_keys(graph.n)
    settings = {"levels": levels, "noise_bits": noise_bits, "width": rows.shape[1], **more}
    agreement = agree(public, graph, low, high, **settings)
    provers = [Prover(agreement, u, rows[u], signs[u]) for u in range(graph.n)]
    if Path(path).exists():
        raise ConfigError(f"{path} exists; a board is written once: choose another file")
    with BoardFile(path, durable=False) as board:
        drive(board, agreement, provers, signs, silent or {}, meddle or {})
    return VerifiedRun(Path(path), verify(path))


def drive(
    board: BoardFile,
    agreement: AverageAgreement,
    provers: Sequence[Prover],
    signs: Sequence[Sign],
    silent: Mapping[int, str],
    meddle: Mapping[int, Meddle],
) -> Record:
    """Let everybody speak until nobody has anything to say; then patience ends, until that changes
    nothing either."""
    organizer, record = Organizer(agreement, signs[agreement.organizer]), Record(agreement)
    gone: set[int] = set()

    def say(posts: Collection[Post]) -> bool:
        for post in posts:
            changed = meddle.get(post.author, _honest)(post, signs[post.author])
            board.append(changed)
            record.absorb(changed)
        return bool(posts)

    def speak(prover: Prover) -> bool:
        posts = [] if prover.me in gone else prover.next(record)
        if posts and silent.get(prover.me) == posts[0].kind:
            gone.add(prover.me)
            return False
        return say(posts)

    say([organizer.open()])
    while record.result is None:
        spoke = [speak(prover) for prover in provers]
        if not (any(spoke) or say(organizer.next(record)) or say(organizer.next(record, True))):
            break
    return record


def _honest(post: Post, _: Sign) -> Post:
    return post
