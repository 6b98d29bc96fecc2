"""What is shipped: the services of the compose file run as processes on loopback, are stopped and
started again in the middle of a run, and end well; image and units say what the docs say."""

import configparser
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bruit.peers.engine import free_ports
from bruit.peers.founding.demo import read_json
from bruit.peers.founding.founding import plan_network, settle
from tests.e2e.villages import until

DEPLOY = Path(__file__).parents[2] / "deploy"
TEXT = """\
graph = "complete:4"
steps = 200
seed = 3

[task]
kind = "mean"
dim = 2

[algorithm]
name = "gossip-sgd"

[privacy]
sigma = 1.5
"""


def services():
    """Command and volumes of every service of the compose file."""
    text = (DEPLOY / "compose.yaml").read_text().split("services:\n")[1]
    found = {}
    for block in re.split(r"^  (?=\S)", text, flags=re.MULTILINE)[1:]:
        command = json.loads(re.search(r"command: (.*)", block)[1])
        volumes = json.loads(re.search(r"volumes: (.*)", block)[1])
        found[block.partition(":")[0]] = (
            command,
            dict(reversed(volume.split(":")) for volume in volumes),
        )
    return found


def started(name, folder, port):
    """A service as a process: mounted folders and the relay's port are those of this machine."""
    command, volumes = services()[name]
    words = []
    for word in command:
        for inside, outside in volumes.items():
            if word == inside or word.startswith(inside + "/"):
                word = str(folder / outside) + word.removeprefix(inside)
        words.append(str(port) if word == "8443" else word)
    given = {"HOME": "/proc/none"}  # the image has a user without a home
    for key, value in re.findall(r"(\w+)=(\S+)", image("ENV")):
        if key != "PATH":
            given[key] = value.replace("/site", str(folder / volumes.get("/site", "nowhere")))
    with open(folder / f"{name}.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "bruit", *words],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **given},
        )


def image(step):
    """A step of the image that is made, without its first word."""
    lines = (DEPLOY / "Containerfile").read_text().rpartition("\nFROM ")[2].splitlines()
    return next(line for line in lines if line.startswith(step)).removeprefix(step).strip()


@pytest.mark.slow
def test_the_services_of_the_compose_file_run_stop_and_go_on(tmp_path):
    (tmp_path / "agreed.toml").write_text(TEXT)
    (port,) = free_ports(1)
    agreed = plan_network(str(tmp_path / "agreed.toml"), 4)
    sites = settle(agreed, tmp_path / "network", relay=f"127.0.0.1:{port}", timeout=60.0)
    assert set(services()) == {"relay", *(f"peer-{peer}" for peer in range(4))}
    running = {name: started(name, tmp_path, port) for name in services()}

    def step(peer):
        return read_json(sites[peer].parent / "state" / "status.json").get("step", 0)

    try:
        until(lambda: step(1) >= 1, lambda: (tmp_path / "peer-1.log").read_text())
        running["peer-2"].send_signal(signal.SIGSTOP)  # so that nobody ends before it is stopped
        running["peer-1"].send_signal(signal.SIGTERM)  # as an engine stops it, for an upgrade
        assert running["peer-1"].wait(120) == 130
        running["peer-2"].send_signal(signal.SIGCONT)
        running["peer-1"] = started("peer-1", tmp_path, port)
        codes = {name: one.wait(300) for name, one in running.items() if name != "relay"}
        assert codes == dict.fromkeys(codes, 0)
        running["relay"].send_signal(signal.SIGTERM)
        assert running["relay"].wait(60) == 0
    finally:
        for one in running.values():
            one.kill()
            one.wait()
    said = (tmp_path / "relay.log").read_text()
    assert "relay for 4 peers listens at" in said
    assert re.search(r"peer-0 called peer-1 \d+ times: \d+ bytes there", said)
    reports = [read_json(site.parent / "state" / "report.json") for site in sites]
    assert [report["problems"] for report in reports] == [[], [], [], []]
    for peer, site in enumerate(sites):  # homes and images cannot be written to
        assert "cannot be written" not in (tmp_path / f"peer-{peer}.log").read_text()
        assert len(list((site.parent / "register" / "accounts").iterdir())) == 1


def test_units_restart_what_a_restart_helps_and_nothing_else():
    for name, never in (("bruit-peer@.service", "1 2 3"), ("bruit-relay.service", "2")):
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str
        unit.read(DEPLOY / name)
        assert unit["Service"]["RestartPreventExitStatus"] == never
        assert unit["Service"]["KillSignal"] == "SIGTERM"
        assert unit["Service"]["UMask"] == "0077"
        assert unit["Service"]["ReadWritePaths"] == unit["Service"]["WorkingDirectory"]
    unit.read(DEPLOY / "bruit-peer@.service")
    place = unit["Service"]["Environment"].removeprefix("BRUIT_REGISTER=")
    assert place == f"/var/lib/{unit['Service']['StateDirectory']}"


def test_units_are_verified(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("this machine has no systemd-analyze")
    for name in ("bruit-peer@.service", "bruit-relay.service"):
        text = (DEPLOY / name).read_text().replace("/opt/bruit/bin/bruit", "/bin/true")
        text = text.replace("User=bruit", "User=root")
        (tmp_path / name).write_text(text)
        said = subprocess.run(
            ["systemd-analyze", "verify", str(tmp_path / name.replace("@.", "@x."))
             if "@" in name else str(tmp_path / name)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        mine = [line for line in said.stderr.splitlines() if name.partition("@")[0] in line]
        assert mine == []


def test_the_image_holds_no_secret_and_runs_as_nobody_special():
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    copied = [line for line in lines if line.startswith("COPY") and "--from" not in line]
    assert copied == ["COPY pyproject.toml README.md LICENSE ./", "COPY bruit ./bruit"]
    assert all((DEPLOY.parent / one).exists() for one in ("README.md", "LICENSE", "pyproject.toml"))
    assert "USER bruit" in lines
    assert 'ENTRYPOINT ["bruit"]' in lines
    command = json.loads(next(line for line in lines if line.startswith("CMD"))[4:])
    assert command == services()["peer-0"][0]
