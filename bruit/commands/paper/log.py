"""`bruit log verify`: whether an audit log or an account was tampered with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bruit.commands.printing import Detail, Line, Printer, Reply, one_line
from bruit.commands.terminal import Json, Quiet
from bruit.errors import BrokenStateError, ConfigError
from bruit.how_many import how_many

if TYPE_CHECKING:
    from bruit.accounts.chain import ChainHead
    from bruit.accounts.verify import ExaminedLog

log_app = typer.Typer(help="Audit logs of peers and accounts of records.", no_args_is_help=True)


@log_app.callback()
def log() -> None:
    """What the commands on logs share."""


@log_app.command("verify")
def log_verify(
    file: Annotated[
        Path, typer.Argument(help="The audit.jsonl of a state folder, or an account of records.")
    ],
    signed: Annotated[
        Path | None,
        typer.Option(help="A signed report.json that knows how far the file had come."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check that nobody edited, dropped or reordered a line of an audit log or an account.

    Exit code 1: something is missing, as far as anybody can tell; 3: a line does not follow from
    the one before.

    Example: bruit log verify site/state/audit.jsonl --signed report.json
    """
    from bruit.accounts.verify import compare, verify

    found = verify(file)
    if signed is not None and found.kind:
        compare(found, _head(signed, found.kind))
    Printer(json=as_json, quiet=quiet).answer(Reply(found.plain(), _words(found, signed)))
    raise typer.Exit(BrokenStateError.exit_code if found.damaged else 0 if found.good else 1)


def _head(report: Path, kind: str) -> ChainHead:
    """The head of such a file in a signed report."""
    from bruit.accounts.chain import ChainHead
    from bruit.peers.site.signed_report import check

    read = check(report)
    if read.wrong:
        raise ConfigError(f"{report} cannot be believed: {read.wrong}")
    about: Any = read.content.get("account" if kind == "account" else "audit")
    try:
        return ChainHead(int(about["head"]["lines"]), str(about["head"]["hash"]))
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"{report} does not say how far the {kind} had come") from None


def _words(found: ExaminedLog, report: Path | None) -> Iterator[Line]:
    lines = how_many(len(found.found.lines), "line")
    if found.damaged:
        yield f"{found.path}: DAMAGED: {one_line(found.damaged)}"
        return
    verdict = "follow from each other" if found.good else "follow from each other, BUT:"
    yield f"{found.path}: {found.kind}, {lines} {verdict}"
    for doubt in found.doubts:
        yield f"  {one_line(doubt)}"
    for run in found.runs:
        about = run.about
        yield Detail(
            f"  run {one_line(about['run'])[:16]}, peer {one_line(about['peer'])}"
            f" ({one_line(about['name'])}), {one_line(about['algorithm'])}:"
            f" {how_many(run.releases, 'release')}, epsilon {run.epsilon():.4g} at delta {run.delta:g}"
            + ("" if run.ended else ", not ended")
        )
    if found.kind == "account":
        yield Detail(f"  {how_many(found.charges, 'charge')}")
    if report is None:
        yield Detail(
            "  an end that was cut off or edited shows only against a report: --signed FILE"
        )
