"""The commands of real peers: peer key, data, run, backup; network init, join, demo."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bruit.commands.printing import Detail, Printer, Reply, one_line
from bruit.commands.terminal import Force, Json, Quiet, err
from bruit.errors import BruitError, ConfigError
from bruit.how_many import how_many

if TYPE_CHECKING:
    import logging

    from bruit.tasks.data.own_rows import Agreement
    from bruit.tasks.kinds.section import TaskSection

peer_app = typer.Typer(
    help="One real peer: its key, its records, and its part in an experiment.", no_args_is_help=True
)
network_app = typer.Typer(
    help="A network of real peers: found it, join it, see it.", no_args_is_help=True
)


@peer_app.command("key")
def peer_key(
    name: Annotated[str, typer.Argument(help="The participant's name, e.g. hospital-a.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the keys.")] = Path(),
    host: Annotated[str, typer.Option(help="Where others reach this peer.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="At which port.")] = 7400,
    relay: Annotated[
        str | None,
        typer.Option(help="A relay, host:port, at which others reach this peer; it opens no port."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make this participant's keys, and the public part to send to the others.

    Example: bruit peer key hospital-a --host a.example.org --port 7400 --out site
    """
    from bruit.files import write_whole
    from bruit.peers.wire.address_book import public_entry
    from bruit.peers.wire.identity import Identity, short_form
    from bruit.peers.wire.place import place_of

    if relay is not None:
        host, port = place_of(relay, "--relay")
    identity = Identity.create(name)
    public = public_entry(
        identity, host, port, relay is not None
    )  # before anything is written, so that a wrong address leaves nothing
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity.save(folder)
    write_whole(folder / "public.toml", lambda file: file.write(public.encode()))
    fingerprint, sent = identity.fingerprint(), folder / "public.toml"
    lines = [
        f"keys of {name} are in {folder} (keep key.pem and signing.pem secret)",
        f"send {sent} to the others",
        f"fingerprint, to compare by telephone: {short_form(fingerprint)}",
    ]
    about = {"name": name, "fingerprint": fingerprint, "public": str(sent)}
    Printer(json=as_json).answer(Reply(about, lines))


