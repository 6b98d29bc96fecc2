"""One check at every entrance: what real peers cannot run is refused by all who lead to them,
before a key is used.

Three real peers whose experiment asked for canceling noise, for which they had no keys, ran to the
end, with exit code 0 and a wrong mean: of four builders one asked. Seven algorithms were accepted
everywhere and failed in the middle of the run, when some had released already.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from bruit.algorithms.algorithm import catalog
from bruit.algorithms.gossip.muffliato import presets
from bruit.algorithms.schedules.machine import Send
from bruit.commands import cli
from bruit.errors import ConfigError
from bruit.peers.founding.founding import found
from bruit.peers.recalling import recall
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.identity import Identity
from bruit.runs.asking import BlankProtocol
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.show.demonstration import demonstrate
from bruit.tasks.kinds.kind import held_kinds, kinds
from bruit.tasks.task import QUESTIONS
from tests.unit.peers.small_network import MEAN, found_small, live_together

TOLD = MEAN.replace("ring:3", "star:3")
CANCELING = TOLD.replace('"gossip-sgd"', '"fed-avg"\nratio = 2.0')
BY_SIZE = """\
graph = "complete:3"
steps = 12
seed = 3

[task]
kind = "personal"
data = "iris"
model = "softmax"

[algorithm]
name = "private-descent"
smoothness = 1.5
updates = 3
warm = 2

