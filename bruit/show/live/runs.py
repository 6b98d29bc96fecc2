"""The runs of one folder: those that are saved, and those that go on in processes of their own.

A saved run is found among the folder's own entries, by its exact name: no name leads anywhere else.
A run that is started has a name that any file system and any shell takes. At most two runs go on at
a time. What a worker tells is kept as it comes, so that whoever looks later sees it from the
beginning.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bruit.errors import ConfigError
from bruit.show.live.form import check
from bruit.show.live.named_files import written_out
from bruit.show.live.saved import line

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
SUFFIX = ".run"
AT_ONCE = 2
LONGEST = 2**24  # bytes in one line of a worker
PATIENCE = 5.0  # seconds that a worker has to end after it was asked to
ENDS = ("done", "failed", "stopped")


@dataclass(kw_only=True)
class Live:
    """A run that goes on, or has ended since the page was opened."""

    name: str
    process: asyncio.subprocess.Process
    folder: Path
    asked: bool = False  # to stop
    events: list[dict[str, Any]] = field(default_factory=list)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def ended(self) -> bool:
        return bool(self.events) and self.events[-1]["event"] in ENDS

    @property
    def state(self) -> str:
        return str(self.events[-1]["event"]) if self.ended else "running"

    @property
    def saved(self) -> bool:
        """Whether it has ended and left a folder, which says more."""
        return self.ended and (self.state == "done" or self.folder.is_dir())

    async def add(self, event: dict[str, Any]) -> None:
        async with self.news:
            if not self.ended:
                self.events.append(event)
            self.news.notify_all()

    async def follow(self) -> AsyncIterator[dict[str, Any]]:
        """All events from the first to the last."""
        place = 0
        while True:
            async with self.news:
                while place == len(self.events) and not self.ended:
                    await self.news.wait()
                fresh = self.events[place:]
            if not fresh:
                return
            for event in fresh:
                yield event
            place += len(fresh)


class Runs:
    """What the page lists, starts, stops and follows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.live: dict[str, Live] = {}
        self._starting = asyncio.Lock()
        self._readers: set[asyncio.Task[None]] = set()
        self._drafts = tempfile.TemporaryDirectory(prefix="bruit-ui-")

    def _entries(self) -> list[Path]:
        """The run folders, the newest first."""
        if not self.folder.is_dir():
            return []
        found = [
            (_when(entry), entry)
            for entry in self.folder.iterdir()
            if entry.suffix == SUFFIX and entry.is_dir()
        ]
        return [entry for _, entry in sorted(found, key=lambda one: one[0], reverse=True)]

    def path(self, name: str) -> Path:
        """The folder of a saved run."""
        for entry in self._entries():
            if entry.stem == name:
                return entry
        raise ConfigError(f"there is no saved run {name!r} in this folder")

    def listing(self) -> list[dict[str, Any]]:
        """Runs that go on or ended without a folder, then every run folder; a broken one says
        so."""
        going = [
            {"name": one.name, "state": one.state} for one in self.live.values() if not one.saved
        ]
        return [*going, *(line(entry) for entry in self._entries())]

    def state(self, name: str) -> str:
        """Whether a run goes on, has ended without a folder, or is saved; an unknown one is
        refused."""
        if name in self.live and not self.live[name].saved:
            return self.live[name].state
        self.path(name)
        return "saved"

    def draft(self, name: str) -> Path:
        """The experiment file of a run that was started here."""
        if name not in self.live:
            raise ConfigError(f"no run {name} was started here")
        return Path(self._drafts.name) / f"{name}.toml"

    async def start(self, name: str, text: str) -> Live:
        """Check the experiment, write it down and start it in a process of its own."""
        if not NAME.fullmatch(name):
            raise ConfigError(
                "a run's name has up to 60 letters, digits, dots, dashes and underscores, and"
                " begins with a letter or digit"
            )
        problems = check(text, self.folder)["problems"]
        if problems:
            raise ConfigError("\n".join(problem["text"] for problem in problems))
        async with self._starting:
            target = self.folder / f"{name}{SUFFIX}"
            if target.exists() or (name in self.live and not self.live[name].ended):
                raise ConfigError(f"there is a run {name} already; choose another name")
            if sum(not one.ended for one in self.live.values()) >= AT_ONCE:
                raise ConfigError(f"{AT_ONCE} runs go on already; wait for one, or stop it")
            self.folder.mkdir(parents=True, exist_ok=True)
            experiment = Path(self._drafts.name) / f"{name}.toml"
            experiment.write_text(written_out(text, self.folder), encoding="utf-8")
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "bruit.show.live.worker",
                str(experiment),
                str(target),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LONGEST,
                env=_surroundings(),
                # Ctrl-C in the terminal ends the server, which ends its runs in order
                start_new_session=True,
            )
            self.live[name] = Live(name=name, process=process, folder=target)
        reader = asyncio.create_task(_read(self.live[name]))
        self._readers.add(reader)
        reader.add_done_callback(self._readers.discard)
        return self.live[name]

    async def stop(self, name: str) -> None:
        """End a run that goes on, between two steps, and keep what is done; asked again, end it at
        once."""
        one = self.live.get(name)
        if one is None or one.ended:
            raise ConfigError(f"no run {name} is going on")
        one.asked = True
        await one.add({"event": "stopping"})
        if one.process.returncode is None:
            one.process.terminate()

    async def close(self) -> None:
        """End everything; what goes on has a moment to keep what is done."""
        for one in self.live.values():
            if not one.ended:
                await self.stop(one.name)
        if self._readers:
            _, late = await asyncio.wait(self._readers, timeout=PATIENCE)
            for one in self.live.values():
                if late and one.process.returncode is None:
                    one.process.kill()
        self._drafts.cleanup()


def _when(entry: Path) -> float:
    """When a folder was last changed; long ago if it went away meanwhile."""
    try:
        return entry.stat().st_mtime
    except OSError:
        return 0.0


def _surroundings() -> dict[str, str]:
    """This process's variables, and a path on which a worker finds this very bruit, and nothing of
    its own folder."""
    here = str(Path(__file__).parents[3])
    path = os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


async def _read(one: Live) -> None:
    """Everything the worker tells; if it ends without a last word, its last line of complaint is
    told instead."""
    output, complained = one.process.stdout, one.process.stderr
    if output is None or complained is None:
        raise ConfigError(f"the run {one.name} was started without pipes; nobody can follow it")
    complaint = asyncio.create_task(complained.read())
    async for text in output:
        try:
            event = json.loads(text)
        except ValueError:
            continue  # not ours: something printed
        if isinstance(event, dict) and "event" in event:
            await one.add(event)
    await one.process.wait()
    words = (await complaint).decode(errors="replace").strip().splitlines()
    if not one.ended and one.asked:
        await one.add({"event": "stopped", "saved": one.folder.is_dir()})
    elif not one.ended:
        reason = words[-1] if words else f"the run ended with code {one.process.returncode}"
        await one.add({"event": "failed", "reason": reason[:500]})
