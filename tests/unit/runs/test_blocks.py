"""One run in blocks of peers: the bits of all peers at once, whoever is lost on the way."""

import os
import signal

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import catalog
from bruit.graphs.cut import cut
from bruit.on.place import Workplace
from bruit.on.team import Broken, Handed, PartCall, Parts, Team, opened
from bruit.privacy.ledger import Ledger
from bruit.runs.engines.blocks import blocks_words
from bruit.tasks import Logistic, Mean
from bruit.tasks.records import Records

NOISE = br.Gaussian(clip=1.0, sigma=1.0)


class HereTeam(Team):
    """Parts in this process; the worker of part 1 is lost when it is asked for one of `lost`."""

    def __init__(self, lost, checkpoint):
        self.words, self.size, self.checkpoint, self.place = "here", 2, checkpoint, {}
        self.lost, self.asked, self.workers = dict(lost), [], [Parts(), Parts()]

    def begin(self, made, share, parts):
        self.made, self.share = made, share
        self.place = {number: number % 2 for number in range(parts)}
        self.make(self.place)

    def make(self, numbers):
        for number in numbers:
            worker = self.workers[self.place[number]]
            opened({number: worker.make(number, self.made, self.share(number))})

    def ask(self, name, asked):
        self.asked.append((name, next(iter(asked.values())).arguments))
        if self.lost.get(name, 0):
            self.lost[name] -= 1
            self.workers[1] = Parts()
            raise Broken("the worker is gone")
        answers = {
            number: self.workers[self.place[number]].call(number, name, one.arguments, one.parcels)
            for number, one in asked.items()
        }
        for number, one in asked.items():
            assert isinstance(one, PartCall)
            if isinstance(answers[number], Handed):
                assert len(answers[number].parcels) == one.hands
        return opened(answers)

    def safe(self, parcel):
        return parcel

    def mend(self):
        self.make([number for number, at in self.place.items() if at == 1])

    def stop(self, now):
        self.workers = []


class HerePlace(Workplace):
    def __init__(self, checkpoint=10, **lost):
        object.__setattr__(self, "kept_team", HereTeam(lost, checkpoint))

    def open(self):
        raise NotImplementedError

    def team(self):
        return self.kept_team


def records(peers, size=6):
    rng = np.random.default_rng(5)
    counts = rng.integers(1, size, peers)
    owners = np.repeat(np.arange(peers), counts)
    features = rng.normal(size=(len(owners), 3))
    return Records.of(features, np.where(features[:, 0] > 0, 1.0, -1.0), owners, rows="unit")


def same(one, other):
    assert np.array_equal(one.estimates, other.estimates)
    for mine, theirs in zip(one.state, other.state, strict=True):
        assert np.array_equal(mine, theirs)
    assert one.ledger.digest() == other.ledger.digest()
    assert (one.metrics.steps, one.metrics.rows) == (other.metrics.steps, other.metrics.rows)
    assert (one.trace.messages, one.trace.bytes) == (other.trace.messages, other.trace.bytes)
    assert one.unwatched == other.unwatched


CASES = {
    "averaging": (br.Averaging(), "mean"),
    "chebyshev": (br.Chebyshev(), "mean"),
    "gossip-sgd": (br.GossipSGD(rate=0.2, batch=2), "records"),
}


def test_every_claim_has_a_case():
    assert {name for name, kind in catalog().items() if kind.in_blocks} == set(CASES)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("graph", ["er:40,c=2", "star:9", "torus:6x5"])
def test_blocks_are_all_peers_at_once(name, graph):
    """To the last bit: states, scores, ledger and messages; with noise and without it."""
    algorithm, held = CASES[name]
    graph = br.graphs.graph(graph)
    task = Mean.uniform(graph.n, 3, 1) if held == "mean" else Logistic(records(graph.n), l2=0.1)
    for noise in (NOISE, None):
        options = {"privacy": noise, "steps": 7, "seed": 2}
        alone = br.run(algorithm, graph, task, engine=br.Bulk(fused=False), **options)
        for count in (1, 2, 7):
            same(
                br.run(algorithm, graph, task, engine=br.Blocks(HerePlace(), count), **options),
                alone,
            )


