"""The signed report of one participant: what was promised, who took part in what, what was missed.

    signature  =  Ed25519( "bruit report\\n" + canonical JSON of everything but the signature )

Canonical is JSON with sorted keys, without blanks, in ASCII: the same bytes from the file as from
memory. The key is the one in the participant's certificate, which stands beside the signature; who
has the address book checks that it is the listed one, or the one to which the successions lead that
stand there, too, after a change of keys. A signature says who tells this, not that it
is true: a peer may lie about itself, but not speak for another, and nobody can change its words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bruit.errors import BruitError, ConfigError
from bruit.files import plain
from bruit.peers.absences import Absence
from bruit.peers.host import Host
from bruit.peers.site.verdict import unreached
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.identity import Identity, fingerprint, name_of, read_certificate, verify
from bruit.peers.wire.members import MOST
from bruit.peers.wire.succession import Succession, led_on

PREFIX = b"bruit report\n"
LARGEST = 64 * 2**20  # bytes of a report that is read
ABSENT = "there is no report of"  # how it begins when somebody's is not there


def spans(numbers: list[int]) -> list[list[int]]:
    """Numbers as spans from first to last, both included: [[3, 7], [9, 9]]."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def promised(host: Host) -> dict[str, Any]:
    """What was agreed on: with whom, for how long, and whom this site may be without."""
    schedule = host.machine.seat.algorithm.schedule
    return {
        "neighbors": [host.book.entry(peer).name for peer in sorted(host.lines)],
        "others": others(host),
        "steps": host.machine.seat.steps,
        "unit": schedule.unit,
        "calls": len(host.machine.seat.calls),  # of this peer's own clock
        "wait_for": host.settings.wait_for,
        "quorum": host.settings.quorum,
        "timeout": host.settings.timeout,
    }


def others(host: Host) -> list[str]:
    """The participants that are no neighbors of this peer: whether they took part, it cannot know."""
    known = {host.me, *host.lines}
    return [one.name for one in host.book.entries if one.peer not in known]


def took_part(host: Host) -> dict[str, Any]:
    """By neighbor: without whom this peer made which exchanges, which of them were made up for
    later, and what it received of this peer's words. In all others it took part. Where these are too
    many to be named, `earlier` says how many older ones there are."""
    deaf, found = unreached(host), {}
    for peer in sorted(host.lines):
        gone = host.absences.of.get(peer, Absence())
        found[host.book.entry(peer).name] = {
            "without": gone.without.named,
            "made_up_late": gone.made_up.named,
            **_earlier(gone),
            "messages_heard": host.journal.last_sequence(peer),
            "messages_not_received": deaf.get(peer, 0),
            "calls_in_vain": host.absences.skipped_for.get(peer, 0),
        }
    return found


def _earlier(gone: Absence) -> dict[str, Any]:
    """How many exchanges are not named one by one; nothing, if all are."""
    without, made_up = gone.without, gone.made_up
    if not (without.earlier or made_up.earlier):
        return {}
    up_to = max(without.up_to, made_up.up_to)
    about = {"without": without.earlier, "made_up_late": made_up.earlier, "up_to": up_to}
    return {"earlier": about}


def canonical(report: Mapping[str, Any]) -> bytes:
    """The bytes that are signed."""
    content = {name: value for name, value in report.items() if name != "signature"}
    text = json.dumps(plain(content), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return PREFIX + text.encode("ascii")


def signed(
    report: Mapping[str, Any], identity: Identity, since: Sequence[Succession] = ()
) -> dict[str, Any]:
    """The report with its signature, and the successions since the certificate in the book."""
    signature: dict[str, Any] = {
        "certificate": identity.certificate,
        "ed25519": identity.sign(canonical(report)).hex(),
    }
    if since:
        signature["successions"] = [one.text() for one in since]
    return {**report, "signature": signature}


def _table(content: Any, name: str) -> dict[str, Any]:
    """A table of a report that anybody may have written; empty if it is none."""
    found = content.get(name) if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}


def _list(content: Any, name: str) -> list[Any]:
    found = content.get(name) if isinstance(content, dict) else None
    return found if isinstance(found, list) else []


