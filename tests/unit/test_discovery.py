import sys
from abc import ABC, abstractmethod

import tests.laws as folder
from bruit.discovery import classes


class Door(ABC):
    @abstractmethod
    def open(self): ...


ROOM = """
from tests.unit.test_discovery import Door

class Corridor(Door):
    "Has still no way to open."

class Room(Door):
    def open(self): ...
"""


def test_a_folder_that_is_added_is_seen_and_gone_when_it_is_taken_away(tmp_path, monkeypatch):
    (tmp_path / "a_room.py").write_text(ROOM)
    (tmp_path / "a_compiled_room.py").write_text("raise RuntimeError('this takes a compiler')")
    with monkeypatch.context() as added:
        added.setattr(folder, "__path__", [str(tmp_path)])
        assert [found.__name__ for found in classes(folder, Door, ("compiled",))] == ["Room"]
    with monkeypatch.context() as other:
        other.setattr(folder, "__path__", [str(tmp_path / "empty")])
        assert classes(folder, Door, ("compiled",)) == ()
    sys.modules.pop("tests.laws.a_room")


def test_a_folder_is_looked_into_once(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "__path__", [str(tmp_path)])
    assert classes(folder, Door) is classes(folder, Door)
