"""`bruit statement`: what a run promised, on paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bruit.commands.printing import Printer, Reply
from bruit.commands.terminal import Force, Json, Quiet, RowsPerPerson, RunDelta
from bruit.errors import ConfigError

if TYPE_CHECKING:
    from bruit.show.statement.paper_facts import PaperFacts


def statement(
    run: Annotated[
        Path, typer.Argument(help="A run folder, a peer's site.toml, or its state folder.")
    ],
    output: Annotated[Path, typer.Option("--out", help="Folder to write three files to.")] = Path(
        "statement"
    ),
    rows_per_person: RowsPerPerson = [2, 5, 10],  # noqa: B006
    audit: Annotated[
        Path | None, typer.Option(help="Measured attacks: what `bruit audit --json` printed.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the data product.")] = "",
    curator: Annotated[str, typer.Option(help="Who publishes it.")] = "",
    use: Annotated[str, typer.Option(help="What it is for.")] = "",
    region: Annotated[str, typer.Option(help="Whose data, under whose law.")] = "",
    author: Annotated[str, typer.Option(help="Who wrote the entry, if not the curator.")] = "",
    tuning: Annotated[str, typer.Option(help="How constants were chosen, on which data.")] = "",
    justification: Annotated[str, typer.Option(help="Why this epsilon is acceptable.")] = "",
    delta: RunDelta = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the privacy statement of a run: a registry entry, a NIST SP 800-226 page, a DPIA annex.

    A simulated run says that it is a simulation.

    Example: bruit statement runs/ten-clinics-seed0.run --out statement
    """
    from bruit.files import check_place, write_whole
    from bruit.show.statement.pages import Residual, dpia_page, nist_page
    from bruit.show.statement.paper_facts import paper_facts
    from bruit.show.statement.registry import open_fields, registry_entry, to_yaml

    if output.exists() and not output.is_dir():
        raise ConfigError(f"{output} is a file; name a folder for the statement")
    facts = paper_facts(run, delta)
    residual = Residual(audit=None if audit is None else _audit(audit))
    given = {
        "name": name,
        "curator": curator,
        "use": use,
        "region": region,
        "author": author,
        "tuning": tuning,
        "justification": justification,
    }
    note = "A simulation: nothing here protects anybody." if facts.simulated else ""
    entry = registry_entry(facts, given, f"{note} Measured: {residual.words()}".strip())
    texts = {
        "registry.yaml": to_yaml(entry),
        "nist-sp-800-226.md": nist_page(facts),
        "dpia-annex.md": dpia_page(facts, residual, tuple(rows_per_person)),
    }
    output.mkdir(parents=True, exist_ok=True)
    for file in texts:
        check_place(output / file, force)
    for file, text in texts.items():
        content = text.encode()
        write_whole(output / file, lambda stream, content=content: stream.write(content))  # type: ignore[misc]
    about, lines = _told(facts, [output / file for file in texts], rows_per_person)
    about["open"] = left = open_fields(entry)
    if left:
        lines.append(f"to be filled in by people in registry.yaml: {', '.join(left)}")
    Printer(json=as_json, quiet=quiet).answer(Reply(about, lines))


def _told(
    facts: PaperFacts, files: list[Path], rows: list[int]
) -> tuple[dict[str, object], list[str]]:
    """What was written, for programs and for people."""
    from bruit.show.statement.pages import EXACTLY, nist

    mu, exact = facts.mu()
    marks = [mark for _, mark, _ in nist(facts)]
    about: dict[str, object] = {
        "simulated": facts.simulated,
        "run": facts.run,
        "config": facts.config,
        "ledger": facts.ledger,
        "epsilon": facts.epsilon,
        "delta": facts.delta,
        "level": facts.level,
        "adjacency": facts.adjacency,
        "status": facts.status,
        "against": facts.against,
        "mu": mu,
        "mu_exact": exact,
        "epsilon_of_person": {str(k): facts.of_person(k) for k in rows},
        "lines": {mark: marks.count(mark) for mark in dict.fromkeys(marks)},
        "files": [str(file) for file in files],
    }
    counted = ", ".join(f"{marks.count(mark)} {mark}" for mark in dict.fromkeys(marks))
    lines = ["this is a simulation: it says what real peers would pay"] if facts.simulated else []
    lines += [
        f"epsilon = {facts.epsilon:.6g} at delta = {facts.delta:g} ({facts.unit}), against"
        f" {facts.against}",
        f"mu = {mu:.6g} of Gaussian DP ({EXACTLY if exact else 'the same epsilon at this delta'})",
        *(
            f"a person with {k} rows: epsilon = {facts.of_person(k):.6g}"
            for k in rows
            if facts.level == "record"
        ),
        f"wrote {', '.join(map(str, files))}: {counted}",
    ]
    return about, lines


def _audit(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is not what `bruit audit --json` prints ({error})") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} is not what `bruit audit --json` prints: it is no record")
    return found