[privacy]
mechanism = "noise-by-size"
level = "record"
records = [12, 12, 12]
lipschitz = 1.5
ridge = 1.0
epsilon = 6.0
"""
REFUSED = {
    "keys around a server": (CANCELING, "fed-avg runs in simulations only"),
    "values of models that are not unique": (
        MEAN.replace('kind = "mean"\ndim = 2', 'kind = "ridge"\ndata = "diabetes"').replace(
            "gossip-sgd", "averaging"
        ),
        "averaging asks what these records do not answer.* needs l2 > 0",
    ),
    "losses of pairs of points": (
        MEAN.replace('kind = "mean"\ndim = 2', 'kind = "pairwise"\ndata = "breast_cancer"'),
        "a pairwise task does not answer",
    ),
    "a ring that is not there": (
        TOLD.replace('"gossip-sgd"', '"ring-sum"'),
        "has no link between peers 1 and 2",
    ),
    "a peer that is not there": (
        MEAN.replace('"gossip-sgd"', '"walk-sum"\nschedule = {name = "walk", first = 7}'),
        "starts at peer 7",
    ),
    "counts of Gaussian answers": (
        MEAN.replace('"gossip-sgd"', '"token-histogram"'),
        "counts values, found a mean",
    ),
    "answers where gradients are asked for": (
        MEAN.replace('kind = "mean"\ndim = 2', 'kind = "histogram"\ndim = 3').replace(
            "sigma = 1.5", 'mechanism = "randomized-response"\ngamma = 0.5'
        ),
        "gossip-sgd asks peers for gradients",
    ),
    "a rate chosen by a simulation": (
        MEAN.replace('"gossip-sgd"', '"walk-sgd"\nrate = "utility"'),
        "is chosen by a simulation",
    ),
    "a negative step": (
        MEAN.replace('"gossip-sgd"', '"gossip-sgd"\nrate = -8.0'),
        "gossip-sgd needs rate > 0",
    ),
    "nobody's step": (MEAN.replace("steps = 6", "steps = 0"), "nobody would say anything"),
    "ballots where not all are neighbors": (
        TOLD.replace('"gossip-sgd"', '"masked-sgd"'),
        "all peers are neighbors of each other",
    ),
    "more colluders and dropouts than leave anybody": (
        MEAN.replace('"gossip-sgd"', '"masked-sgd"\ndropouts = 2'),
        "nobody is left to hide among",
    ),
    "more dropouts than lists can have": (
        MEAN.replace('"gossip-sgd"', '"masked-sgd"\ndropouts = 2\ncolluders = 0'),
        "two lists might have no peer in common",
    ),
    "fewer records than were agreed on": (
        BY_SIZE.replace("records = [12, 12, 12]", "records = [60, 12, 12]"),
        "peer 0 by .*: fewer records than privacy.records says",
    ),
    "noise by size of nobody knows how many records": (
        BY_SIZE.replace("records = [12, 12, 12]\n", ""),
        "give privacy.records",
    ),
    "numbers of records for other peers": (
        BY_SIZE.replace("records = [12, 12, 12]", "records = [12, 12]"),
        "2 numbers for 3 peers",
    ),
    "a loss that is steeper than was agreed on": (
        BY_SIZE.replace("lipschitz = 1.5", "lipschitz = 1.0"),
        "more than privacy.lipschitz",
    ),
    "noise by size on models without a ridge": (
        BY_SIZE.replace("ridge = 1.0\n", ""),
        "says nothing of values",
    ),
    "noise by size on values": (
        MEAN.replace("sigma = 1.5", BY_SIZE.partition("[privacy]")[2]),
        "derives no bound on how far one record moves",
    ),
    "ideal arithmetic": (
        MEAN + 'arithmetic = "ideal"\n',
        "ideal arithmetic is true of real numbers only",
    ),
}


def founded(text, folder, monkeypatch):
    (folder / "agreed.toml").write_text(text)
    found(str(folder / "agreed.toml"), 3, None, folder / "network")


def demonstrated(text, folder, monkeypatch):
    (folder / "agreed.toml").write_text(text)
    monkeypatch.setattr(
        "bruit.show.demonstration.Nursery",
        lambda *given, **more: pytest.fail("something was started"),
    )
    demonstrate(3, str(folder / "agreed.toml"), None, folder / "network")


def run_by_a_peer(text, folder, monkeypatch):
    """The participants agreed on something else by hand, after their folders were written."""
    kind = re.search(r'kind = "(.*)"', text)[1]
    site = SITES.get(kind, SITES["mean"])[0]
    monkeypatch.setattr(Identity, "load", lambda folder: (_ for _ in ()).throw(KeyUsed))
    (folder / "experiment.toml").write_text(text)
    settings = "\n".join(
        f'{name} = "{site.parent / file}"'
        for name, file in (("identity", "."), ("book", "book.toml"), ("records", "records.npz"))
    )
    (folder / "site.toml").write_text(f"peer = 0\n{settings}\n")
    try:
        participant(read_site(folder / "site.toml"))
    finally:
        assert not (folder / "state").exists()


class KeyUsed(Exception):
    """The peer took its key out: nothing spoke against the run."""


SITES: dict[str, list[Path]] = {}
KINDS = {
    "mean": MEAN,
    "histogram": MEAN.replace('kind = "mean"\ndim = 2', 'kind = "histogram"\ndim = 3'),
    "ridge": MEAN.replace(
        'kind = "mean"\ndim = 2', 'kind = "ridge"\ndata = "diabetes"\ncomponents = 2'
    ),
}
FOR_ONE_THING = {  # kinds for few algorithms, which are tried with those alone
    "statistic": 'data = "iris"\nkernel = "gini"\ncolumns = ["petal width (cm)"]\n'
    'split = "sized:1:1"',
    "pairwise": 'data = "iris"\nloss = "ranking"\nsplit = "sized:1:1"',
    "personal": 'data = "iris"\nmodel = "softmax"',
    "boosted": 'data = "breast_cancer"\npredictors = 60\nsplit = "sized:9:9"',
}
KINDS |= {
    kind: MEAN.replace('kind = "mean"\ndim = 2', f'kind = "{kind}"\n{data}')
    for kind, data in FOR_ONE_THING.items()
}
HOME = {  # the kind that algorithms are for which ask this
    "a value to average": "mean",
    "models fitted alone": "personal",
    "gradients": "ridge",
    "gradients from zero on": "boosted",
    "proximal steps": "ridge",
    "a function of two points": "statistic",
    "a loss of two points": "pairwise",
    "models fitted alone and gradients": "personal",
    "models fitted alone, gradients and losses": "personal",
}
ENTRANCES = [founded, demonstrated, run_by_a_peer]


@pytest.fixture(scope="module", autouse=True)
def honest_sites(tmp_path_factory):
    for kind, text in KINDS.items():
        if kind in FOR_ONE_THING:
            text = asks_for(next(name for name in catalog() if home_of(name) == kind), kind)
        SITES[kind] = found_small(tmp_path_factory.mktemp(kind), text)


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("what", REFUSED)
def test_every_entrance_to_real_peers_refuses(entrance, what, tmp_path, monkeypatch):
    text, words = REFUSED[what]
    with pytest.raises(ConfigError, match=words):
        entrance(text, tmp_path, monkeypatch)
    assert not (tmp_path / "network").exists()


def asks_for(name, kind):
    """An experiment with one algorithm or preset and a graph that it takes."""
    graph = {
        "butterfly-muffliato": "butterfly:3",
        "federated-admm": "star:3",
        "fed-avg": "star:3",
    }.get(name)
    text = KINDS[kind].replace("gossip-sgd", name).replace("ring:3", graph or "complete:3")
    if name == "token-histogram":
        text = text.replace("sigma = 1.5", 'mechanism = "randomized-response"\ngamma = 0.5')
    return text.replace("steps = 6\n", "") if name in presets() else text


def answer(entrance, text, folder, monkeypatch):
    """What that entrance says: the sentence without its place, or nothing."""
    folder.mkdir()
    with monkeypatch.context() as local:
        local.setattr(
            "bruit.show.demonstration.settle", lambda *given, **more: (_ for _ in ()).throw(KeyUsed)
        )
        try:
            entrance(text, folder, local)
        except KeyUsed:
            return ""
        except ConfigError as error:
            return re.sub(r"^\S*:\d+: ", "", str(error))
    return ""


def home_of(name):
    """The kind of task that an algorithm is for."""
    asks = catalog()[name].asks
    return "histogram" if asks is None else HOME[asks]


def test_every_question_and_every_held_kind_is_tried():
    assert set(HOME) == QUESTIONS
    alike = {"logistic", "softmax", "torch"}  # as ridge
    assert {*KINDS, *alike} == set(held_kinds()) == set(kinds())


@pytest.mark.parametrize("name", catalog())
def test_every_algorithm_is_let_in_by_every_entrance_with_the_task_it_is_for(
    name, tmp_path, monkeypatch
):
    """By discovery. One that is refused says why in `simulated_only`."""
    text = asks_for(name, home_of(name))
    why = catalog()[name]().simulated_only
    for entrance in ENTRANCES:
        told = answer(entrance, text, tmp_path / entrance.__name__, monkeypatch)
        assert told == (f"{name} runs in simulations only: {why}" if why else "")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in FOR_ONE_THING])
@pytest.mark.parametrize("name", [*catalog(), *presets()])
def test_every_entrance_says_the_same_of_every_algorithm(name, kind, tmp_path, monkeypatch):
    """By discovery: a new algorithm is enrolled by being there."""
    text = asks_for(name, kind)
    said = {
        entrance.__name__: answer(entrance, text, tmp_path / entrance.__name__, monkeypatch)
        for entrance in ENTRANCES
    }
    assert len(set(said.values())) == 1, said
    if kind == "mean" and not said["founded"]:
        assert name != "token-histogram"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in (*catalog(), *presets()) for kind in ("mean", "ridge")]
    + [("averaging", "histogram")]
    + [(name, home_of(name)) for name in catalog() if home_of(name) not in ("mean", "ridge")]
    + [("personalized", "personal")],
)
def test_what_is_let_in_runs_to_its_end(name, kind, tmp_path, monkeypatch):
    """Counts are means of ones and zeros: one algorithm that averages them, and the one that asks
    for counts."""
    text = asks_for(name, kind)
    if answer(founded, text, tmp_path / "asked", monkeypatch):
        return
    people, reports = live_together(found_small(tmp_path / "real", text, pace=0.01))
    assert all(report["done"] for report in reports)
    assert all(one.host.machine.state is not None for one in people)


@pytest.mark.parametrize("counted", ["randomized-muffliato", "personalized"])
def test_activations_are_those_of_one_timetable(counted, tmp_path):
    """All draw it together: so many calls as were agreed on, each by one peer, at the times of n
    clocks of rate 1, and again the same after a restart."""
    text = asks_for(counted, "mean")
    if counted == "personalized":
        text = text.replace(
            counted, 'personalized"\nschedule = {name = "wakes", activations = 9}\n#'
        )
    total = build(parse(text)).algorithm.schedule.activations
    sites = found_small(tmp_path, text)
    for _ in range(2):
        people = [participant(read_site(site)) for site in sites]
        seats = [one.host.machine.seat for one in people]
        events = seats[0].algorithm.schedule.meetings(seats[0].graph, 0, seats[0].shared)
        expected = sorted(zip(events.time / 3, events.a, events.b, strict=True))
        found = [
            (time, seat.me, partner)
            for seat in seats
            for time, partner in zip(seat.calls, seat.partners, strict=True)
        ]
        assert sorted(found) == expected
        assert len(events.a) == total if counted == "personalized" else len(events.a) <= total
        assert all(one.host.settings.horizon == total / 3 for one in people)
        for one in people:
            one.host.journal.close()


def test_simulations_may_do_what_real_peers_may_not():
    build(parse(REFUSED["keys around a server"][0]))
    asked = BlankProtocol(graph="ring:4", algorithm="gopa", steps=1, sigma=2.0)
    assert asked.rehearse().algorithm.name() == "gopa"


@pytest.mark.parametrize(
    ("graph", "algorithm", "settings", "words"),
    [
        ("star:4", "ring-sum", [], "has no link between peers 1 and 2"),
        ("ring:4", "token-histogram", [], "counts values, found a mean"),
        ("ring:4,plus=0", "averaging", [], "swings for ever"),
        ("complete:6", "walk-sgd", ["algorithm.rate=-8"], "walk-sgd needs rate > 0"),
        ("complete:6", "walk-sgd", ["algorithm.rate=utility"], "is chosen by a simulation"),
    ],
)
def test_questions_without_data_pass_the_same_entrance(graph, algorithm, settings, words):
    with pytest.raises(ConfigError, match=words):
        BlankProtocol(
            graph=graph, algorithm=algorithm, settings=tuple(settings), steps=3, sigma=2.0
        ).rehearse()


def test_a_peer_that_refuses_ends_with_code_2(tmp_path, monkeypatch, capsys):
    for site in found_small(tmp_path):
        (site.parent / "experiment.toml").write_text(CANCELING)
        monkeypatch.setattr(sys, "argv", ["bruit", "peer", "run", str(site), "--quiet"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr().err
        assert ended.value.code == 2
        assert said.count("\n") == 1
        assert "fed-avg runs in simulations only" in said
        assert not (site.parent / "state").exists()


def recalled(site):
    """A real peer whose dice have the key of this start."""
    one = participant(read_site(site))
    recall(one.host)
    return one


def test_public_draws_of_real_peers_fall_alike(tmp_path):
    """Every real peer has secret dice of its own, and drew the public edge of a round, or who takes
    part, from them."""
    people = [recalled(site) for site in found_small(tmp_path)]
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
        people = [recalled(site) for site in found_small(folder, text)]
        begun += sum(
            any(isinstance(effect, Send) for effect in one.host.machine.begin(0.0))
            for one in people
        )
        for one in people:
            one.host.journal.close()
    assert begun == 3  # one in every network, whoever it is
