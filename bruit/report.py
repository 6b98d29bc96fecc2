"""What a run looks like in a terminal: accuracy beside its references, the privacy table, how it was obtained."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table

from bruit.communication import communication
from bruit.expected import Expectation, expected
from bruit.privacy.account import Summary
from bruit.privacy.guarantee import status_words
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
    return f"{run.n} peers, {run.graph.name}, {what}, {data}, {noise}"


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
    table.add_row("[bold]together, with bruit[/bold]", f"[bold]{run.metrics.last(name):.4f}[/bold]")
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


def privacy_notes(summary: Summary) -> str:
    """Status, theorem and hypotheses."""
    word, _, more = status_words(summary.status).partition(": ")
    lines = [f"[bold]{word}[/bold]{more and ', ' + more}: {escape(summary.theorem)} ({escape(summary.spec)})"]
    lines += [f"  {escape(str(hypothesis))}" for hypothesis in summary.hypotheses]
    lines += [f"  [yellow]{escape(reason)}[/yellow]" for reason in summary.refused]
    return "\n".join(lines)


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


def public_notes(run: Run) -> str:
    """The facts in words, those that are read off private rows first: no epsilon covers them."""
    lines = ["[bold]known besides the messages, and covered by no epsilon[/bold]"]
    lines += [f"  {SOURCES[fact['from']]}: {escape(fact['fact'])}" for fact in public_facts(run)]
    return "\n".join(lines)


def data_notes(run: Run) -> list[str]:
    """What of the data is used, what is left out, and what of it became public: before any result."""
    used = run.task.get("used")
    lines = [str(line) for line in used["in_words"]] if isinstance(used, dict) else []
    private = sum(fact["from"] == "private rows" for fact in public_facts(run))
    if private:
        lines.append(f"public besides the messages: {private} facts read off private rows, named below")
    return lines


def show_data(console: Console, run: Run) -> None:
    """These notes as a block; nothing where there are none."""
    lines = data_notes(run)
    if lines:
        console.print("[bold]data[/bold]")
        for line in lines:
            console.print(Padding(escape(line), (0, 0, 0, 2), expand=False), highlight=False)


def traffic(run: Run) -> str:
    """How much was said, in one sentence."""
    messages, sent = run.trace.messages, run.trace.bytes
    each = f", {sent / messages:.4g} a message" if messages else ""
    return f"{messages} messages, {sent} bytes of payload{each}"


def show(console: Console, run: Run, summary: Summary) -> None:
    """The whole story on one screen."""
    console.print(Panel(escape(headline(run)), title="bruit", title_align="left", expand=False))
    show_data(console, run)
    scores = scores_table(run)
    if scores is not None:
        console.print(scores)
    console.print(traffic(run), highlight=False)
    console.print(privacy_table(summary))
    console.print(privacy_notes(summary))
    if public_facts(run):
        console.print(public_notes(run), highlight=False)
    for sentence in beside(run):
        console.print(escape(sentence), highlight=False)


def beside(run: Run) -> list[str]:
    """What else there is to say of a token: the utility bound, communicability and Katz beside the loss."""
    utility, shape = expected(run), communication(run)
    told = [utility.sentence()] if isinstance(utility, Expectation) else []  # why there is none is told in JSON
    return told + ([] if shape is None else shape.sentences())


def as_json(run: Run, summary: Summary) -> dict[str, Any]:
    """The same as plain data."""
    last = {name: run.metrics.last(name) for name in run.metrics.names()}
    utility, shape = expected(run), communication(run)
    return {
        "peers": run.n, "graph": run.graph.name, "algorithm": run.algorithm.describe(), "steps": run.steps,
        "seed": run.seed, "engine": run.engine, "metrics": last, "references": run.references,
        "messages": run.trace.messages, "bytes": run.trace.bytes, "privacy": summary_json(summary),
        "noise": run.noise_words(),
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
    }  # fmt: skip
