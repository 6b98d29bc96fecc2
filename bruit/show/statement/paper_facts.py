"""What a privacy statement rests on: read from a run folder, or from the folder of a real peer."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bruit.errors import ConfigError
from bruit.peers.journal.journal import recorded_spend
from bruit.peers.site.site import read_site
from bruit.privacy.events import Mask, from_json
from bruit.privacy.formulas.group import group_epsilon, mu_like, mu_of
from bruit.privacy.guarantee import level_words
from bruit.privacy.profile import EventsProfile, Profile
from bruit.runs.result import load

REPORT = "report.json"


@dataclass(frozen=True, kw_only=True)
class PaperFacts:
    """One run, as far as a statement speaks of it. `lines`: hypotheses, each checked or assumed."""

    simulated: bool
    protected: bool
    run: str
    config: str  # SHA-256 of what was agreed on
    ledger: str
    date: str
    peers: int | None
    algorithm: str
    task: str
    mechanism: str
    level: str
    adjacency: str
    epsilon: float
    delta: float
    status: str
    against: str
    why: str
    releases: int
    lines: tuple[tuple[bool, str], ...]
    profile: Profile | None

    @property
    def unit(self) -> str:
        return level_words(self.level, self.adjacency)  # type: ignore[arg-type]

    def mu(self) -> tuple[float, bool]:
        """mu of Gaussian DP, and whether the profile is exactly that; else the mu with the same
        epsilon at this delta."""
        exact = None if self.profile is None else mu_of(self.profile)
        return (mu_like(self.epsilon, self.delta), False) if exact is None else (exact, True)

    def of_person(self, rows: int) -> float:
        """Epsilon of somebody with so many records (group privacy); at user level all of them are
        counted already."""
        if self.level == "user" or self.profile is None:
            return self.epsilon
        return group_epsilon(self.profile, rows, self.delta)


def paper_facts(place: Path, delta: float | None = None) -> PaperFacts:
    """Of a run folder, a peer's site.toml, or its state folder."""
    if place.suffix == ".toml":
        site = read_site(place)
        return _of_peer(site.state, place.parent / site.file.experiment, delta)
    if (place / "manifest.json").is_file():
        return _of_simulation(place, delta)
    if (place / REPORT).is_file():
        return _of_peer(place, place.parent / "experiment.toml", delta)
    raise ConfigError(
        f"{place} is no run: name a run folder, a peer's site.toml, or its state folder with a"
        f" {REPORT}"
    )


def _of_simulation(folder: Path, delta: float | None) -> PaperFacts:
    run = load(folder)
    told = run.delta if delta is None else delta
    epsilon = run.epsilon(delta=told)
    about = epsilon.guarantee
    noise = run.privacy
    made = datetime.fromtimestamp((folder / "manifest.json").stat().st_mtime, UTC)
    return PaperFacts(
        simulated=True,
        protected=False,
        run=run.run_id(),
        config=run.config_digest(),
        ledger=run.ledger.digest(),
        date=made.date().isoformat(),
        peers=run.n,
        algorithm=run.algorithm.name(),
        task=str(run.task.get("kind", "")),
        mechanism="none" if noise is None else json.dumps(noise.describe(), sort_keys=True),
        level=about.level,
        adjacency=about.adjacency,
        epsilon=float(epsilon),
        delta=told,
        status=about.status,
        against=about.against,
        why=epsilon.why(),
        releases=int(run.ledger.counts()[:, run.ledger.is_data()].sum()),
        lines=tuple((one.checked, one.text) for one in about.hypotheses),
        profile=about.profile,
    )


def _of_peer(state: Path, experiment: Path, delta: float | None) -> PaperFacts:
    report = _report(state / REPORT)
    told = float(report["delta"]) if delta is None else delta
    model = _report(state / "model.json") if (state / "model.json").is_file() else {}
    privacy, made = dict(model.get("privacy", {})), dict(model.get("made", {}))
    spends = recorded_spend(state / "journal.db")
    mine = Counter(line.event for line in spends if line.peer == report["peer"])
    events = [(from_json(text).promised(), count) for text, count in mine.items()]
    events = [(event, count) for event, count in events if not isinstance(event, Mask)]
    profile = EventsProfile(tuple(events))
    epsilon = profile.epsilon(told) if events else 0.0
    if float(report["epsilon"]) == math.inf:
        epsilon = math.inf
    rehearsal = bool(report["rehearsal"])
    text = experiment.read_bytes() if experiment.is_file() else b""
    return PaperFacts(
        simulated=rehearsal,
        protected=not rehearsal and epsilon < math.inf,
        run=str(report["run"]),
        config=hashlib.sha256(text).hexdigest() if text else "not found beside the state folder",
        ledger=str(made.get("ledger", "")),
        date=datetime.fromtimestamp((state / REPORT).stat().st_mtime, UTC).date().isoformat(),
        peers=model.get("peers"),
        algorithm=str(report["algorithm"]),
        task=str(model.get("kind", "")),
        mechanism=json.dumps(privacy.get("mechanism"), sort_keys=True),
        level=str(privacy.get("level", "user")),
        adjacency=str(privacy.get("adjacency", "replace")),
        epsilon=epsilon,
        delta=told,
        status="proven",
        against=str(report["against"]),
        why=str(privacy.get("why", privacy.get("in_words", ""))),
        releases=int(report["releases"]),
        lines=(
            (True, "every release went through one door, and is in the journal's ledger"),
            (
                True,
                f"the peer ended as asked: {'; '.join(report['problems']) or 'nothing went wrong'}",
            ),
            (False, "noise comes from the operating system's random numbers"),
            (False, "records have the unit that was agreed on: one row, one person"),
        ),
        profile=profile,
    )


def _report(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
        if not isinstance(found, dict):
            raise ValueError("no record")
        return found
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path} cannot be read ({error}); a statement needs it as it was"
        ) from None
