"""Changing one's key in the middle of a run: others need not stop, and what was said stays said.

    1. begin    new keys in next/, and a succession, signed by old and new, among this site's own.
                The running peer tells its neighbors over its old lines, and they tell theirs.
    2. finish   when all neighbors have heard: the new keys take the place of the old ones, and the
                peer is started again. Old and new are taken until the overlap ends.

Keys of stamps stay (`stamps.key`): an old copy of this folder can still read the stamps that
neighbors show it, and is stopped by them. The run's name is that of the book it began with.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bruit.errors import ConfigError
from bruit.files import write_whole
from bruit.peers.founding.demo import read_json
from bruit.peers.site.site import Site, members_of, own_book, own_identity
from bruit.peers.wire.address_book import public_entry
from bruit.peers.wire.identity import CERTIFICATE, KEY, SIGNING_KEY, STAMPS, Identity
from bruit.peers.wire.members import Members
from bruit.peers.wire.stamps import stamp_keys
from bruit.peers.wire.succession import Succession

NEXT = "next"  # the folder of keys that wait
ORDER = (STAMPS, SIGNING_KEY, KEY, CERTIFICATE)  # in which files change places


@dataclass(frozen=True)
class Rotation:
    """Where a change of keys stands."""

    fingerprint: str  # of the new certificate
    until: str  # when the old one is taken no more
    finished: bool
    untold: list[str]  # neighbors that are not known to have heard


def rotate(site: Site, overlap_days: float) -> Rotation:
    """Begin to change this participant's key, or say how far it is."""
    members = members_of(site, own_book(site))
    waiting = _keys(site) / NEXT
    if waiting.exists():
        return _standing(site, members, Identity.load(waiting))
    before = own_identity(site, members)
    if before.fingerprint() != members.fingerprints(site.file.peer)[-1]:
        raise ConfigError(
            "this site has older keys than others have heard of; put back the newest ones"
        )
    if not 0 <= overlap_days <= 90:
        raise ConfigError(f"both keys are taken for 0 to 90 days, found {overlap_days:g}")
    after = replace(Identity.create(before.name), stamps=stamp_keys(before))
    until = datetime.now(UTC) + timedelta(days=overlap_days)
    after.save(waiting)
    members.learn(Succession.of(before, after, until).text().encode())
    return _standing(site, members, after)


def finish(site: Site, anyway: bool = False) -> Rotation:
    """Put the new keys in place; the peer is then started again. Refused while a neighbor has not
    heard of them, which would refuse this peer, unless that is meant."""
    folder = _keys(site)
    waiting = folder / NEXT
    if not waiting.exists():
        raise ConfigError(f"no change of keys was begun in {folder}; `bruit key rotate` begins one")
    members = members_of(site, own_book(site))
    left = [name for name in ORDER if (waiting / name).exists()]
    if len(left) < len(ORDER):  # it was interrupted, after it had been allowed
        _put_in_place(waiting, folder, left)
        return replace(_standing(site, members, Identity.load(folder)), finished=True)
    after = Identity.load(waiting)
    found = _standing(site, members, after)
    if found.untold and not anyway:
        raise ConfigError(
            f"not known to have heard of the new key: {', '.join(found.untold)}; let the peer run "
            f"until they have, or give them the file in {site.folder / 'successions'} and add "
            f"--anyway"
        )
    _put_in_place(waiting, folder, left)
    entry = members.book.entry(site.file.peer)
    public = public_entry(after, entry.host, entry.port, entry.relay)
    write_whole(folder / "public.toml", lambda file: file.write(public.encode()))
    return replace(found, finished=True)


def _put_in_place(waiting: Path, folder: Path, names: list[str]) -> None:
    for name in names:
        os.replace(waiting / name, folder / name)
    shutil.rmtree(waiting)


def _keys(site: Site) -> Path:
    return site.folder / site.file.identity


def _standing(site: Site, members: Members, after: Identity) -> Rotation:
    said = next(one for one in members.known() if one.new == after.fingerprint())
    names = [one.name for one in members.book.entries if one.peer != site.file.peer]
    told = read_json(site.state / "status.json").get("new_key", {})
    known = told if told.get("fingerprint") == said.new else {}
    untold = [one for one in known.get("neighbors", names) if one not in known.get("heard", [])]
    return Rotation(said.new, said.until, False, untold)
