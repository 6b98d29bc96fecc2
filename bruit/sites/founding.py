"""Founding a network: a folder for every participant, for demonstrations and rehearsals on one machine.

In real life every participant makes its own key (`bruit peer key`), and only public parts are exchanged and merged
(`bruit network join`); nobody ever holds another's secrets. Here one command plays everybody.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from bruit.build import build, protocol
from bruit.config import from_dict, read
from bruit.engines.network import free_ports
from bruit.entrance import refuse_for_real_peers, refuse_task_for_real_peers
from bruit.errors import ConfigError
from bruit.network.address_book import AddressBook, Entry
from bruit.network.identity import Identity
from bruit.sites.own_records import write_share
from bruit.whole_files import write_whole


def graph_for(name: str, peers: int) -> str:
    """A graph string with its size: `ring` and 4 peers are `ring:4`."""
    return name if ":" in name else f"{name}:{peers}"


def found(experiment: str, peers: int, graph: str | None, folder: Path, host: str = "127.0.0.1",
          timeout: float = 30.0, pace: float = 0.05, changes: dict[str, str] | None = None) -> list[Path]:  # fmt: skip
    """Write one folder per participant; the site files, in the order of peers. `changes` replaces lines of the file."""
    if peers < 2:
        raise ConfigError(f"a network needs at least two peers, found {peers}")
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} exists and is not empty; choose another folder")
    _, text = read(experiment)
    content = tomllib.loads(text)
    said = dict(changes or {})
    if graph is not None:
        said["graph"] = f'"{graph_for(graph, peers)}"'
    text = _with(text, said)
    content = tomllib.loads(text)
    file = from_dict(content, text, experiment)
    refuse_task_for_real_peers(file.task.kind)
    refuse_for_real_peers(protocol(file, text).algorithm, None)  # as every peer will build it
    built = build(file, text)
    refuse_for_real_peers(built.algorithm, built.privacy)
    if built.graph.n != peers:
        raise ConfigError(f"the experiment's graph {built.graph.name} has {built.graph.n} peers: use --graph")
    people = [Identity.create(f"peer-{peer}") for peer in range(peers)]
    ports = free_ports(peers)
    book = AddressBook.of(Entry(k, one.name, host, ports[k], one.certificate) for k, one in enumerate(people))
    sites = []
    for peer, one in enumerate(people):
        home = folder / one.name
        home.mkdir(parents=True)
        one.save(home)
        book.write(home / "book.toml")
        write_whole(home / "experiment.toml", lambda file: file.write(text.encode()))
        write_share(built.task, built.file.task.kind, peer, home / "records.npz")
        site = f"peer = {peer}\ntimeout = {timeout}\npace = {pace}\n"
        write_whole(home / "site.toml", lambda file, site=site: file.write(site.encode()))  # type: ignore[misc]
        sites.append(home / "site.toml")
    return sites


def _with(text: str, changes: dict[str, str]) -> str:
    """The same experiment with the lines of some keys replaced; everything else stays word for word."""
    lines = text.splitlines()
    for key, value in changes.items():
        places = [place for place, line in enumerate(lines) if line.split("=")[0].strip() == key]
        if places:
            lines[places[0]] = f"{key} = {value}"
        else:
            lines.insert(0, f"{key} = {value}")
    return "\n".join(lines) + "\n"