def test_record_level_and_accelerated_rounds():
    noise = br.RecordSums(clip=1.0, sigma=1.0, sample_rate=0.5, divisor=2.0)
    graph, task = br.graphs.graph("ring:9"), Logistic(records(9), l2=0.1)
    algorithm = br.GossipSGD(rate=0.2, mixing=3, gamma=1.2)
    options = {"privacy": noise, "steps": 6, "seed": 2}
    alone = br.run(algorithm, graph, task, engine=br.Bulk(fused=False), **options)
    same(br.run(algorithm, graph, task, engine=br.Blocks(HerePlace(), 4), **options), alone)


@pytest.mark.parametrize(
    ("checkpoint", "lost", "back"),
    [
        (4, {"advance": 1}, [0, 0, 1, 2]),
        (4, {"believed": 1}, []),
        (0, {"kept": 1, "ended": 2}, []),
        (3, {"begin": 2, "go_on": 1, "kept": 1, "ended": 1}, []),
    ],
)
def test_a_lost_worker_changes_no_bit(checkpoint, lost, back):
    graph, task = br.graphs.graph("er:40,c=2"), Mean.uniform(40, 3, 1)
    options = {"privacy": NOISE, "steps": 9, "seed": 2, "evaluate_every": 4}
    alone = br.run(br.Averaging(), graph, task, engine=br.Bulk(fused=False), **options)
    place, told = HerePlace(checkpoint, **lost), []
    there = br.run(
        br.Averaging(),
        graph,
        task,
        engine=br.Blocks(place, 3),
        **options,
        progress=lambda done, *_: told.append(done),
    )
    same(there, alone)
    assert told == list(range(1, 10))  # rounds that are played again are not told again
    rounds = [given[0] for name, given in place.kept_team.asked if name == "advance"]
    assert rounds[: len(back)] == back
    assert there.engine["lost"] == sum(lost.values()) - (not checkpoint)
    assert "lost, rounds played again" in blocks_words(there.engine)


def test_a_worker_that_is_always_lost_ends_the_run():
    task = Mean.uniform(9, 1, 1)
    with pytest.raises(br.ConfigError, match="lost 4 times after round 0: the worker is gone"):
        br.run(
            br.Averaging(),
            "ring:9",
            task,
            steps=3,
            engine=br.Blocks(HerePlace(advance=99), 2),
        )


def test_who_stops_a_run_in_blocks_has_what_was_done():
    graph, task = br.graphs.graph("ring:9"), Mean.uniform(9, 1, 1)

    def stop(done, total, scores):
        if done == 4:
            raise br.Stop

    options = {"steps": 9, "progress": stop, "privacy": NOISE, "evaluate_every": 3}
    alone = br.run(br.Averaging(), graph, task, engine=br.Bulk(fused=False), **options)
    there = br.run(br.Averaging(), graph, task, engine=br.Blocks(HerePlace(), 2), **options)
    assert there.interrupted == alone.interrupted == (4, 9)
    same(there, alone)


