"""The progress bar of every command: what is done, how fast, how long it will take, and the score."""

import io

from rich.console import Console

from bruit import terminal


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
