"""A board over the network: its organizer serves it, all others read along and add what they have
to say.

    message = JSON;   posts from -> what is there from a position on;   append post;   head signed

Callers are known by their certificates, and may add posts of their own only. How long a message may
be follows from the agreement (`kinds`). Whoever is malformed, too long, too slow, idle or refused
too often is hung up on, and so is the oldest line of a peer that calls on too many; nobody else
notices. What is refused is stored nowhere. A service that lies is caught by the copies the others
keep, before they have opened anything.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from bruit.errors import BruitError, RemoteProtocolError
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.framed import (
    AT_DOOR,
    AT_DOOR_EACH,
    HANDSHAKE,
    Doorstep,
    Ends,
    Reception,
    read_message,
    write_message,
)
from bruit.peers.wire.identity import TLS_NAME, read_certificate
from bruit.peers.wire.pinned import pinned_context
from bruit.peers.wire.said_once import SaidOnce
from bruit.statistics.average.board.agreement import AverageAgreement
from bruit.statistics.average.board.kinds import longest_post, most_posts
from bruit.statistics.average.board.posts import Post, SignedHead

log = logging.getLogger("bruit.peers.site")
PAGE = 2**16  # bytes of posts in one answer, or one post
AROUND = 2**10  # bytes of a message beside posts
SLOW = 20.0  # seconds for one message
IDLE = 60.0  # seconds a caller may say nothing; it calls again when it has something to say
LINES_EACH = 2  # open lines of one peer: one may be dying; its newest ones count
MOST_REFUSED = 32  # posts of one peer; an honest one is refused once or twice, by chance


def question_bytes(agreement: AverageAgreement) -> int:
    """The longest message to a service: one post."""
    return _text_bytes(agreement) + AROUND


def answer_bytes(agreement: AverageAgreement) -> int:
    """The longest message from a service: a page of posts."""
    return max(PAGE, _text_bytes(agreement)) + AROUND + 4 * most_posts(agreement)


def _text_bytes(agreement: AverageAgreement) -> int:
    return 4 * (longest_post(agreement) // 3 + 1)


def as_json(data: bytes) -> dict[str, Any]:
    """The JSON object that a message must be."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise RemoteProtocolError(f"{len(data)} bytes are no JSON") from None
    if not isinstance(found, dict):
        raise RemoteProtocolError("a message holds no JSON object")
    return found


def packed(post: Post) -> str:
    return base64.b64encode(post.to_bytes()).decode("ascii")


def unpacked(text: object) -> Post:
    if not isinstance(text, str):
        raise RemoteProtocolError("a post is not written in base 64")
    try:
        return Post.from_bytes(base64.b64decode(text, validate=True))
    except ValueError:
        raise RemoteProtocolError("a post is not written in base 64") from None


