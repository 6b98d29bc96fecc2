"""What can go wrong, in five words. A message says what was found, where, and what to do."""

from pathlib import Path
from typing import Any, ClassVar


class BruitError(Exception):
    """Anything Bruit raises on purpose; `exit_code` is what a command that fails with it ends
    with."""

    exit_code: ClassVar[int] = 2


class ConfigError(BruitError):
    """The user asked for something that cannot mean anything: a bad graph, file, number or name."""


class Diverged(ConfigError):
    """What a peer is to say is no finite number; `row` is its row in the batch that was asked."""

    def __init__(self, sentence: str, row: int) -> None:
        super().__init__(sentence)
        self.row = row


class PrivacyError(BruitError):
    """A privacy statement that would not be true was asked for; privacy fails closed."""


class BrokenStateError(ConfigError, PrivacyError):
    """Of both kinds at once: what a peer remembers is damaged or an old copy, and going on would
    break its promise."""

    exit_code: ClassVar[int] = 3


class LocalProtocolError(BruitError):
    """Our own side of a protocol did something it must not do."""


class AlgorithmError(LocalProtocolError):
    """A function of an algorithm raised what nobody foresaw. `call` is what it was given, while the
    run is still there; `saved` is the file in which it can be looked at afterwards, if any."""

    def __init__(self, sentence: str, call: Any = None, saved: Path | None = None) -> None:
        super().__init__(sentence)
        self.call, self.saved = call, saved


class RemoteProtocolError(BruitError):
    """A message from outside broke the protocol; the only error bytes from the network may
    raise."""


class ConformanceError(BruitError):
    """Two engines, or a run and its replay, do not agree."""
