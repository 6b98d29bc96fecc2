"""The commands of real peers: peer key, data, run, backup; network init, join, demo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bruit.errors import ConfigError
from bruit.terminal import Force, Json, Quiet, emit_json, err, out, say

peer_app = typer.Typer(help="One real peer: its key, its records, and its part in an experiment.", no_args_is_help=True)
network_app = typer.Typer(help="A network of real peers: found it, join it, see it.", no_args_is_help=True)


@peer_app.command("key")
def peer_key(
    name: Annotated[str, typer.Argument(help="The participant's name, e.g. hospital-a.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the keys.")] = Path(),
    host: Annotated[str, typer.Option(help="Where others reach this peer.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="At which port.")] = 7400,
    as_json: Json = False,
) -> None:
    """Make this participant's keys, and the public part to send to the others.

    Example: bruit peer key hospital-a --host a.example.org --port 7400 --out site
    """
    from bruit.network.address_book import public_entry
    from bruit.network.identity import Identity, short_form
    from bruit.whole_files import write_whole

    identity = Identity.create(name)
    public = public_entry(identity, host, port)  # before anything is written, so that a wrong address leaves nothing
    folder.mkdir(parents=True, exist_ok=True)
    identity.save(folder)
    write_whole(folder / "public.toml", lambda file: file.write(public.encode()))
    if as_json:
        emit_json({"name": name, "fingerprint": identity.fingerprint(), "public": str(folder / "public.toml")})
        return
    say(f"keys of {name} are in {folder} (keep key.pem and signing.pem secret)")
    say(f"send {folder / 'public.toml'} to the others")
    say(f"fingerprint, to compare by telephone: {short_form(identity.fingerprint())}")


@peer_app.command("run")
def peer_run(
    sites: Annotated[list[Path], typer.Argument(help="The participant's site.toml; several share one process.")],
    rehearse: Annotated[int | None, typer.Option(help="Replayable dice with this seed, for data one may lose.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Serve Prometheus metrics on this loopback port.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run one peer until the experiment ends; start it again after a crash and it goes on.

    Exit code 0: ended as asked; 1: met nobody, missed more than planned, or gave up waiting; 130: stopped by a signal,
    the next start goes on. Example: bruit peer run site/site.toml
    """
    import logging

    from bruit.sites.running import last_line, run_participants, status
    from bruit.sites.site import participant, read_site

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    if rehearse is not None and not quiet and not as_json:
        say("rehearsal: whoever knows the seed can draw the noise again, so the noise protects nothing")
    people = [participant(read_site(site), rehearse) for site in sites]
    code = run_participants(people, metrics_port)
    if as_json:
        emit_json(status(people[0]) if len(people) == 1 else [status(one) for one in people])
    elif not quiet:
        for one in people:
            say(last_line(one))
    raise typer.Exit(code)


