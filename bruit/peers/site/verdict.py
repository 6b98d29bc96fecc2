"""The verdict on one participant's run: what went otherwise than asked, in sentences, and what must
be known besides.

A *problem* makes the exit code 1: nobody was met, more neighbors were missed than the site plans
for (in an exchange, or because they never received what was said to them), the peer's own clock
called in vain, the agreed budget left contributions out. Planned is to be without as many neighbors
as `wait_for` does not ask for. A *note* tells what happened as it was asked for: contributions that
the site's own smaller budget left out, messages nobody confirmed.
"""

from __future__ import annotations

from bruit.how_many import how_many
from bruit.peers.host import Host


def met(host: Host) -> list[int]:
    """The neighbors from whom this peer has at least one message in its journal."""
    return [peer for peer in host.lines if host.journal.last_sequence(peer)]


def left_over(host: Host) -> dict[int, int]:
    """How many exchanges this peer went on without, or could not make, and never made up for, by
    neighbor."""
    count = {peer: one.missed - one.late for peer, one in sorted(host.absences.of.items())}
    return {peer: number for peer, number in count.items() if number > 0}


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
    """Whether this peer and all of its neighbors took part in everything: what was said was received,
    no exchange was made without somebody, and none without this peer's data where it had its turn.
    Of a run that is true when everybody's report says so."""
    schedule = host.machine.seat.algorithm.schedule
    behind = schedule.behind(host.machine.count, host.machine.seat.steps)
    return (
        (host.done or host.ended)
        and not (host.gave_up or host.broken or behind)
        and not (missing(host) or unreached(host) or host.left_out)
    )


def missed_elsewhere(host: Host) -> bool:
    """Whether others, and not this peer, went on without somebody, for a while or to the end. True
    when the word of it came in time."""
    return host.gathering.apart and not host.absences.missed


def planned(host: Host) -> int:
    """How many neighbors this peer may be without: those that `wait_for` does not ask for."""
    return 0 if host.settings.wait_for is None else max(0, len(host.lines) - host.settings.wait_for)


def problems(host: Host) -> list[str]:
    """What went otherwise than asked, so far; that nobody was met and nothing done is known at the
    end only."""
    if host.gave_up:
        return [host.gave_up, *_undone(host)]
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
    if host.left_out and not host.settings.own_budget:
        found.append(_left_out(host))
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


def _undone(host: Host) -> list[str]:
    """What a peer that gave up has left undone of what was agreed on."""
    machine, found = host.machine, []
    steps, schedule = machine.seat.steps, machine.seat.algorithm.schedule
    if machine.state is None or host.broken:
        return []  # why it gave up says all that is known
    if schedule.behind(machine.count, steps):
        found.append(f"ended after {machine.count} of {steps} {schedule.unit}")
    if machine.calls_left:
        were = "was" if machine.calls_left == 1 else "were"
        found.append(
            f"{machine.calls_left} of {how_many(len(machine.seat.calls), 'call')} of its clock {were} not"
            " made"
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
    if missed_elsewhere(host):
        found.append(
            "elsewhere somebody was missed, for a while or to the end: the reports of all say who"
        )
    if host.left_out and host.settings.own_budget:
        found.append(f"{_left_out(host)} of this site")
    return found


def _left_out(host: Host) -> str:
    """Which contributions the budget left out."""
    left_out = host.left_out
    places = ", ".join(str(clock) for _, clock in left_out[:5]) + (
        ", ..." if len(left_out) > 5 else ""
    )
    word = "contribution" if len(left_out) == 1 else f"{len(left_out)} contributions"
    return f"{word} of {_place(host)} {places} left out: budget"


def _place(host: Host) -> str:
    """What the positions of this schedule are called."""
    return {"rounds": "round", "hops": "hop"}.get(host.machine.seat.algorithm.schedule.unit, "step")


def _names(host: Host, peers: list[int]) -> str:
    return ", ".join(host.book.entry(peer).name for peer in peers)
