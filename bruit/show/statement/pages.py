"""Two pages for people who sign: the blocks of NIST SP 800-226, and the annex of an impact assessment
(GDPR, article 35). Each line says whether it was checked, is assumed, or is not covered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bruit.show.statement.paper_facts import PaperFacts

CHECKED, ASSUMED, OPEN_LINE = "checked", "assumed", "not covered"
EXACTLY = "of its noise, exactly; what rounding adds is in epsilon"


@dataclass(frozen=True, kw_only=True)
class Residual:
    """What measured attacks say, if they were made: the report of `bruit audit --json`."""

    audit: dict[str, Any] | None = None

    def words(self) -> str:
        if self.audit is None:
            return "no audit was given (bruit audit EXPERIMENT --json, then --audit FILE)"
        numbers = {
            key: value
            for key, value in self.audit.items()
            if isinstance(value, int | float | str) and not isinstance(value, bool)
        }
        return ", ".join(f"{key} {value}" for key, value in numbers.items())


def nist(facts: PaperFacts) -> Iterator[tuple[str, str, str]]:
    """(block, mark, sentence) for every block of the pyramid, from the top."""
    numbers = CHECKED if facts.protected else ASSUMED
    yield (
        "epsilon",
        numbers,
        f"epsilon = {facts.epsilon:.6g} at delta = {facts.delta:g}, {facts.status}",
    )
    yield (
        "unit of privacy",
        ASSUMED,
        f"{facts.unit}; that one record is one person is the curator's word",
    )
    for done, text in facts.lines:
        yield "algorithm and its correctness", CHECKED if done else ASSUMED, text
    yield "mechanism", CHECKED, facts.mechanism
    for text in facts.besides:
        yield "known besides the messages", OPEN_LINE, f"{text} (no epsilon covers it)"
    yield "utility", OPEN_LINE, "whether the result is good enough for its use"
    yield "bias", OPEN_LINE, "how noise and clipping weigh on small groups"
    yield (
        "trust model",
        ASSUMED,
        f"peers follow the protocol; the epsilon is against {facts.against}",
    )
    yield (
        "security",
        OPEN_LINE if facts.simulated else ASSUMED,
        "machines, keys and backups; between peers mutual TLS 1.3 with pinned certificates",
    )
    yield "access control", OPEN_LINE, "who may read the records and start runs"
    yield "data collection", OPEN_LINE, "on which ground the records were collected"


def nist_page(facts: PaperFacts) -> str:
    """As Markdown."""
    rows = "\n".join(f"| {block} | {mark} | {text} |" for block, mark, text in nist(facts))
    return (
        f"# {_title(facts)}: evaluation by NIST SP 800-226\n\n{_simulation(facts)}"
        f"| block | mark | |\n|---|---|---|\n{rows}\n\n## Why this epsilon\n\n```text\n{facts.why}\n```\n"
    )


def dpia_page(facts: PaperFacts, residual: Residual, rows: tuple[int, ...]) -> str:
    """As Markdown."""
    mu, exact = facts.mu()
    persons = "\n".join(
        f"| {count} | {facts.of_person(count):.6g} |" for count in dict.fromkeys((1, *rows))
    )
    others = "see the address book" if facts.peers is None else facts.peers - 1
    unit = "all records of a peer are counted already" if facts.level == "user" else "group privacy"
    return f"""# {_title(facts)}: annex to a data protection impact assessment

{_simulation(facts)}## Flows

| from | to | what |
|---|---|---|
| records of a peer | nobody | they stay where they are |
| a peer | its neighbors | {facts.releases if facts.peers is None else "noisy"} releases of {facts.algorithm} |
| a peer | whoever is given the result | the model, and what it says of how it was made |

## Recipients

The other peers ({others}), and whoever is given the result. The epsilon \
holds against {facts.against}.

## Retention

The state folder of a peer holds journal, noise and inputs: keep it as secret as the records, and as long \
as the run may be asked about. The account of the records and the audit log hold no values: keep them as \
long as the records. Periods are the curator's to set.

## Residual risk

epsilon = {facts.epsilon:.6g} at delta = {facts.delta:g} ({facts.unit}, {facts.status}); mu = {mu:.6g} of Gaussian DP \
({EXACTLY if exact else "the same epsilon at this delta, no guarantee of its own"}).

| records of one person | epsilon at delta = {facts.delta:g} |
|---|---|
{persons}

({unit})

Measured: {residual.words()}.

Run {facts.run}, configuration {facts.config}, ledger {facts.ledger}.
"""


def _title(facts: PaperFacts) -> str:
    return f"Run {facts.run[:16]}"


def _simulation(facts: PaperFacts) -> str:
    if not facts.simulated:
        return ""
    return (
        "**This is a simulation, or a rehearsal of real peers.** The noise can be drawn again from a seed:"
        " nothing here protects anybody. The numbers say what real peers would pay.\n\n"
    )