@peer_app.command("data")
def peer_data(
    file: Annotated[Path, typer.Argument(help="This participant's records, a CSV file with a header line.")],
    experiment: Annotated[Path, typer.Option(help="What was agreed on.")] = Path("experiment.toml"),
    label: Annotated[
        str | None, typer.Option(help="The column to learn or to count; by default the experiment's.")
    ] = None,
    columns: Annotated[
        Path | None, typer.Option(help="TOML, one `name = [center, scale]` a line; by default the experiment's scales, "
                                       "or all columns as they are.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="The agreed classes in order, e.g. healthy,ill; by default the experiment's.")
    ] = None,
    public: Annotated[Path | None, typer.Option(help="Records that belong to nobody, for scores.")] = None,
    records: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path("records.npz"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Prepare this participant's own records by agreed constants, never by statistics of the rows.

    Example: bruit peer data mine.csv --label ill --classes no,yes --columns columns.toml --out site/records.npz
    """
    from bruit.config import read
    from bruit.sites.own_csv import Agreement, read_columns, write_records
    from bruit.whole_files import check_place

    check_place(records, force)
    agreed, _ = read(str(experiment))
    chosen = tuple(name.strip() for name in classes.split(",")) if classes else tuple(agreed.task.classes)
    scales = {name: (pair[0], pair[1]) for name, pair in agreed.task.agreed().scales.items()}
    constants = (scales or None) if columns is None else read_columns(columns)
    agreement = Agreement(agreed.task, label or agreed.task.label, constants, chosen)
    notes: list[str] = []
    count, width = write_records(file, agreement, records, public, notes.append)
    if as_json:
        emit_json({"records": count, "columns": width, "kind": agreed.task.kind, "out": str(records), "data": notes})
        return
    for line in notes:
        say(line)
    say(f"wrote {count} records of {width} columns for a task of kind {agreed.task.kind} to {records} (keep it secret)")
    if agreed.task.rows == "none" and agreed.task.kind not in ("mean", "histogram"):
        say("rows are not bounded: the mechanism's clip is all that limits what one record can do")


@peer_app.command("backup")
def peer_backup(
    site: Annotated[Path, typer.Argument(help="The participant's site.toml; the peer must not run.")],
    out_file: Annotated[Path, typer.Option("--out", help="The file to write.")],
    as_json: Json = False,
) -> None:
    """Copy keys and ledger into one file, as secret as the keys. No peer can go on from the copied ledger.

    Example: bruit peer backup site/site.toml --out cleveland.zip
    """
    from bruit.sites.backup import back_up
    from bruit.sites.site import read_site

    lines = back_up(read_site(site), site, out_file)
    if as_json:
        emit_json({"out": str(out_file), "ledger_lines": lines})
        return
    say(f"wrote keys, agreements and {lines} ledger lines to {out_file} (keep it as secret as key.pem)")


@network_app.command("init")
def network_init(
    peers: Annotated[int, typer.Option(help="How many participants.")],
    experiment: Annotated[str, typer.Option(help="A TOML file, or the name of a bundled experiment.")] = "real-peers",
    graph: Annotated[str | None, typer.Option(help="A graph, with or without its size: ring, torus:4x4.")] = None,
    folder: Annotated[Path, typer.Option("--out", help="Where to write one folder per participant.")] = Path("network"),
    timeout: Annotated[float, typer.Option(help="How many seconds anybody is waited for.")] = 30.0,
    as_json: Json = False,
) -> None:
    """Write a folder per participant: keys, address book, its part of the experiment. For one machine.

    Example: bruit network init --peers 4 --graph ring --experiment x.toml
    """
    from bruit.sites.founding import found

    sites = found(experiment, peers, graph, folder, timeout=timeout)
    if as_json:
        emit_json({"sites": [str(site) for site in sites]})
        return
    say(f"wrote {len(sites)} participants in {folder}; start each with")
    say(f"  bruit peer run {sites[0]}")


@network_app.command("join")
def network_join(
    public: Annotated[list[Path], typer.Argument(help="Everyone's public.toml; peers are numbered by name.")],
    book: Annotated[Path, typer.Option("--out", help="The address book to write.")] = Path("book.toml"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Merge public parts into an address book; compare the fingerprints by another channel.

    Example: bruit network join a/public.toml b/public.toml --out book.toml
    """
    from bruit.network.address_book import merge
    from bruit.network.identity import short_form
    from bruit.whole_files import check_place

    check_place(book, force)
    missing = [path for path in public if not path.is_file()]
    if missing:
        raise ConfigError(f"there is no file {missing[0]}")
    merged = merge(path.read_text() for path in public)
    merged.write(book)
    if as_json:
        emit_json({"book": str(book), "fingerprints": {one.name: one.fingerprint for one in merged.entries}})
        return
    for one in merged.entries:
        say(f"peer {one.peer}  {one.name:<20} {one.address:<24} {short_form(one.fingerprint)}")
    say(f"wrote {book}; all participants must see the same fingerprints")


@network_app.command("demo")
def network_demo(
    peers: Annotated[int, typer.Option(help="How many real processes.")] = 8,
    experiment: Annotated[str, typer.Option(help="A TOML file, or the name of a bundled experiment.")] = "real-peers",
    graph: Annotated[str | None, typer.Option(help="A graph; a butterfly of that size by default.")] = None,
    folder: Annotated[Path | None, typer.Option("--out", help="Keep the participants' folders here.")] = None,
    together: Annotated[int, typer.Option("--peers-per-process", min=1, help="How many peers share a process.")] = 1,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Start real processes on loopback, watch them learn, and see whether together was better than alone.

    Exit code 1: somebody was missed on the way. Example: bruit network demo --peers 8
    """
    import tempfile

    from bruit.sites.showing import demonstrate

    with tempfile.TemporaryDirectory(prefix="bruit-demo-") as scratch:
        home = Path(scratch) / "network" if folder is None else folder
        emit = emit_json if as_json else None
        screen = None if quiet or as_json or not err.is_terminal else err
        code = demonstrate(peers, experiment, graph, home, out, screen, emit, together)
    raise typer.Exit(code)
