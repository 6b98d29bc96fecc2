"""Identities: made, kept and read back; and they really work as pinned roots of mutual TLS."""

import hashlib
import ssl
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from bruit.errors import ConfigError
from bruit.peers.wire.address_book import AddressBook, merge, public_entry
from bruit.peers.wire.codec import METHOD, SERVICE
from bruit.peers.wire.identity import (
    TLS_NAME,
    Identity,
    fingerprint,
    read_certificate,
    short_form,
    verify,
)

ANA, BEN, EVE = (Identity.create(name) for name in ("Ana", "Ben", "Eve"))


def test_the_fingerprint_is_sha256_of_the_der_bytes():
    der = ssl.PEM_cert_to_DER_cert(ANA.certificate)
    assert ANA.fingerprint().replace(":", "") == hashlib.sha256(der).hexdigest()
    assert len(ANA.fingerprint().split(":")) == 16
    assert short_form(ANA.fingerprint()) == ":".join(ANA.fingerprint().split(":")[:5])


def test_saved_and_read_back(tmp_path):
    folder = tmp_path / "ana"
    ANA.save(folder)
    assert Identity.load(folder) == ANA
    assert sorted(path.name for path in folder.iterdir()) == [
        "certificate.pem",
        "key.pem",
        "signing.pem",
    ]
    assert {(folder / name).stat().st_mode & 0o777 for name in ("key.pem", "signing.pem")} == {
        0o600
    }
    with pytest.raises(ConfigError, match="already holds an identity"):
        BEN.save(folder)


def test_keys_are_not_shown():
    assert "PRIVATE" not in repr(ANA)


def test_signatures():
    signature = ANA.sign(b"the run")
    assert verify(ANA.certificate, b"the run", signature)
    assert not verify(ANA.certificate, b"the ruin", signature)
    assert not verify(BEN.certificate, b"the run", signature)
    assert not verify(ANA.certificate, b"the run", b"short")


@pytest.mark.parametrize("name", ["", " Ana", "a\nb", "x" * 65, 7])
def test_names_are_checked(name):
    with pytest.raises(ConfigError, match="participant's name"):
        Identity.create(name)


@pytest.mark.parametrize("days", [0, -1, 36501, 2.5])
def test_days_are_checked(days):
    with pytest.raises(ConfigError, match="1 to 36500 days"):
        Identity.create("Ana", days=days)


def test_missing_and_unreadable_files_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no .*key.pem; make an identity"):
        Identity.load(tmp_path)
    ANA.save(tmp_path)
    (tmp_path / "key.pem").write_text("not a key")
    with pytest.raises(ConfigError, match=r"key.*key.pem cannot be read"):
        Identity.load(tmp_path)
    (tmp_path / "key.pem").unlink()
    (tmp_path / "key.pem").mkdir()
    with pytest.raises(ConfigError, match=r"cannot read .*key.pem: Is a directory"):
        Identity.load(tmp_path)
    (tmp_path / "key.pem").rmdir()
    (tmp_path / "key.pem").write_bytes(ANA.key)
    (tmp_path / "key.pem").chmod(0o600)
    (tmp_path / "certificate.pem").write_bytes(b"\xff garbage")
    with pytest.raises(ConfigError, match=r"certificate.pem must hold exactly one PEM block"):
        Identity.load(tmp_path)


@pytest.mark.parametrize("name", ["key.pem", "signing.pem"])
def test_keys_of_somebody_else_are_refused(tmp_path, name):
    ANA.save(tmp_path)
    (tmp_path / name).write_bytes(BEN.key if name == "key.pem" else BEN.signing_key)
    with pytest.raises(ConfigError, match=rf"{name} does not match the certificate"):
        Identity.load(tmp_path)


def test_open_permissions_are_warned_of(tmp_path):
    ANA.save(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Identity.load(tmp_path)
    (tmp_path / "key.pem").chmod(0o644)
    with pytest.warns(
        UserWarning, match=r"key.pem can be read by others on this machine \(mode 644\)"
    ):
        Identity.load(tmp_path)


def test_dates_and_the_clock_are_both_told(tmp_path):
    made = datetime(2030, 5, 1, 12, tzinfo=UTC)
    Identity.create("Ana", days=30, now=made).save(tmp_path)
    assert Identity.load(tmp_path, now=made + timedelta(days=29)).name == "Ana"
    assert Identity.load(tmp_path, now=made - timedelta(hours=23)).name == "Ana"  # clocks differ
    with pytest.raises(
        ConfigError,
        match=r"expired on 2030-05-31 12:00 UTC, and this machine's clock says 2030-06-02",
    ):
        Identity.load(tmp_path, now=made + timedelta(days=32))
    with pytest.raises(
        ConfigError,
        match=r"not valid before 2030-04-30 12:00 UTC, but this machine's clock says 1970",
    ):
        Identity.load(tmp_path, now=datetime(1970, 1, 1, tzinfo=UTC))


def certificate(issuer_key, *, curve=None, authority=False, own=True, name="Eve", issuer="Eve"):
    """A certificate made without Bruit, by somebody who may not play fair."""
    key = ec.generate_private_key(curve or ec.SECP256R1())
    signer = key if own else issuer_key
    subject, signed_by = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (name, issuer)
    )
    now = datetime.now(UTC)
    template = x509.load_pem_x509_certificate(EVE.certificate.encode())
    made = x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=signed_by,
        public_key=key.public_key(),
        serial_number=7,
        not_valid_before=now - timedelta(1),
        not_valid_after=now + timedelta(1),
    )
    for extension in template.extensions:
        bounds = isinstance(extension.value, x509.BasicConstraints)
        value = x509.BasicConstraints(authority, None) if bounds else extension.value
        made = made.add_extension(value, extension.critical)
    pem = made.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    return pem, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("pem", "words"),
    [
        (certificate(None, curve=ec.SECP384R1())[0], "does not hold a P-256 key"),
        (certificate(None, authority=True)[0], "may not sign others"),
        (
            certificate(load_pem_private_key(ANA.key, None), own=False)[0],
            "not signed by its own key",
        ),
        (
            certificate(load_pem_private_key(ANA.key, None), own=False, issuer="Ana")[0],
            "cannot be read",
        ),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "cannot be read"),
        (ANA.certificate + BEN.certificate, "exactly one PEM block, found 2"),
        ("", "exactly one PEM block, found 0"),
    ],
)
def test_certificates_of_another_kind_are_refused(pem, words):
    with pytest.raises(ConfigError, match=words):
        fingerprint(pem)


