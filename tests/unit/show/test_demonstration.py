"""The demonstration: what it shows is worth showing, compared with staying alone, and it says when
it is not."""

from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from bruit.peers.founding.founding import found
from bruit.runs.run import run
from bruit.show.demonstration import (
    Demonstration,
    DemonstrationScores,
    _scores,
    plan_demonstration,
    verdict,
)
from tests.unit.peers.small_network import MEAN

LOST = DemonstrationScores("accuracy", (0.5, 0.7), 0.6, alone=0.8, central=0.9)
WON = DemonstrationScores("accuracy", (0.85, 0.85), 0.85, alone=0.8, central=0.9)


def compared(peers, seeds):
    """Accuracies together and alone over data sets and noises of several seeds, as the
    demonstration would run them."""
    together, alone = [], []
    planned = plan_demonstration(peers)
    for seed in range(seeds):
        task = type(planned.task).load(
            "breast_cancer",
            peers=peers,
            split=planned.file.task.split,
            seed=seed,
            components=planned.file.task.components,
        )
        done = run(
            planned.algorithm,
            planned.graph,
            task,
            privacy=planned.privacy,
            steps=planned.steps,
            seed=seed,
            evaluate_every=0,
        )
        together.append(task.evaluate(done.estimates)["accuracy"])
        alone.append(task.references()["alone"])
    return np.array(together), np.array(alone)


@pytest.mark.slow
@pytest.mark.parametrize("peers", [8, 16])
def test_together_beats_alone_among_eight_and_sixteen(peers):
    """Seeds 0 to 299: .883 together and .818 alone among 8 peers, .905 and .825 among 16, better in
    90 and 98 of 100 runs; the difference varies by .111 and .064. The seeds here are fixed; on new
    ones the first assertion would fail with a chance of 3 and 0.001 percent."""
    together, alone = compared(peers, 24)
    assert together.mean() - alone.mean() > 0.02
    assert np.mean(together > alone) >= 0.75


@pytest.mark.parametrize("peers", [2, 3, 4, 8, 16, 24, 25, 60])
def test_any_number_of_peers_can_be_shown(peers):
    planned = plan_demonstration(peers)
    assert planned.graph.n == planned.task.peers == peers
    assert planned.steps == 2 * planned.algorithm.mixing


def test_who_scores_a_mean_holds_all_values():
    """A peer cannot; who plays everybody can, and alone means one's own value."""
    (folder := Path("mean.toml")).write_text(MEAN)
    planned = plan_demonstration(3, str(folder))
    values = planned.task.values
    scores = _scores(planned, np.tile(values.mean(axis=0), (3, 1)))
    assert scores.each == pytest.approx((0.0, 0.0, 0.0))
    assert scores.alone == pytest.approx(((values - values.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert scores.better
    assert not _scores(planned, values).better


def test_it_says_why_not_and_what_would_help():
    planned = plan_demonstration(4)
    assert verdict(WON, planned) == (
        "Together is better than alone. The noise hides everything that one peer holds (user "
        "level)."
    )
    lost = verdict(LOST, planned)
    assert lost.startswith(
        "Together is not better than alone here. The noise hides everything that one peer holds"
    )
    for words in (
        "Only 4 peers share its cost",
        "more peers",
        "a larger epsilon",
        "task.components",
    ):
        assert words in lost
    bare = SimpleNamespace(privacy=None)
    assert "there is no noise" in verdict(WON, bare)
    assert "More steps would help" in verdict(LOST, bare)


def test_errors_are_to_be_low():
    assert DemonstrationScores("mse", (), 0.1, alone=0.3, central=0.0).better
    assert not DemonstrationScores("rmse", (), 0.4, alone=0.3, central=0.2).better


def test_the_screen_compares_alone_together_and_central():
    report = {"peer": 0, "sent": 3, "bytes_sent": 270, "epsilon": 8.0, "problems": []}
    report |= {"delta": 1e-6, "level": "record", "adjacency": "replace"}
    console = Console(
        file=StringIO(), width=120, markup=False, emoji=False
    )  # as the command line's
    ended = Demonstration(
        reports=[report, {**report, "peer": 1}],
        scores=LOST,
        verdict=verdict(LOST, plan_demonstration(2)),
        summary=None,
        why="somebody was missed",
        missed=True,
        flaws=[],
    )
    console.print(*ended.lines(), sep="\n")
    said = console.file.getvalue()
    for words in (
        "each peer alone, sharing nothing",
        "0.8000",
        "together, with bruit",
        "0.6000",
        "all data in one place",
        "0.9000",
        "Together is not better than alone here",
        "epsilon at delta = 1e-06, record level, one record replaced",
        "only the local epsilon",
    ):
        assert words in said
    assert "[bold]" not in said


def test_nothing_is_left_behind_when_the_folder_is_taken(tmp_path):
    (tmp_path / "mean.toml").write_text(MEAN)
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "mine").write_text("keep")
    with pytest.raises(Exception, match="is not empty"):
        found(str(tmp_path / "mean.toml"), 3, None, tmp_path / "net")
    assert [path.name for path in (tmp_path / "net").iterdir()] == ["mine"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
