"""`bruit epsilon`: whom a question names, and its answer for programs and for people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bruit.commands.printing import Line
from bruit.errors import ConfigError
from bruit.privacy.ahead.statements import ask as ahead_of
from bruit.privacy.ahead.statements import keys, statement
from bruit.privacy.guarantee import Epsilon, level_facts
from bruit.privacy.pair_table import Summary
from bruit.runs.result import Run
from bruit.runs.settings import parse_settings
from bruit.show import summary as report


def named_observers(text: str | None) -> list[int] | str | None:
    """What `--seen-by` names: peers, everybody, or nobody."""
    if text is None or text == "everybody":
        return text
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(
            f"--seen-by {text!r} is neither a peer, peers like 3,7, nor 'everybody'"
        ) from None


def named_members(text: str | None) -> int | list[int] | None:
    """Whom `--of` names: a peer, several whose data all change at once, or nobody."""
    if text is None:
        return None
    try:
        members = [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--of {text!r} is neither a peer nor peers like 5,6") from None
    return members[0] if len(members) == 1 else members


def named_peer(text: str | None) -> int | None:
    """The one peer that `--of` names, where only one can be meant."""
    found = named_members(text)
    if isinstance(found, list):
        raise ConfigError(f"--of {text}: one peer is meant here; sets are for `bruit epsilon`")
    return found


def ask_before(
    subject: Run, of: int | list[int] | None, seen_by: str | None, delta: float, blank: bool
) -> Epsilon:
    """`bruit epsilon --before`: of a walk, before it goes."""
    from bruit.planning.before_walk import before_walk

    if isinstance(of, list):
        raise ConfigError(
            "before a walk the answer is about one peer; ask about several of a run, or one by one"
        )

    observers = named_observers(seen_by)
    if isinstance(observers, str):
        raise ConfigError(
            "everybody together sees every visit, before a walk as after it; leave --before out"
        )
    return before_walk(subject, of, observers, delta, blank=blank).epsilon(delta)


def ask_ahead(
    name: str,
    settings: list[str],
    given: dict[str, Any],
    sigma: float | None,
    sensitivity: float,
    delta: float,
) -> Epsilon:
    """A statement before any run, of what --set and the usual options say."""
    known = keys(statement(name))
    chosen = {key: value for key, value in given.items() if value is not None}
    if "seen_by" in chosen:
        observers = named_observers(chosen["seen_by"])
        chosen["seen_by"] = observers[0] if observers and len(observers) == 1 else observers
    if sigma is None and sensitivity != 1.0:
        raise ConfigError("--sensitivity says what --sigma is measured by; give --sigma too")
    if sigma is not None and "sigma" in known:
        if sensitivity != 1.0:
            raise ConfigError(f"{name} knows its own sensitivity; leave --sensitivity out")
        chosen["sigma"] = sigma
    elif sigma is not None:
        if not (0 < sigma < math.inf and 0 < sensitivity < math.inf):
            raise ConfigError(
                f"sigma and sensitivity must be finite and positive, found {sigma:g} and"
                f" {sensitivity:g}"
            )
        chosen["noise_multiplier"] = sigma / sensitivity
    for key, value in parse_settings(settings):
        if key in chosen:
            raise ConfigError(f"{key} is given twice, by its option and by --set; keep one of them")
        chosen[key] = value
    return ahead_of(name, chosen).epsilon(delta)


@dataclass(frozen=True)
class EpsilonAnswer:
    """One epsilon, or the summary over all pairs of a run; and why, if that was asked."""

    found: Epsilon | Summary
    why: str | None = None
    run: Run | None = None

    def plain(self) -> dict[str, Any]:
        found = self.found
        about = _plain(found) if isinstance(found, Epsilon) else report.summary_json(found)
        if isinstance(found, Summary) and self.run is not None:
            about |= report.levels_json(self.run, found)
        return about if self.why is None else {**about, "why": self.why}

    def lines(self) -> Iterator[Line]:
        if isinstance(self.found, Epsilon):
            yield self.found.why()
            return
        yield report.privacy_table(self.found)
        if self.run is not None:
            yield from report.levels_block(self.run, self.found)
        yield report.privacy_notes(self.found)
        if self.why is not None:
            yield f"\nthe worst pair:\n{self.why}"


def _plain(found: Epsilon) -> dict[str, Any]:
    about = found.guarantee
    return {
        "of": about.of,
        "seen_by": about.against,
        "loss": about.loss,
        "epsilon": float(found),
        "delta": found.delta,
        "status": about.status,
        **level_facts(about.level, about.adjacency),
        "theorem": about.theorem,
        "spec": about.spec,
        "noise_multiplier": about.noise_multiplier,
        "hypotheses": [str(h) for h in about.hypotheses],
        "notes": list(about.notes),
    }