class BoardService:
    """Serves posts and takes them; what a post does is the organizer's business (`take`)."""

    def __init__(
        self,
        folder: Path,
        book: AddressBook,
        agreement: AverageAgreement,
        posts: Callable[[int], list[Post]],
        take: Callable[[Post], None],
        vouch: Callable[[SignedHead], object],
    ) -> None:
        self._folder, self._book, self._run = folder, book, agreement.run
        self._posts, self._take, self._vouch = posts, take, vouch
        self._question, self._longest = question_bytes(agreement), longest_post(agreement)
        self._known = {_shown(entry): entry.peer for entry in book.entries}
        self._lines: dict[int, list[asyncio.StreamWriter]] = {}
        self.refused: Counter[int] = Counter()  # posts of each peer
        self.reached: dict[int, int] = {}  # how many posts each peer has
        self._warnings = SaidOnce(log)

    def serve(self, at: Entry) -> Reception:
        """Begin to listen, within a running loop."""
        certificates = [entry.certificate for entry in self._book.entries]
        context = pinned_context(self._folder, certificates, ssl.PROTOCOL_TLS_SERVER)
        several = len(certificates)  # all of them may be behind one address
        reception = Reception(
            context, self._answer, Doorstep(AT_DOOR + several, AT_DOOR_EACH + several)
        )
        reception.open(at.host, at.port)
        return reception

    async def _answer(self, ends: Ends) -> None:
        reader, writer = ends
        peer = self._known.get(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        if peer is None or self.refused[peer] >= MOST_REFUSED:
            writer.close()
            return
        lines = self._lines.setdefault(peer, [])
        lines.append(writer)
        if len(lines) > LINES_EACH:
            lines.pop(0).transport.abort()
        try:
            while self.refused[peer] < MOST_REFUSED:
                asked = as_json(await read_message(reader, self._question, IDLE))
                await write_message(writer, json.dumps(self._reply(peer, asked)).encode(), SLOW)
            log.warning(
                "peer %s was refused %s posts; it is not heard any more", peer, MOST_REFUSED
            )
        except (OSError, TimeoutError, asyncio.IncompleteReadError, BruitError) as error:
            if not isinstance(error, asyncio.IncompleteReadError):
                why = str(error) or type(error).__name__
                self._warnings.warn((peer, "hung up"), "hung up on peer %s: %s", peer, why)
        finally:
            if writer in lines:
                lines.remove(writer)
            writer.close()

    def _reply(self, peer: int, asked: dict[str, Any]) -> dict[str, Any]:
        kind = asked.get("kind")
        if kind == "posts":
            start = asked.get("start")
            if type(start) is not int or not 0 <= start < 2**62:
                raise RemoteProtocolError(f"peer {peer} asks for posts from {str(start)[:40]} on")
            self.reached[peer] = max(self.reached.get(peer, 0), start)
            return {"posts": _page(self._posts(start))}
        if kind == "append":
            return self._append(peer, asked.get("post"))
        if kind == "head":
            self._vouch(self._signed(peer, asked))
            return {}
        raise RemoteProtocolError(f"peer {peer} asks for {str(kind)[:40]!r}, which nobody serves")

    def _append(self, peer: int, text: object) -> dict[str, Any]:
        """What is refused is told to its author and to nobody else."""
        post = unpacked(text)
        if post.author != peer:
            raise RemoteProtocolError(f"peer {peer} speaks in the name of peer {post.author}")
        if len(post.to_bytes()) > self._longest:
            raise RemoteProtocolError(
                f"peer {peer} sends a post of {len(post.to_bytes())} bytes; they have at most"
                f" {self._longest}"
            )
        try:
            self._take(post)
        except BruitError as error:
            self.refused[peer] += 1
            if self.refused[peer] <= 2:
                log.warning("refused a post of peer %s: %s", peer, error)
            return {"refused": str(error)}
        return {}

    def _signed(self, peer: int, asked: dict[str, Any]) -> SignedHead:
        try:
            head, signature = bytes.fromhex(asked["head"]), bytes.fromhex(asked["signature"])
            length = int(asked["length"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise RemoteProtocolError(
                f"peer {peer} vouches for a head that cannot be read"
            ) from None
        if not 0 <= length < 2**62:
            raise RemoteProtocolError(f"peer {peer} vouches for a board of {length} posts")
        return SignedHead(self._run, peer, length, head, signature)


class BoardLine:
    """A line to the service, laid again when it breaks, for as long as patience lasts."""

    def __init__(
        self, folder: Path, organizer: Entry, agreement: AverageAgreement, patience: float
    ) -> None:
        self._context = pinned_context(folder, [organizer.certificate], ssl.PROTOCOL_TLS_CLIENT)
        self._organizer, self._patience, self._largest = (
            organizer,
            patience,
            answer_bytes(agreement),
        )
        self._ends: Ends | None = None

    async def ask(self, **content: Any) -> dict[str, Any]:
        """The answer; a question may be asked twice if its answer was lost, which changes nothing
        on a board."""
        deadline = asyncio.get_running_loop().time() + self._patience
        while True:
            try:
                reader, writer = self._ends or await self._laid()
                await write_message(writer, json.dumps(content).encode(), SLOW)
                return as_json(await read_message(reader, self._largest, SLOW))
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                await self.close()
                if asyncio.get_running_loop().time() > deadline:
                    reason = str(error) or type(error).__name__
                    raise RemoteProtocolError(
                        f"{self._organizer.name} at {self._organizer.address} cannot be reached"
                        f" ({reason}); is its process running?"
                    ) from None
                await asyncio.sleep(0.2)

    async def _laid(self) -> Ends:
        at = self._organizer
        opening: Awaitable[Ends] = asyncio.open_connection(
            at.host,
            at.port,
            ssl=self._context,
            server_hostname=TLS_NAME,
            ssl_handshake_timeout=HANDSHAKE,
        )
        ends = await asyncio.wait_for(opening, SLOW)
        if ends[1].get_extra_info("ssl_object").getpeercert(binary_form=True) != _shown(at):
            ends[1].close()
            raise RemoteProtocolError(
                f"whoever listens at {at.address} does not show the certificate of {at.name}"
            )
        self._ends = ends
        return ends

    async def close(self) -> None:
        if self._ends is not None:
            self._ends[1].close()
        self._ends = None


def _page(posts: Sequence[Post]) -> list[str]:
    """The first posts, as many as fit into one answer; one at least."""
    found: list[str] = []
    size = 0
    for post in posts:
        text = packed(post)
        size += len(text)
        if found and size > PAGE:
            break
        found.append(text)
    return found


def _shown(entry: Entry) -> bytes:
    """A certificate as a handshake shows it."""
    return read_certificate(entry.certificate, f"the certificate of {entry.name}").public_bytes(
        Encoding.DER
    )
