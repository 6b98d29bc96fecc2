"""A succession: the word of a peer that it goes on under a new certificate, signed by both.

    text = name, fingerprint of the old certificate, that of the new one, until when the old one is taken
    signatures by the Ed25519 keys inside the old and the new certificate

Whoever knows the old certificate can check it; nobody else has to vouch. It renews a key that is
healthy. Who stole a key could sign one, too: then two successors of one certificate turn up, the
first that a peer hears of stands, and the other one is refused and told to the operator.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.peers.wire.identity import (
    Identity,
    check_dates,
    fingerprint,
    name_of,
    read_certificate,
    verify,
)

LONGEST = 8192  # bytes of a succession
KEYS = ("old", "until", "certificate", "by_old", "by_new")
SUCCEED = "Succeed"  # the call by which one peer tells another


@dataclass(frozen=True)
class Succession:
    """From one certificate to the next; `until` is a time in UTC, as text."""

    old: str  # fingerprint
    until: str
    certificate: str  # the new one, PEM
    by_old: str  # signatures, hexadecimal
    by_new: str

    @classmethod
    def of(cls, before: Identity, after: Identity, until: datetime) -> Succession:
        """What a peer says about itself."""
        when = until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        said = _text(before.name, before.fingerprint(), after.fingerprint(), when)
        return cls(
            before.fingerprint(),
            when,
            after.certificate,
            before.sign(said).hex(),
            after.sign(said).hex(),
        )

    @property
    def new(self) -> str:
        return fingerprint(self.certificate)

    @property
    def made(self) -> datetime:
        """When its new certificate began: it is checked as of then, whatever has expired since."""
        return read_certificate(self.certificate).not_valid_before_utc

    def takes_old(self, now: datetime) -> bool:
        """Whether the old certificate is still taken."""
        return now <= _when(self.until)

    def check(self, old: str, now: datetime | None = None) -> None:
        """Refuse it unless the owner of that old certificate (PEM), and of the new one, said it."""
        name = name_of(read_certificate(old))
        if name_of(read_certificate(self.certificate, "the new certificate")) != name:
            raise ConfigError(f"a succession of {name!r} names another participant")
        check_dates(read_certificate(self.certificate), f"the new certificate of {name!r}", now)
        said = _text(name, self.old, self.new, self.until)
        for certificate, signature, whose in (
            (old, self.by_old, "old"),
            (self.certificate, self.by_new, "new"),
        ):
            if not verify(certificate, said, bytes.fromhex(signature)):
                raise ConfigError(f"a succession of {name!r} is not signed by its {whose} key")

    def text(self) -> str:
        """As TOML."""
        return "".join(
            f'certificate = """\n{self.certificate}"""\n'
            if key == "certificate"
            else f"{key} = {json.dumps(getattr(self, key))}\n"
            for key in KEYS
        )

    @classmethod
    def parse(cls, data: bytes) -> Succession:
        """RemoteProtocolError for bytes that are no succession; whose it is is not checked yet."""
        try:
            if len(data) > LONGEST:
                raise ValueError(f"{len(data)} bytes")
            found = tomllib.loads(data.decode())
            if set(found) != set(KEYS) or any(type(one) is not str for one in found.values()):
                raise ValueError(f"it has {', '.join(KEYS)}")
            made = cls(**found)
            _when(made.until)
            if any(len(bytes.fromhex(one)) != 64 for one in (made.by_old, made.by_new)):
                raise ValueError("a signature has 64 bytes")
            read_certificate(made.certificate)
        except (ValueError, ConfigError, RecursionError) as error:
            raise RemoteProtocolError(f"what came is no succession ({error})"[:300]) from None
        return made


def led_on(certificate: str, chain: Sequence[Succession]) -> tuple[str, list[str]]:
    """The certificate to which successions lead from that one (PEM), and all fingerprints on the way;
    ConfigError if they do not follow each other, or one is not signed by both keys. They are checked
    as of when they were made: a signature does not end with a certificate."""
    prints = [fingerprint(certificate)]
    for step in chain:
        if step.old != prints[-1]:
            raise ConfigError(
                f"the successions of {name_of(read_certificate(certificate))!r} do not follow each"
                " other"
            )
        step.check(certificate, step.made)
        certificate = step.certificate
        prints.append(step.new)
    return certificate, prints


def _when(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _text(name: str, old: str, new: str, until: str) -> bytes:
    return f"bruit succession 1\n{name}\n{old}\n{new}\n{until}\n".encode()
