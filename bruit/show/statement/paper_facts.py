"""What a privacy statement rests on: read from a run folder, or from the folder of a real peer."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import EVERYBODY
from bruit.errors import ConfigError
from bruit.how_many import how_many
from bruit.peers.journal.journal import recorded_spend
from bruit.peers.journal.step import Spend
from bruit.peers.site.signed_report import check
from bruit.peers.site.site import read_site, site_text
from bruit.peers.wire.identity import short_form
from bruit.privacy.events import Event, Exact, Mask, from_json
from bruit.privacy.formulas.group import group_epsilon, mu_like, mu_of
from bruit.privacy.guarantee import level_words
from bruit.privacy.ledger import Ledger
from bruit.privacy.profile import EventsProfile, Profile
from bruit.privacy.theorem import WITH_ROUNDING
from bruit.runs.model import FILE as MODEL
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
    besides: tuple[
        str, ...
    ] = ()  # what is known besides messages, read off rows: no epsilon covers it

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
        counted already. Never less than that of one record, and infinite where nothing is known."""
        if self.level == "user" or self.epsilon == math.inf:
            return self.epsilon
        if self.profile is None:
            return self.epsilon if rows == 1 else math.inf
        return max(self.epsilon, group_epsilon(self.profile, rows, self.delta))


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
        besides=_besides(run.task.get("public", [])),
    )


def _of_peer(state: Path, experiment: Path, delta: float | None) -> PaperFacts:
    """From the signed report, the journal and the model of a peer that does not run; refused where
    they contradict each other."""
    report = _signed_report(state / REPORT)
    told = float(report["delta"]) if delta is None else delta
    journal = state / "journal.db"
    spends = recorded_spend(journal) if journal.is_file() else []
    counts = Counter(line.event for line in spends if line.peer == report["peer"])
    found = [(from_json(text).promised(), count) for text, count in counts.items()]
    events = tuple((event, count) for event, count in found if not isinstance(event, Mask))
    ledger, model = _ledger_digest(spends), _model(state, report["run"])
    privacy, made = dict(model.get("privacy", {})), dict(model.get("made", {}))
    released = sum(count for _, count in events)
    config = _config(made, experiment)
    if released != report["releases"] or made.get("ledger", ledger) != ledger:
        raise ConfigError(
            f"the journal in {state} holds {how_many(released, 'release')}, and report or model are of"
            f" another moment ({how_many(int(report['releases']), 'release')}): let the peer end, or start"
            " and stop it once more, and both are written anew"
        )
    if released and "level" not in privacy and "in_words" not in privacy:
        raise ConfigError(f"{state / MODEL} does not say what is protected; put it back as it was")
    profile, rehearsal = EventsProfile(events), bool(report["rehearsal"])
    epsilon = profile.epsilon(told) if events else 0.0
    noiseless = any(isinstance(event, Exact) for event, _ in events)
    unbounded = float(report["epsilon"]) == math.inf
    broken = unbounded and report["old_copy"] and not noiseless
    epsilon = math.inf if unbounded else epsilon
    return PaperFacts(
        simulated=rehearsal,
        protected=not rehearsal and epsilon < math.inf,
        run=str(report["run"]),
        config=config,
        ledger=ledger,
        date=datetime.fromtimestamp((state / REPORT).stat().st_mtime, UTC).date().isoformat(),
        peers=model.get("peers"),
        algorithm=str(report["algorithm"]),
        task=str(model.get("kind", "")),
        mechanism=json.dumps(privacy.get("mechanism"), sort_keys=True),
        level=str(privacy.get("level", "user")),
        adjacency=str(privacy.get("adjacency", "replace")),
        epsilon=epsilon,
        delta=told,
        status="unknown: the journal is an old copy" if broken else _status(events),
        against=str(report["against"]),
        why=_why(str(report["against"]), events, epsilon, told),
        releases=released,
        lines=_peer_lines(report, broken),
        profile=None if broken else profile,
        besides=_besides(made.get("known_besides", [])),
    )


