"""A board over the network: its organizer serves it, all others read along and add what they have to say.

    frame = 4 bytes of length, then JSON;   posts from -> what is there from a position on;   append post;   head signed

Callers are known by their certificates, and may add posts of their own only. Whoever is malformed, too long or too slow
is hung up on; nobody else notices. The board itself checks signatures, slots and history, so a service that lies is
caught by the copies the others keep.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from bruit.errors import BruitError, ConfigError, RemoteProtocolError
from bruit.network.address_book import AddressBook, Entry
from bruit.network.identity import TLS_NAME, read_certificate
from bruit.network.pinned import pinned_context
from bruit.verification.posts import Post, SignedHead

log = logging.getLogger("bruit.sites")
LARGEST = 2**24  # bytes of a frame
PAGE = 64  # posts in one answer
LONGEST = LARGEST // 4  # bytes of a post as it is sent; an answer holds no more than twice as many
FURTHEST = 2**62  # position on a board
SLOW = 20.0  # seconds for one frame


async def read_frame(reader: asyncio.StreamReader, patience: float = SLOW) -> dict[str, Any]:
    """The next JSON object, whole and in time."""
    async with asyncio.timeout(patience):
        size = int.from_bytes(await reader.readexactly(4), "big")
        if not 2 <= size <= LARGEST:
            raise RemoteProtocolError(f"a frame of {size} bytes was announced; there are 2 to {LARGEST}")
        data = await reader.readexactly(size)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise RemoteProtocolError(f"{size} bytes are no JSON") from None
    if not isinstance(found, dict):
        raise RemoteProtocolError("a frame holds no JSON object")
    return found


async def write_frame(writer: asyncio.StreamWriter, content: dict[str, Any]) -> None:
    data = json.dumps(content).encode()
    writer.write(len(data).to_bytes(4, "big") + data)
    async with asyncio.timeout(SLOW):
        await writer.drain()


def packed(post: Post) -> str:
    return base64.b64encode(post.to_bytes()).decode("ascii")


def unpacked(text: object) -> Post:
    try:
        return Post.from_bytes(base64.b64decode(str(text), validate=True))
    except ValueError:
        raise RemoteProtocolError("a post is not written in base 64") from None


class BoardService:
    """Serves posts and takes them; what a post does is the organizer's business (`take`)."""

    def __init__(self, folder: Path, book: AddressBook, posts: Callable[[int], list[Post]],
                 take: Callable[[Post], None], vouch: Callable[[SignedHead], object], run: bytes) -> None:  # fmt: skip
        self._folder, self._book, self._run = folder, book, run
        self._posts, self._take, self._vouch = posts, take, vouch
        self._known = {_shown(entry): entry.peer for entry in book.entries}
        self.reached: dict[int, int] = {}  # how many posts each peer has

    async def serve(self, at: Entry) -> asyncio.Server:
        certificates = [entry.certificate for entry in self._book.entries]
        context = pinned_context(self._folder, certificates, ssl.PROTOCOL_TLS_SERVER)
        try:
            return await asyncio.start_server(self._answer, at.host, at.port, ssl=context, ssl_handshake_timeout=5.0)
        except OSError as error:
            raise ConfigError(f"cannot listen at {at.address}: {error.strerror or error}") from None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        peer = self._known.get(shown)
        try:
            while peer is not None:
                await write_frame(writer, self._reply(peer, await read_frame(reader, 10 * SLOW)))
        except (OSError, TimeoutError, asyncio.IncompleteReadError, BruitError) as error:
            if not isinstance(error, asyncio.IncompleteReadError):
                log.warning("hung up on peer %s: %s", peer, error or type(error).__name__)
        finally:
            writer.close()

    def _reply(self, peer: int, asked: dict[str, Any]) -> dict[str, Any]:
        kind = asked.get("kind")
        if kind == "posts":
            start = asked.get("start")
            if type(start) is not int or not 0 <= start < FURTHEST:
                raise RemoteProtocolError(f"peer {peer} asks for posts from {start!r} on")
            self.reached[peer] = max(self.reached.get(peer, 0), start)
            return {"posts": _page(self._posts(start)[:PAGE])}
        if kind == "append":
            text = str(asked.get("post"))
            if len(text) > LONGEST:
                raise RemoteProtocolError(f"peer {peer} sends a post of {len(text)} bytes; they have at most {LONGEST}")
            post = unpacked(text)
            if post.author != peer:
                raise RemoteProtocolError(f"peer {peer} speaks in the name of peer {post.author}")
            try:
                self._take(post)
            except BruitError as error:
                return {"refused": str(error)}
            return {}
        if kind == "head":
            self._vouch(self._signed(peer, asked))
            return {}
        raise RemoteProtocolError(f"peer {peer} asks for {kind!r}, which nobody serves")

    def _signed(self, peer: int, asked: dict[str, Any]) -> SignedHead:
        try:
            head, signature = bytes.fromhex(asked["head"]), bytes.fromhex(asked["signature"])
            length = int(asked["length"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise RemoteProtocolError(f"peer {peer} vouches for a head that cannot be read") from None
        if not 0 <= length < FURTHEST:
            raise RemoteProtocolError(f"peer {peer} vouches for a board of {length} posts")
        return SignedHead(self._run, peer, length, head, signature)


class BoardLine:
    """A line to the service, laid again when it breaks, for as long as patience lasts."""

    def __init__(self, folder: Path, organizer: Entry, patience: float) -> None:
        self._context = pinned_context(folder, [organizer.certificate], ssl.PROTOCOL_TLS_CLIENT)
        self._organizer, self._patience = organizer, patience
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, **content: Any) -> dict[str, Any]:
        """The answer; a question may be asked twice if its answer was lost, which changes nothing on a board."""
        deadline = asyncio.get_running_loop().time() + self._patience
        while True:
            try:
                reader, writer = self._ends or await self._laid()
                await write_frame(writer, content)
                return await read_frame(reader)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                await self.close()
                if asyncio.get_running_loop().time() > deadline:
                    told = str(error) or type(error).__name__
                    raise RemoteProtocolError(f"{self._organizer.name} at {self._organizer.address} cannot be reached"
                                              f" ({told}); is its process running?") from None  # fmt: skip
                await asyncio.sleep(0.2)

    async def _laid(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        at = self._organizer
        opening: Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.open_connection(
            at.host, at.port, ssl=self._context, server_hostname=TLS_NAME, ssl_handshake_timeout=5.0
        )
        ends = await asyncio.wait_for(opening, SLOW)
        if ends[1].get_extra_info("ssl_object").getpeercert(binary_form=True) != _shown(at):
            ends[1].close()
            raise RemoteProtocolError(f"whoever listens at {at.address} does not show the certificate of {at.name}")
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
        if found and size > 2 * LONGEST:
            break
        found.append(text)
    return found


def _shown(entry: Entry) -> bytes:
    """A certificate as a handshake shows it."""
    return read_certificate(entry.certificate, f"the certificate of {entry.name}").public_bytes(Encoding.DER)
