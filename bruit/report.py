"""What a run looks like in a terminal: accuracy beside its references, the privacy table, how it was obtained."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bruit.communication import communication
from bruit.expected import Expectation, expected
from bruit.model import FILE as MODEL
from bruit.model import NO_NOISE, WITHOUT_ROWS
from bruit.privacy.account import Summary
from bruit.privacy.guarantee import status_words
from bruit.privacy.network.walk import RealizedWalk
from bruit.result import Run

SOURCES = {"private rows": "[yellow]from private rows[/yellow]", "public rows": "from public rows", "agreed": "agreed"}
REFERENCES = {"alone": "each peer alone, sharing nothing", "central": "all data in one place, no privacy"}


def headline(run: Run) -> str:
    """What was run, in one sentence."""
    noise = "without privacy"
    if run.privacy is not None and run.privacy.gamma > 0:
        noise = f"with randomized response, a uniform answer with chance {run.privacy.gamma:.4g}"
    elif run.privacy is not None:
        ideal = ", in ideal arithmetic" if run.privacy.arithmetic == "ideal" else ""
        noise = f"with {type(run.privacy).__name__} noise, sigma {run.privacy.sigma:.4g}{ideal}"
    data = run.task.get("data")
    data = data.get("name", "data") if isinstance(data, dict) else str(run.task.get("task", "blank data"))
    what = f"{run.algorithm.name()} for {run.steps} {run.algorithm.schedule.unit}"
    stopped = "" if run.interrupted is None else f", {run.stopped_words()}"
    return f"{run.n} peers, {run.graph.name}, {what}, {data}, {noise}{stopped}"


def verdict_lines(run: Run) -> list[str]:
    """Whether together beat alone, and what would help if it did not."""
    found = run.verdict()
    if found is None or not found.worse:
        return []
    return [f"together is {found.sentence()}; what would help: {'; '.join(advice(run))}"]


def advice(run: Run) -> list[str]:
    """What makes together better, for a run that was worse than staying alone."""
    if run.privacy is None:
        knob = next((name for name in ("rate", "coupling", "gamma") if name in run.algorithm.describe()), "algorithm")
        return [f"more steps, or another {knob} (there is no noise in the way)"]
    dim, records = run.task.get("dim"), run.task.get("records_per_peer")
    found = [f"more peers (noise averages out over them, and {run.n} are few)",
             "a larger epsilon (less noise: privacy.epsilon, or a smaller privacy.sigma)"]  # fmt: skip
    if run.privacy.level == "user" and isinstance(records, list) and max(records) > 1:
        found.append("record level, if it is enough to protect one record instead of all that a peer holds (in Python:"
                     " RecordNoise)")  # fmt: skip
    if isinstance(dim, int) and dim > 2:
        found.append(f"fewer numbers to hide (a model has {dim}: task.components, or fewer columns)")
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
        where = "records that no peer holds" if score.public else "the peers' own records, so it is not in the file"
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
    held_out = " (on records that no peer holds)" if run.task.get("test") else ""
    table = Table(title=name + held_out, title_justify="left")
    table.add_column("who")
    table.add_column(name, justify="right")
    for key, text in REFERENCES.items():
        if key == "alone" and key in run.references:
            table.add_row(text, f"{run.references[key]:.4f}")
    table.add_row("together, with bruit", f"{run.metrics.last(name):.4f}", style="bold")
    if "central" in run.references:
        table.add_row(REFERENCES["central"], f"{run.references['central']:.4f}")
    return table


def privacy_table(summary: Summary) -> Table:
    """Worst, typical and mean pair beside local DP, with delta and level in the title."""
    title = f"what could one peer have learned about another? (delta = {summary.delta:g}, {summary.level} level)"
    caption = status_words(summary.status) if summary.status == "ideal" else None
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    table.add_column("pair")
    table.add_column("loss (local DP release = 1)", justify="right")
    table.add_column("epsilon, ideal" if caption else "epsilon", justify="right")
    names = ("worst pair", "typical pair (median)", "mean over pairs (a summary, protects nobody)")
    for name, loss, epsilon in zip(names, summary.losses, summary.epsilons, strict=True):
        table.add_row(name, f"{loss:.4g}", f"{epsilon:.4g}")
    table.add_row("local DP alone would say", f"{summary.local_loss:.4g}", f"{summary.local_epsilon:.4g}")
    return table


def privacy_notes(summary: Summary) -> Text:
    """Status, theorem and hypotheses."""
    word, _, more = status_words(summary.status).partition(": ")
    lines = [f"[bold]{word}[/bold]{more and ', ' + more}: {escape(summary.theorem)} ({escape(summary.spec)})"]
    lines += [f"  {escape(str(hypothesis))}" for hypothesis in summary.hypotheses]
    lines += [f"  [yellow]{escape(reason)}[/yellow]" for reason in summary.refused]
    lines += [f"  {escape(after_walk(summary))}"] if after_walk(summary) else []
    return styled(lines)


def after_walk(summary: Summary) -> str:
    """Why a walk's epsilon is not the one that was planned, in one sentence; empty for everything else."""
    if summary.theorem != RealizedWalk.title:
        return ""
    return ("after the walk: of the path that the token took; before it, over all the ways it may go, a plan or `bruit"
            " epsilon --before` says another number, and both are true")


