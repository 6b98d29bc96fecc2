"""Founding a network: a folder for every participant, for demonstrations and rehearsals on one
machine.

In real life every participant makes its own key (`bruit peer key`), and only public parts are
exchanged and merged (`bruit network join`); nobody ever holds another's secrets. Here one command
plays everybody.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import replace
from pathlib import Path

from bruit.errors import ConfigError
from bruit.files import private_folder, write_whole
from bruit.graphs.names import OPTION, edge_file
from bruit.peers.engine import free_ports
from bruit.peers.settings import Settings
from bruit.peers.site.agreed_run import AgreedRun, agreed_run
from bruit.peers.site.own_records import write_share
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.place import place_of
from bruit.peers.wire.relay_entry import RelayEntry
from bruit.runs.build import whole_task
from bruit.runs.file import ExperimentFile, read_text, rewritten
from bruit.tasks import Task
from bruit.tasks.data.agreed_columns import columns_digest, columns_path
from bruit.tasks.kinds.kind import kinds

START_TIMEOUT = Settings.start_timeout  # what a site file that does not say it means


def graph_for(name: str, peers: int) -> str:
    """A graph string with its size: `ring` and 4 peers are `ring:4`."""
    return name if ":" in name else f"{name}:{peers}"


def plan_network(
    experiment: str, peers: int, graph: str | None = None, changes: dict[str, str] | None = None
) -> AgreedRun[Task]:
    """What that many participants would run, with the records of them all; refused as every peer
    would refuse it.

    `graph` and `changes` replace lines of the file. A graph that is named here and lies in a file
    is looked for in the working directory, one that the experiment names beside the experiment.
    """
    if peers < 2:
        raise ConfigError(f"a network needs at least two peers, found {peers}")
    place, text = read_text(experiment)
    lines = dict(changes or {})
    if graph is not None:
        lines["graph"] = json.dumps(from_here(graph_for(graph, peers)))
    text = _with(text, lines)

    def everybody(file: ExperimentFile, n: int) -> Task:
        if n != peers:
            raise ConfigError(
                f"the experiment's graph {file.graph} has {n} peers, and {peers} are asked for; say "
                f"which graph they have: --graph complete"
            )
        return whole_task(file, n, text, experiment)

    return agreed_run(text, place.parent, experiment, everybody)


def found(
    experiment: str,
    peers: int,
    graph: str | None,
    folder: Path,
    host: str = "127.0.0.1",
    timeout: float = 30.0,
    pace: float = 0.05,
) -> list[Path]:
    """Plan a network and write one folder per participant; the site files, in the order of
    peers."""
    return settle(plan_network(experiment, peers, graph), folder, host, timeout, pace)


def settle(
    agreed: AgreedRun[Task],
    folder: Path,
    host: str = "127.0.0.1",
    timeout: float = 30.0,
    pace: float = 0.05,
    start_timeout: float = START_TIMEOUT,
    relay: str = "",
) -> list[Path]:
    """One folder per participant of a planned network: keys, address book, what was agreed on,
    records. With a relay (host:port) nobody opens a port, and there is a folder for it, too."""
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} exists and is not empty; choose another folder")
    text, copies = with_columns(agreed, *with_edges(agreed))
    columns = columns_digest(agreed.file.task.columns_file)
    options = kinds()[agreed.file.task.kind].agreed(agreed.file.task)
    people = [Identity.create(f"peer-{peer}") for peer in range(agreed.graph.n)]
    ports = free_ports(len(people))
    book = AddressBook.of(
        Entry(peer=k, name=one.name, host=host, port=ports[k], certificate=one.certificate)
        for k, one in enumerate(people)
    )
    if relay:
        book = _at_relay(book, relay, folder / "relay")
    sites = []
    for peer, one in enumerate(people):
        home = folder / one.name
        private_folder(home)
        one.save(home)
        book.write(home / "book.toml")
        write_whole(home / "experiment.toml", lambda file: file.write(text.encode()))
        for name, content in copies.items():
            write_whole(home / name, lambda file, content=content: file.write(content))  # type: ignore[misc]
        records, kind = home / "records.npz", agreed.file.task.kind
        write_share(agreed.task, kind, peer, records, columns, options)
        site = f"peer = {peer}\ntimeout = {timeout}\npace = {pace}\n"
        if start_timeout != START_TIMEOUT:
            site += f"start_timeout = {start_timeout}\n"
        write_whole(home / "site.toml", lambda file, site=site: file.write(site.encode()))  # type: ignore[misc]
        sites.append(home / "site.toml")
    return sites


def _at_relay(book: AddressBook, relay: str, home: Path) -> AddressBook:
    """The same people, reached at a relay whose keys and book are made in a folder."""
    host, port = place_of(relay, "--relay")
    identity = Identity.create("relay")
    entries = [replace(entry, host=host, port=port, relay=True) for entry in book.entries]
    reached = AddressBook.of(entries, relays=[RelayEntry(host, port, identity.certificate)])
    private_folder(home)
    identity.save(home)
    reached.write(home / "book.toml")
    return reached


def with_edges(agreed: AgreedRun[Task]) -> tuple[str, dict[str, bytes]]:
    """What participants are given: the experiment and, if its graph lies in a file, a copy of that
    file, by name.

    The experiment then names the copy beside it and its digest, so that nobody starts with another
    graph.
    """
    path = edge_file(agreed.file.graph)
    if path is None:
        return agreed.text, {}
    content, name = Path(path).read_bytes(), f"graph-{Path(path).name}"
    written = tomllib.loads(agreed.text)["graph"]
    options = [part for part in OPTION.split(written)[1:] if not part.strip().startswith("sha256")]
    copied = ",".join([f"file:{name}", *options, f"sha256={hashlib.sha256(content).hexdigest()}"])
    return rewritten(agreed.text, "graph", written, copied), {name: content}


def with_columns(
    agreed: AgreedRun[Task], text: str, copies: dict[str, bytes]
) -> tuple[str, dict[str, bytes]]:
    """The same with a copy of the columns file, if the experiment names one, and its digest."""
    written = tomllib.loads(text)["task"].get("columns_file")
    if written is None:
        return text, copies
    name, _ = columns_path(agreed.file.task.columns_file or written)
    content, copied = name.read_bytes(), f"columns-{name.name}"
    named = f"{copied},sha256={hashlib.sha256(content).hexdigest()}"
    return rewritten(text, "task.columns_file", written, named), {**copies, copied: content}


def from_here(graph: str) -> str:
    """The same graph, with the path of its file written out."""
    path = edge_file(graph)
    if path is None or not Path(path).is_file():
        return graph
    return ",".join([f"file:{Path(path).resolve()}", *OPTION.split(graph)[1:]])


def _with(text: str, changes: dict[str, str]) -> str:
    """The same experiment with the lines of some keys replaced; everything else stays word for
    word."""
    lines = text.splitlines()
    for key, value in changes.items():
        places = [place for place, line in enumerate(lines) if line.split("=")[0].strip() == key]
        if places:
            lines[places[0]] = f"{key} = {value}"
        else:
            lines.insert(0, f"{key} = {value}")
    return "\n".join(lines) + "\n"
