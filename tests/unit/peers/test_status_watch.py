"""Keeping status files up to date takes a twentieth of a process's time at most, however many peers it
hosts and however slow the machine is."""

import asyncio

import pytest

from bruit.peers.site import running


@pytest.mark.parametrize(
    ("cost", "hosted", "rest"),
    [(0.001, 1, 0.2), (0.001, 20, 0.4), (0.02, 1, 0.4), (0.003, 16, 0.96)],
)
def test_the_dearer_a_status_is_the_rarer_it_is_written(monkeypatch, cost, hosted, rest):
    clock, slept, shown = [0.0], [], []

    def show(*given):
        shown.append(given)
        clock[0] += cost

    async def sleep(seconds):
        slept.append(seconds)
        raise asyncio.CancelledError

    monkeypatch.setattr(running, "_try_to_show", show)
    monkeypatch.setattr(running, "_signs", lambda of: ())
    monkeypatch.setattr(running.time, "thread_time", lambda: clock[0])
    monkeypatch.setattr(running.asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(running._watch(None, None, hosted))
    assert slept == [pytest.approx(rest)]
    assert len(shown) == 2  # now, and once more at the end


def test_on_a_machine_short_of_time_it_is_written_less_often(monkeypatch):
    """With 256 peers of 64 processes on two cores, statuses were a sixth of all that was done."""
    clock, slept = [0.0], []

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 4:
            raise asyncio.CancelledError
        clock[0] += seconds + [0.001, 0.1, 60.0][len(slept) - 1]  # so late it is woken

    monkeypatch.setattr(running, "_try_to_show", lambda *given: None)
    monkeypatch.setattr(running, "_signs", lambda of: ())
    monkeypatch.setattr(running.time, "thread_time", lambda: 0.0)
    monkeypatch.setattr(running.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(running.asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(running._watch(None, None))
    assert slept == [pytest.approx(pause) for pause in (0.2, 0.2, 2.0, running.LONGEST)]
