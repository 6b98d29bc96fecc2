"""A run of a few peers with cheap proofs, whose peers may cheat; for the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bruit.graphs import complete
from bruit.statistics.average.board import AverageAgreement, BoardFile, Post, Prover, Record, agree
from bruit.statistics.average.board.posts import Sign
from bruit.statistics.average.board.verified_run import drive, signing_keys

LEVELS, BITS = 3, 6


class Small:
    """Agreement, signatures and provers of `n` peers on a complete graph."""

    def __init__(
        self, n: int = 4, kinds: dict[int, type[Prover]] | None = None, **more: Any
    ) -> None:
        self.public, self.signs = signing_keys(n)
        settings: dict[str, Any] = {"levels": LEVELS, "noise_bits": BITS, **more}
        self.agreement: AverageAgreement = agree(self.public, complete(n), 0.0, 1.0, **settings)
        values = np.linspace(0, 1, n)
        self.provers = [
            (kinds or {}).get(u, Prover)(
                self.agreement, u, np.full(self.agreement.width, values[u]), self.signs[u]
            )
            for u in range(n)
        ]

    def run(
        self, path: Path, silent: dict[int, str] | None = None, meddle: dict[int, Any] | None = None
    ) -> Record:
        with BoardFile(path, durable=False) as board:
            return drive(
                board, self.agreement, self.provers, self.signs, silent or {}, meddle or {}
            )


def changing(kind: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Post, Sign], Post]:
    """A cheater that changes the payload of its posts of one kind, and signs again."""

    def meddle(post: Post, sign: Sign) -> Post:
        if post.kind != kind:
            return post
        payload = json.loads(post.payload)
        change(payload)
        return resigned(post, sign, json.dumps(payload))

    return meddle


def resigned(post: Post, sign: Sign, payload: str) -> Post:
    return Post(
        run=post.run,
        author=post.author,
        kind=post.kind,
        seen=post.seen,
        head=post.head,
        payload=payload,
    ).signed(sign)
