"""What programs read of a running peer: metrics by the standard client, logs as lines of JSON; no
value and no name of a column in either."""

import asyncio
import json
import logging
import sys

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from bruit.commands import cli
from bruit.peers.site.json_log import JsonLines, speaking
from bruit.peers.site.metrics import GAUGES
from bruit.peers.site.running import metrics_text, status
from bruit.peers.site.site import participant, read_site
from tests.unit.peers.small_network import found_small


@pytest.fixture
def one(tmp_path):
    found = participant(read_site(found_small(tmp_path)[0]))
    yield found
    found.host.journal.close()


WORDS = ("against", "refused", "level", "adjacency")  # of a status: no number, or told by kind


def test_the_clients_own_parser_reads_every_number_of_the_status(one):
    one.host.refused.update({"frame": 3})
    found = {family.name: family for family in text_string_to_metric_families(metrics_text(one))}
    now = status(one)
    assert {name for name in now if name not in WORDS} == set(GAUGES)
    for name, value in now.items():
        if value is None or name in WORDS:
            continue
        (sample,) = found.pop(f"bruit_{name}").samples
        assert sample.labels == {"peer": "0"}
        assert sample.value == (len(value) if isinstance(value, list) else value)
    refused = found.pop("bruit_refused")
    assert (refused.type, [one.value for one in refused.samples]) == ("counter", [3.0])
    assert refused.samples[0].name == "bruit_refused_total"
    assert refused.samples[0].labels == {"peer": "0", "kind": "frame"}
    assert found == {}


def test_peers_of_one_process_share_no_registry(one):
    before = {family.name for family in REGISTRY.collect()}
    assert metrics_text(one) == metrics_text(one)
    assert {family.name for family in REGISTRY.collect()} == before


def test_metrics_hold_numbers_only(one):
    for family in text_string_to_metric_families(metrics_text(one)):
        for sample in family.samples:
            assert set(sample.labels) <= {"peer", "kind"}
            assert sample.labels["peer"].isdigit()


def record(name, text, *words, error=None):
    return logging.LogRecord(name, logging.WARNING, "file", 1, text, words, error)


def test_a_line_of_the_log_says_when_who_and_what():
    with speaking(3):
        line = json.loads(JsonLines().format(record("bruit.peers", "without %s for %d", "ana", 2)))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "warning",
        "logger": "bruit.peers",
        "peer": 3,
        "event": "without ana for 2",
        "kind": "without %s for %d",
    }
    assert json.loads(JsonLines().format(record("bruit.peers", "said")))["peer"] is None


def test_a_library_that_quotes_a_value_is_not_quoted():
    try:
        raise ValueError("age 57.25")
    except ValueError:
        error = sys.exc_info()
    text = JsonLines().format(record("asyncio", "task failed: age %s", 57.25, error=error))
    assert "57" not in text
    assert "age" not in text
    assert json.loads(text)["error"] == "ValueError"


def test_tasks_of_two_peers_speak_for_themselves():
    async def both():
        async def speak():
            await asyncio.sleep(0)
            return json.loads(JsonLines().format(record("bruit.peers", "hello")))["peer"]

        tasks = []
        for peer in (4, 5):
            with speaking(peer):
                tasks.append(asyncio.create_task(speak()))
        return await asyncio.gather(*tasks)

    assert asyncio.run(both()) == [4, 5]


def logged(monkeypatch, capsys, site):
    """The exit code of a run with --log-json, and the lines it wrote, in a process whose logging was
    not set up yet."""
    root, own = logging.getLogger(), logging.getLogger("bruit.peers.run")
    handlers, level = root.handlers[:], own.level
    root.handlers.clear()
    monkeypatch.setattr(sys, "argv", ["bruit", "peer", "run", str(site), "--log-json"])
    try:
        with pytest.raises(SystemExit) as end:
            cli.main()
    finally:
        root.handlers[:] = handlers
        own.setLevel(level)
    return end.value.code, [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_run_logs_its_beginning_and_end_as_json(tmp_path, monkeypatch, capsys):
    sites = found_small(tmp_path, timeout=0.1, lines="wait_for = 0\nquorum = 0\n")
    code, lines = logged(monkeypatch, capsys, sites[0])
    assert code == 1  # nobody else was there
    assert {line["peer"] for line in lines} == {0}
    assert (lines[0]["kind"], lines[-1]["kind"]) == ("begins: %s", "ends: %s")
    assert "peer %d: %s" in {line["kind"] for line in lines}


def test_an_error_that_ends_a_run_is_a_line_too(tmp_path, monkeypatch, capsys):
    (site, *_) = found_small(tmp_path)
    (site.parent / "experiment.toml").unlink()
    code, (line,) = logged(monkeypatch, capsys, site)
    assert code == 2
    assert (line["level"], line["kind"]) == ("error", "ends with an error: %s")
    assert "experiment.toml" in line["event"]
