"""The verdict on one participant's run: what went otherwise than asked, in sentences, and what must
be known besides.

A *problem* makes the exit code 1: nobody was met, more neighbors were missed than the site plans
for (in an exchange, or because they never received what was said to them), the peer's own clock
called in vain. Planned is to be without as many neighbors as `wait_for` does not ask for. A *note*
tells what happened as it was asked for: contributions that the budget left out, messages nobody
confirmed.
"""

from __future__ import annotations

from collections import Counter

from bruit.how_many import how_many
from bruit.peers.host import Host


def met(host: Host) -> list[int]:
    """The neighbors from whom this peer has at least one message in its journal."""
    return [peer for peer in host.lines if host.journal.last_sequence(peer)]


def left_over(host: Host) -> dict[int, int]:
    """How many exchanges this peer went on without, or could not make, and never made up for, by
    neighbor."""
    count = Counter(miss.other for miss in host.absences.missed if not miss.late)
    count.subtract(miss.other for miss in host.absences.missed if miss.late)
    return {peer: number for peer, number in sorted(count.items()) if number > 0}


def missing(host: Host) -> list[int]:
    """The neighbors that this peer was without, for one exchange or for all; not those who were
    missed for a while and came back, where that leaves nothing over."""
    return sorted(
        (left_over(host).keys() | host.absences.skipped_for.keys()) - set(host.machine.back())
    )


def unreached(host: Host) -> dict[int, int]:
    """How many messages each neighbor has not confirmed: a peer that only reads its neighbors'
    latest words misses nobody, but may have spoken to nobody."""
    return host.speech.receipts.unconfirmed(host.journal)


def complete(host: Host) -> bool:
    """Whether everybody who was agreed on took part in everything: what was said was received, and
    no exchange was made without somebody."""
    schedule = host.machine.seat.algorithm.schedule
    behind = schedule.behind(host.machine.count, host.machine.seat.steps)
    return (
        (host.done or host.ended)
        and not (host.gave_up or host.broken or behind)
        and not (missing(host) or unreached(host))
    )


def planned(host: Host) -> int:
    """How many neighbors this peer may be without: those that `wait_for` does not ask for."""
    return 0 if host.settings.wait_for is None else max(0, len(host.lines) - host.settings.wait_for)


def problems(host: Host) -> list[str]:
    """What went otherwise than asked, so far; that nobody was met and nothing done is known at the
    end only."""
    if host.gave_up:
        return [host.gave_up]
    if host.machine.state is None:
        return []
    found, planned_, over = [], planned(host), host.done or host.ended
    deaf = unreached(host) if over else {}
    gone = sorted({*missing(host), *deaf})
    if over and host.lines and not met(host):
        found.append(f"met nobody: not a word came from {_names(host, list(host.lines))}")
    elif len(gone) > planned_:
        exchanges = sum(left_over(host).values())
        beyond = f", {planned_} may be missing by wait_for" if planned_ else ""
        what = f" in {how_many(exchanges, 'exchange')}" if exchanges else ""
        if not missing(host):
            unheard = sum(deaf.values())
            was = "was" if unheard == 1 else "were"
            what = f": {how_many(unheard, 'message')} {was} never received"
        found.append(f"missed {_names(host, gone)}{what}{beyond}")
    if host.absences.skipped_for and len(gone) > planned_:
        found.append(
            f"{host.absences.skipped} calls of its clock did not happen: not a first word of"
            f" {_names(host, list(host.absences.skipped_for))}"
        )
    shared = set(missing(host)) & set(host.machine.told().get("noise_shared_with", ()))
    if shared:
        found.append(
            f"noise shared with {_names(host, sorted(shared))} may not all have canceled: the "
            "mean may be off by it; epsilon counts on this peer's own noise only"
        )
    steps, unit = host.machine.seat.steps, host.machine.seat.algorithm.schedule.unit
    if over and host.machine.seat.algorithm.schedule.behind(host.machine.count, steps):
        found.append(f"ended after {host.machine.count} of {steps} {unit}")
    if over and not host.machine.told().get("agreed", True):
        found.append("gave up alone: nobody has confirmed its model, and the others' may differ")
    liars = [one["peer"] for one in host.machine.told().get("convicted", ())]
    if liars:
        found.append(f"{_names(host, liars)} signed two different sums; proof in the report")
    if (
        over
        and host.settings.horizon is not None
        and len(host.machine.seat.calls)
        and not host.machine.count
    ):
        found.append(
            f"made no update in {how_many(len(host.machine.seat.calls), 'call')} of its clock"
        )
    return found


def notes(host: Host) -> list[str]:
    """What happened as asked, and must be known all the same."""
    found = []
    if host.absences.skipped and not host.absences.skipped_for:
        found.append(f"{how_many(host.absences.skipped, 'call')} of its clock found somebody busy")
    gone, missed = missing(host), left_over(host)
    if gone and len({*gone, *unreached(host)}) <= planned(host):
        exchanges = sum(missed.get(peer, 0) for peer in gone)
        found.append(
            f"without {_names(host, gone)} in {how_many(exchanges, 'exchange')}, as wait_for allows"
        )
    unconfirmed = unreached(host)
    if unconfirmed:
        found.append(
            f"{how_many(sum(unconfirmed.values()), 'message')} never received by "
            f"{_names(host, sorted(unconfirmed))}"
        )
    left_out = host.left_out
    if left_out:
        places = ", ".join(str(clock) for _, clock in left_out[:5]) + (
            ", ..." if len(left_out) > 5 else ""
        )
        word = "contribution" if len(left_out) == 1 else f"{len(left_out)} contributions"
        found.append(f"{word} of {_place(host)} {places} left out: budget")
    return found


def _place(host: Host) -> str:
    """What the positions of this schedule are called."""
    return {"rounds": "round", "hops": "hop"}.get(host.machine.seat.algorithm.schedule.unit, "step")


def _names(host: Host, peers: list[int]) -> str:
    return ", ".join(host.book.entry(peer).name for peer in peers)
