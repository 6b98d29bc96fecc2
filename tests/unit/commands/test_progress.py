"""The progress bar of every command: what is done, how fast, how long it will take, and the
score."""

import io

import pytest
from rich.console import Console

import bruit as br
from bruit.commands import terminal


def test_it_tells_rate_and_score(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(terminal, "err", Console(file=shown, force_terminal=True, width=120))
    with terminal.Ticker(False, "learning") as ticker:
        for done in range(1, 5):
            ticker(done, 30, {"accuracy": 0.5})
    for part in ("learning", "4/30", "/s", "accuracy 0.5000"):
        assert part in shown.getvalue()


def test_nothing_is_drawn_in_a_pipe(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(terminal, "err", Console(file=shown))
    with terminal.Ticker(False, "learning") as ticker:
        ticker(1, 2, {})
    assert shown.getvalue() == ""


@pytest.mark.parametrize(
    ("algorithm", "steps"), [(br.Averaging(), 20), (br.PairAveraging(), 30), (br.WalkSGD(), 2000)]
)
def test_events_tell_how_far_they_are(algorithm, steps):
    told = []
    task = br.tasks.Mean.uniform(16, seed=0)
    br.run(
        algorithm,
        "torus:4x4",
        task,
        steps=steps,
        engine=br.Events(latency=0.1),
        evaluate_every=0,
        progress=lambda done, total, _: told.append((done, total)),
    )
    assert told
    assert {total for _, total in told} == {steps}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] <= steps