def _besides(known: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """What is known of rows besides messages; names and constants that were agreed on tell nothing of
    them."""
    read = (one for one in known if one["from"] != "agreed")
    return tuple(f"from {one['from']}: {one['fact']}" for one in read)


def _status(events: tuple[tuple[Event, int], ...]) -> str:
    """`ideal` where the bits of a release are not accounted for (fp:FP-4)."""
    floats = [isinstance(one, WITH_ROUNDING) and one.rounding == math.inf for one, _ in events]
    return "ideal" if any(floats) else "proven"


def _why(against: str, events: tuple[tuple[Event, int], ...], epsilon: float, delta: float) -> str:
    """Where the very epsilon of the page comes from, at its delta."""
    released = how_many(sum(count for _, count in events), "release")
    kinds: Counter[str] = Counter()
    for event, count in events:
        kinds[", ".join(f"{key} {value}" for key, value in event.describe().items())] += count
    return "\n".join(
        (
            f"epsilon = {epsilon:.6g} at delta = {delta:g}: {released} in the journal of this peer,"
            f" composed by their events; against {against}",
            *(f"  {count} x {kind}" for kind, count in kinds.items()),
        )
    )


def _peer_lines(report: dict[str, Any], broken: bool) -> tuple[tuple[bool, str], ...]:
    """The hypotheses of a peer's epsilon, each with whether it was checked."""
    yes = "every release is in the ledger of the journal, which report and model agree with"
    no = "every release is in the ledger: it is NOT, the journal is an old copy"
    found = [
        (not broken, no if broken else yes),
        (True, f"the report is signed by {report['signer']}"),
        _end(report),
        (False, "noise comes from the operating system's random numbers"),
        (False, "records have the unit that was agreed on: one row, one person"),
    ]
    found += [(False, str(text)) for text in report.get("assumed", ())]
    if report["against"] != EVERYBODY:
        found.append((False, f"nobody sees more than {report['against']} do: masks stay secret"))
    return tuple(found)


def _end(report: dict[str, Any]) -> tuple[bool, str]:
    """How the run ended for this peer, and whether that is as asked."""
    problems, notes = ("; ".join(map(str, report[key])) for key in ("problems", "notes"))
    if problems:
        return False, f"the peer ended as asked: it did NOT: {problems}"
    if not report["done"]:
        reached = f"{report['step']} of {report['steps']}"
        return (
            False,
            f"the peer ended as asked: it has NOT ended, this is what it released by {reached}",
        )
    if report["as_agreed"]:
        return True, "the peer ended as asked, and missed none of its neighbors"
    late = "it missed somebody for a while, which was made up for later"
    return True, f"the peer ended as asked, and was NOT with all of its neighbors: {notes or late}"


def _signed_report(path: Path) -> dict[str, Any]:
    """A peer's report, with the name of its signer; refused if the signature does not hold."""
    _report(path)
    found = check(path)
    if found.wrong:
        raise ConfigError(
            f"{path} is not what the peer signed ({found.wrong}); a statement needs it as it was"
        )
    signer = f"{found.signer} ({short_form(found.fingerprint)})"
    return {
        **found.content,
        "signer": signer,
        "as_agreed": found.as_agreed,
        "old_copy": found.old_copy,
    }


def _model(state: Path, run: str) -> dict[str, Any]:
    """The model beside a report; empty where nothing was learned. One of another run is refused."""
    path = state / MODEL
    model = _report(path) if path.is_file() else {}
    named = dict(model.get("made", {})).get("run", run)
    if named != run:
        raise ConfigError(f"{path} is of run {str(named)[:16]}, and the report of {run[:16]}")
    return model


def _config(made: dict[str, Any], experiment: Path) -> str:
    """Digest of what was agreed on; refused where the file beside is not what the model names."""
    text = site_text(experiment) if experiment.is_file() else ""
    found = hashlib.sha256(text.encode()).hexdigest() if text else ""
    named = str(made.get("config", found))
    if found and found != named:
        raise ConfigError(
            f"{experiment} was changed after the run: its digest is {found[:16]}, the model names"
            f" {named[:16]}; put it back"
        )
    return named or "not found beside the state folder"


def _ledger_digest(spends: list[Spend]) -> str:
    """What the ledger of a journal is named by."""
    ledger = Ledger(peers=max((line.peer for line in spends), default=0) + 1)
    for line in spends:
        peer, step, clock = (np.array([one]) for one in (line.peer, line.step, line.clock))
        ledger.record(peer, step, clock, from_json(line.event))
    return ledger.digest()


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
