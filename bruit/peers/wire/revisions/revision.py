"""What a later version of an address book says of itself, and who signed it.

    version    2, 3, ...; a book that says none is version 1, which rests on a telephone call
    founding   digest of version 1: which consortium this is
    previous   digest of the version before, whose members sign this one
    from_run   the run from which it is valid: an experiment's digest, or a name for people
    quorum     how many of its members must sign the next version; more than half if it says nothing
    revoked    fingerprints of certificates that are refused from now on

Signatures are over the digest of the book. That covers everything but addresses and relays: who
takes part, not where each one is reached, which may differ from place to place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bruit.errors import ConfigError

MOST_VERSIONS = 10_000
MOST_SIGNATURES = 4096
MOST_REVOKED = 4096
MOST_SUCCESSIONS = 16  # of one signer
LONGEST_RUN = 64
DIGEST = re.compile(r"[0-9a-f]{64}")
FINGERPRINT = re.compile(r"[0-9a-f]{4}(:[0-9a-f]{4}){15}")
SIGNATURE = re.compile(r"[0-9a-f]{128}")
NEEDED = {"version": int, "founding": str, "previous": str, "from_run": str}
KEYS = {*NEEDED, "quorum", "revoked", "signature"}
SIGNATURE_KEYS = {"fingerprint", "signature", "successions"}


@dataclass(frozen=True)
class BookSignature:
    """One member's word: its certificate's fingerprint, and Ed25519 over the digest of the book.
    Successions, as text, lead from the certificate in the book before to this one, if it has
    changed its key since."""

    fingerprint: str
    signature: str
    successions: tuple[str, ...] = ()

    def text(self) -> str:
        later = f"successions = {json.dumps(self.successions)}\n" if self.successions else ""
        return (
            f'\n[[signature]]\nfingerprint = "{self.fingerprint}"\n'
            f'signature = "{self.signature}"\n{later}'
        )


@dataclass(frozen=True, kw_only=True)
class Revision:
    """The part of a later version that is not about people and places."""

    version: int
    founding: str
    previous: str
    from_run: str
    quorum: int | None = None
    revoked: tuple[str, ...] = ()
    signatures: tuple[BookSignature, ...] = ()

    @property
    def words(self) -> str:
        """What is signed of it; one line, always the same for the same content."""
        return json.dumps(
            [
                self.version,
                self.founding,
                self.previous,
                self.from_run,
                self.quorum,
                sorted(self.revoked),
            ]
        )

    def head(self) -> str:
        """The first lines of the book, as TOML."""
        quorum = "" if self.quorum is None else f"quorum = {self.quorum}\n"
        run = json.dumps(self.from_run, ensure_ascii=False)
        return (
            f'version = {self.version}\nfounding = "{self.founding}"\nprevious = "{self.previous}"\n'
            f"from_run = {run}\n{quorum}revoked = {json.dumps(sorted(self.revoked))}\n"
        )

    def tail(self) -> str:
        return "".join(one.text() for one in self.signatures)


def revision_of(content: Mapping[str, Any], where: str) -> Revision | None:
    """The revision in the tables of a book; None for version 1, which has none."""
    if not content:
        return None
    for key, kind in NEEDED.items():
        if type(content.get(key)) is not kind:
            raise ConfigError(
                f"{where}: a later version has {', '.join(NEEDED)}; {key} is {content.get(key)!r}"
            )
    version, run, quorum = content["version"], content["from_run"], content.get("quorum")
    if not 2 <= version <= MOST_VERSIONS:
        raise ConfigError(
            f"{where}: a version that is signed is 2 to {MOST_VERSIONS}, found {version}; "
            f"version 1 says nothing of versions"
        )
    for key in ("founding", "previous"):
        if not DIGEST.fullmatch(content[key]):
            raise ConfigError(f"{where}: {key} is a digest of 64 digits, found {content[key]!r}")
    check_run_name(run, where)
    if quorum is not None and type(quorum) is not int:
        raise ConfigError(f"{where}: quorum is a number of members, found {quorum!r}")
    revoked = content.get("revoked", [])
    good = isinstance(revoked, list) and len(revoked) <= MOST_REVOKED
    if not good or not all(type(one) is str and FINGERPRINT.fullmatch(one) for one in revoked):
        raise ConfigError(f"{where}: revoked is a list of full fingerprints, 3fa2:09c1:...")
    return Revision(
        version=version,
        founding=content["founding"],
        previous=content["previous"],
        from_run=run,
        quorum=quorum,
        revoked=tuple(sorted(set(revoked))),
        signatures=_signatures(content.get("signature", []), where),
    )


def check_run_name(run: str, where: str) -> None:
    """The name of a run is short, printable, and not surrounded by blanks."""
    if not (1 <= len(run) <= LONGEST_RUN and run.isprintable() and run == run.strip()):
        raise ConfigError(
            f"{where}: from_run is the digest of an experiment, or a name of 1 to {LONGEST_RUN} "
            f"printable characters, found {run[:80]!r}"
        )


def _signatures(found: object, where: str) -> tuple[BookSignature, ...]:
    if not isinstance(found, list) or len(found) > MOST_SIGNATURES:
        raise ConfigError(f"{where} may hold up to {MOST_SIGNATURES} [[signature]] tables")
    return tuple(_signature(one, where) for one in found)


def _signature(table: object, where: str) -> BookSignature:
    if isinstance(table, dict) and {"fingerprint", "signature"} <= set(table) <= SIGNATURE_KEYS:
        print_, said = table["fingerprint"], table["signature"]
        later = table.get("successions", [])
        texts = type(print_) is str and type(said) is str
        several = isinstance(later, list) and len(later) <= MOST_SUCCESSIONS
        if (
            texts
            and FINGERPRINT.fullmatch(print_)
            and SIGNATURE.fullmatch(said)
            and several
            and all(type(one) is str for one in later)
        ):
            return BookSignature(print_, said, tuple(later))
    raise ConfigError(
        f"{where}: a [[signature]] has a full fingerprint, a signature of 128 hexadecimal digits, "
        f"and may have up to {MOST_SUCCESSIONS} successions"
    )
