"""`bruit gopa verify`: was an average computed honestly? Judged from its board alone, offline, by
anybody. And `bruit gopa rehearse`, beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bruit.commands.printing import Detail, Line, Printer, Reply, warn
from bruit.commands.statistics.gopa_rehearsal import gopa_rehearse
from bruit.commands.statistics.tables import Book
from bruit.commands.terminal import Delta, Json, Quiet
from bruit.errors import ConfigError, RemoteProtocolError

if TYPE_CHECKING:
    from bruit.statistics.average.board import Report

gopa_app = typer.Typer(
    help="Private averages with canceling noise: rehearse them, check what was computed.",
    no_args_is_help=True,
)
FINGERS = 16  # hexadecimal digits of a run that are read aloud


@gopa_app.callback()
def gopa() -> None:
    """Private averages with canceling noise: rehearse them, check what was computed."""


gopa_app.command("rehearse")(gopa_rehearse)


@gopa_app.command("verify")
def gopa_verify(
    board: Annotated[
        Path, typer.Argument(help="The board of a run: a file any of its peers keeps.")
    ],
    against: Annotated[
        list[Path], typer.Option(help="Another copy of the board. May be repeated.")
    ] = [],  # noqa: B006
    keys: Annotated[
        Path | None, typer.Option(help='JSON: the Ed25519 keys you know, {"0": "a1b2..."}.')
    ] = None,
    book: Book = None,
    run: Annotated[
        str | None, typer.Option(help="The run you expect, in hexadecimal digits.")
    ] = None,
    delta: Delta = 1e-6,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check every signature, commitment and proof of a run, recompute its mean, and name whoever
    cheated.

    Whose keys a board lists it cannot tell itself: say whose you know with --book, --keys or --run.

    Exit code 0: the mean stands. 1: it does not. 2: the file is no board, or damaged.

    Example: bruit gopa verify board.db --book book.toml --against my-copy.db
    """
    from bruit.statistics.average.board import verify

    printer, known = Printer(json=as_json, quiet=quiet), _known_keys(keys, book)
    try:
        report = verify(board, list(against), known, _known_run(run))
    except RemoteProtocolError as error:
        warn(f"refused: {error}")
        finding = {"peer": None, "kind": "unreadable", "text": str(error)}
        printer.answer(Reply({"accepted": False, "findings": [finding]}, []))
        raise typer.Exit(1) from None
    strange = () if run is not None else tuple(_strangers(report, known))
    printer.answer(_Verified(report, delta, strange))
    if not report.accepted:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Verified:
    """What the board says, and what was wrong with it."""

    report: Report
    delta: float
    strange: tuple[int, ...]  # whose keys nobody compared

    def plain(self) -> dict[str, Any]:
        about = {**self.report.plain(), **_privacy(self.report, self.delta)}
        return {**about, "keys_not_compared": list(self.strange)}

    def lines(self) -> Iterator[Line]:
        report = self.report
        if report.mean is None:
            yield "NOT verified: no mean can be believed"
        else:
            numbers = ", ".join(f"{x:.6g}" for x in report.mean)
            yield (
                f"verified: mean {numbers} of {len(report.online)} peers, standard error "
                f"{report.error:.4g}"
            )
        for found in report.findings:
            who = "somebody" if found.peer is None else f"peer {found.peer}"
            yield f"  {who}: {found.kind}: {found.text}"
        for line in _details(report, self.delta):
            yield Detail(f"  {line}")
        if self.strange:
            yield Detail(
                f"  whose keys these are no board can tell: those of {len(self.strange)} of"
                f" {report.agreement.peers} peers were compared with none you know; add --book"
            )


def _details(report: Report, delta: float) -> Iterator[str]:
    agreement = report.agreement
    yield (
        f"run {agreement.run.hex()[:FINGERS]}, {report.posts} posts, head "
        f"{report.head.hex()[:FINGERS]}"
    )
    if report.mean is not None:
        gone = f"; peers left out: {', '.join(map(str, report.dropped))}" if report.dropped else ""
        yield (
            f"values proven within {agreement.low:g}..{agreement.high:g}, noise proven:"
            f" {agreement.noise_bits} coins a number{gone}"
        )
        yield f"all {len(report.online)} signed this board before anything was opened"
        yield from _privacy_lines(report, _privacy(report, delta))


def _privacy_lines(report: Report, privacy: dict[str, Any]) -> list[str]:
    """What is promised to whom, and what is not."""
    from bruit.privacy.guarantee import level_words

    agreement, whose = (
        report.agreement,
        "each row" if report.agreement.level == "record" else "each user",
    )
    hides = f"{agreement.noise_bits} coins a number of {len(report.online)} peers"
    if privacy["epsilon"] is None:
        return [
            f"{whose}: no epsilon at delta = {privacy['delta']:g}: {hides} do not hide "
            f"{agreement.shift} levels"
        ]
    lines = [
        f"{whose}: epsilon = {privacy['epsilon']:.4g}, delta = {privacy['delta']:g},"
        f" {level_words(agreement.level, 'replace')}, against {privacy['against']}"
    ]
    if agreement.level == "record":
        lines.append(
            f"a peer as a whole: nothing is claimed; {hides} hide one row ({agreement.shift} of"
            f" {agreement.levels} levels), not all rows of a peer together"
        )
    return lines


def _privacy(report: Report, delta: float) -> dict[str, Any]:
    """The worst epsilon of what the board protects, a row or a peer, seen by the worst other peer;
    None: there is none at this delta."""
    from bruit.privacy.guarantee import level_facts
    from bruit.statistics.average.board.privacy import worst_epsilon

    if report.mean is None:
        return {}
    found = worst_epsilon(report, delta)
    return {
        "epsilon": found if math.isfinite(found) else None,
        "delta": delta,
        **level_facts(report.agreement.level, "replace"),
        "against": "any one other peer that follows the protocol",
    }


def _strangers(report: Report, known: dict[int, str] | None) -> list[int]:
    """Peers whose keys were taken from the board itself, on nobody's word."""
    return [peer for peer in range(report.agreement.peers) if peer not in (known or {})]


def _known_keys(path: Path | None, book: Path | None) -> dict[int, str] | None:
    if book is not None:
        from bruit.peers.wire.identity import signing_key
        from bruit.peers.wire.revisions.chain import standing_book

        if path is not None:
            raise ConfigError("keys are told by --book or by --keys; leave one of them out")
        return {
            entry.peer: signing_key(entry.certificate).hex()
            for entry in standing_book(book).entries
        }
    if path is None:
        return None
    try:
        found = {int(peer): str(key) for peer, key in json.loads(path.read_text()).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(
            f'cannot read the keys in {path}: {error}; write {{"0": "a1b2...", ...}}'
        ) from None
    return found


def _known_run(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ConfigError(f"a run is named by 64 hexadecimal digits, found {text!r}") from None
