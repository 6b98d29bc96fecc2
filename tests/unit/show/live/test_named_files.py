"""An experiment of the page names files of the folder that is served, and no others; other pages
are not answered."""

import re
import tomllib
from importlib.resources import files

import pytest

from bruit.errors import ConfigError
from bruit.graphs import graph
from bruit.show.live.named_files import file_problems, named_files, written_out

testclient = pytest.importorskip("fastapi.testclient", reason="fastapi or httpx is not installed")
from bruit.show.live.app import create_app  # noqa: E402

EXPERIMENT = """graph = "{graph}"
steps = 3
references = false
[task]
kind = "ridge"
data = "{data}"
[algorithm]
name = "gossip-sgd"
"""
ROWS = "a,b,y\n" + "".join(f"{k},{k % 3},{k % 5}\n" for k in range(40))


def experiment(data="diabetes", graph="ring:4"):
    return EXPERIMENT.format(data=data, graph=graph)


@pytest.fixture
def folder(tmp_path):
    """A served folder, and secrets beside it."""
    runs = tmp_path / "runs"
    (runs / "tables").mkdir(parents=True)
    for place in (runs / "mine.csv", runs / "tables" / "mine.csv", tmp_path / "secret.csv"):
        place.write_text(ROWS)
    for place in (runs / "edges.txt", tmp_path / "edges.txt"):
        place.write_text("0 1\n1 2\n2 3\n3 0\n")
    (runs / "link.csv").symlink_to(tmp_path / "secret.csv")
    return runs


@pytest.fixture
def client(folder):
    with testclient.TestClient(create_app(folder), base_url="http://127.0.0.1:8765") as opened:
        yield opened


def outside(folder):
    secret, edges = folder.parent / "secret.csv", folder.parent / "edges.txt"
    return [
        experiment(str(secret)),
        experiment("../secret.csv"),
        experiment("tables/../../secret.csv"),
        experiment("link.csv"),
        experiment("~/secret.csv"),
        experiment("/etc/passwd"),
        experiment("secret.csv"),
        experiment(graph=f"file:{edges}"),
        experiment(graph="file:../edges.txt"),
        experiment(graph="file: ../edges.txt"),
        experiment(graph=f"file,plus=1:{edges}"),
        experiment(graph=f"file:{edges},plus=1"),
    ]


def test_files_elsewhere_are_refused_with_a_sentence(folder, client):
    for text in outside(folder):
        (problem,) = file_problems(text, folder)
        assert problem["key"] in ("task.data", "graph")
        assert problem["line"] == (1 if problem["key"] == "graph" else 6)
        with pytest.raises(ConfigError, match=r"not in the folder|no such file in"):
            written_out(text, folder)
        checked = client.post(
            "/api/check", json={"experiment": text}, headers={"X-Bruit": "1"}
        ).json()
        assert problem in checked["problems"]
        started = client.post(
            "/api/runs", json={"name": "x", "experiment": text}, headers={"X-Bruit": "1"}
        )
        assert started.status_code == 400
    assert client.get("/api/runs").json() == []


def test_bundled_names_and_files_of_the_folder_are_taken(folder):
    for text in (
        experiment(),
        experiment("mine.csv"),
        experiment("tables/mine.csv"),
        experiment(str(folder / "mine.csv")),
        experiment(graph="file:edges.txt"),
        experiment(graph="file:edges.txt,plus=1"),
    ):
        assert file_problems(text, folder) == []
    assert written_out(experiment(), folder) == experiment()
    assert f'data = "{folder / "mine.csv"}"' in written_out(experiment("mine.csv"), folder)
    told = written_out(experiment(graph="file:edges.txt,plus=1"), folder)
    assert f'graph = "file:{folder / "edges.txt"},plus=1"' in told


def test_the_working_directory_is_not_the_served_folder(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert file_problems(experiment("secret.csv"), folder)


def test_every_key_that_names_a_file_is_known():
    """By discovery: the sentence of a key that takes a path says so."""
    words = tomllib.loads(files("bruit.runs").joinpath("keys.toml").read_text(encoding="utf-8"))[
        "keys"
    ]
    paths = {
        key
        for key, text in words.items()
        if re.search(r"relative to the experiment file|\bCSV\b", text)
    }
    text = experiment("/x.csv", "file:/x.txt")
    assert paths == {one.key for one in named_files(text)}


def test_a_family_is_told_from_its_options_as_graphs_tell_it(folder):
    assert graph(f"file,plus=1:{folder / 'edges.txt'}").n == 4
    assert [one.path for one in named_files(experiment(graph="file,plus=1:/x.txt"))] == ["/x.txt"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_pages_of_others_are_not_answered(client, headers):
    assert client.get("/api/runs", headers=headers).status_code == 403
    assert (
        client.post(
            "/api/check", json={"experiment": ""}, headers={**headers, "X-Bruit": "1"}
        ).status_code
        == 403
    )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://127.0.0.1:8765"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_its_own_page_is_answered(client, headers):
    assert client.get("/api/runs", headers=headers).status_code == 200


def test_a_link_from_elsewhere_opens_a_page(client):
    assert (
        client.get(
            "/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        ).status_code
        == 200
    )


def test_two_names_are_no_name(client):
    said = client.get("/api/runs", headers=[("Host", "127.0.0.1:8765"), ("Host", "evil.example")])
    assert said.status_code == 403


@pytest.mark.parametrize("module", ["os:system", "mynet:net", "antigravity:fly"])
def test_the_page_imports_no_code(folder, module):
    text = experiment().replace('kind = "ridge"', f'kind = "torch"\nmodule = "{module}"')
    (problem,) = file_problems(text, folder)
    assert problem["key"] == "task.module"
    assert "this page imports none" in problem["text"]
    with pytest.raises(ConfigError, match="names code"):
        written_out(text, folder)


def test_built_in_networks_are_free(folder):
    text = experiment().replace('kind = "ridge"', 'kind = "torch"\nmodule = "mlp:8"')
    assert file_problems(text, folder) == []