# mutual TLS, for real


def book_of(*identities) -> AddressBook:
    return merge(
        public_entry(identity, "127.0.0.1", 7000 + k) for k, identity in enumerate(identities)
    )


@contextmanager
def server(identity, book):
    """A server that answers every frame with the name its caller's certificate has in the book."""

    def talk(frames, context):
        caller = fingerprint(context.auth_context()["x509_pem_cert"][0].decode())
        version = (
            context.auth_context()["ssl_tls_version"][0]
            if "ssl_tls_version" in context.auth_context()
            else b"?"
        )
        for frame in frames:
            yield frame + book.by_fingerprint(caller).name.encode() + b" " + version

    handlers = {METHOD: grpc.stream_stream_rpc_method_handler(talk)}
    made = grpc.server(ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    made.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    credentials = grpc.ssl_server_credentials(
        [(identity.key, identity.certificate.encode())],
        book.certificates(),
        require_client_auth=True,
    )
    port = made.add_secure_port("127.0.0.1:0", credentials)
    made.start()
    yield port
    made.stop(None).wait()


def call(port, key, own, roots):
    credentials = grpc.ssl_channel_credentials(roots, key, own)
    options = [("grpc.ssl_target_name_override", TLS_NAME), ("grpc.enable_retries", 0)]
    with grpc.secure_channel(f"127.0.0.1:{port}", credentials, options) as channel:
        talk = channel.stream_stream(f"/{SERVICE}/{METHOD}")
        return list(talk(iter([b"I am "]), timeout=60))


def test_listed_peers_talk_over_mutual_tls():
    book = book_of(ANA, BEN)
    with server(ANA, book) as port:
        assert call(port, BEN.key, BEN.certificate.encode(), book.certificates()) == [
            b"I am Ben TLSv1.3"
        ]


def test_an_unlisted_caller_is_refused():
    book = book_of(ANA, BEN)
    with server(ANA, book) as port, pytest.raises(grpc.RpcError) as failure:
        call(port, EVE.key, EVE.certificate.encode(), book.certificates())
    assert failure.value.code() == grpc.StatusCode.UNAVAILABLE


def test_a_caller_without_certificate_is_refused():
    book = book_of(ANA, BEN)
    with server(ANA, book) as port, pytest.raises(grpc.RpcError):
        call(port, None, None, book.certificates())


def test_an_unlisted_server_is_refused():
    with server(EVE, book_of(ANA, BEN, EVE)) as port, pytest.raises(grpc.RpcError) as failure:
        call(port, BEN.key, BEN.certificate.encode(), book_of(ANA, BEN).certificates())
    assert failure.value.code() == grpc.StatusCode.UNAVAILABLE


def test_a_new_certificate_under_a_listed_name_is_refused():
    book, other = book_of(ANA, BEN), Identity.create("Ben")
    with server(ANA, book) as port, pytest.raises(grpc.RpcError):
        call(port, other.key, other.certificate.encode(), book.certificates())


def test_a_listed_peer_cannot_bring_others_in():
    book = book_of(ANA, BEN)
    pem, key = certificate(
        load_pem_private_key(BEN.key, None), own=False, name="Mallory", issuer="Ben"
    )
    chain = pem.encode() + BEN.certificate.encode()
    with server(ANA, book) as port, pytest.raises(grpc.RpcError):
        call(port, key, chain, book.certificates())


def test_a_certificate_is_checked_once_and_one_that_is_refused_every_time():
    """A book of 256 was checked three times over by every process."""
    one = Identity.create("a").certificate
    assert read_certificate(one) is read_certificate(one)
    lines = one.splitlines()
    wrong = "\n".join([*lines[:5], lines[5][::-1], *lines[6:]])
    for where in ("here", "there"):
        with pytest.raises(ConfigError, match=f"^{where}"):
            read_certificate(wrong, where)