@peer_app.command("run")
def peer_run(
    sites: Annotated[
        list[Path], typer.Argument(help="The participant's site.toml; several share one process.")
    ],
    rehearse: Annotated[
        int | None, typer.Option(help="Replayable dice with this seed, for data one may lose.")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve Prometheus metrics on this loopback port.")
    ] = None,
    log_json: Annotated[
        bool, typer.Option("--log-json", help="Log as lines of JSON, the beginning and end too.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run one peer until the experiment ends; start it again after a crash and it goes on.

    Exit code 0: ended as asked; 1: met nobody, missed more than planned, gave up waiting, or the
    agreed budget left contributions out; 3: its state is damaged or an old copy; 130: stopped by a
    signal, the next start goes on.

    Example: bruit peer run site/site.toml
    """
    from bruit.peers.site.json_log import speaking
    from bruit.peers.site.running import first_line, last_line, run_participants, status
    from bruit.peers.site.site import participant, read_site

    log = _logging(log_json)
    printer = Printer(json=as_json, quiet=quiet)
    if rehearse is not None:
        printer.say(
            "rehearsal: whoever knows the seed can draw the noise again, so the noise protects "
            "nothing"
        )
    people = []
    with _errors_in(log if log_json else None):
        for site in map(read_site, sites):
            with speaking(site.file.peer):
                people.append(participant(site, rehearse))
                log.info("begins: %s", first_line(people[-1]))
        for one in people:
            printer.say(first_line(one))
        code = run_participants(people, metrics_port)
    ended = [status(one) for one in people]
    for one in people:
        with speaking(one.host.me):
            log.info("ends: %s", last_line(one))
    details = (Detail(last_line(one)) for one in people)
    printer.answer(Reply(ended[0] if len(ended) == 1 else ended, details))
    raise typer.Exit(code)


def _logging(as_lines: bool) -> logging.Logger:
    """Warnings on standard error, as text or as lines of JSON; these tell beginning and end, too."""
    import logging

    from bruit.peers.site.json_log import JsonLines

    log = logging.getLogger("bruit.peers.run")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    if as_lines:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonLines())
        log.setLevel(logging.INFO)
    return log


@contextlib.contextmanager
def _errors_in(log: logging.Logger | None) -> Iterator[None]:
    """Where logs are for programs, an error that ends the command is in them, and nowhere else."""
    try:
        yield
    except BruitError as error:
        if log is None:
            raise
        log.error("ends with an error: %s", error)
        raise typer.Exit(error.exit_code) from None


@peer_app.command("data")
def peer_data(
    file: Annotated[
        Path,
        typer.Argument(
            help="This participant's records, a CSV file with a header line, or a Parquet file."
        ),
    ],
    experiment: Annotated[Path, typer.Option(help="What was agreed on.")] = Path("experiment.toml"),
    label: Annotated[
        str | None,
        typer.Option(help="The column to learn or to count; by default the experiment's."),
    ] = None,
    scales: Annotated[
        Path | None,
        typer.Option(
            help="TOML, one `name = [center, scale]` a line; by default the experiment's scales, "
            "or all columns as they are."
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            help="The agreed classes in order, e.g. healthy,ill; by default the experiment's."
        ),
    ] = None,
    public: Annotated[
        Path | None, typer.Option(help="Records that belong to nobody, for scores.")
    ] = None,
    records: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path(
        "records.npz"
    ),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Prepare this participant's own records by agreed constants, never by statistics of the rows.

    Label, columns and classes are those of the experiment's columns file, if it names one.

    Example: bruit peer data mine.csv --label ill --classes no,yes --scales scales.toml --out
    site/records.npz
    """
    from bruit.files import check_place
    from bruit.peers.site.own_csv import write_records
    from bruit.runs.file import read
    from bruit.tasks.kinds.kind import kinds

    check_place(records, force)
    agreed, _ = read(str(experiment))
    agreement = _agreement(agreed.task, label, scales, classes)
    notes: list[str] = []
    count, width = write_records(file, agreement, records, public, notes.append)
    kind = agreed.task.kind
    size = f"{how_many(count, 'record')} of {how_many(width, 'column')}"
    wrote = f"wrote {size} for a task of kind {kind} to {records}"
    lines = [*notes, f"{wrote} (keep it secret)"]
    if agreed.task.rows == "none" and agreement.prepared is None and kinds()[kind].scored:
        lines.append(
            "rows are not bounded: the mechanism's clip is all that limits what one record can do"
        )
    about = {"records": count, "columns": width, "kind": kind, "out": str(records), "data": notes}
    Printer(json=as_json).answer(Reply(about, lines))


def _agreement(
    task: TaskSection, label: str | None, scales: Path | None, classes: str | None
) -> Agreement:
    """What records are prepared by: the experiment's columns file, or else what was given here, and
    of the rest what the experiment says."""
    from bruit.peers.site.own_csv import read_scales
    from bruit.tasks.data.agreed_columns import read_agreed
    from bruit.tasks.data.own_rows import Agreement

    prepared = None
    if task.columns_file is not None:
        given = {"--label": label, "--scales": scales, "--classes": classes}
        option_given = next((option for option, value in given.items() if value is not None), None)
        if option_given is not None:
            raise ConfigError(
                f"the experiment names the columns file {task.columns_file}, which says "
                f"label, scales and classes; leave {option_given} out"
            )
        prepared = read_agreed(task.columns_file)
    named = tuple(name.strip() for name in classes.split(",")) if classes else tuple(task.classes)
    agreed = {name: (pair[0], pair[1]) for name, pair in task.agreed().scales.items()}
    constants = (agreed or None) if scales is None else read_scales(scales)
    return Agreement(task, label or task.label, constants, named, prepared)


@peer_app.command("report")
def peer_report(
    files: Annotated[
        list[Path], typer.Argument(help="The report.json of a state folder; several of one run.")
    ],
    book: Annotated[
        Path | None, typer.Option(help="The address book in which the signers must stand.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the signatures of reports, and say who took part in what and who was missed.

    Exit code 1: a signature does not hold, the reports are not of one run, or a run went on without
    somebody or ended early.

    Example: bruit peer report a/report.json b/report.json --book book.toml
    """
    from bruit.peers.site.signed_report import check, disagreements, spans
    from bruit.peers.wire.identity import short_form
    from bruit.peers.wire.revisions.chain import standing_book

    listed = None if book is None else standing_book(book)
    found = [check(path, listed) for path in files]
    wrong = disagreements(found)
    lines: list[str] = []
    about: list[dict[str, object]] = []
    for one in found:
        signed = f"signed by {one.signer} ({short_form(one.fingerprint)})"
        lines.append(
            f"{one.path}: NOT VERIFIED: {one_line(one.wrong)}"
            if one.wrong
            else f"{one.path}: {signed}; {one.verdict()}"
        )
        for name, parts in one.without().items():
            words = ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in parts)
            lines.append(f"  without {one_line(name)} in exchanges {words}")
        for name, (count, up_to) in one.earlier().items():
            more = how_many(count, "exchange")
            lines.append(f"  without {one_line(name)} in {more} more, up to {up_to}")
        if kept := one.left_out():
            places = ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in spans(kept))
            lines.append(f"  without its own data, by its budget, at {places}")
        lines += [f"  {one_line(word)}" for word in one.problems()]
        about.append(
            {
                "file": str(one.path),
                "verified": not one.wrong,
                "wrong": one.wrong,
                "signer": one.signer,
                "fingerprint": one.fingerprint,
                "run": one.content["run"],
                "complete": one.complete,
                "without": one.without(),
                "without_earlier": {name: count for name, (count, _) in one.earlier().items()},
                "contributions_left_out": kept,
            }
        )
    lines += [f"these reports do not belong together: {one_line(word)}" for word in wrong]
    if book is None:
        lines.append("compare the fingerprints with the address book, or give it by --book")
    good = not wrong and all(one.complete and not one.wrong for one in found)
    Printer(json=as_json).answer(
        Reply({"reports": about, "disagreements": wrong, "complete": good}, lines)
    )
    raise typer.Exit(0 if good else 1)


@peer_app.command("backup")
def peer_backup(
    site: Annotated[
        Path, typer.Argument(help="The participant's site.toml; the peer must not run.")
    ],
    out_file: Annotated[Path, typer.Option("--out", help="The file to write.")],
    as_json: Json = False,
) -> None:
    """Copy keys, account and ledger into one file, as secret as the keys. No peer can go on from the
    copied ledger; from the copied account, once somebody has stated what was paid since.

    Example: bruit peer backup site/site.toml --out cleveland.zip
    """
    from bruit.peers.site.backup import back_up
    from bruit.peers.site.site import read_site

    lines = back_up(read_site(site), site, out_file)
    about = {"out": str(out_file), "ledger_lines": lines}
    wrote = (
        f"wrote keys, agreements and {how_many(lines, 'ledger line')} to {out_file} (keep it as secret as "
        f"key.pem)"
    )
    Printer(json=as_json).answer(Reply(about, [wrote]))


@network_app.command("init")
def network_init(
    peers: Annotated[int, typer.Option(help="How many participants.")],
    experiment: Annotated[
        str, typer.Option(help="A TOML file, or the name of a bundled experiment.")
    ] = "real-peers",
    graph: Annotated[
        str | None, typer.Option(help="A graph, with or without its size: ring, torus:4x4.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--out", help="Where to write one folder per participant.")
    ] = Path("network"),
    timeout: Annotated[float, typer.Option(help="How many seconds anybody is waited for.")] = 30.0,
    relay: Annotated[
        str,
        typer.Option(help="A relay, host:port, at which all are reached; its keys are made, too."),
    ] = "",
    as_json: Json = False,
) -> None:
    """Write a folder per participant: keys, address book, its part of the experiment. For one
    machine.

    Example: bruit network init --peers 4 --graph ring --experiment x.toml
    """
    from bruit.peers.founding.founding import plan_network, settle

    agreed = plan_network(experiment, peers, graph)
    sites = settle(agreed, folder, timeout=timeout, relay=relay)
    about = {
        "sites": [str(site) for site in sites],
        "releases_planned": agreed.planned.most,
        "releases_sure": agreed.planned.sure,
        "budget": None if agreed.budget is None else vars(agreed.budget),
    }
    lines = []
    if agreed.budget is not None:
        lines.append(
            f"every peer keeps epsilon {agreed.budget.epsilon:g} at delta {agreed.budget.delta:g}, "
            f"against {agreed.algorithm.against}"
        )
    if agreed.privacy is not None:
        lines.append(agreed.planned.words() if agreed.budget is None else agreed.planned.promise())
    lines.append(f"wrote {how_many(len(sites), 'participant')} in {folder}; start each with")
    lines.append(f"  bruit peer run {sites[0]}")
    if relay:
        home, port = folder / "relay", relay.rpartition(":")[2]
        lines.append(f"  bruit relay run {home} --members {home / 'book.toml'} --port {port}")
    Printer(json=as_json).answer(Reply(about, lines))


@network_app.command("join")
def network_join(
    public: Annotated[
        list[Path], typer.Argument(help="Everyone's public.toml; peers are numbered by name.")
    ],
    book: Annotated[Path, typer.Option("--out", help="The address book to write.")] = Path(
        "book.toml"
    ),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Merge public parts into an address book; compare the fingerprints by another channel.

    A relay's public.toml is merged like the others.

    Example: bruit network join a/public.toml b/public.toml --out book.toml
    """
    from bruit.files import check_place
    from bruit.peers.wire.address_book import merge
    from bruit.peers.wire.identity import short_form

    check_place(book, force)
    missing = [path for path in public if not path.is_file()]
    if missing:
        raise ConfigError(f"there is no file {missing[0]}")
    merged = merge(path.read_text() for path in public)
    merged.write(book)
    about = {
        "book": str(book),
        "fingerprints": {one.name: one.fingerprint for one in merged.entries},
    }
    lines = [
        f"peer {one.peer}  {one.name:<20} {one.address:<24} {short_form(one.fingerprint)}"
        + (" (through the relay there)" if one.relay else "")
        for one in merged.entries
    ]
    lines += [f"relay   {one.address:<45} {short_form(one.fingerprint)}" for one in merged.relays]
    lines.append(f"wrote {book}; all participants must see the same fingerprints")
    Printer(json=as_json).answer(Reply(about, lines))


@network_app.command("doctor")
def network_doctor(
    site: Annotated[Path, typer.Argument(help="The participant's site.toml.")],
    wait: Annotated[
        float,
        typer.Option(min=0, help="Seconds to try again and to answer others, until all is well."),
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Try every line of this peer before a run, and name what fails: DNS, port, relay, certificate,
    version, clock, book, experiment.

    Others answer while their peer runs or waits, or their doctor does; so let everybody run it with
    --wait at the same time. Exit code 0: all is well; 1: something fails; 2: this site itself is
    wrong.

    Example: bruit network doctor site/site.toml --wait 300
    """
    from dataclasses import asdict

    from bruit.peers.site.doctor import examine
    from bruit.peers.site.site import read_site

    found = examine(read_site(site), wait)
    lines = [
        f"{check.neighbor} at {check.place}: "
        + (f"well ({', '.join(check.good)})" if check.ok else f"{check.failed} FAILS: {check.why}")
        for check in found.checks
    ]
    lines += [f"note: {note}" for note in found.notes]
    about = {
        "ok": found.ok,
        "pairs": [{**asdict(check), "ok": check.ok} for check in found.checks],
        "asked_by": found.asked_by,
        "notes": found.notes,
    }
    Printer(json=as_json).answer(Reply(about, lines))
    raise typer.Exit(0 if found.ok else 1)


@network_app.command("nursery", hidden=True)
def network_nursery() -> None:
    """Fork the processes of a demonstration; the orders come from standard input.

    Example: bruit network nursery < orders.json
    """
    from bruit.peers.founding.nursery import born

    order = born()
    peer_run([Path(site) for site in order.sites], order.rehearse, quiet=True)


@network_app.command("demo")
def network_demo(
    peers: Annotated[int, typer.Option(help="How many real processes.")] = 8,
    experiment: Annotated[
        str, typer.Option(help="A TOML file, or the name of a bundled experiment.")
    ] = "real-peers",
    graph: Annotated[
        str | None, typer.Option(help="A graph; a butterfly of that size by default.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Keep the participants' folders here.")
    ] = None,
    together: Annotated[
        int, typer.Option("--peers-per-process", min=1, help="How many peers share a process.")
    ] = 1,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Start real processes on loopback, watch them learn, and see whether together was better than
    alone.

    Exit code 1: somebody was missed on the way.

    Example: bruit network demo --peers 8
    """
    import tempfile

    from bruit.runs.stopping import interruptible
    from bruit.show.demonstration import demonstrate

    with interruptible(), tempfile.TemporaryDirectory(prefix="bruit-demo-") as scratch:
        home = Path(scratch) / "network" if folder is None else folder
        printer = Printer(json=as_json, quiet=quiet)
        screen = None if printer.silent or not err.is_terminal else err
        shown = demonstrate(peers, experiment, graph, home, screen, together)
        printer.answer(shown)
    raise typer.Exit(shown.code)
