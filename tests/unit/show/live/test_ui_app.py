"""The page's server: who is answered, what is listed, what is refused, and runs from start to
report."""

import html
import json
import os
import shutil
import time

import numpy as np
import pytest

import bruit as br
from bruit.testing import small_task

testclient = pytest.importorskip("fastapi.testclient", reason="fastapi or httpx is not installed")
from bruit.show.live.app import COOKIE, POLICY, SCRIPTS, create_app  # noqa: E402

SHORT = """graph = "ring:6"
steps = 6
references = false
[task]
kind = "mean"
[algorithm]
name = "averaging"
[privacy]
sigma = 2.0
"""
LONG = SHORT.replace("steps = 6", "steps = 2000000")
PAGE = {"X-Bruit": "1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with one run, a broken one, one with a hostile name and one that is being
    written."""
    made = tmp_path_factory.mktemp("runs")
    run = br.run(
        br.Averaging(), "ring:6", small_task(6), privacy=br.Gaussian(clip=1.0, sigma=2.0), steps=2
    )
    run.save(made / "good.run")
    run.save(made / "<img src=x onerror=alert(1)>.run")
    (made / "broken.run").mkdir()
    (made / "broken.run" / "manifest.json").write_text("{")
    (made / "foreign.run").mkdir()
    (made / "foreign.run" / "manifest.json").write_text('{"graph": 3}')
    (made / ".other.run.part").mkdir()
    (made / "secret.txt").write_text("secret")
    return made


@pytest.fixture(scope="module")
def client(folder):
    with testclient.TestClient(create_app(folder), base_url="http://127.0.0.1:8765") as opened:
        yield opened


def test_pages_load_nothing_from_elsewhere_and_hold_no_inline_code(client):
    for address in ("/", "/what-if"):
        page = client.get(address)
        assert page.status_code == 200
        assert page.headers["content-security-policy"] == POLICY
        assert page.headers["referrer-policy"] == "no-referrer"
        for forbidden in ("http://", "https://", "<style", "onclick", "style=", "javascript:"):
            assert forbidden not in page.text
    for name in (*SCRIPTS, "page.css", "look.css", "mark.svg"):
        asset = client.get(f"/assets/{name}")
        assert asset.status_code == 200
        assert "innerHTML" not in asset.text
        assert "insertAdjacentHTML" not in asset.text


@pytest.mark.parametrize(
    "name", ["../app.py", "%2e%2e%2fapp.py", "app.py", "index.html", "..", "%2e%2e"]
)
def test_only_assets_are_served(client, name):
    found = client.get(f"/assets/{name}")
    assert (
        found.status_code == 404 or found.text == client.get("/").text
    )  # a client may resolve .. by itself


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost@evil.example:8765"]
)
def test_other_hosts_are_refused(client, host):
    assert client.get("/api/runs", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:1", "[::1]:8765", "[::1]"])
def test_this_machine_has_several_names(client, host):
    assert client.get("/api/families", headers={"Host": host}).status_code == 200


def test_a_foreign_page_can_change_nothing(client):
    for address in ("/api/runs", "/api/runs/good/stop", "/api/check"):
        refused = client.post(address, json={})
        assert refused.status_code == 403
        assert "only the page itself" in refused.json()["error"]


def test_a_token_is_required_once(folder):
    app = create_app(folder, token="correct horse", hosts=())
    with testclient.TestClient(app, base_url="http://10.1.2.3", follow_redirects=False) as client:
        for asked in ("/", "/api/runs", "/assets/page.css", "/?token=wrong", "/runs/good/report"):
            refused = client.get(asked)
            assert refused.status_code == 401
            assert "token is needed" in refused.text
        client.cookies.set(COOKIE, "one of an earlier server")
        entered = client.get("/?token=correct horse")
        assert entered.status_code == 303
        assert entered.headers["location"] == "/"
        assert "HttpOnly" in entered.headers["set-cookie"]
        assert "SameSite=strict" in entered.headers["set-cookie"]
        client.cookies.clear()
        client.cookies.set(COOKIE, "correct horse")
        assert client.get("/api/families").status_code == 200


def test_runs_are_listed_with_what_is_wrong(client):
    found = {one["name"]: one for one in client.get("/api/runs").json()}
    assert set(found) == {"good", "broken", "foreign", "<img src=x onerror=alert(1)>"}
    good = found["good"]
    assert {
        key: good[key]
        for key in ("state", "peers", "graph", "algorithm", "steps", "noisy", "metric")
    } == {
        "state": "saved",
        "peers": 6,
        "graph": "ring:6",
        "algorithm": "averaging",
        "steps": 2,
        "noisy": True,
        "metric": "mse",
    }
    assert good["score"] >= 0
    assert good["date"].startswith("20")
    for name in ("broken", "foreign"):
        assert found[name]["reason"] == "its manifest is missing or cannot be read"


def test_a_name_that_is_no_text_is_told(tmp_path):
    try:
        os.mkdir(os.fsencode(tmp_path) + b"/\xff.run")
    except OSError:
        pytest.skip("this file system takes text only")
    with testclient.TestClient(create_app(tmp_path), base_url="http://localhost") as client:
        assert (
            client.get("/api/runs").json()[0]["reason"] == "its name is not text; rename the folder"
        )


def test_a_report_is_served_under_its_own_policy(client):
    report = client.get("/runs/good/report")
    assert report.status_code == 200
    assert "Report of good.run" in report.text
    assert "script-src 'sha256-" in html.unescape(report.text)
    hostile = client.get("/runs/%3Cimg%20src=x%20onerror=alert(1)%3E/report")
    assert hostile.status_code == 200
    assert "<img" not in hostile.text
    assert "&lt;img src=x" in hostile.text


@pytest.mark.parametrize(
    "name",
    ["../good", "%2e%2e", "..", "nobody", "%2e%2e%2fsecret", "secret.txt", "good.run", "%00"],
)
def test_other_names_lead_nowhere(client, name):
    found = client.get(f"/runs/{name}/report")
    assert found.status_code in (400, 404)
    assert "secret" not in found.text.replace("secret.txt", "").replace("../secret", "")


def test_a_broken_run_is_told_to_a_person(client):
    page = client.get("/runs/broken/report", headers={"Accept": "text/html"})
    assert page.status_code == 400
    assert "This cannot be shown" in page.text
    assert "broken.run" in page.text
    assert "error" in client.get("/runs/broken/report", headers={"Accept": "*/*"}).json()


def test_an_experiment_is_checked_field_by_field(client):
    def check(text):
        return client.post("/api/check", json={"experiment": text}, headers=PAGE).json()

    fine = check(SHORT)
    assert fine["problems"] == []
    assert fine["values"]["privacy"] == {"sigma": 2.0}
    (problem,) = check(SHORT.replace("sigma = 2.0", "sigma = -1.0"))["problems"]
    assert (problem["key"], problem["line"]) == ("privacy.sigma", 9)
    assert "greater than 0" in problem["text"]
    assert check(SHORT.replace("ring:6", "rink:6"))["problems"] == [
        {
            "key": "graph",
            "line": 1,
            "text": "there is no family of graphs 'rink'; did you mean 'ring'?",
        }
    ]
    assert check(SHORT.replace("averaging", "averagin"))["problems"][0]["key"] == "algorithm.name"
    assert check('graph = "ring:6"')["problems"][0] == {
        "key": "task",
        "line": None,
        "text": "'task' is missing",
    }
    (broken,) = check("graph = ")["problems"]
    assert "not valid TOML" in broken["text"]
    assert check("a = inf\nb = 1979-05-27")["values"] == {"a": "inf", "b": "1979-05-27"}


def test_the_form_is_made_of_the_schema(client):
    made = client.get("/api/form").json()
    sigma = next(field for field in made["sections"]["privacy"] if field["name"] == "sigma")
    assert sigma == {
        "name": "sigma",
        "kind": "number",
        "choices": None,
        "needed": False,
        "default": None,
        "exclusiveMinimum": 0,
        "help": sigma["help"],
    }
    assert "standard deviation" in sigma["help"]
    assert all(
        field["help"] for part in (made["top"], *made["sections"].values()) for field in part
    )
    assert all(made["about"].values())
    assert {"averaging", "walk-sgd", "muffliato"} <= set(made["algorithms"])
    assert "breast-cancer" in made["examples"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "../x", "experiment": SHORT}, "letters, digits"),
        ({"name": "", "experiment": SHORT}, "letters, digits"),
        ({"name": "x" * 61, "experiment": SHORT}, "letters, digits"),
        ({"name": "good", "experiment": SHORT}, "there is a run good already"),
        ({"name": "x", "experiment": "graph = "}, "not valid TOML"),
        ({"name": "x"}, "a name and the text"),
        ([], "no JSON object"),
    ],
)
def test_what_cannot_start(client, body, words):
    refused = client.post("/api/runs", json=body, headers=PAGE)
    assert refused.status_code == 400
    assert words in refused.json()["error"]


def test_odd_requests(client):
    assert client.post("/api/runs", content=b"{", headers=PAGE).json() == {
        "error": "the request holds no JSON"
    }
    assert client.post("/api/runs", content=b"x" * 2**21, headers=PAGE).status_code == 413
    pieces = client.post(
        "/api/runs", content=(b"[" + b" " * 2**19 for _ in range(4)), headers=PAGE
    )  # says no length
    assert "at most 1048576 bytes" in pieces.json()["error"]
    assert "no run" in client.get("/api/runs/nobody/events").json()["error"]
    assert "no run" in client.post("/api/runs/nobody/stop", headers=PAGE).json()["error"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("peers=three", "not a number"),
        ("peers=3", "4 to 256"),
        ("peers=1000", "4 to 256"),
        ("steps=51", "up to 50"),
        ("noise=nan", "standard deviation"),
        ("delta=0", "delta"),
        ("family=none", "there is no family"),
        ("observers=a", "not a number"),
    ],
)
def test_questions_that_mean_nothing(client, words, said):
    refused = client.get(f"/api/what-if?{words}")
    assert refused.status_code == 400
    assert said in refused.json()["error"]


def test_a_question_is_answered(client):
    found = client.get(
        "/api/what-if?family=path&peers=4&steps=2&noise=1&observers=0&delta=1e-6"
    ).json()
    assert found["computable"] == [1, 2]


@pytest.mark.slow
def test_a_run_from_start_to_report(tmp_path):
    with testclient.TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        asked = {"name": "short", "experiment": SHORT}
        assert client.post("/api/runs", json=asked, headers=PAGE).json() == {"name": "short"}
        assert "already" in client.post("/api/runs", json=asked, headers=PAGE).json()["error"]
        told = client.get("/api/runs/short/events")
        assert told.headers["content-type"].startswith("text/event-stream")
        events = [
            json.loads(line.removeprefix("data: ")) for line in told.text.splitlines() if line
        ]
        kinds = [event["event"] for event in events]
        assert (kinds[0], kinds[-1]) == ("begin", "done")
        steps = [event["step"] for event in events if event["event"] == "step"]
        assert steps == sorted(steps)
        assert steps[-1] == 6
        leaks = [event for event in events if event["event"] == "leaks"]
        saved = br.load(tmp_path / "short.run")
        assert leaks[-1]["final"]
        for peer in (1, 3):
            assert leaks[-1]["epsilons"][peer] == pytest.approx(
                float(saved.epsilon(of=peer, seen_by=0))
            )
            rising = [event["epsilons"][peer] for event in leaks]
            assert rising == sorted(rising)
        assert leaks[0]["epsilons"][0] is None
        assert "Report of short.run" in client.get("/runs/short/report").text
        assert [one["state"] for one in client.get("/api/runs").json()] == ["saved"]


@pytest.mark.slow
def test_a_run_is_stopped_and_what_fails_is_told(tmp_path):
    with testclient.TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        client.post("/api/runs", json={"name": "long", "experiment": LONG}, headers=PAGE)
        bad = SHORT.replace("ring:6", "ring:2x")
        client.post("/api/runs", json={"name": "bad", "experiment": bad}, headers=PAGE)
        third = client.post("/api/runs", json={"name": "third", "experiment": SHORT}, headers=PAGE)
        assert third.status_code == 200 or "2 runs go on" in third.json()["error"]
        assert client.post("/api/runs/long/stop", headers=PAGE).status_code == 200
        assert client.post("/api/runs/long/stop", headers=PAGE).status_code in (
            200,
            400,
        )  # 200: at once
        assert '"stopped"' in client.get("/api/runs/long/events").text
        assert (
            "no run long is going on"
            in client.post("/api/runs/long/stop", headers=PAGE).json()["error"]
        )
        assert "ring:2x" in client.get("/api/runs/bad/events").text
        states = {one["name"]: one["state"] for one in client.get("/api/runs").json()}
        assert states["long"] == "stopped"
        assert states["bad"] == "failed"
        client.post("/api/runs", json={"name": "last", "experiment": LONG}, headers=PAGE)
    assert not [
        path for path in tmp_path.iterdir() if path.name.startswith(("long", "last", "bad"))
    ]


@pytest.mark.slow
def test_a_stopped_run_keeps_what_was_done(tmp_path):
    with testclient.TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        client.post("/api/runs", json={"name": "long", "experiment": LONG}, headers=PAGE)
        live, last = client.app.state.runs.live["long"], time.monotonic() + 60
        while not any(event["event"] == "step" for event in live.events):
            assert time.monotonic() < last
            time.sleep(0.02)
        assert client.post("/api/runs/long/stop", headers=PAGE).status_code == 200
        told = [
            json.loads(line[6:])
            for line in client.get("/api/runs/long/events").text.split("\n\n")
            if line
        ]
        assert [event["event"] for event in told if event["event"] in ("stopping", "done")] == [
            "stopping",
            "done",
        ]
        done, total = (
            told[-1]["report"]["interrupted"]["done"],
            told[-1]["report"]["interrupted"]["of"],
        )
        assert 0 < done < total == 2000000
        kept = br.load(tmp_path / "long.run")
        assert kept.interrupted == (done, total)
        assert [one["state"] for one in client.get("/api/runs").json()] == ["interrupted"]
        facts = client.get("/api/runs/long").json()
        assert facts["state"] == "saved"
        assert facts["report"]["interrupted"]["in_words"].startswith(f"interrupted after {done} of")
        view = client.get("/api/runs/long/view/3").json()
        assert view["step"] == done
        assert view["epsilons"][0] == pytest.approx(float(kept.epsilon(of=0, seen_by=3)))


@pytest.mark.slow
def test_a_run_that_left_a_folder_is_the_folder(tmp_path):
    """Stopped in its accounting, or saved by somebody else under the name of one that failed."""
    with testclient.TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        client.post(
            "/api/runs",
            json={"name": "one", "experiment": SHORT.replace("ring:6", "ring:2x")},
            headers=PAGE,
        )
        assert '"failed"' in client.get("/api/runs/one/events").text
        br.run(br.Averaging(), "ring:6", small_task(6), steps=2).save(tmp_path / "one.run")
        assert [one["state"] for one in client.get("/api/runs").json()] == ["saved"]
        assert client.get("/api/runs/one").json()["state"] == "saved"


def of_manifest(**changes):
    return ("manifest.json", lambda content: {**content, **changes})


def of_scores(value):
    return ("metrics.json", lambda content: {**content, "rows": [{"mse": value}]})


@pytest.mark.parametrize(
    ("file", "change"),
    [
        of_manifest(steps=float("inf")),
        of_manifest(task=[]),
        of_manifest(verdict={"worse": True}),
        of_manifest(graph={"peers": "many", "name": "x"}),
        of_scores("high"),
        of_scores([1]),
        ("metrics.json", lambda content: {**content, "references": 3}),
        ("metrics.json", lambda content: [content]),
    ],
)
def test_one_broken_folder_does_not_hide_the_others(folder, tmp_path, file, change):
    shutil.copytree(folder / "good.run", tmp_path / "good.run")
    shutil.copytree(folder / "good.run", tmp_path / "odd.run")
    place = tmp_path / "odd.run" / file
    place.write_text(json.dumps(change(json.loads(place.read_text()))))
    with testclient.TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        states = {one["name"]: one["state"] for one in client.get("/api/runs").json()}
    assert states == {"good": "saved", "odd": "broken"}


@pytest.mark.parametrize(
    "verdict", ["hello", {"worse": 1, "in_words": "x", "gain": float("nan")}, [], None]
)
def test_whatever_a_manifest_says_of_the_verdict_can_be_listed(folder, tmp_path, verdict):
    shutil.copytree(folder / "good.run", tmp_path / "odd.run")
    place = tmp_path / "odd.run" / "manifest.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "verdict": verdict}))
    with testclient.TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        (one,) = client.get("/api/runs").json()
    assert one["verdict"] in (None, {"worse": True, "in_words": "x"})


def test_folders_that_go_away_are_not_listed(folder, tmp_path, monkeypatch):
    shutil.copytree(folder / "good.run", tmp_path / "good.run")
    shutil.copytree(folder / "good.run", tmp_path / "gone.run")
    is_dir = type(tmp_path).is_dir

    def going(path, *words):
        there = is_dir(path, *words)
        if path.name == "gone.run" and there:
            shutil.rmtree(path)
        return there

    with testclient.TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        monkeypatch.setattr(type(tmp_path), "is_dir", going)
        states = {one["name"]: one["state"] for one in client.get("/api/runs").json()}
    assert states["good"] == "saved"


def test_without_noise_everybody_is_without_bound(tmp_path):
    br.run(br.Averaging(), "path:4", small_task(4), steps=2).save(tmp_path / "bare.run")
    with testclient.TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        assert client.get("/api/runs/bare/view/0").json()["epsilons"][1:] == [None, None, None]


@pytest.mark.slow
def test_a_run_has_numbers_and_views_of_any_peer(client, folder):
    told = client.get("/api/runs/good").json()
    assert told["state"] == "saved"
    assert len(told["picture"]["places"]) == 6
    known = br.load(folder / "good.run")
    assert told["report"]["privacy"]["worst"]["epsilon"] == pytest.approx(
        known.summary().epsilons[0]
    )
    summary = client.get("/api/runs/good/summary").json()
    assert summary["privacy"] == told["report"]["privacy"]
    for peer in (0, 4):
        seen = client.get(f"/api/runs/good/view/{peer}").json()["epsilons"]
        expected = known.accountant().learned(peer, 1e-6)
        assert [one for v, one in enumerate(seen) if v != peer] == pytest.approx(
            np.delete(expected, peer).tolist()
        )
    assert "there is no peer 6" in client.get("/api/runs/good/view/6").json()["error"]


def test_a_changed_folder_is_read_again(client, folder):
    first = client.get("/api/runs/good/summary").json()
    run = br.run(
        br.Averaging(), "ring:6", small_task(6), privacy=br.Gaussian(clip=1.0, sigma=9.0), steps=2
    )
    old = br.load(folder / "good.run")
    try:
        run.save(folder / "good.run", overwrite=True)
        assert client.get("/api/runs/good/summary").json() != first
    finally:
        old.save(folder / "good.run", overwrite=True)


def test_runs_are_compared_on_one_page(client):
    both = client.get("/compare", params={"run": ["good", "<img src=x onerror=alert(1)>"]})
    assert both.status_code == 200
    assert "<img src=x" not in both.text
    assert (
        "2 to 12 runs are compared, found 1"
        in client.get("/compare", params={"run": "good"}).json()["error"]
    )


@pytest.mark.parametrize(
    "path", ["/nowhere", "/runs/none", "/runs/none/report", "/runs/broken/model.json"]
)
def test_unknown_addresses_get_a_page(client, path):
    found = client.get(path, headers={"accept": "text/html"})
    assert found.status_code in (400, 404)
    assert "To the runs" in found.text
    assert client.get(path).json()["error"]


def test_a_model_that_is_a_link_is_not_followed(tmp_path):
    """A run folder may come from somebody else; a link in it could lead to any file of ours."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "runs" / "given.run").mkdir(parents=True)
    (tmp_path / "runs" / "given.run" / "model.json").symlink_to(tmp_path / "secret.txt")
    with testclient.TestClient(
        create_app(tmp_path / "runs"), base_url="http://127.0.0.1:8765"
    ) as client:
        found = client.get("/runs/given/model.json")
    assert found.status_code == 400
    assert "secret" not in found.text


def test_a_token_in_an_address_keeps_the_rest_of_it(tmp_path):
    with testclient.TestClient(
        create_app(tmp_path, token="long-enough"), base_url="http://127.0.0.1"
    ) as client:
        found = client.get("/what-if?family=ring&token=long-enough&peers=8", follow_redirects=False)
        assert found.status_code == 303
        assert found.headers["location"] == "/what-if?family=ring&peers=8"
        assert client.get("/what-if?family=ring").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_run_that_diverged_is_listed_and_shown(tmp_path, value):
    """Such scores are written as words, and one of them must not hide the list or break the
    page."""
    run = br.run(
        br.Averaging(), "ring:6", small_task(6), privacy=br.Gaussian(clip=1.0, sigma=2.0), steps=2
    )
    run.metrics.rows[-1] = {"mse": value, "worst": value}
    run.references = {"alone": 1.0, "central": value}
    run.save(tmp_path / "far.run")
    with testclient.TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        (one,) = client.get("/api/runs").json()
        assert (one["state"], one["metric"], one["score"]) == ("saved", "mse", None)
        assert (one["alone"], one["central"]) == (1.0, None)
        assert one["verdict"]["worse"]
        assert client.get("/api/runs/far").json()["report"]["metrics"]["mse"] is None
        assert "without a usable model" in client.get("/runs/far/report").text
