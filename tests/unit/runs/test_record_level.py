"""What is said of runs at record level: both levels, promise and spent, who spoke, and bad files."""

import json
import math
import os
import re

import numpy as np
import pytest

import bruit as br
from bruit.errors import BruitError, ConfigError
from bruit.privacy.events import GaussianEvent, MaskedEvent, record_event
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.runs.asking import BlankProtocol, explain
from bruit.runs.attempts import Attempts, Spoken, attempts
from bruit.runs.both_levels import BothLevels, both_levels
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.runs.result import load
from bruit.show import summary as report
from bruit.show.report.page import render

MASKED = """\
graph = "complete:4"
steps = 3

[task]
kind = "logistic"
data = "breast_cancer"
components = 2

[algorithm]
name = "masked-sgd"

[privacy]
level = "record"
clip = 0.5
sigma = 20.0
delta = 1e-4
sample_rate = 0.5
"""


@pytest.fixture(scope="module")
def run():
    return build(parse(MASKED), MASKED).run()


def test_epsilons_are_said_at_the_delta_of_the_file(run, tmp_path):
    assert run.delta == 1e-4
    again = load(run.save(tmp_path / "a.run"))
    assert again.delta == 1e-4
    saved = json.loads((tmp_path / "a.run" / "model.json").read_text())
    assert saved["privacy"]["delta"] == 1e-4
    assert "delta = 0.0001" in render(again)
    assert parse(MASKED.replace("delta = 1e-4\n", "")).delta == 1e-6
    again.experiment = "[privacy]\ndelta = 'small'"  # a folder from elsewhere
    assert again.delta == 1e-6


def test_both_levels_stand_side_by_side(run):
    summary = run.summary(1e-4)
    found = both_levels(run, summary.epsilons[0], 1e-4)
    assert found.records == 114
    assert found.record == summary.epsilons[0]
    assert found.whole == run.accountant().whole_peer(0, 114, 1e-4)
    assert "a peer as a whole (up to 114 records replaced): not protected (epsilon" in (
        found.sentence()
    )
    assert f"each record (replaced): epsilon {found.record:.4g}" in found.sentence()
    assert report.as_json(run, summary)["levels"]["in_words"] == found.sentence()


def test_a_level_that_protects_is_not_said_not_to():
    weak = BothLevels(1.0, 2.5, 3, "add-remove", 1e-6)
    assert weak.sentence().endswith(
        "(up to 3 records added or removed): epsilon 2.5; at delta = 1e-06"
    )
    assert BothLevels(1.0, math.nan, 3, "replace", 1e-6).whole_words() == "not known"
    assert "not protected" in BothLevels(1.0, math.inf, 3, "replace", 1e-6).whole_words()


def test_user_level_has_no_second_level():
    text = MASKED.replace('level = "record"\n', "").replace("sample_rate = 0.5\n", "")
    run = build(parse(text), text).run()
    assert both_levels(run, 1.0, 1e-4) is None
    assert attempts(run, 1e-4) is not None


def test_the_promise_is_for_all_attempts(run):
    made = attempts(run, 1e-4)
    event = record_event(20.0 / 0.5, 0.5, "replace", 0.0)
    assert (made.limit, made.most, made.made) == (7, 3, 3)
    assert made.promised == pytest.approx(compose_epsilon([(event, 7)], 1e-4), rel=1e-3)
    assert made.spent == pytest.approx(compose_epsilon([(event, 3)], 1e-4), rel=1e-3)
    assert made.spent == pytest.approx(run.summary(1e-4).epsilons[0], rel=1e-9)
    assert made.lists() == ["ballots 0 to 2: all 4 peers spoke, in 3 of 3 attempts"]
    assert "at most 7 attempts are charged (3 rounds and 4 spare)" in made.sentence()


