"""What a run looks like in a terminal: accuracy beside its references, the privacy table, how it
was obtained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bruit.algorithms.expectation import Expectation
from bruit.how_many import how_many
from bruit.mechanisms import Mechanism, RecordSums
from bruit.privacy.guarantee import level_facts, level_words, status_words
from bruit.privacy.pair_table import Summary
from bruit.privacy.theorems.walk import RealizedWalk
from bruit.runs.attempts import attempts
from bruit.runs.both_levels import both_levels
from bruit.runs.communication import communication
from bruit.runs.engines.blocks import blocks_words
from bruit.runs.expected import expected
from bruit.runs.model import FILE as MODEL
from bruit.runs.model import NO_NOISE, WITHOUT_ROWS
from bruit.runs.result import Run

SOURCES = {
    "private rows": "[yellow]from private rows[/yellow]",
    "public rows": "from public rows",
    "agreed": "agreed",
}
REFERENCES = {
    "alone": "each peer alone, sharing nothing",
    "central": "all data in one place, no privacy",
    "one_answer": "one answer for all, no data at all",
    "alone_everybody": "each peer alone, on everybody's test records",
}


SHOWN_PEERS = 16  # more peers are counted, not listed


def headline(run: Run) -> str:
    """What was run, in one sentence."""
    noise = "without privacy"
    if run.privacy is not None and run.privacy.gamma > 0:
        noise = f"with randomized response, a uniform answer with chance {run.privacy.gamma:.4g}"
    elif run.privacy is not None:
        ideal = ", in ideal arithmetic" if run.privacy.arithmetic == "ideal" else ""
        noise = f"with {noise_name(run.privacy)}, sigma {run.privacy.sigma:.4g}{ideal}"
    data = run.task.get("data")
    data = (
        data.get("name", "data")
        if isinstance(data, dict)
        else str(run.task.get("task", "blank data"))
    )
    what = f"{run.algorithm.name()} for {length(run)}"
    stopped = "" if run.interrupted is None else f", {run.stopped_words()}"
    return f"{how_many(run.n, 'peer')}, {run.graph.name}, {what}, {data}, {noise}{stopped}"


def length(run: Run) -> str:
    """How long it was, in the unit of its schedule: 1 round, 40 rounds."""
    unit, *of_what = run.algorithm.schedule.unit.split(" ")
    return " ".join([how_many(run.steps, unit.removesuffix("s")), *of_what])


def noise_name(mechanism: Mechanism) -> str:
    """The noise in words; on sums of records with what belongs to them."""
    if not isinstance(mechanism, RecordSums):
        return f"{type(mechanism).__name__} noise"
    rate = mechanism.sample_rate
    drawn = "" if rate == 1 else f", each in a batch with chance {rate:g}"
    moved = level_words(mechanism.level, mechanism.adjacency)
    return f"noise on sums of clipped records{drawn} ({moved})"


def verdict_lines(run: Run) -> list[str]:
    """Whether together beat alone, and what would help if it did not."""
    found = run.verdict()
    if found is None or not found.worse:
        return []
    return [f"together is {found.sentence()}; what would help: {'; '.join(advice(run))}"]


def advice(run: Run) -> list[str]:
    """What makes together better, for a run that was worse than staying alone."""
    if run.privacy is None:
        knob = next(
            (name for name in ("rate", "coupling", "gamma") if name in run.algorithm.describe()),
            "algorithm",
        )
        return [f"more steps, or another {knob} (there is no noise in the way)"]
    dim, records = run.task.get("dim"), run.task.get("records_per_peer")
    found = [
        f"more peers (noise averages out over them, and {run.n} are few)",
        "a larger epsilon (less noise: privacy.epsilon, or a smaller privacy.sigma)",
    ]
    if run.privacy.level == "user" and isinstance(records, list) and max(records) > 1:
        found.append(
            "record level, if it is enough to protect one record instead of all that a peer holds "
            '(privacy.level = "record")'
        )
    if isinstance(dim, int) and dim > 2:
        fewer = (
            "a smaller network, or fixed features before it"
            if run.task.get("task") == "Torch"
            else "task.components, or fewer columns"
        )
        found.append(f"fewer numbers to hide (a model has {dim}: {fewer})")
    return found


def is_open(run: Run, summary: Summary) -> bool:
    """Whether there is no noise at all, so that one sentence says everything about privacy."""
    return run.privacy is None and summary.local_epsilon == float("inf")


def model_lines(run: Run, folder: str, program: str) -> list[str]:
    """Where the model is, how good, and how it is used."""
    if run.learned is None:
        return []
    peer, score = run.learned.peer, run.learned.score
    lines = [f"the model of peer {peer} ({run.learned.kind}) is in {folder}/{MODEL}"]
    if score is not None:
        where = (
            "records that no peer holds"
            if score.public
            else "the peers' own records, so it is not in the file"
        )
        lines[0] += f"; its {run.learned.metric} is {score.value:.4f} on {where}"
    rows = " NEW.csv" if run.learned.kind not in WITHOUT_ROWS else ""
    if run.learned.recipe is not None:
        lines.append(f"  {program} predict {folder}{rows}")
    return lines


def scores_table(run: Run) -> Table | None:
    """The metric the task cares about, beside its two references."""
    if not run.metrics.rows:
        return None
    name = str(run.task.get("metric") or run.metrics.names()[0])
    rows = score_rows(run, name)
    held_out = " (on records that no peer holds)" if run.task.get("test") else ""
    if "one_answer" in run.references:
        held_out = " (on each peer's own test records, mean over peers)"
    table = Table(title=name + held_out, title_justify="left")
    table.add_column("who")
    table.add_column(name, justify="right")
    for text, score, _ in rows:
        bold = text in ("together, with bruit", with_own_part(run))
        table.add_row(text, f"{score:.4f}", style="bold" if bold else None)
    return table


def with_own_part(run: Run) -> str:
    """How models are called that a part stays at home of; empty where none does."""
    found = run.joining
    return (
        "" if found is None or found.own_part is None else f"together, each with its {found.part()}"
    )


def score_rows(run: Run, name: str) -> list[tuple[str, float, float]]:
    """Who, its score, and that of the worst peer (nan where it is not known), in the order of the
    table."""

    def reference(key: str) -> list[tuple[str, float, float]]:
        if key not in run.references:
            return []
        worst = run.references.get(f"{key}_worst", math.nan)
        return [(REFERENCES[key], run.references[key], worst)]

    last = {score: run.metrics.last(score) for score in run.metrics.names()}
    rows = reference("alone")
    rows.append(("together, with bruit", last[name], last.get("worst", math.nan)))
    if run.joining is not None and with_own_part(run):
        ends = run.joining.ends_with
        worst = min(ends) if run.joining.higher else max(ends)
        rows.append((with_own_part(run), run.joining.mean(), worst))
    for key in ("central", "one_answer", "alone_everybody"):
        rows += reference(key)
    if "alone_everybody" in run.references:
        rows.append(("together, on everybody's test records", last["everybody"], math.nan))
    return rows


def joining_table(run: Run) -> Table | None:
    """What each peer has on its own test records, and for whom joining paid; None without such
    records."""
    found = run.joining
    if found is None or len(found.names) > SHOWN_PEERS:
        return None
    told = "\nspread: standard deviation over peers" if found.spread() else ""
    caption = found.sentence() + told
    title = f"for whom did joining pay? ({found.metric} on {found.where()})"
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    columns = found.columns()
    table.add_column("peer")
    table.add_column("learns from", justify="right")
    table.add_column("judged on", justify="right")
    for name, _ in columns:
        table.add_column(name, justify="right")
    for peer, name in enumerate(found.names):
        cells = [f"{value:.4f}" for value in found.of(peer)[:-1]]
        counts = (str(found.records[peer]), str(found.test_records[peer]))
        last = peer == len(found.names) - 1
        row = (escape(name), *counts, *cells, f"{found.gains[peer]:+.4f}")
        table.add_row(*row, end_section=last)
    for short, (_, numbers) in zip(("mean", "spread"), found.spread(), strict=False):
        gain = f"{numbers[-1]:.4f}" if short == "spread" else f"{numbers[-1]:+.4f}"
        table.add_row(short, "", "", *(f"{value:.4f}" for value in numbers[:-1]), gain)
    return table


def privacy_table(summary: Summary) -> Table:
    """Worst, typical and mean pair beside local DP, with delta and level in the title."""
    protected = level_words(summary.level, summary.adjacency)
    title = (
        f"what could one peer have learned about another? (delta = {summary.delta:g}, {protected})"
    )
    caption = status_words(summary.status) if summary.status == "ideal" else None
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    table.add_column("pair")
    table.add_column("loss (local DP release = 1)", justify="right")
    table.add_column("epsilon, ideal" if caption else "epsilon", justify="right")
    for name, loss, epsilon in summary.rows():
        table.add_row(name, loss_words(loss), f"{epsilon:.4g}")
    return table


def loss_words(loss: float) -> str:
    """A loss in a table; noise that is not Gaussian has none."""
    return "-" if math.isnan(loss) else f"{loss:.4g}"


def levels_block(run: Run, summary: Summary) -> Iterator[RenderableType]:
    """Both levels side by side, and what was promised beside what was spent, where there is such a
    thing; every epsilon with its adjacency."""
    told = f"at delta = {summary.delta:g}, {level_words(summary.level, summary.adjacency)}"
    levels, made = (
        both_levels(run, summary.epsilons[0], summary.delta),
        attempts(run, summary.delta),
    )
    if levels is not None:
        yield Text(levels.sentence(), style="bold")
    if made is not None:
        yield Text(f"{made.sentence()}, {told}")
        yield Text(f"{made.outcome()}; {made.absent()}")
        for line in made.lists():
            yield Padding(Text(line), (0, 0, 0, 2), expand=False)


def levels_json(run: Run, summary: Summary) -> dict[str, Any]:
    """The same for machines to read."""
    levels = both_levels(run, summary.epsilons[0], summary.delta)
    made = attempts(run, summary.delta)
    return {
        "levels": None if levels is None else levels.plain(),
        "attempts": None if made is None else made.plain(),
    }


def privacy_notes(summary: Summary) -> Text:
    """Status, theorem and hypotheses."""
    word, _, more = status_words(summary.status).partition(": ")
    lines = [
        f"[bold]{word}[/bold]{more and ', ' + more}: {escape(summary.theorem)} "
        f"({escape(summary.spec)})"
    ]
    lines += [f"  {escape(str(hypothesis))}" for hypothesis in summary.hypotheses]
    lines += [f"  [yellow]{escape(reason)}[/yellow]" for reason in summary.refused]
    lines += [f"  {escape(after_walk(summary))}"] if after_walk(summary) else []
    return styled(lines)


def after_walk(summary: Summary) -> str:
    """Why a walk's epsilon is not the one that was planned, in one sentence; empty for everything
    else."""
    if summary.theorem != RealizedWalk.title:
        return ""
    return (
        "after the walk: of the path that the token took; before it, over all the ways it may go, a"
        " plan or `bruit epsilon --before` says another number, and both are true"
    )


def styled(lines: list[str]) -> Text:
    """Lines with styles in brackets and everything else escaped; consoles themselves read no markup
    and no emojis."""
    return Text.from_markup("\n".join(lines), emoji=False)


def public_facts(run: Run) -> list[dict[str, str]]:
    """What is known besides messages, and whence: the facts of the task, and what whoever simulates
    was shown."""
    found = run.task.get("public")
    facts = [dict(fact) for fact in found] if isinstance(found, list) else []
    if run.metrics.rows and not run.task.get("test"):
        facts.append(
            {
                "fact": "the scores: measured on the peers' own records; only who simulates "
                "all peers sees them",
                "from": "private rows",
            }
        )
    named = [key for key in run.references if not key.endswith("_worst")]
    if named:
        facts.append(
            {
                "fact": f"the references ({', '.join(named)}): computed from all peers' "
                f"records without "
                "noise; only who simulates all peers sees them",
                "from": "private rows",
            }
        )
    return sorted(facts, key=lambda fact: list(SOURCES).index(fact["from"]))


def public_notes(run: Run) -> Text:
    """The facts in words, those that are read off private rows first: no epsilon covers them."""
    lines = ["[bold]known besides the messages, and covered by no epsilon[/bold]"]
    lines += [f"  {SOURCES[fact['from']]}: {escape(fact['fact'])}" for fact in public_facts(run)]
    return styled(lines)


def data_notes(run: Run) -> list[str]:
    """What of the data is used, what is left out, and what of it became public: before any
    result."""
    used = run.task.get("used")
    lines = [str(line) for line in used["in_words"]] if isinstance(used, dict) else []
    private = sum(fact["from"] == "private rows" for fact in public_facts(run))
    if private:
        facts = how_many(private, "fact")
        lines.append(f"known besides the messages: {facts} taken from private rows, listed below")
    return lines


def data_block(run: Run) -> Iterator[RenderableType]:
    """These notes as a block; nothing where there are none."""
    lines = data_notes(run)
    if lines:
        yield Text("data", style="bold")
        for line in lines:
            yield Padding(Text(line), (0, 0, 0, 2), expand=False)


def traffic(run: Run) -> str:
    """How much was said, in one sentence."""
    messages, sent = run.trace.messages, run.trace.bytes
    each = f", {sent / messages:.4g} a message" if messages else ""
    parts = blocks_words(run.engine)
    said = f"{how_many(messages, 'message')}, {how_many(sent, 'byte')} of payload{each}"
    return f"{said}; {parts}" if parts else said


def screen(run: Run, summary: Summary) -> Iterator[RenderableType]:
    """The whole story on one screen, part by part."""
    yield Panel(Text(headline(run)), title="bruit", title_align="left", expand=False)
    yield from data_block(run)
    scores = scores_table(run)
    if scores is not None:
        yield scores
    paid = joining_table(run)
    if paid is not None:
        yield paid
    elif run.joining is not None:
        yield Text(run.joining.sentence())
    for sentence in verdict_lines(run):
        yield Text(sentence, style="yellow")
    yield Text(traffic(run))
    if is_open(run, summary):
        yield Text(NO_NOISE)
    else:
        yield privacy_table(summary)
        yield from levels_block(run, summary)
        yield privacy_notes(summary)
    if public_facts(run):
        yield public_notes(run)
    for sentence in beside(run):
        yield Text(sentence)


def beside(run: Run) -> list[str]:
    """What else there is to say of a token: the utility bound, communicability and Katz beside the
    loss."""
    utility, shape = expected(run), communication(run)
    lines = (
        [utility.sentence()] if isinstance(utility, Expectation) else []
    )  # why there is none is told in JSON
    return lines + ([] if shape is None else shape.sentences())


def as_json(run: Run, summary: Summary) -> dict[str, Any]:
    """The same as plain data."""
    last = {name: run.metrics.last(name) for name in run.metrics.names()}
    verdict = run.verdict()
    utility, shape = expected(run), communication(run)
    return {
        "peers": run.n,
        "graph": run.graph.name,
        "algorithm": run.algorithm.describe(),
        "steps": run.steps,
        "seed": run.seed,
        "engine": run.engine,
        "metrics": last,
        "references": run.references,
        "joining": None if run.joining is None else run.joining.describe(),
        "messages": run.trace.messages,
        "bytes": run.trace.bytes,
        "privacy": summary_json(summary),
        "noise": run.noise_words(),
        "protection": NO_NOISE if is_open(run, summary) else None,
        "interrupted": None
        if run.interrupted is None
        else {
            "done": run.interrupted[0],
            "of": run.interrupted[1],
            "in_words": run.stopped_words(),
        },
        "verdict": None
        if verdict is None
        else {**verdict.describe(), "advice": advice(run) if verdict.worse else []},
        "model": None
        if run.learned is None
        else {
            "kind": run.learned.kind,
            "peer": run.learned.peer,
            "metric": run.learned.metric,
            "score": None if run.learned.score is None else run.learned.score.value,
        },
        "utility": utility.plain() if isinstance(utility, Expectation) else utility,
        "communication": None if shape is None else shape.plain(),
        **levels_json(run, summary),
        "public": public_facts(run),
        "data": run.task.get("used"),
    }


def _known(loss: float) -> float | None:
    return None if math.isnan(loss) else loss


def summary_json(summary: Summary) -> dict[str, Any]:
    worst, typical, mean = summary.losses
    epsilon_worst, epsilon_typical, epsilon_mean = summary.epsilons
    return {
        "status": summary.status,
        "status_in_words": status_words(summary.status),
        "theorem": summary.theorem,
        "spec": summary.spec,
        **level_facts(summary.level, summary.adjacency),
        "protects": level_words(summary.level, summary.adjacency),
        "delta": summary.delta,
        "noise_multiplier": summary.noise_multiplier,
        "worst": {"loss": _known(worst), "epsilon": epsilon_worst},
        "typical": {"loss": _known(typical), "epsilon": epsilon_typical},
        "mean": {"loss": _known(mean), "epsilon": epsilon_mean},
        "local": {"loss": _known(summary.local_loss), "epsilon": summary.local_epsilon},
        "last_row": summary.last_row,
        "hypotheses": [str(hypothesis) for hypothesis in summary.hypotheses],
        "refused": list(summary.refused),
        "after_the_walk": after_walk(summary) or None,
    }
