"""`bruit ui`: the address it prints, the token it wants, and what it cannot do."""

import socket
import sys

import pytest

from bruit.commands import ui as ui_cli
from bruit.commands.cli import app
from bruit.errors import ConfigError


class Served:
    """Stands for the server: notes that it ran, on which socket."""

    def __init__(self):
        self.asked, self.sockets = None, []

    def make(self, *asked):
        self.asked = asked
        return self

    def run(self, sockets):
        self.sockets = [one.getsockname() for one in sockets]


@pytest.fixture
def served(monkeypatch):
    made = Served()
    monkeypatch.setattr(ui_cli, "make_server", made.make)
    monkeypatch.setattr(ui_cli, "warm_up", lambda: None)
    return made


def call(*words):
    return app(["ui", *words], standalone_mode=False)


def test_it_prints_where_it_is(served, tmp_path, capsys):
    call(str(tmp_path), "--port", "0")
    ((host, port),) = served.sockets
    assert host == "127.0.0.1"
    assert f"http://127.0.0.1:{port}/\n" in capsys.readouterr().out
    assert served.asked == (tmp_path, None, None, True)


def test_beyond_this_machine_a_token_is_drawn(served, tmp_path, capsys):
    call(str(tmp_path), "--host", "0.0.0.0", "--port", "0")
    _, _, token, near = served.asked
    assert len(token) >= 24
    assert not near
    printed = capsys.readouterr().out
    assert f"/?token={token}" in printed
    assert "start runs in your name" in printed
    call(str(tmp_path), "--port", "0", "--token", "correct horse")
    assert "?token=correct%20horse" in capsys.readouterr().out


def test_the_browser_is_opened_when_asked(served, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(ui_cli.webbrowser, "open", opened.append)
    call(str(tmp_path), "--port", "0")
    call(str(tmp_path), "--port", "0", "--no-browser")
    assert opened == []
    call(str(tmp_path), "--port", "0", "--open")
    assert opened[0].startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.org", False),
        ("127.0.0.1.example.org", False),
    ],
)
def test_what_is_this_machine(host, near):
    assert ui_cli.is_loopback(host) is near


def test_a_port_in_use(tmp_path, served):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigError, match=f"port {port}: Address already in use; choose another --port"
        ):
            call(str(tmp_path), "--port", str(port))


def test_a_host_that_is_not_here(tmp_path, served):
    with pytest.raises(ConfigError, match=r"192\.0\.2\.1"):
        call(str(tmp_path), "--host", "192.0.2.1", "--port", "0")


def test_missing_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ConfigError, match=r"pip install 'bruit\[ui\]'"):
        call(str(tmp_path), "--port", "0")


def test_wrong_folder_site_or_token(tmp_path, served):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a file"):
        call(str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="no site file"):
        call(str(tmp_path), "--site", str(tmp_path / "site.toml"))
    with pytest.raises(ConfigError, match="can be guessed"):
        call(str(tmp_path), "--token", "short")


def test_the_address_can_be_opened_as_soon_as_it_is_printed():
    """It was bound and not yet listened to: a browser that was quick was refused."""
    with (
        ui_cli.listen("127.0.0.1", 0) as made,
        socket.create_connection(made.getsockname(), timeout=5),
    ):
        pass