def styled(lines: list[str]) -> Text:
    """Lines with styles in brackets and everything else escaped; consoles themselves read no markup and no emojis."""
    return Text.from_markup("\n".join(lines), emoji=False)


def public_facts(run: Run) -> list[dict[str, str]]:
    """What is known besides messages, and whence: the facts of the task, and what whoever simulates was shown."""
    found = run.task.get("public")
    facts = [dict(fact) for fact in found] if isinstance(found, list) else []
    if run.metrics.rows and not run.task.get("test"):
        facts.append({"fact": "the scores: measured on the peers' own records, for whoever simulates them all",
                      "from": "private rows"})  # fmt: skip
    if run.references:
        facts.append({"fact": f"the references ({', '.join(run.references)}): computed from all peers' records without "
                              "noise, for whoever simulates them all", "from": "private rows"})  # fmt: skip
    return sorted(facts, key=lambda fact: list(SOURCES).index(fact["from"]))


def public_notes(run: Run) -> Text:
    """The facts in words, those that are read off private rows first: no epsilon covers them."""
    lines = ["[bold]known besides the messages, and covered by no epsilon[/bold]"]
    lines += [f"  {SOURCES[fact['from']]}: {escape(fact['fact'])}" for fact in public_facts(run)]
    return styled(lines)


def data_notes(run: Run) -> list[str]:
    """What of the data is used, what is left out, and what of it became public: before any result."""
    used = run.task.get("used")
    lines = [str(line) for line in used["in_words"]] if isinstance(used, dict) else []
    private = sum(fact["from"] == "private rows" for fact in public_facts(run))
    if private:
        facts = "1 fact" if private == 1 else f"{private} facts"
        lines.append(f"public besides the messages: {facts} read off private rows, named below")
    return lines


def show_data(console: Console, run: Run) -> None:
    """These notes as a block; nothing where there are none."""
    lines = data_notes(run)
    if lines:
        console.print(Text("data", style="bold"))
        for line in lines:
            console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def traffic(run: Run) -> str:
    """How much was said, in one sentence."""
    messages, sent = run.trace.messages, run.trace.bytes
    each = f", {sent / messages:.4g} a message" if messages else ""
    return f"{messages} messages, {sent} bytes of payload{each}"


def show(console: Console, run: Run, summary: Summary) -> None:
    """The whole story on one screen."""
    console.print(Panel(Text(headline(run)), title="bruit", title_align="left", expand=False))
    show_data(console, run)
    scores = scores_table(run)
    if scores is not None:
        console.print(scores)
    for sentence in verdict_lines(run):
        console.print(Text(sentence, style="yellow"))
    console.print(Text(traffic(run)))
    if is_open(run, summary):
        console.print(Text(NO_NOISE))
    else:
        console.print(privacy_table(summary))
        console.print(privacy_notes(summary))
    if public_facts(run):
        console.print(public_notes(run))
    for sentence in beside(run):
        console.print(Text(sentence))


def beside(run: Run) -> list[str]:
    """What else there is to say of a token: the utility bound, communicability and Katz beside the loss."""
    utility, shape = expected(run), communication(run)
    told = [utility.sentence()] if isinstance(utility, Expectation) else []  # why there is none is told in JSON
    return told + ([] if shape is None else shape.sentences())


def as_json(run: Run, summary: Summary) -> dict[str, Any]:
    """The same as plain data."""
    last = {name: run.metrics.last(name) for name in run.metrics.names()}
    judged = run.verdict()
    utility, shape = expected(run), communication(run)
    return {
        "peers": run.n, "graph": run.graph.name, "algorithm": run.algorithm.describe(), "steps": run.steps,
        "seed": run.seed, "engine": run.engine, "metrics": last, "references": run.references,
        "messages": run.trace.messages, "bytes": run.trace.bytes, "privacy": summary_json(summary),
        "noise": run.noise_words(), "protection": NO_NOISE if is_open(run, summary) else None,
        "interrupted": None if run.interrupted is None else {"done": run.interrupted[0], "of": run.interrupted[1],
                                                             "in_words": run.stopped_words()},
        "verdict": None if judged is None else {**judged.describe(), "advice": advice(run) if judged.worse else []},
        "model": None if run.learned is None else {
            "kind": run.learned.kind, "peer": run.learned.peer, "metric": run.learned.metric,
            "score": None if run.learned.score is None else run.learned.score.value},
        "utility": utility.plain() if isinstance(utility, Expectation) else utility,
        "communication": None if shape is None else shape.plain(), "public": public_facts(run),
        "data": run.task.get("used"),
    }  # fmt: skip


def summary_json(summary: Summary) -> dict[str, Any]:
    worst, typical, mean = summary.losses
    epsilon_worst, epsilon_typical, epsilon_mean = summary.epsilons
    return {
        "status": summary.status, "status_in_words": status_words(summary.status), "theorem": summary.theorem,
        "spec": summary.spec, "level": summary.level,
        "delta": summary.delta, "noise_multiplier": summary.noise_multiplier,
        "worst": {"loss": worst, "epsilon": epsilon_worst}, "typical": {"loss": typical, "epsilon": epsilon_typical},
        "mean": {"loss": mean, "epsilon": epsilon_mean},
        "local": {"loss": summary.local_loss, "epsilon": summary.local_epsilon},
        "hypotheses": [str(hypothesis) for hypothesis in summary.hypotheses], "refused": list(summary.refused),
        "after_the_walk": after_walk(summary) or None,
    }  # fmt: skip