def test_who_spoke_is_read_off_the_ledger(run):
    """An attempt without peer 2 that failed, and one with all: the ledger's clock is the ballot."""
    event = MaskedEvent(GaussianEvent(noise_multiplier=9.0), GaussianEvent(noise_multiplier=5.0))
    ledger = br.privacy.ledger.Ledger(peers=4)
    for ballot, peers in ((0, [0, 1, 2, 3]), (1, [0, 1, 3]), (2, [0, 1, 3]), (5, [3])):
        who = np.array(peers)
        ledger.record(who, who, np.full(len(who), ballot), event)
    told = br.Run(**{name: getattr(run, name) for name in FIELDS} | {"ledger": ledger})
    made = attempts(told, 1e-4)
    assert made.charged == (3, 3, 1, 4)
    assert [part.who(4) for part in made.spoken] == ["all 4 peers", "all but peer 2", "peer 3"]
    assert [part.ballots() for part in made.spoken] == ["0", "1 to 2", "5"]


FIELDS = (
    "algorithm",
    "graph",
    "steps",
    "seed",
    "engine",
    "privacy",
    "task",
    "constants",
    "trace",
    "metrics",
    "estimates",
)


def test_the_table_says_what_is_known(run):
    summary = run.summary(1e-4)
    assert summary.last_row == "if all masks were opened"
    assert summary.local_epsilon > summary.epsilons[0]
    assert report.loss_words(math.nan) == "-"
    found = report.summary_json(summary)
    assert found["worst"]["loss"] is None
    assert found["protects"] == "record level, one record replaced"
    why = explain(run, summary, 1e-4, "proven")
    assert why.startswith(f"epsilon = {summary.epsilons[0]:.6g} at delta = 0.0001 (record level")
    plain = br.run(br.Averaging(), "ring:4", br.tasks.Mean(np.zeros((4, 1))), steps=1)
    assert plain.summary().last_row == "local DP alone would say"


def test_the_report_knows_the_level(run):
    page = render(run)
    for words in (
        "Who was in which round",
        "if all masks were opened",
        "a peer as a whole: not protected",
        "What joining is worth: accuracy",
        "For whom did joining pay? (accuracy on records that no peer holds)",
        "standard deviation over peers",
        "3 attempts made for 3 rounds: every one became a sum; nobody was absent.",
        "every pair: all are alike",
        "at most 1 peer puts together what it sees",
        "not protected (delta = 0.0001, user level, up to 114 records replaced)",
        "epsilon, promised: for all 7 attempts, with 3 charged",
        "record level, one record replaced",
        "every record joins with chance 0.5",
    ):
        assert words in page, words
    assert not re.search(r"\bnan\b|>unknown<", page.split("<script")[0])


def test_report_and_terminal_say_the_same(run):
    """Promise, outcome, both levels and the joining table come from the same functions."""
    from rich.console import Console

    from tests.unit.show.report.pages import Page

    summary, made = run.summary(1e-4), attempts(run, 1e-4)
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=300, file=nowhere)
        for part in report.screen(run, summary):
            console.print(part)
    told = console.export_text()
    page = Page(render(run))
    paragraphs = [one.text for one in page.all("p")]
    for sentence in (
        made.sentence(),
        made.outcome(),
        made.absent(),
        both_levels(run, summary.epsilons[0], 1e-4).sentence(),
        run.joining.sentence(),
    ):
        assert sentence in told
        assert any(sentence[1:] in one for one in paragraphs), sentence
    cells = [
        float(one.attributes["data-value"])
        for one in page.all("td", class_="number")
        if "data-value" in one.attributes
    ]
    for peer in range(4):
        row = list(run.joining.of(peer))
        assert any(cells[k : k + len(row)] == row for k in range(len(cells)))


def test_what_is_the_same_for_all_pairs_is_said_once(run):
    summary = run.summary(1e-4)
    assert summary.alike
    assert [name for name, _, _ in summary.rows()] == [
        "every pair: all are alike",
        "if all masks were opened",
    ]
    text = MASKED.replace("sample_rate = 0.5\n", "")
    every = (
        build(parse(text), text).run().summary(1e-4)
    )  # every record in every sum: pairs have losses
    assert every.alike
    assert len(every.rows()) == 2
    plain = br.run(br.Averaging(), "ring:4", br.tasks.Mean(np.zeros((4, 1))), steps=1)
    assert not plain.summary().alike
    assert len(plain.summary().rows()) == 4


