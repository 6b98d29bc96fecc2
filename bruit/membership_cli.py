"""`bruit attack membership`: can peers tell from the model they learned whose records it was learned from?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bruit.errors import ConfigError
from bruit.terminal import Delta, Json, Quiet, Ticker, emit_json, say

if TYPE_CHECKING:
    from bruit.audits.membership import MembershipAudit


def attack_membership(
    place: Annotated[str, typer.Argument(metavar="RUN", help="A run folder, an experiment file, or a bundled name.")],
    seen_by: Annotated[str, typer.Option(help="The curious peers: one (7), or several who collude (3,7).")],
    shadows: Annotated[int, typer.Option(help="Runs on records the attacker chooses, to learn from.")] = 32,
    runs: Annotated[int, typer.Option(help="Runs that are attacked, each on other records.")] = 4,
    false_alarms: Annotated[float, typer.Option(help="The rate of false alarms at which hits are counted.")] = 0.01,
    delta: Delta = 1e-6,
    confidence: Annotated[float, typer.Option(help="How sure intervals and the shown epsilon are.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the records, the noise and the guesses.")] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Which records was a model learned from? The protocol is run on random halves of the records, and guessed at.

    Example: bruit attack membership breast-cancer --seen-by 0
    """
    from bruit.audits.membership import Game, audit_membership, protocol_of

    try:
        observers = sorted({int(part) for part in seen_by.split(",")})
    except ValueError:
        raise ConfigError(f"--seen-by {seen_by!r} is neither a peer nor peers like 3,7") from None
    game = Game(shadows, runs, false_alarms, delta, confidence, seed)
    done, task = protocol_of(place)
    with Ticker(quiet or as_json, "learning shadows") as ticker:
        found = audit_membership(done, task, observers, game, ticker)
    if as_json:
        emit_json(found.to_dict())
    else:
        _tell(found)


def _tell(found: MembershipAudit) -> None:
    who = ("peer " if len(found.seen_by) == 1 else "peers ") + ", ".join(map(str, found.seen_by))
    sure = f"{100 * found.confidence:g} %"
    say(f"{found.algorithm} on {found.graph}, seen by {who}: {found.records} records, {found.shadows} shadow runs,"
        f" {found.runs} attacked runs")  # fmt: skip
    low, high = found.auc_interval
    say(f"  AUC {found.auc:.3f}, between {low:.3f} and {high:.3f} ({sure}); guessing gives 0.5")
    low, high = found.hits_interval
    say(f"  {100 * found.hits:.1f} % of the members found at {100 * found.false_alarms:g} % false alarms, between"
        f" {100 * low:.1f} and {100 * high:.1f} % ({sure})")  # fmt: skip
    say(f"  epsilon >= {found.shown:.3g} at delta = {found.delta:g} is shown by the guesses (confidence {sure})")
    say(f"{found.verdict}: epsilon = {found.claimed:.4g} at delta = {found.delta:g}, {found.level} level, was claimed"
        f" by {found.theorem}")  # fmt: skip
    if found.verdict.startswith("cannot"):
        say(f"  even if every guess were right: {found.needed_records} records are needed, {found.records * found.runs}"
            " were guessed at; ask for more --runs, or audit the protocol with `bruit audit`")  # fmt: skip
    say(f"threat: {'; '.join(f'{key}: {value}' for key, value in found.taxonomy.items())}")
    say(f"defence: {found.defence}")