@dataclass(frozen=True)
class CheckedReport:
    """One report that was read: what it says, who signed it, and what is wrong with it (nothing:
    "")."""

    path: Path
    content: dict[str, Any]
    signer: str = ""
    fingerprint: str = ""
    wrong: str = ""

    @property
    def complete(self) -> bool:
        return self.content.get("complete") is True and not self.elsewhere

    @property
    def old_copy(self) -> bool:
        """Whether its journal was found to be an old copy, or damaged: more was released than it
        knows. An infinite epsilon alone may be that of little noise."""
        return self.content.get("old_copy") is not False

    @property
    def elsewhere(self) -> bool:
        """Whether it has heard that others went on without somebody."""
        return self.content.get("missed_elsewhere") is True

    def without(self) -> dict[str, list[list[int]]]:
        """Who was missing in which exchanges, as it says."""
        found = {}
        for name, one in _table(self.content, "took_part").items():
            parts = [
                part
                for part in _list(one, "without")
                if isinstance(part, list) and [type(number) for number in part] == [int, int]
            ]
            if parts:
                found[str(name)] = parts
        return found

    def verdict(self) -> str:
        """What it says of the run, and no more."""
        if self.elsewhere and self.content.get("complete") is True:
            return "its neighbors took part in everything; elsewhere somebody was missed"
        if not self.complete:
            return "not complete"
        strangers = _list(_table(self.content, "promised"), "others")
        if strangers:
            return (
                f"its neighbors took part in everything; of {len(strangers)} others it cannot know"
            )
        return "everybody took part in everything"

    def left_out(self) -> list[int]:
        """At which rounds, hops or calls its budget kept its data at home, as it says."""
        places = _list(self.content, "contributions_left_out")
        return [
            part[1]
            for part in places
            if isinstance(part, list) and [type(number) for number in part] == [int, int]
        ]

    def earlier(self) -> dict[str, tuple[int, int]]:
        """Who was missing in more exchanges than are named: in how many, and up to which one."""
        found = {}
        for name, one in _table(self.content, "took_part").items():
            about = _table(one, "earlier")
            count, up_to = about.get("without"), about.get("up_to")
            if type(count) is int and type(up_to) is int and count > 0:
                found[str(name)] = (count, up_to)
        return found

    @property
    def as_agreed(self) -> bool:
        """Whether its peer did every exchange with everybody and in time, as it says: what was made
        up for later is complete, and was not what had been agreed on."""
        parts = [one for one in _table(self.content, "took_part").values() if isinstance(one, dict)]
        late = any(_list(one, "made_up_late") for one in parts)
        return (
            self.complete
            and self.content.get("missed") == 0
            and not (late or self.without() or self.earlier())
        )

    def problems(self) -> list[str]:
        """What went otherwise than asked, as it says."""
        return [str(word) for word in _list(self.content, "problems")]


def check(path: Path, book: AddressBook | None = None) -> CheckedReport:
    """Read a report and check its signature; with an address book also that the signer is the peer
    it speaks of."""
    try:
        if path.stat().st_size > LARGEST:
            raise ConfigError(f"{path} is too large for a report")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no report: it is not JSON ({error})") from error
    if not isinstance(content, dict) or "run" not in content:
        raise ConfigError(f"{path} is no report of a peer; give the report.json of a state folder")
    signature = content.get("signature")
    if not isinstance(signature, dict):
        return CheckedReport(path, content, wrong="it is not signed")
    pem, seal = signature.get("certificate"), signature.get("ed25519")
    try:
        certificate, raw = read_certificate(str(pem), "the certificate"), bytes.fromhex(str(seal))
        name, print_ = name_of(certificate), fingerprint(str(pem))
        valid = verify(str(pem), canonical(content), raw)
    except (ConfigError, ValueError) as error:
        return CheckedReport(path, content, wrong=f"its signature cannot be read: {error}")
    if not valid:
        return CheckedReport(path, content, name, print_, f"{name} has not signed this")
    return CheckedReport(path, content, name, print_, _stranger(content, print_, book))


def _stranger(content: Mapping[str, Any], print_: str, book: AddressBook | None) -> str:
    """What is wrong with the signer, by the address book and the successions since."""
    if book is None:
        return ""
    texts = _list(content["signature"], "successions")
    try:
        if len(texts) > MOST:
            raise ConfigError(f"{len(texts)} successions; a key changes {MOST} times at most")
        chain = [Succession.parse(str(text).encode()) for text in texts]
        listed = book.by_fingerprint(chain[0].old if chain else print_)
        if listed is None:
            return "its signer is not in the address book"
        prints = led_on(listed.certificate, chain)[1]
    except BruitError as error:
        return f"its signer cannot be told from the address book: {error}"
    if prints[-1] != print_:
        return "its successions do not lead to its signer"
    if set(prints) & set(book.revoked):
        return "the certificate of its signer is revoked"
    if listed.peer != content.get("peer"):
        return f"its signer is peer {listed.peer}, and it speaks of peer {content.get('peer')!r}"
    return ""


def disagreements(reports: list[CheckedReport]) -> list[str]:
    """What makes several reports no account of one run."""
    runs = {str(one.content["run"]) for one in reports}
    found = [f"they are of {len(runs)} different runs"] if len(runs) > 1 else []
    signers = [one.signer for one in reports if one.signer]
    twice = sorted({name for name in signers if signers.count(name) > 1})
    found += [f"{name} has signed more than one of them" for name in twice]
    agreed = {
        str(name)
        for one in reports
        for key in ("neighbors", "others")
        for name in _list(_table(one.content, "promised"), key)
    }
    absent = sorted(agreed - set(signers))
    if len(reports) > 1 and absent:
        found.append(f"{ABSENT} {', '.join(absent)}")
    return found