def test_pairs_differ_where_somebody_was_absent(run):
    ledger = br.privacy.ledger.Ledger(peers=4)
    event = run.ledger.events[0]
    for ballot, peers in enumerate(([0, 1, 2, 3], [0, 1, 3])):
        who = np.array(peers)
        ledger.record(who, who, np.full(len(who), ballot), event)
    told = br.Run(**{name: getattr(run, name) for name in FIELDS} | {"ledger": ledger})
    assert not told.summary(1e-4).alike


def many_changes(run):
    """A ledger in which another peer is absent in every attempt."""
    ledger = br.privacy.ledger.Ledger(peers=4)
    for ballot in range(30):
        who = np.array([peer for peer in range(4) if peer != ballot % 4])
        ledger.record(who, who, np.full(3, ballot), run.ledger.events[0])
    return br.Run(**{name: getattr(run, name) for name in FIELDS} | {"ledger": ledger})


def test_failed_attempts_and_who_was_absent_are_told_shortly(run):
    from bruit.show.report.attempts import attempts as part
    from bruit.show.report.story import tell
    from tests.unit.show.report.pages import Page

    told = many_changes(run)
    made = attempts(told, 1e-4)
    assert made.outcome() == (
        "30 attempts made for 3 rounds: 27 became no sum, and cost as much as the others"
    )
    assert made.absent() == (
        "absent: peer 0 in 8 of 30; peer 1 in 8 of 30; peer 2 in 7 of 30; peer 3 in 7 of 30"
    )
    page = Page(part(tell(told, delta=1e-4)))
    assert [one for one in page.all("table") if "details" not in one.path] == []
    assert made.absent() in page.by_id("attempts").text


def test_one_is_not_many():
    one = Attempts(
        peers=1,
        rounds=1,
        limit=1,
        spent=1.0,
        promised=1.0,
        charged=(1,),
        spoken=(Spoken(0, 0, 1, (0,)),),
    )
    said = " ".join([one.sentence(), one.outcome(), *one.lists(), one.absent()])
    said += BothLevels(1.0, math.inf, 1, "replace", 1e-6).sentence()
    assert "at most 1 attempt is charged (1 round and 0 spare)" in said
    assert not re.search(r"\b1 (attempts|rounds|peers|records)\b", said)


@pytest.mark.parametrize(
    ("colluders", "words"),
    [
        (0, "no peer puts together what it sees"),
        (1, "at most 1 peer puts together what it sees"),
        (2, "at most 2 peers put together what they see"),
    ],
)
def test_colluders_are_counted_in_words(colluders, words):
    text = MASKED.replace('"masked-sgd"', f'"masked-sgd"\ncolluders = {colluders}')
    said = " ".join(map(str, build(parse(text), text).run().summary(1e-4).hypotheses))
    assert words in said
    assert not re.search(r"\b1 (peers|of the members)\b", said)


def test_alone_and_pooled_have_a_worst_peer(run):
    assert run.references["alone_worst"] <= run.references["alone"]
    assert run.references["central_worst"] == run.references["central"]  # one model, one test set


def test_asking_without_a_run_speaks_of_records(run):
    asked = BlankProtocol(
        graph="complete:4",
        algorithm="masked-sgd",
        steps=3,
        sigma=20.0,
        sensitivity=1.0,
        dim=3,
        level="record",
        sample_rate=0.5,
    )
    blank = asked.rehearse()
    assert blank.summary(1e-4).epsilons[0] == pytest.approx(run.summary(1e-4).epsilons[0], rel=1e-6)
    assert blank.summary(1e-4).adjacency == "replace"
    assert attempts(blank, 1e-4).promised == pytest.approx(attempts(run, 1e-4).promised, rel=1e-6)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"level": "row"}, "is 'user', all that a peer holds, or 'record'"),
        ({"sample_rate": 0.5}, "are about records; add --level record"),
        ({"adjacency": "add-remove"}, "are about records; add --level record"),
        ({"level": "record", "sample_rate": 1.5}, "above 0 and at most 1, found 1.5"),
        ({"level": "record", "adjacency": "swap"}, "'replace' or 'add-remove', found 'swap'"),
        ({"level": "record", "algorithm": "averaging"}, "this algorithm asks for values"),
    ],
)
def test_a_question_about_records_that_means_nothing(changed, message):
    asked = {"graph": "complete:4", "algorithm": "gossip-sgd", "steps": 2, "sigma": 1.0}
    with pytest.raises(ConfigError, match=message):
        BlankProtocol(**(asked | changed)).rehearse()


