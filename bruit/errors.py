"""What can go wrong, in five words. A message says what was found, where, and what to do."""


class BruitError(Exception):
    """Anything Bruit raises on purpose."""


class ConfigError(BruitError):
    """The user asked for something that cannot mean anything: a bad graph, file, number or name."""


class PrivacyError(BruitError):
    """A privacy statement that would not be true was asked for; privacy fails closed."""


class LocalProtocolError(BruitError):
    """Our own side of a protocol did something it must not do."""


class RemoteProtocolError(BruitError):
    """A message from outside broke the protocol; the only error bytes from the network may raise."""


class ConformanceError(BruitError):
    """Two engines, or a run and its replay, do not agree."""
