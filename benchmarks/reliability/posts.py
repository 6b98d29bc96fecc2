"""Hostile posts: a listed participant fills the board of a verified mean with junk while the others
average.

`python -m benchmarks.reliability.posts [--full] [--json]`. Three participants find a mean, with
real sockets; a fourth, whose absence was planned for, does nothing but post: unknown kinds, known
kinds out of turn, long ones, second ones. The mean must be found, verified by everybody, and be the
one that a board without junk shows; the board must not grow.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reliability.counts import Count, Progress, answer
from bruit.accounts.account import Account
from bruit.errors import BruitError
from bruit.peers.engine import free_ports
from bruit.peers.wire.address_book import AddressBook, merge, public_entry
from bruit.peers.wire.identity import Identity
from bruit.statistics.average.averaging import AveragingSeat, average, seat_of
from bruit.statistics.average.board.posts import Post, next_head
from bruit.statistics.average.service import BoardLine, packed, unpacked
from bruit.statistics.average.terms import MeanTerms

NAMES = ("ada", "bob", "cyd", "dan")  # dan is the one who posts junk
ROWS = (30, 20, 40, 30)
TERMS = MeanTerms(column="x", low=0.0, high=10.0, epsilon=2.0, rows=ROWS, dropouts=1)
FEW, GOAL = 100, 1_000  # posts; who is refused 32 times is heard no more in that mean
AGAIN = 0.3  # seconds that the attacker tries to be heard again after it was hung up on
PATIENCE = 8.0  # seconds that lists stay open: honest peers are slow on a loaded machine, too
MOST = 2.0  # times the board without junk
KINDS = (
    "join",
    "commit",
    "mask",
    "proof",
    "agree",
    "sealed",
    "reveal",
    "roster",
    "dropped",
    "result",
    "rollback 0",
    "blame 0",
    "open",
)


def rows(me: int) -> Any:
    return np.random.default_rng(me).uniform(2.0, 6.0, ROWS[me])


def meet(home: Path) -> AddressBook:
    ports, texts = free_ports(len(NAMES)), []
    for name, port in zip(NAMES, ports, strict=True):
        identity = Identity.create(name)
        identity.save(home / name)
        texts.append(public_entry(identity, "127.0.0.1", port))
    return merge(texts)


def junk(seen: list[Post], identity: Identity, me: int, dice: random.Random, count: int) -> Post:
    """One post that means nothing, signed, and written on the board as it is."""
    head = b""
    for post in seen:
        head = next_head(head, post) if head else next_head(post.head, post)
    kind = dice.choice(KINDS) if dice.random() < 0.5 else f"junk {count}"
    payload = "x" * dice.choice((0, 10, 1_000, 100_000))
    return Post(
        run=seen[0].run, author=me, kind=kind, seen=len(seen), head=head, payload=payload
    ).signed(identity.sign)


async def attack(
    folder: Path,
    book: AddressBook,
    total: int,
    dice: random.Random,
    over: threading.Event,
    found: Counter[str],
) -> None:
    me, identity = seat_of(folder, book), Identity.load(folder)
    line, seen = BoardLine(folder, book.entry(0), TERMS.agreement(book), AGAIN), list[Post]()
    try:
        while not over.is_set() and found["sent"] < total:
            try:
                answered = await line.ask(kind="posts", start=len(seen))
                seen += [unpacked(text) for text in answered.get("posts", [])]
                if not seen:
                    await asyncio.sleep(0.05)
                    continue
                for _ in range(20):
                    made = junk(seen, identity, me, dice, found["sent"])
                    found["sent"] += 1
                    found["bytes"] += len(made.to_bytes())
                    answered = await line.ask(kind="append", post=packed(made))
                    found["refused" if "refused" in answered else "taken"] += 1
            except BruitError:
                found["hung up on"] += 1
                await line.close()
                if over.is_set() or found["hung up on"] > total:
                    return
    finally:
        await line.close()


def one_mean(home: Path, total: int, dice: random.Random, found: Counter[str]) -> list[Any]:
    """Reports of the three who average, or the errors they ended with; nobody disturbs them if
    total is 0."""
    book = meet(home)
    patient = [
        AveragingSeat(
            folder=home / name,
            book=book,
            me=seat_of(home / name, book),
            value=TERMS.value(rows(me), me),
            board=home / f"{name}.db",
            patience=PATIENCE,
            record=Account(home / f"{name}.account.jsonl"),
        )
        for me, name in enumerate(NAMES[:3])
    ]
    reports: list[Any] = [None] * 3
    over = threading.Event()

    def sit(place: int) -> None:
        try:
            reports[place] = average(patient[place], TERMS)
        except Exception as error:
            reports[place] = error

    threads = [threading.Thread(target=sit, args=(place,), daemon=True) for place in range(3)]
    for thread in threads:
        thread.start()
    if total:
        bad = threading.Thread(
            target=lambda: asyncio.run(attack(home / NAMES[3], book, total, dice, over, found)),
            daemon=True,
        )
        bad.start()
    deadline = time.monotonic() + 120.0
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    over.set()
    if total:
        bad.join(30.0)
    return reports


def size(home: Path) -> int:
    return max(sum(part.stat().st_size for part in home.glob(f"{name}.db*")) for name in NAMES[:3])


def ask(full: bool) -> list[Count]:
    total = GOAL if full else FEW
    seed = secrets.randbits(32)
    dice, found, progress = random.Random(seed), Counter[str](), Progress("posts", total, 1.0)
    print(f"posts: seed {seed}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="bruit-reliability-") as folder:
        clean = one_mean(Path(folder), 0, dice, found)
        normal = size(Path(folder))
    runs, well, largest, truth = 0, 0, 0, np.concatenate([rows(me) for me in range(3)]).mean()
    while found["sent"] < total and runs < 60:
        with tempfile.TemporaryDirectory(prefix="bruit-reliability-") as folder:
            reports = one_mean(Path(folder), total, dice, found)
            largest, runs = max(largest, size(Path(folder))), runs + 1
        fine = all(not isinstance(one, BaseException | None) and one.accepted for one in reports)
        fine = fine and abs(TERMS.mean(reports[0]) - truth) < 8 * TERMS.error(3)
        well += bool(fine)
        if not fine:
            print(f"posts (seed {seed}): {reports}"[:600], file=sys.stderr)
        progress(found["sent"], f"{found['taken']} taken, {well} of {runs} means")
    grown = largest / max(normal, 1)
    fine = all(not isinstance(one, BaseException | None) and one.accepted for one in clean)
    return [
        Count("posts", "a mean without junk, verified by everybody", float(fine), "1", fine),
        Count(
            "posts",
            "junk posts of a participant",
            found["sent"],
            f">= {total:,}",
            found["sent"] >= total,
        ),
        Count("posts", "MiB of junk", found["bytes"] / 2**20, "any", held=True),
        Count("posts", "junk posts that the board took", found["taken"], "0", found["taken"] == 0),
        Count(
            "posts",
            "means found in spite of it, verified by everybody",
            well,
            f"all of {runs}",
            well == runs,
        ),
        Count(
            "posts",
            "size of the board, times that without junk",
            grown,
            f"<= {MOST:g}",
            grown <= MOST,
        ),
    ]


if __name__ == "__main__":
    answer(ask)