BAD = {
    "rate above 1": ("sample_rate = 0.5", "sample_rate = 1.5", "above 0 and at most 1, found 1.5"),
    "rate 0": ("sample_rate = 0.5", "sample_rate = 0.0", "above 0 and at most 1, found 0.0"),
    "no clip": ("clip = 0.5", "clip = 0.0", "privacy.clip = 0.0: input should be greater than 0"),
    "clip below 0": ("clip = 0.5", "clip = -1.0", "input should be greater than 0"),
    "adjacency": (
        "sample_rate",
        'adjacency = "swap"\nsample_rate',
        "input should be 'replace' or 'add-remove'",
    ),
    "private counts": (
        "sample_rate",
        'adjacency = "add-remove"\nsample_rate',
        "give privacy.divisor, the expected batch of a peer",
    ),
    "divisor": (
        "sample_rate",
        "divisor = 0.0\nsample_rate",
        "positive public number, .* found divisor = 0.0",
    ),
    "capacity": (
        "sample_rate",
        "divisor = 5.0\ncapacity = 10\nsample_rate",
        "peer 0 holds more records than the declared capacity 10",
    ),
    "level": ('"record"', '"row"', "input should be 'user' or 'record'"),
    "sample of users": ('"record"', '"user"', "privacy.sample_rate = 0.5: it is about single rec"),
    "laplace": ("clip", 'mechanism = "laplace"\nclip', "hidden by gaussian noise, found laplace"),
    "sums of users": (
        'level = "record"',
        'mechanism = "record-sums"',
        "sums of clipped records hide one record; write level",
    ),
    "ideal": ("clip", 'arithmetic = "ideal"\nclip', "found record-sums, whose noise is exactly"),
    "a mean of records": (
        'kind = "logistic"\ndata = "breast_cancer"\ncomponents = 2',
        'kind = "mean"',
        "a mean task answers is clipped as a whole, like one record, so privacy.sample_rate",
    ),
    "colluders": ('"masked-sgd"', '"masked-sgd"\ncolluders = 3', "5 peers are the least"),
    "nobody left": (
        '"masked-sgd"',
        '"masked-sgd"\ncolluders = 2\ndropouts = 2',
        "2 may collude and 2 may be gone: nobody is left to hide among",
    ),
    "a sum that overflows": ("clip = 0.5", "clip = 1e300", "might not fit into words of 64 bits"),
    "not neighbors": ("complete:4", "ring:4", "use complete:4"),
    "noise twice": ("sigma = 20.0", "sigma = 20.0\nepsilon = 1.0", "exactly once"),
}


@pytest.mark.parametrize(("old", "new", "message"), BAD.values(), ids=BAD)
def test_a_bad_file_is_refused_in_one_sentence(old, new, message):
    text = MASKED.replace(old, new, 1)
    assert text != MASKED
    with pytest.raises(BruitError, match=message) as caught:
        build(parse(text), text).run()
    assert "\n" not in str(caught.value)


def test_batches_may_be_empty():
    """one record in fifty thousand: noise is sent as always"""
    text = MASKED.replace("sample_rate = 0.5", "sample_rate = 2e-5")
    run = build(parse(text), text).run()
    assert run.summary(1e-4).epsilons[0] < 0.01
    assert np.isfinite(run.estimates).all()
