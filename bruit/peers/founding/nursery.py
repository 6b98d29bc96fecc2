"""A nursery: one process that has read the program and the address book, from which many peers are
forked.

To read the program costs a peer more than all that it then does. Here it is read once, and every
peer is still a process of its own, with its own number, memory and log.

Nobody is left behind: whoever starts a nursery holds one end of a pipe, the lifeline, and every
peer watches the other. When it closes, whatever the reason (the end, an error, kill -9), peers stop
in order, and those that do not are killed.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, cast

from bruit.accounts.register import WHERE as REGISTER
from bruit.files import owner_only

GRACE = 10.0  # seconds that a peer has for an orderly end
NEEDED = (
    "bruit.peers.site.running",
    "bruit.peers.site.site",
    "bruit.privacy.toolbox.pld",
)  # what a peer would read itself


@dataclass(frozen=True)
class Order:
    """What one process is to do: which sites it hosts, with which seed if it rehearses, and where
    its words go."""

    sites: tuple[str, ...]
    log: str
    rehearse: int | None = None


class Child:
    """A process of the nursery, with the same words as `subprocess.Popen`."""

    def __init__(self, nursery: Nursery, place: int) -> None:
        self._nursery, self._place = nursery, place
        self.pid: int | None = None
        self.returncode: int | None = None

    def poll(self) -> int | None:
        self._nursery.look()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"peer process {self._place}", timeout or 0.0)
            time.sleep(0.02)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None and self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Nursery:
    """The nursery as seen by whoever started it; closed, all of its children end."""

    def __init__(self, orders: Sequence[Order], log: Path) -> None:
        with open(log, "wb", opener=owner_only) as words:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bruit", "network", "nursery"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=words,
                start_new_session=True,
                env={**os.environ, REGISTER: ""},  # records of a demonstration are gone with it
                bufsize=0,
            )
        self.children = [Child(self, place) for place in range(len(orders))]
        self._lifeline, self._told = (
            cast(IO[bytes], self._process.stdin),
            cast(IO[bytes], self._process.stdout),
        )
        self._rest = b""
        try:
            os.set_blocking(self._told.fileno(), False)
            text = json.dumps([[order.sites, order.log, order.rehearse] for order in orders])
            self._lifeline.write(text.encode() + b"\n")
        except BaseException:
            self.close()
            raise

    def look(self) -> None:
        """Take note of what the nursery told: who was born, who has ended and how. Without it, all
        have ended badly."""
        gone = self._process.poll() is not None
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._told.fileno(), 2**16):
                self._rest += piece
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            place, pid, code = json.loads(line)
            self.children[place].pid, self.children[place].returncode = pid, code
        for child in self.children:
            if gone and child.returncode is None:
                child.returncode = self._process.returncode or -signal.SIGKILL

    def close(self) -> None:
        """End all children, and wait for it; those who do not listen are killed."""
        with contextlib.suppress(OSError):
            self._lifeline.close()
        try:
            self._process.wait(GRACE + 5.0)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._told.close()

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def born(lifeline: int = 0, told: int = 1) -> Order:
    """In the nursery: read the orders, and fork a process for each. It returns in the children,
    with their order."""
    text = b""
    while not text.endswith(b"\n"):
        piece = os.read(lifeline, 2**16)
        if not piece:
            sys.exit(130)  # whoever started it is gone already
        text += piece
    orders = [Order(tuple(sites), log, rehearse) for sites, log, rehearse in json.loads(text)]
    _read_ahead(orders)
    children: dict[int, int] = {}
    for place, order in enumerate(orders):
        pid = os.fork()
        if pid == 0:
            _begin(order, lifeline, told)
            return order
        children[pid] = place
        _tell(told, place, pid, None)
    _bring_up(children, lifeline, told)
    raise SystemExit(0)


def _read_ahead(orders: Sequence[Order]) -> None:
    """What all peers read: the program, and the address book. No thread may be started here, nor a
    channel opened."""
    from bruit.peers.site.site import read_site
    from bruit.peers.wire.address_book import AddressBook

    for name in NEEDED:
        import_module(name)
    with contextlib.suppress(Exception):  # a peer that cannot read its files says so itself
        site = read_site(orders[0].sites[0])
        AddressBook.read(site.folder / site.file.book)
    gc.freeze()  # pages that nobody writes to stay shared


def _begin(order: Order, lifeline: int, told: int) -> None:
    """In a child: words go to the log, and when the lifeline closes it ends."""
    os.close(told)
    log = os.open(order.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    watch_lifeline(lifeline, [os.getpid()])


def _bring_up(children: dict[int, int], lifeline: int, told: int) -> None:
    """In the nursery: tell how each child ended, and see to it that all end when the lifeline
    closes."""
    watch_lifeline(lifeline, children)
    for _ in range(len(children)):
        pid, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        place = children.pop(pid)
        _tell(told, place, pid, code)


def _tell(told: int, place: int, pid: int, code: int | None) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more: then the lifeline is closed, too
        os.write(told, json.dumps([place, pid, code]).encode() + b"\n")


def watch_lifeline(lifeline: int, pids: Collection[int]) -> None:
    """From now on: when the pipe closes these processes are asked to end, and killed if they have
    not in a while."""

    def watch() -> None:
        while os.read(lifeline, 2**16):
            pass
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in list(pids):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(GRACE)

    threading.Thread(target=watch, daemon=True, name="lifeline").start()
