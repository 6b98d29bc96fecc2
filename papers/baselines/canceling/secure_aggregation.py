"""Secure aggregation with Shamir-shared seeds: the standard protocol, as a baseline for GOPA
(perso:FL-3).

    y_i = x_i + PRG(b_i) + sum over j > i of PRG(s_ij) - sum over j < i of PRG(s_ij)        modulo 2^64

Only the sum of the x_i comes out. Every client shares its mask key and its self-mask seed b_i among
its neighbors, t of whom can restore one of them: b_i if the client's y_i counts, the mask key if it
dropped out; never both, which would show x_i. Noise for differential privacy is added to x_i
before: shares that add up to a curator's noise. Four steps: keys, shares, masked values, unmasking.
Everybody is a neighbor of everybody unless said otherwise; on a k-out graph the masks number O(n
log n) instead of n^2.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from bruit.arrays import Words
from bruit.errors import ConfigError, LocalProtocolError, PrivacyError, RemoteProtocolError
from bruit.statistics.average.canceling.seeds import KeyPair, round_key, uniform_mask

PRIME = 2**521 - 1
LENGTH = 66
"""Bytes of a share: 521 bits."""


def share_out(secret: bytes, holders: Iterable[int], threshold: int) -> dict[int, bytes]:
    """Shamir shares of up to 64 bytes: values at 1 + holder of a random polynomial with the secret
    at 0."""
    holders = list(holders)
    if not 1 <= threshold <= len(holders):
        raise ConfigError(
            f"a threshold lies between 1 and the {len(holders)} holders of shares, found "
            f"{threshold}"
        )
    if len(secret) > 64:
        raise ConfigError(f"a shared secret has at most 64 bytes, found {len(secret)}")
    random = [int.from_bytes(os.urandom(72), "big") % PRIME for _ in range(threshold - 1)]
    terms = [int.from_bytes(secret, "big"), *random]
    shares = {}
    for holder in holders:
        value = 0
        for term in reversed(terms):
            value = (value * (holder + 1) + term) % PRIME
        shares[holder] = value.to_bytes(LENGTH, "big")
    return shares


def restore(shares: Mapping[int, bytes], threshold: int, length: int) -> bytes:
    """The secret, by Lagrange interpolation at 0 from `threshold` shares; too few are refused."""
    if len(shares) < threshold:
        raise PrivacyError(
            f"{len(shares)} shares are too few: {threshold} are needed to restore a secret"
        )
    points = {
        holder + 1: int.from_bytes(share, "big")
        for holder, share in sorted(shares.items())[:threshold]
    }
    secret = 0
    for x, y in points.items():
        top = bottom = 1
        for other in points:
            if other != x:
                top, bottom = top * other % PRIME, bottom * (other - x) % PRIME
        secret = (secret + y * top * pow(bottom, -1, PRIME)) % PRIME
    try:
        return secret.to_bytes(length, "big")
    except OverflowError:
        raise RemoteProtocolError(
            "the shares do not fit together: somebody answered with a wrong one"
        ) from None


@dataclass(frozen=True)
class Announcement:
    """The two public keys of a client: one for the channel that carries shares, one for masks."""

    channel: bytes
    masks: bytes


@dataclass(kw_only=True)
class Client:
    """One client in one round; keys are fresh each time, since those of dropped clients become
    known."""

    me: int
    neighbors: tuple[int, ...]
    threshold: int
    words: Words  # (width,) the value in fixed point, with its share of noise
    _channel: KeyPair = field(default_factory=KeyPair, repr=False)
    _masks: KeyPair = field(default_factory=KeyPair, repr=False)
    _self_mask: bytes = field(default_factory=lambda: os.urandom(16), repr=False)
    _known: dict[int, Announcement] = field(default_factory=dict, repr=False)
    _held: dict[int, tuple[bytes, bytes]] = field(
        default_factory=dict, repr=False
    )  # shares of mask keys, self masks
    _answered: bool = False

    def announce(self) -> Announcement:
        return Announcement(self._channel.public, self._masks.public)

    def share(self, announced: Mapping[int, Announcement]) -> dict[int, bytes]:
        """Encrypted shares of both secrets for every neighbor that announced itself."""
        self._known = {v: announced[v] for v in self.neighbors if v in announced}
        if len(self._known) < self.threshold:
            raise PrivacyError(
                f"client {self.me} has {len(self._known)} neighbors, below the threshold"
                f" {self.threshold}; its secrets could not be restored"
            )
        keys = share_out(self._masks.secret_bytes(), self._known, self.threshold)
        selves = share_out(self._self_mask, self._known, self.threshold)
        return {v: self._sealed(v, keys[v] + selves[v]) for v in self._known}

    def _cipher(self, other: int) -> ChaCha20Poly1305:
        return ChaCha20Poly1305(
            self._channel.agree(self.me, other, self._known[other].channel, b"channel")
        )

    def _sealed(self, to: int, text: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._cipher(to).encrypt(nonce, text, f"{self.me}>{to}".encode())

    def mask(self, received: Mapping[int, bytes]) -> Words:
        """y_i, with masks against every neighbor whose shares arrived."""
        for v, sealed in received.items():
            if v not in self._known:
                raise RemoteProtocolError(
                    f"client {v} sent shares to client {self.me} without having announced itself"
                )
            try:
                text = self._cipher(v).decrypt(sealed[:12], sealed[12:], f"{v}>{self.me}".encode())
            except InvalidTag:
                raise RemoteProtocolError(
                    f"the shares of client {v} were changed on their way"
                ) from None
            self._held[v] = (text[:LENGTH], text[LENGTH:])
        masked = self.words + uniform_mask(self._self_mask, len(self.words))
        for v in received:
            seed = self._masks.agree(self.me, v, self._known[v].masks, b"masks")
            masked = masked + signed_mask(seed, self.me, v, len(self.words))
        return masked

    def unmask(self, online: Iterable[int], dropped: Iterable[int]) -> dict[int, bytes]:
        """Shares of self masks of clients online and of mask keys of dropped ones; never both, and
        once only."""
        stay, gone = set(online), set(dropped)
        if stay & gone:
            raise RemoteProtocolError(
                f"client {min(stay & gone)} is listed as online and as dropped: both its secrets"
                " would show its value"
            )
        if self._answered:
            raise LocalProtocolError(
                f"client {self.me} was asked twice for shares; a second list could ask for the"
                " other secret"
            )
        if len(stay) < self.threshold:
            raise PrivacyError(
                f"only {len(stay)} clients are online, below the threshold {self.threshold}"
            )
        self._answered = True
        return {
            v: shares[0] if v in gone else shares[1]
            for v, shares in self._held.items()
            if v in stay | gone
        }


def signed_mask(seed: bytes, me: int, other: int, width: int) -> Words:
    """The mask `me` adds against `other`; `other` adds its negative."""
    words = uniform_mask(round_key(seed, 0), width)
    return words if me < other else np.zeros_like(words) - words


def unmasked_sum(
    masked: Mapping[int, Words],
    neighbors: Mapping[int, tuple[int, ...]],
    announced: Mapping[int, Announcement],
    answers: Mapping[int, Mapping[int, bytes]],
    threshold: int,
) -> Words:
    """The server's part: the sum of the values of all clients whose masked value is there; nothing
    else.

    `neighbors[i]` are those that client i masked against, `answers[j]` the shares that client j
    gave."""
    if not masked:
        raise PrivacyError("no masked value arrived: there is nothing to sum")
    width = len(next(iter(masked.values())))
    total = np.zeros(width, np.uint64)
    for words in masked.values():
        total = total + words
    for i in masked:
        shares = {j: given[i] for j, given in answers.items() if i in given}
        total = total - uniform_mask(restore(shares, threshold, 16), width)
    for u in {v for i in masked for v in neighbors[i]} - set(masked):
        shares = {j: given[u] for j, given in answers.items() if u in given}
        keys = KeyPair.from_bytes(restore(shares, threshold, 32))
        for i in (i for i in masked if u in neighbors[i]):
            seed = keys.agree(u, i, announced[i].masks, b"masks")
            total = total - signed_mask(seed, i, u, width)
    return total
