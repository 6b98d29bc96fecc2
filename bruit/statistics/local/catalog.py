"""Protocols by name: what a file of reports, or a command, says which protocol it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bruit.errors import ConfigError
from bruit.statistics.local.gaussian_mean import GaussianMean
from bruit.statistics.local.hadamard_response import HadamardResponse
from bruit.statistics.local.k_ary import KAry
from bruit.statistics.local.laplace_mean import LaplaceMean
from bruit.statistics.local.local_hashing import LocalHashing
from bruit.statistics.local.protocol import FrequencyProtocol, MeanProtocol
from bruit.statistics.local.randomized_response import BinaryResponse
from bruit.statistics.local.unary_encoding import UnaryEncoding

Known = FrequencyProtocol | MeanProtocol
FREQUENCY = (BinaryResponse, KAry, HadamardResponse, UnaryEncoding, LocalHashing)
MEAN = (LaplaceMean, GaussianMean)


def protocol_from(record: Mapping[str, Any]) -> Known:
    """The protocol that a file of reports describes; anything else is refused by name."""
    fields = dict(record)
    kind = fields.pop("kind", None)
    kinds: dict[str, type[Any]] = {protocol.kind: protocol for protocol in (*FREQUENCY, *MEAN)}
    if kind not in kinds:
        raise ConfigError(f"unknown protocol {kind!r}; known ones: {', '.join(kinds)}")
    wrong = [
        name
        for name, value in fields.items()
        if isinstance(value, bool) or not isinstance(value, int | float)
    ]
    if wrong:
        raise ConfigError(
            f"the {kind} protocol has numbers as parameters, found {wrong[0]} = "
            f"{fields[wrong[0]]!r}"
        )
    try:
        found: Known = kinds[kind](**fields)
    except TypeError as error:
        raise ConfigError(
            f"the {kind} protocol cannot be read from {dict(record)!r}: {error}"
        ) from None
    return found
