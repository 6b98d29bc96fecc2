"""The commands of versions of an address book: network revise, sign, book."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bruit.commands.printing import Printer, Reply
from bruit.commands.terminal import Force, Json
from bruit.errors import ConfigError

if TYPE_CHECKING:
    from bruit.peers.wire.address_book import AddressBook

Before = Annotated[
    Path | None, typer.Option(help="The version before; found beside the book by default.")
]


def network_revise(
    book: Annotated[Path, typer.Argument(help="The address book that stands now.")],
    from_run: Annotated[
        str,
        typer.Option(help="The run from which it is valid: its experiment file, or a name."),
    ],
    add: Annotated[
        list[Path] | None,
        typer.Option(help="A public.toml of who joins, moves, or has a new key. May be repeated."),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(help="The name of a member who leaves. May be repeated.")
    ] = None,
    revoke: Annotated[
        list[str] | None,
        typer.Option(help="The fingerprint of a certificate to refuse for good. May be repeated."),
    ] = None,
    quorum: Annotated[
        int | None, typer.Option(help="How many members must sign the version after this one.")
    ] = None,
    out_file: Annotated[Path, typer.Option("--out", help="The proposal to write.")] = Path(
        "next-book.toml"
    ),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Propose the next version of an address book, for the members to sign.

    Example: bruit network revise book.toml --add dora/public.toml --remove bob --from-run
    next.toml --out book2.toml
    """
    from bruit.files import check_place
    from bruit.peers.wire.revisions.chain import book_as_it_was, check_standing
    from bruit.peers.wire.revisions.proposing import Changes, revise

    check_place(out_file, force)
    absent = [path for path in add or [] if not path.is_file()]
    if absent:
        raise ConfigError(f"there is no file {absent[0]}")
    previous = check_standing(book_as_it_was(book), book)
    proposal = revise(
        previous,
        Changes(
            add=[path.read_text() for path in add or []],
            remove=remove or [],
            revoke=revoke or [],
            from_run=_named_run(from_run),
            quorum=quorum,
        ),
    )
    proposal.write(out_file)
    lines, about = _told(proposal, previous, out_file)
    lines.append(f"wrote {out_file}; members sign it by bruit network sign {out_file}")
    Printer(json=as_json).answer(Reply(about, lines))


def network_sign(
    books: Annotated[
        list[Path],
        typer.Argument(help="The proposal; signatures in further copies of it are taken over."),
    ],
    site: Annotated[
        Path | None, typer.Option(help="The site.toml of the participant who signs.")
    ] = None,
    identity: Annotated[
        Path | None, typer.Option(help="The folder of keys of the participant who signs.")
    ] = None,
    previous: Before = None,
    instead: Annotated[
        bool,
        typer.Option("--instead", help="Even if another successor was signed, which all dropped."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Sign the next version of an address book, and say what it changes.

    Look at it before, by `bruit network book`. Nobody signs two versions of one number: the members
    would part.

    Example: bruit network sign book2.toml --site site/site.toml
    """
    from bruit.peers.site.site import read_site
    from bruit.peers.wire.address_book import AddressBook
    from bruit.peers.wire.identity import Identity
    from bruit.peers.wire.members import FOLDER, Members
    from bruit.peers.wire.revisions.memory import BookMemory
    from bruit.peers.wire.revisions.quorum import check_follows, signed_by, with_signatures

    if (site is None) == (identity is None):
        raise ConfigError("say who signs: by --site, or by --identity")
    read = None if site is None else read_site(site)
    folder = (identity or Path()) if read is None else read.folder / read.file.identity
    home = folder if read is None else read.folder
    proposal, where = AddressBook.read(books[0]), f"the address book {books[0]}"
    before = _before(proposal, books[0], previous)
    check_follows(proposal, before, where)
    for path in books[1:]:
        copy = AddressBook.read(path)
        if copy.digest != proposal.digest or copy.revision is None:
            raise ConfigError(f"{path} is another book than {books[0]}: compare them")
        proposal = with_signatures(proposal, copy.revision.signatures)
    members = Members(before, home / FOLDER)
    members.look()
    signed = signed_by(proposal, before, Identity.load(folder), members.known())
    BookMemory.read(folder).will_sign(signed, instead)
    signed.write(books[0])
    lines, about = _told(signed, before, books[0])
    Printer(json=as_json).answer(Reply(about, lines))


def network_book(
    book: Annotated[Path, typer.Argument(help="An address book, of any version.")],
    previous: Before = None,
    as_json: Json = False,
) -> None:
    """Show an address book, what it changes, and whether enough members of the version before
    signed it.

    Exit code 0: it stands; 1: not enough have signed.

    Example: bruit network book book2.toml
    """
    from bruit.peers.wire.identity import short_form
    from bruit.peers.wire.revisions.chain import book_as_it_was, check_standing

    found = book_as_it_was(book)
    if found.revision is None:
        lines = [f"version 1, {found.digest}: compare the fingerprints by another channel"]
        about: dict[str, object] = {"version": 1, "digest": found.digest, "stands": True}
    else:
        before = _before(found, book, previous)
        lines, about = _told(found, before, book)
        lines.append(f"it goes back to version 1, {found.founding}")
    lines += [
        f"peer {one.peer}  {one.name:<20} {one.address:<24} {short_form(one.fingerprint)}"
        for one in found.entries
    ]
    about["founding"] = found.founding
    about["fingerprints"] = {one.name: one.fingerprint for one in found.entries}
    if about["stands"] and previous is None:
        check_standing(found, book)  # all versions down to the first
    Printer(json=as_json).answer(Reply(about, lines))
    raise typer.Exit(0 if about["stands"] else 1)


def _before(book: AddressBook, path: Path, said: Path | None) -> AddressBook:
    from bruit.peers.wire.revisions.chain import book_as_it_was, previous_of

    return previous_of(book, path) if said is None else book_as_it_was(said)


def _named_run(said: str) -> str:
    """The digest of an experiment in a file, or the name as it was given."""
    from bruit.peers.site.agreed_run import agreed_words

    path = Path(said)
    if not path.is_file():
        return said
    return agreed_words(path.read_text(), path.parent, said).digest


def _told(
    book: AddressBook, previous: AddressBook, path: Path
) -> tuple[list[str], dict[str, object]]:
    """A later version, for people and for programs."""
    from bruit.peers.wire.revisions.proposing import differences
    from bruit.peers.wire.revisions.quorum import standing

    found = standing(book, previous, f"the address book {path}")
    run = "" if book.revision is None else book.revision.from_run
    changes = differences(book, previous)
    lines = [f"version {book.version}, {book.digest[:16]}, valid from {run}", *changes]
    lines += [f"not counted: {word}" for word in found.refused]
    lines.append(f"signed by {', '.join(found.signed) or 'nobody'}; {found.needed} are needed")
    missing = ", ".join(found.missing)
    if not found.stands:
        lines.append(f"IT DOES NOT STAND yet; not signed by {missing}")
    about: dict[str, object] = {
        "version": book.version,
        "digest": book.digest,
        "previous": previous.digest,
        "from_run": run,
        "changes": changes,
        "signed": list(found.signed),
        "missing": list(found.missing),
        "refused": list(found.refused),
        "needed": found.needed,
        "stands": found.stands,
    }
    return lines, about
