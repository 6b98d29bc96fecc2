"""After a real run: what a participant's folder lets us say of pairs, and what it does not."""

import json
import math

import pytest
from typer.testing import CliRunner

import bruit as br
from bruit.commands.cli import app
from bruit.peers.site.running import run_participants
from bruit.peers.site.signed_report import signed
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.identity import Identity
from tests.unit.peers.small_network import MEAN, found_small, live_together

BUTTERFLY = MEAN.replace("ring:3", "butterfly:4").replace("gossip-sgd", "averaging")
BUTTERFLY = BUTTERFLY.replace("steps = 6", "steps = 2")


def report_of(site):
    return site.parent / "state" / "report.json"


def ask(*words):
    done = CliRunner().invoke(app, ["epsilon", *map(str, words)])
    code = getattr(done.exception, "exit_code", done.exit_code)
    return code, done.output if code == 0 else " ".join(str(done.exception).split())


def answer(*words):
    code, output = ask(*words, "--json")
    assert code == 0, output
    return json.loads(output)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    sites = found_small(tmp_path_factory.mktemp("whole"), BUTTERFLY, peers=4)
    live_together(sites)
    return sites


@pytest.fixture
def everybody(whole):
    return [word for site in whole for word in ("--report", report_of(site))]


@pytest.fixture(scope="module")
def lonely(tmp_path_factory):
    """Two of three ran, as their sites allow; the third never came."""
    folder = tmp_path_factory.mktemp("lonely")
    sites = found_small(folder, timeout=0.3, lines="wait_for = 1\n")
    assert run_participants([participant(read_site(site)) for site in sites[:2]]) == 0
    return sites


def test_with_everybodys_report_pairs_are_those_of_the_agreed_run(whole, everybody):
    noise = br.Gaussian(clip=1.0, sigma=1.5)
    agreed = br.rehearse(br.Averaging(), "butterfly:4", noise, 2, dim=2)
    for observer in (1, 2, 3):
        found = answer(whole[0], "--seen-by", observer, *everybody)
        assert found["loss"] == pytest.approx(agreed.epsilon(0, observer).guarantee.loss)
        assert found["epsilon"] == pytest.approx(agreed.epsilon(0, observer))
        others = answer(whole[0], "--of", 2, "--seen-by", 3, *everybody)
    assert others["epsilon"] == pytest.approx(agreed.epsilon(2, 3))
    assert min(agreed.epsilon(0, v) for v in (1, 2, 3)) < agreed.epsilon(0, "everybody")


def test_a_folder_alone_says_local_dp_and_why(whole):
    for place in (whole[0], whole[0].parent, whole[0].parent / "state"):
        code, text = ask(place, "--seen-by", 2)
        assert code == 0
        assert "what peer 2 could have learned about peer 0" in text
        assert "by local DP" in text
        assert "give the signed reports of all participants, --report" in " ".join(text.split())
    spent = json.loads(report_of(whole[0]).read_text())["epsilon"]
    assert answer(whole[0], "--seen-by", 2)["epsilon"] == pytest.approx(spent)


@pytest.mark.parametrize("old", [True, False])
def test_an_infinite_epsilon_is_that_of_an_old_copy_or_of_little_noise(lonely, old):
    """Of little noise it was said, too, that the journal is an old copy, with exit code 3."""
    path = report_of(lonely[0])
    before = path.read_bytes()
    report = {**json.loads(before), "epsilon": math.inf, "old_copy": old}
    path.write_text(json.dumps(signed(report, Identity.load(lonely[0].parent))))
    try:
        code, text = ask(lonely[0], "--seen-by", 1)
    finally:
        path.write_bytes(before)
    assert code == (3 if old else 0)
    assert ("its journal is an old copy" in text) is old


def test_one_absent_report_is_one_too_few(whole, everybody):
    code, text = ask(whole[0], "--seen-by", 2, *everybody[:-2])
    assert code == 0
    assert "by local DP" in text
    assert "there is no report of peer-3" in " ".join(text.split())


def test_whoever_was_missed_leaves_local_dp(lonely):
    reports = [word for site in lonely[:2] for word in ("--report", report_of(site))]
    code, text = ask(lonely[0], "--seen-by", 1, *reports)
    assert code == 0
    assert "by local DP" in text
    said = " ".join(text.split())
    assert "not as agreed: peer-0, peer-1 missed somebody, if only for a while" in said


