"""`bruit gopa verify`: was an average computed honestly? Judged from its board alone, offline, by anybody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.terminal import Delta, Json, Quiet, emit_json, err, say

if TYPE_CHECKING:
    from bruit.verification import Report

gopa_app = typer.Typer(help="Private averages with canceling noise: check what was computed.", no_args_is_help=True)
FINGERS = 16  # hexadecimal digits of a run that are read aloud


@gopa_app.callback()
def gopa() -> None:
    """Private averages with canceling noise: check what was computed."""


@gopa_app.command("verify")
def gopa_verify(
    board: Annotated[Path, typer.Argument(help="The board of a run: a file any of its peers keeps.")],
    against: Annotated[list[Path], typer.Option(help="Another copy of the board; give it several times.")] = [],  # noqa: B006
    keys: Annotated[Path | None, typer.Option(help="JSON: the Ed25519 keys you know, {\"0\": \"a1b2...\"}.")] = None,
    run: Annotated[str | None, typer.Option(help="The run you expect, in hexadecimal digits.")] = None,
    delta: Delta = 1e-6,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check every signature, commitment and proof of a run, recompute its mean, and name whoever cheated.

    Exit code 0: the mean stands. 1: it does not. 2: the file is no board, or damaged.

    Example: bruit gopa verify board.db --against my-copy.db
    """
    from bruit.verification import verify

    try:
        report = verify(board, list(against), _known_keys(keys), _known_run(run))
    except RemoteProtocolError as error:
        err.print(f"refused: {error}", markup=False, highlight=False, soft_wrap=True)
        if as_json:
            emit_json({"accepted": False, "findings": [{"peer": None, "kind": "unreadable", "text": str(error)}]})
        raise typer.Exit(1) from None
    if as_json:
        emit_json({**report.plain(), **_privacy(report, delta)})
    else:
        _say_report(report, delta, quiet)
    if not report.accepted:
        raise typer.Exit(1)


def _say_report(report: Report, delta: float, quiet: bool) -> None:
    if report.mean is None:
        say("NOT verified: no mean can be believed")
    else:
        numbers = ", ".join(f"{x:.6g}" for x in report.mean)
        say(f"verified: mean {numbers} of {len(report.online)} peers, standard error {report.error:.4g}")
    for found in report.findings:
        who = "somebody" if found.peer is None else f"peer {found.peer}"
        say(f"  {who}: {found.kind}: {found.text}")
    if quiet:
        return
    agreement = report.agreement
    say(f"  run {agreement.run.hex()[:FINGERS]}, {report.posts} posts, head {report.head.hex()[:FINGERS]}")
    if report.mean is not None:
        gone = f"; peers left out: {', '.join(map(str, report.dropped))}" if report.dropped else ""
        say(f"  values proven within {agreement.low:g}..{agreement.high:g}, noise proven: {agreement.noise_bits} coins"
            f" a number{gone}")  # fmt: skip
        told = _privacy(report, delta)
        say(f"  each user: epsilon = {told['epsilon']:.4g}, delta = {delta:g}, user level, against {told['against']}")


def _privacy(report: Report, delta: float) -> dict[str, float | str]:
    """The worst epsilon of a peer in the mean, seen by the worst other peer."""
    from bruit.verification.privacy import worst_epsilon

    if report.mean is None:
        return {}
    return {"epsilon": worst_epsilon(report, delta), "delta": delta, "level": "user",
            "against": "any one other peer that follows the protocol"}  # fmt: skip


def _known_keys(path: Path | None) -> dict[int, str] | None:
    if path is None:
        return None
    try:
        found = {int(peer): str(key) for peer, key in json.loads(path.read_text()).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(f"cannot read the keys in {path}: {error}; write {{\"0\": \"a1b2...\", ...}}") from None
    return found


def _known_run(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ConfigError(f"a run is named by 64 hexadecimal digits, found {text!r}") from None
