"""`bruit attack membership`: can peers tell from the model they learned whose records it was
learned from?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from bruit.commands.attacks.watching import SeenBy, named, peers_of
from bruit.commands.elsewhere import elsewhere
from bruit.commands.printing import Printer, Reply
from bruit.commands.terminal import Delta, Json, On, Quiet
from bruit.how_many import how_many

if TYPE_CHECKING:
    from bruit.adversary.audits.membership import MembershipAudit


def attack_membership(
    place: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="A run folder, a TOML file, or the name of a bundled experiment."
        ),
    ],
    seen_by: SeenBy,
    shadows: Annotated[
        int, typer.Option(help="Runs on records the attacker chooses, to learn from.")
    ] = 32,
    runs: Annotated[int, typer.Option(help="Runs that are attacked, each on other records.")] = 4,
    false_alarms: Annotated[
        float, typer.Option(help="The rate of false alarms at which hits are counted.")
    ] = 0.01,
    delta: Delta = 1e-6,
    confidence: Annotated[
        float, typer.Option(help="How sure intervals and the shown epsilon are.")
    ] = 0.95,
    on: On = None,
    seed: Annotated[int, typer.Option(help="Seed of the records, the noise and the guesses.")] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Which records was a model learned from? The protocol is run on random halves of the records,
    and guessed at.

    Example: bruit attack membership breast-cancer --seen-by 0
    """
    from bruit.adversary.audits.membership import Game, audit_membership, protocol_of

    observers, printer = peers_of(seen_by), Printer(json=as_json, quiet=quiet)
    game = Game(
        shadows=shadows,
        runs=runs,
        false_alarms=false_alarms,
        delta=delta,
        confidence=confidence,
        seed=seed,
    )
    done, task = protocol_of(place)
    with elsewhere(on, printer), printer.ticker("learning shadows") as ticker:
        found = audit_membership(done, task, observers, game, ticker)
    printer.answer(Reply(found.to_dict(), _guessed(found)))


def _guessed(found: MembershipAudit) -> Iterator[str]:
    from bruit.privacy.guarantee import level_words

    who = named(found.seen_by)
    sure = f"{100 * found.confidence:g} %"
    yield (
        f"{found.algorithm} on {found.graph}, seen by {who}: {how_many(found.records, 'record')},"
        f" {how_many(found.shadows, 'shadow run')}, {how_many(found.runs, 'attacked run')}"
    )
    low, high = found.auc_interval
    yield f"  AUC {found.auc:.3f}, between {low:.3f} and {high:.3f} ({sure}); guessing gives 0.5"
    low, high = found.hits_interval
    yield (
        f"  {100 * found.hits:.1f} % of the members found at {100 * found.false_alarms:g} % false"
        f" alarms, between {100 * low:.1f} and {100 * high:.1f} % ({sure})"
    )
    yield (
        f"  epsilon >= {found.shown:.3g} at delta = {found.delta:g} is shown by the guesses "
        f"(confidence {sure})"
    )
    yield (
        f"{found.verdict}: epsilon = {found.claimed:.4g} at delta = {found.delta:g},"
        f" {level_words(found.level, found.adjacency)}, was claimed by {found.theorem}"
    )
    if found.allowed > found.claimed:
        yield (
            "  a record that is outside is replaced by another, which is one removed and one added:"
            f" of that the claim says epsilon = {found.allowed:.4g}"
        )
    if found.verdict.startswith("cannot"):
        yield (
            f"  even if every guess were right: {found.needed_records} records are needed, "
            f"{found.records * found.runs}"
            " were guessed at; ask for more --runs, or audit the protocol with `bruit audit`"
        )
    yield f"threat: {'; '.join(f'{key}: {value}' for key, value in found.taxonomy.items())}"
    yield f"defence: {found.defence}"