def test_what_was_made_up_for_later_is_not_what_was_agreed_on(whole, everybody, tmp_path):
    """Such a report is complete, and the views are others all the same."""
    content = json.loads(report_of(whole[3]).read_text())
    content["took_part"]["peer-2"]["made_up_late"] = [[1, 1]]
    content["missed"] = 1
    late = tmp_path / "late.json"
    late.write_text(json.dumps(signed(content, Identity.load(whole[3].parent))))
    code, text = ask(whole[0], "--seen-by", 2, *everybody[:-1], late)
    assert (code, "by local DP" in text) == (0, True)
    assert "not as agreed: peer-3" in text


def test_others_are_asked_about_in_their_own_folders(whole):
    code, text = ask(whole[0], "--of", 1, "--seen-by", 2)
    assert code == 2
    assert "the folder of peer 0, which holds no releases of others" in text


def test_changed_and_foreign_reports_are_refused(whole, everybody, lonely, tmp_path):
    changed = tmp_path / "changed.json"
    changed.write_text(report_of(whole[1]).read_text().replace('"problems"', '"troubles"'))
    code, text = ask(whole[0], "--seen-by", 2, "--report", changed)
    assert (code, "peer-1 has not signed this" in text) == (2, True)
    code, text = ask(whole[0], "--seen-by", 2, "--report", report_of(lonely[1]))
    assert (code, "its signer is not in the address book" in text) == (2, True)


def test_a_run_that_has_not_ended_is_refused(lonely):
    code, text = ask(lonely[2], "--seen-by", 0)
    assert (code, "the run of this peer has not ended" in text) == (2, True)


def test_an_experiment_that_was_changed_after_the_run_is_refused(whole):
    experiment = whole[3].parent / "experiment.toml"
    agreed = experiment.read_text()
    experiment.write_text(agreed.replace("sigma = 1.5", "sigma = 15.0"))
    try:
        code, text = ask(whole[3], "--seen-by", 2)
    finally:
        experiment.write_text(agreed)
    assert (code, "of another run than the one that" in text) == (2, True)


def test_options_of_other_questions_are_refused(whole, tmp_path):
    code, text = ask(whole[0], "--seen-by", 2, "--published")
    assert (code, "leave the other options out" in text) == (2, True)
    code, text = ask("--graph", "ring:5", "--sigma", 1, "--report", report_of(whole[0]))
    assert (code, "--report is about a real run" in text) == (2, True)


MASKED = """\
graph = "complete:3"
steps = 2
[task]
kind = "mean"
dim = 2
[algorithm]
name = "masked-sgd"
[privacy]
sigma = 6.0
"""


def test_what_holds_when_somebody_is_missing_is_said_of_a_folder_alone(tmp_path):
    sites = found_small(tmp_path, MASKED, peers=3)
    _, reports = live_together(sites)
    found = answer(sites[0], "--seen-by", 1)
    assert found["epsilon"] == pytest.approx(reports[0]["epsilon"])
    opened = answer(sites[0], "--seen-by", "1,2")
    assert opened["epsilon"] > found["epsilon"]
    assert math.isfinite(opened["epsilon"])


UNEQUAL = """\
graph = "butterfly:4"
steps = 2
[task]
kind = "mean"
dim = 2
[algorithm]
name = "averaging"
[privacy]
sigmas = [1.5, 3.0, 3.0, 3.0]
"""


def test_noise_of_ones_own_counts_as_it_was_drawn(tmp_path):
    """A site that adds more than was agreed on is charged for what stands in its journal."""
    sites = found_small(tmp_path, UNEQUAL, peers=4)
    sites[0].write_text(sites[0].read_text() + "[noise]\nsigma = 3.0\n")
    live_together(sites)
    reports = [word for site in sites for word in ("--report", report_of(site))]
    mine = answer(sites[0], "--seen-by", 2, *reports)
    noise = br.Gaussian(clip=1.0, sigma=3.0)
    alike = br.rehearse(br.Averaging(), "butterfly:4", noise, 2, dim=2)
    assert mine["loss"] < 1
    assert mine["epsilon"] == pytest.approx(alike.epsilon(0, 2), rel=1e-6)


MEETINGS = """\
graph = "complete:2"
steps = 1
[task]
kind = "mean"
dim = 2
[algorithm]
name = "pair-averaging"
[privacy]
sigma = 1.5
"""


def test_meetings_of_others_are_known_to_nobody(tmp_path):
    sites = found_small(tmp_path, MEETINGS, peers=2, timeout=5.0)
    live_together(sites)
    code, text = ask(sites[0], "--seen-by", 1, "--report", report_of(sites[1]))
    assert (code, "by local DP" in text) == (0, True)
    assert "nobody knows all the meetings of it" in " ".join(text.split())