def test_what_cannot_be_played_in_blocks_is_refused_in_a_sentence():
    task = Mean.uniform(8, 1, 1)
    first = br.run(br.Averaging(), "ring:8", task, steps=2)
    unequal = br.GaussianPerPeer(clip=1.0, sigmas=(1.0, 2.0) * 4)
    for words, algorithm, graph, options in (
        ("not known to be the same", br.PairAveraging(), "ring:8", {}),
        ("changes from round to round", br.Averaging(), "butterfly:8", {}),
        ("replayed in one process", br.Averaging(), "ring:8", {"given": first.trace}),
        ("what peer 3 hears", br.Averaging(), "ring:8", {"watch": [3]}),
        ("from an earlier run", br.Averaging(), "ring:8", {"after": first}),
        ("noise of its own size", br.Averaging(), "ring:8", {"privacy": unequal}),
    ):
        with pytest.raises(br.ConfigError, match=words):
            br.run(algorithm, graph, task, steps=2, engine=br.Blocks(HerePlace(), 2), **options)
    with pytest.raises(br.ConfigError, match=r"blocks are a way to run Bulk\(\)"):
        br.run(br.Averaging(), "ring:8", task, steps=2, engine=br.Events(), on="processes:2")
    with pytest.raises(br.ConfigError, match="at least one block"):
        br.Blocks(HerePlace(), 0)


class Raises(br.Averaging):
    """An algorithm of somebody, which fails at peer 7."""

    def absorb(self, state, inbox, home):
        if 7 in home.ids and home.step[0] == 2:
            raise ValueError("seven")
        return super().absorb(state, inbox, home)


def test_an_algorithm_claims_for_itself_and_its_errors_say_where(monkeypatch):
    task = Mean.uniform(9, 1, 1)
    with pytest.raises(br.ConfigError, match="raises is not known to be the same in blocks"):
        br.run(Raises(), "ring:9", task, steps=3, engine=br.Blocks(HerePlace(), 2))
    monkeypatch.setattr(Raises, "in_blocks", True)
    words = r"absorb raised ValueError\('seven'\) at peer 7, step 2; after 1 of 3 rounds"
    with pytest.raises(br.AlgorithmError, match=words):
        br.run(Raises(), "ring:9", task, steps=3, engine=br.Blocks(HerePlace(), 2))


def test_a_cut_takes_the_order_that_crosses_least():
    shuffled = br.graphs.from_edges(
        200, np.random.default_rng(1).permutation(200)[br.graphs.graph("ring:200").edges()]
    )
    for graph, by, rows in (
        (br.graphs.graph("torus:50x4"), "the order of its peers", 16),
        (shuffled, "reverse Cuthill-McKee", 4),
    ):
        found = cut(graph, 2)
        assert (found.by, found.rows) == (by, rows)
        assert np.array_equal(
            np.sort(np.concatenate([one.peers for one in found.blocks])), np.arange(200)
        )
    with pytest.raises(br.ConfigError, match="all rows would cross"):
        cut(br.graphs.graph("complete:20000"), 2)
    assert [len(one.peers) for one in cut(br.graphs.graph("star:9"), 20).blocks] == [1] * 9


def test_lines_that_differ_make_no_ledger():
    one, other = Ledger(peers=4), Ledger(peers=4)
    one.record(np.array([0, 3]), np.zeros(2, int), np.zeros(2, int), NOISE.event_of(1, None))
    with pytest.raises(br.PrivacyError, match="wrote different lines"):
        Ledger(peers=4).merge([one, other])


class Ends(Mean):
    """Its process ends when a peer is asked for a gradient for the fifth time, once."""

    mark: str

    def divided(self, ids):
        return None

    def gradient(self, ids, x):
        if 0 in ids and np.abs(x).max() > 0 and not os.path.exists(self.mark):
            with open(self.mark, "w"):
                os.kill(os.getpid(), signal.SIGKILL)
        return super().gradient(ids, x)


@pytest.mark.slow
def test_processes_that_end_are_begun_again(tmp_path):
    graph, task = br.graphs.graph("er:40,c=2"), Ends(Mean.uniform(40, 3, 1).values)
    object.__setattr__(task, "mark", str(tmp_path / "ended"))
    options = {"privacy": NOISE, "steps": 9, "seed": 2}
    there = br.run(br.GossipSGD(), graph, task, on=br.on.Processes(2, checkpoint=4), **options)
    assert there.engine["lost"] == 1
    same(there, br.run(br.GossipSGD(), graph, task, engine=br.Bulk(fused=False), **options))
