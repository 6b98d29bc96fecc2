"""A real peer whose algorithm raises: the error names the place, what it was given is kept in its
own state folder, and nobody else is told anything."""

import logging
import os
import stat

import numpy as np
import pytest
from typer.testing import CliRunner

import bruit as br
from bruit.commands.cli import app
from bruit.errors import AlgorithmError
from bruit.peers.journal.journal import recorded_spend
from tests.unit.peers.small_network import found_small, live_together
from tests.unit.peers.test_masked_peers import TEXT as MASKED

PEER, STEP = 1, 3
WORDS = "the secret is"


@pytest.fixture
def guilty(monkeypatch):
    """`absorb` of one peer raises at one step, and quotes what it holds; what it held is noted."""
    absorb, seen = br.GossipSGD.absorb, []

    def raising(self, state, inbox, home):
        after = absorb(self, state, inbox, home)
        if home.ids[0] == PEER and home.step[0] == STEP:
            seen.append((state, inbox.mix()))
            raise IndexError(f"{WORDS} {after}")
        return after

    monkeypatch.setattr(br.GossipSGD, "absorb", raising)
    return seen


def crash(sites, rehearse=None, change=lambda one: None):
    with pytest.raises(AlgorithmError) as found:
        live_together(sites, rehearse, change)
    return found.value


def crash_files(folder):
    return sorted(folder.rglob("*.crash.npz"))


def test_the_error_names_the_place_and_the_file_gives_the_same_error(tmp_path, guilty):
    sites = found_small(tmp_path)
    error = crash(sites)
    assert f"gossip-sgd: absorb raised IndexError at peer {PEER}, step {STEP}" in str(error)
    assert "private data of this peer, for you alone" in str(error)
    assert str(error).endswith(f"bruit replay --crash {error.saved}")
    state, mixed = guilty[0]
    kept = br.load_crash(error.saved)
    assert kept.about["peers"] == [PEER]
    assert kept.about["seed"] is None
    assert np.array_equal(kept.state.model, state.model)
    assert np.array_equal(kept.inbox.mix(), mixed)
    with pytest.raises(IndexError) as again:
        kept.replay()
    assert repr(again.value) == kept.about["error"]
    shown = CliRunner().invoke(app, ["replay", "--crash", str(error.saved)])
    assert shown.exit_code == 0
    assert f"gossip-sgd: absorb at peer {PEER}, step {STEP}; ring:3, 6 steps, eng" in shown.output
    assert "it fails again: IndexError" in shown.output


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_the_file_lies_in_the_state_folder_of_that_peer_for_its_owner_only(tmp_path, guilty):
    before = os.umask(0o022)
    try:
        sites = found_small(tmp_path)
        saved = crash(sites).saved
    finally:
        os.umask(before)
    assert crash_files(tmp_path) == [saved]
    assert saved.parent == sites[PEER].parent / "state"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert stat.S_IMODE(saved.parent.stat().st_mode) == 0o700


def test_no_word_of_the_exception_is_logged_told_or_sent(tmp_path, guilty, caplog):
    sites = found_small(tmp_path)
    with caplog.at_level(logging.DEBUG):
        error = crash(sites)
    assert WORDS not in str(error)
    assert error.__suppress_context__  # so that no traceback shows its cause
    assert WORDS not in caplog.text
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path != error.saved]
    assert [path for path in files if WORDS.encode() in path.read_bytes()] == []


def test_making_the_call_again_spends_and_commits_nothing(tmp_path, guilty):
    sites = found_small(tmp_path)
    people = []
    first = crash(sites, change=people.append)
    committed = recorded_spend(sites[PEER].parent / "state" / "journal.db")
    assert max(line.step for line in committed) < STEP  # the step that failed is not among them
    steps = people[PEER].host.ledger.column("step").tolist()
    assert steps.count(STEP) == steps.count(STEP - 1)  # its releases were charged once
    second = crash(sites)
    assert second.saved == first.saved  # the later crash takes the place of the earlier one
    assert str(second) == str(first)
    assert len(crash_files(tmp_path)) == 1


def test_an_estimate_that_raises_is_kept_too(tmp_path, monkeypatch):
    def raising(self, state):
        raise ZeroDivisionError(WORDS)

    def break_it(one):
        monkeypatch.setattr(br.GossipSGD, "estimate", raising)

    error = crash(found_small(tmp_path), change=break_it)
    assert "gossip-sgd: estimate raised ZeroDivisionError at peer 0, after step 6" in str(error)
    assert WORDS not in str(error)
    with pytest.raises(ZeroDivisionError):
        br.load_crash(error.saved).replay()


def test_masks_are_in_no_crash_file(tmp_path, monkeypatch):
    kind = br.algorithms.algorithm.catalog()["masked-sgd"]
    absorb, calls = kind.absorb, []

    def raising(self, state, inbox, home):
        after = absorb(self, state, inbox, home)
        if home.ids[0] == PEER and home.step[0] == STEP:
            calls.append(home)
            raise IndexError(WORDS)
        return after

    monkeypatch.setattr(kind, "absorb", raising)
    error = crash(found_small(tmp_path, MASKED, 4, timeout=3.0))
    assert "saved (without what the door answered, since masks are written nowhere)" in str(error)
    kept = br.load_crash(error.saved)
    assert kept.answers == []
    assert len(calls) == 1  # nothing was asked at the door again
    assert kept.state.model.shape == (1, 3)


def test_what_cannot_be_saved_is_said(tmp_path, guilty, monkeypatch):
    def full(*_, **__):
        raise br.ConfigError("cannot write it: no space left")

    monkeypatch.setattr("bruit.runs.crashes.crash.write_whole", full)
    error = crash(found_small(tmp_path))
    assert "what it was given could not be saved: cannot write it: no space left" in str(error)
    assert error.saved is None
    assert WORDS not in str(error)
