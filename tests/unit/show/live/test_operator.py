"""What the operator of a real peer may see: its own status, and nothing of others but names."""

import json
import os
import time

import pytest

from bruit.errors import ConfigError
from bruit.peers.founding.founding import found
from bruit.show.live.operator import operator_view

AGREED = """graph = "ring:4"
steps = 4
[task]
kind = "mean"
[algorithm]
name = "averaging"
[privacy]
sigma = 2.0
"""
STATUS = {
    "peer": 1,
    "step": 2,
    "steps": 4,
    "done": False,
    "neighbors": 2,
    "connected": 1,
    "sent": 4,
    "meetings": 0,
    "bytes_sent": 90,
    "bytes_received": 80,
    "refused": {"message": 2},
    "missed": 1,
    "epsilon": 2.5,
    "delta": 1e-6,
    "budget": 8.0,
}


@pytest.fixture
def site(tmp_path):
    (tmp_path / "agreed.toml").write_text(AGREED)
    made = found(str(tmp_path / "agreed.toml"), 4, None, tmp_path / "network")[1]
    (made.parent / "state").mkdir()
    return made


def tell(site, name, **changes):
    path = site.parent / "state" / name
    path.write_text(json.dumps({**STATUS, **changes}))
    return path


def test_before_it_has_told_anything(site):
    seen = operator_view(site)
    assert seen == {
        "peer": 1,
        "name": "peer-1",
        "state": "waiting",
        "seconds_ago": None,
        "others": [{"peer": 0, "name": "peer-0"}, {"peer": 2, "name": "peer-2"}],
    }


def test_while_it_runs(site):
    path = tell(site, "status.json")
    seen = operator_view(site)
    assert seen["state"] == "running"
    assert (seen["step"], seen["missed"], seen["refused"]) == (2, 1, {"message": 2})
    assert (seen["epsilon"], seen["budget"], seen["budget_left"]) == (2.5, 8.0, 5.5)
    assert (seen["connected"], seen["neighbors"]) == (1, 2)
    os.utime(path, (time.time() - 60, time.time() - 60))
    assert operator_view(site)["state"] == "quiet"
    json.dumps(operator_view(site), allow_nan=False)


def test_nothing_else_of_the_folder_is_shown(site):
    tell(site, "status.json", values=[0.123456], secret="0xabc")
    shown = json.dumps(operator_view(site))
    assert "0.123456" not in shown
    assert "0xabc" not in shown
    for secret in ("key.pem", "signing.pem"):
        assert (site.parent / secret).read_text().splitlines()[1] not in shown


def test_after_it_ended_or_was_stopped_and_went_on(site):
    path = tell(site, "status.json", done=True)
    os.utime(path, (time.time() - 5, time.time() - 5))
    tell(
        site,
        "report.json",
        done=True,
        epsilon="inf",
        budget=None,
        metrics={"mse": 0.5},
        silent_releases=0,
    )
    seen = operator_view(site)
    assert (seen["state"], seen["metrics"]) == ("done", {"mse": 0.5})
    assert (seen["epsilon"], seen["budget_left"]) == (None, None)
    tell(site, "report.json", done=False)
    assert operator_view(site)["state"] == "stopped"
    later = time.time() + 2
    os.utime(tell(site, "status.json"), (later, later))
    assert operator_view(site)["state"] == "running"


def test_what_is_broken_is_named(site, tmp_path):
    with pytest.raises(ConfigError, match="no site file"):
        operator_view(tmp_path / "nowhere.toml")
    status = site.parent / "state" / "status.json"
    status.write_text("{")
    with pytest.raises(ConfigError, match=r"cannot read .*status\.json"):
        operator_view(site)
    status.write_text("[]")
    with pytest.raises(ConfigError, match="does not hold a record"):
        operator_view(site)
    status.unlink()
    (site.parent / "experiment.toml").write_text(AGREED.replace("ring:4", "ring:5"))
    with pytest.raises(ConfigError, match="has 5 peers, the address book 4"):
        operator_view(site)
    site.write_text("peer = 9\n")
    with pytest.raises(ConfigError, match="this site is peer 9"):
        operator_view(site)


def test_the_server_of_an_operator_knows_no_runs(site, tmp_path):
    testclient = pytest.importorskip(
        "fastapi.testclient", reason="fastapi or httpx is not installed"
    )
    from bruit.show.live.app import create_app

    tell(site, "status.json")
    with testclient.TestClient(create_app(tmp_path, site), base_url="http://localhost") as client:
        assert "peer.js" in client.get("/").text
        assert client.get("/api/peer").json()["state"] == "running"
        for address in ("/api/runs", "/api/form", "/runs/x/report"):
            assert client.get(address).status_code == 404


def test_the_operators_pages_speak_of_no_runs(site, tmp_path):
    """What-if has no run to start there, and an unknown address leads back to the peer."""
    testclient = pytest.importorskip(
        "fastapi.testclient", reason="fastapi or httpx is not installed"
    )
    from bruit.show.live.app import create_app

    with testclient.TestClient(create_app(tmp_path, site), base_url="http://localhost") as client:
        page = client.get("/what-if").text
        assert '<a id="experiment" hidden' in page
        assert ">Runs</a>" not in page
        lost = client.get("/runs/x", headers={"Accept": "text/html"})
        assert lost.status_code == 404
        assert "To this peer" in lost.text
        assert "Runs are listed" not in lost.text
