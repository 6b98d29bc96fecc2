"""TLS 1.3 both ways without any authority: who may speak is a list of certificates, each compared
as it is shown."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path

from bruit.peers.wire.identity import CERTIFICATE, KEY, Identity


def pinned_context(folder: str | Path, certificates: Iterable[str], side: int) -> ssl.SSLContext:
    """TLS settings for one side (ssl.PROTOCOL_...) with the identity in that folder; the
    certificates (PEM) are the only ones that pass the handshake. Whoever needs to know which of
    them it was looks at the certificate itself."""
    Identity.load(folder)
    context = ssl.SSLContext(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = (
        False  # all peers have the same name; the certificate itself is compared
    )
    context.verify_mode = ssl.CERT_REQUIRED
    # each certificate for itself: of two with one name, OpenSSL would else look at the first only
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata="".join(certificates))
    context.load_cert_chain(Path(folder) / CERTIFICATE, Path(folder) / KEY)
    return context
