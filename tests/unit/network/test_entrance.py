"""One check at every entrance: what real peers cannot run is refused by all who lead to them, before a key is used.

Three real peers whose experiment said `gopa` ran to the end, with exit code 0 and a wrong mean: of four builders one
asked.
"""

import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from bruit import cli
from bruit.asking import describe_protocol
from bruit.build import build
from bruit.config import parse
from bruit.errors import ConfigError
from bruit.network.identity import Identity
from bruit.sites.founding import found
from bruit.sites.showing import _summary, demonstrate
from bruit.sites.site import participant, read_site

sys.path.insert(0, str(Path(__file__).parent))
from small_network import MEAN, found_small

GOPA = MEAN.replace('"gossip-sgd"', '"gopa"')
TOLD = MEAN.replace("ring:3", "star:3")
REFUSED = {
    "keys for canceling noise": (GOPA, "gopa runs in simulations only"),
    "keys around a server": (
        TOLD.replace('"gossip-sgd"', '"fed-avg"\nratio = 2.0'), "fed-avg runs in simulations only"),
    "meetings that nobody counts": (MEAN.replace('"gossip-sgd"', '"randomized-muffliato"'), "counted by nobody"),
    "a ring that is not there": (TOLD.replace('"gossip-sgd"', '"ring-sum"'), "has no link between peers 1 and 2"),
    "a peer that is not there": (
        MEAN.replace('"gossip-sgd"', '"walk-sum"\nschedule = {name = "walk", first = 7}'), "starts at peer 7"),
    "counts of Gaussian answers": (MEAN.replace('"gossip-sgd"', '"token-histogram"'), "counts values, found a mean"),
    "a rate chosen by a simulation": (
        MEAN.replace('"gossip-sgd"', '"walk-sgd"\nrate = "utility"'), "is chosen by a simulation"),
    "a negative step": (MEAN.replace('"gossip-sgd"', '"gossip-sgd"\nrate = -8.0'), "gossip-sgd needs rate > 0"),
    "nobody's step": (MEAN.replace("steps = 6", "steps = 0"), "nobody would say anything"),
    "ideal arithmetic": (MEAN, "ideal arithmetic is true of real numbers only"),
}  # fmt: skip


def founded(text, folder, monkeypatch):
    (folder / "agreed.toml").write_text(text)
    found(str(folder / "agreed.toml"), 3, None, folder / "network")


def demonstrated(text, folder, monkeypatch):
    (folder / "agreed.toml").write_text(text)
    console = Console(file=StringIO())
    demonstrate(3, str(folder / "agreed.toml"), None, folder / "network", console, None, None)


def run_by_a_peer(text, folder, monkeypatch):
    """The participants agreed on something else by hand, after their folders were written."""
    site = SITES[0]
    monkeypatch.setattr(Identity, "load", lambda folder: pytest.fail("a key was used"))
    (folder / "experiment.toml").write_text(text)
    settings = "\n".join(f'{name} = "{site.parent / file}"' for name, file in
                         (("identity", "."), ("book", "book.toml"), ("records", "records.npz")))  # fmt: skip
    (folder / "site.toml").write_text(f"peer = 0\n{settings}\n")
    try:
        participant(read_site(folder / "site.toml"))
    finally:
        assert not (folder / "state").exists()


def summed_up(text, folder, monkeypatch):
    (folder / "experiment.toml").write_text(text)
    _summary(folder / "experiment.toml", 1)


SITES: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def honest_sites(tmp_path_factory):
    SITES[:] = found_small(tmp_path_factory.mktemp("honest"))


@pytest.mark.parametrize("entrance", [founded, demonstrated, run_by_a_peer, summed_up])
@pytest.mark.parametrize("what", REFUSED)
def test_every_entrance_to_real_peers_refuses(entrance, what, tmp_path, monkeypatch):
    text, words = REFUSED[what]
    if what == "ideal arithmetic":
        for module in ("bruit.build", "bruit.sites.site", "bruit.sites.showing"):
            monkeypatch.setattr(f"{module}.build_privacy", lambda *given: SimpleNamespace(arithmetic="ideal"))
    with pytest.raises(ConfigError, match=words):
        entrance(text, tmp_path, monkeypatch)
    assert not (tmp_path / "network").exists()


def test_simulations_may_do_what_real_peers_may_not():
    for what in ("keys for canceling noise", "keys around a server", "meetings that nobody counts"):
        build(parse(REFUSED[what][0]))
    assert describe_protocol("ring:4", "gopa", [], 1, 2.0, 1.0, 0).algorithm.name() == "gopa"


@pytest.mark.parametrize(("graph", "algorithm", "settings", "words"), [
    ("star:4", "ring-sum", [], "has no link between peers 1 and 2"),
    ("ring:4", "token-histogram", [], "counts values, found a mean"),
    ("ring:4,plus=0", "averaging", [], "swings for ever"),
    ("complete:6", "walk-sgd", ["rate=-8"], "walk-sgd needs rate > 0"),
    ("complete:6", "walk-sgd", ["rate=utility"], "is chosen by a simulation"),
])  # fmt: skip
def test_questions_without_data_pass_the_same_entrance(graph, algorithm, settings, words):
    with pytest.raises(ConfigError, match=words):
        describe_protocol(graph, algorithm, settings, 3, 2.0, 1.0, 0)


def test_a_peer_that_refuses_ends_with_code_2(tmp_path, monkeypatch, capsys):
    for site in found_small(tmp_path):
        (site.parent / "experiment.toml").write_text(GOPA)
        monkeypatch.setattr(sys, "argv", ["bruit", "peer", "run", str(site), "--quiet"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr().err
        assert ended.value.code == 2
        assert said.count("\n") == 1
        assert "gopa runs in simulations only" in said
        assert not (site.parent / "state").exists()


def test_public_draws_of_real_peers_fall_alike(tmp_path):
    """Every real peer has secret dice of its own, and drew the public edge of a round, or who takes part, from them."""
    people = [participant(read_site(site)) for site in found_small(tmp_path)]
    doors = [one.host.machine.seat.door for one in people]
    clock = np.arange(5)
    public = [door.common(clock, 2) for door in doors]
    assert np.array_equal(public[0], public[1])
    assert np.array_equal(public[0], public[2])
    secret = [door.dice.uniform("public", clock, 0, 0, 2) for door in doors]
    assert not np.array_equal(secret[0], secret[1])
    for one in people:
        one.host.journal.close()


def test_real_peers_find_the_same_first_holder(tmp_path):
    text = MEAN.replace('"gossip-sgd"', '"walk-sum"\nschedule = {name = "walk", first = "uniform"}')
    begun = 0
    for network in range(3):
        folder = tmp_path / str(network)
        people = [participant(read_site(site)) for site in found_small(folder, text)]
        begun += sum(bool(one.host.machine.begin(0.0)) for one in people)
        for one in people:
            one.host.journal.close()
    assert begun == 3  # one in every network, whoever it is
