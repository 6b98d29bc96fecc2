"""Who a real peer is: a P-256 key, a certificate it signed itself, and an Ed25519 key for
signatures.

Nobody vouches for anybody: a certificate is trusted because the address book lists it. Certificates
are P-256 since gRPC refuses Ed25519 ones; the Ed25519 public key travels inside the certificate, so
one fingerprint covers both. A certificate may not sign others (CA: false), or a listed peer could
bring unlisted ones in.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bruit.errors import ConfigError
from bruit.files import write_whole

# the same for everybody: peers are told apart by fingerprint, never by address
TLS_NAME = "bruit-peer"
KEY, SIGNING_KEY, CERTIFICATE = "key.pem", "signing.pem", "certificate.pem"
STAMPS = "stamps.key"  # only where the key has been changed: what stamps were made with before
LONGEST_NAME = 64  # what X.509 allows
# uuid5(NAMESPACE_DNS, TLS_NAME)
SIGNING_OID = x509.ObjectIdentifier("2.25.89645737593031009957070058615026636935")
SLACK = timedelta(days=1)  # certificates are valid from a day before they were made: clocks differ


@dataclass(frozen=True)
class Identity:
    """A participant's own keys and certificate, as PEM text; the keys are not shown by repr."""

    name: str
    certificate: str
    key: bytes = field(repr=False)
    signing_key: bytes = field(repr=False)
    stamps: bytes = field(repr=False, default=b"")  # keys of stamps, if not those of `key`

    @classmethod
    def create(cls, name: str, days: int = 3650, now: datetime | None = None) -> Identity:
        """Fresh keys from the operating system and a certificate valid for that many days."""
        check_name(name)
        if type(days) is not int or not 1 <= days <= 36500:
            raise ConfigError(f"a certificate is made for 1 to 36500 days, found days={days!r}")
        key, signing = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
        begins = now or datetime.now(UTC)
        made = _unsigned(name, key.public_key(), signing.public_key())
        made = made.not_valid_before(begins - SLACK).not_valid_after(begins + timedelta(days=days))
        certificate = made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
        return cls(name, certificate, _private_pem(key), _private_pem(signing))

    def save(self, folder: str | Path) -> None:
        """Write the three files, the secret ones readable by their owner only; an existing key is
        never replaced."""
        folder = Path(folder)
        if any((folder / name).exists() for name in (KEY, SIGNING_KEY, CERTIFICATE)):
            raise ConfigError(
                f"{folder} already holds an identity; others may know it: choose another folder"
            )
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, content in (
                (SIGNING_KEY, self.signing_key),
                (KEY, self.key),
                (STAMPS, self.stamps),
            ):
                if content:
                    _write_secret(folder / name, content)
        except OSError as error:
            raise ConfigError(
                f"cannot write the keys in {folder}: {error.strerror or error}"
            ) from error
        write_whole(folder / CERTIFICATE, lambda stream: stream.write(self.certificate.encode()))

    @classmethod
    def load(cls, folder: str | Path, now: datetime | None = None) -> Identity:
        """Read an identity back; keys and certificate must belong together and be valid now."""
        folder = Path(folder)
        content = {name: _read(folder / name) for name in (KEY, SIGNING_KEY, CERTIFICATE)}
        stamps = _read(folder / STAMPS) if (folder / STAMPS).exists() else b""
        for name in (KEY, SIGNING_KEY, *((STAMPS,) if stamps else ())):
            _warn_if_open(folder / name)
        certificate = read_certificate(
            content[CERTIFICATE].decode("utf-8", "replace"), str(folder / CERTIFICATE)
        )
        key, signing = (
            _load_key(folder / KEY, content[KEY]),
            _load_key(folder / SIGNING_KEY, content[SIGNING_KEY]),
        )
        own = (
            (KEY, key, _public(certificate.public_key())),
            (SIGNING_KEY, signing, _signing_public(certificate)),
        )
        for name, private, listed in own:
            if _public(private.public_key()) != listed:
                raise ConfigError(
                    f"the key {folder / name} does not match the certificate"
                    f" {folder / CERTIFICATE}; put back the right file or make a new identity"
                )
        check_dates(certificate, str(folder / CERTIFICATE), now)
        return cls(
            name_of(certificate),
            content[CERTIFICATE].decode(),
            content[KEY],
            content[SIGNING_KEY],
            stamps,
        )

    def fingerprint(self) -> str:
        """The full fingerprint of the certificate."""
        return fingerprint(self.certificate)

    def sign(self, data: bytes) -> bytes:
        """An Ed25519 signature, which `verify` checks against the certificate."""
        key = load_pem_private_key(self.signing_key, None)
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            raise ConfigError(f"the signing key of {self.name} is not an Ed25519 key")
        return key.sign(data)


def verify(certificate: str, data: bytes, signature: bytes) -> bool:
    """Whether the owner of that certificate signed `data`."""
    public = ed25519.Ed25519PublicKey.from_public_bytes(signing_key(certificate))
    try:
        public.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def signing_key(certificate: str) -> bytes:
    """The raw Ed25519 public key of the owner of that certificate: what `verify` checks signatures
    against."""
    return _signing_public(read_certificate(certificate))


def fingerprint(certificate: str) -> str:
    """SHA-256 of the certificate, as sixteen groups of four hexadecimal digits: 3fa2:09c1:..."""
    digest = hashlib.sha256(read_certificate(certificate).public_bytes(Encoding.DER)).hexdigest()
    return ":".join(digest[k : k + 4] for k in range(0, 64, 4))


def short_form(full: str) -> str:
    """The first five groups of a fingerprint, 80 bits: enough to compare by voice, not to look a
    peer up."""
    return full[:24]


def read_certificate(pem: str, where: str = "the certificate") -> x509.Certificate:
    """Parse one certificate and check that it is of the kind peers use; `where` names it in
    errors."""
    if pem.count("-----BEGIN") != 1:
        raise ConfigError(
            f"{where} must hold exactly one PEM block, found {pem.count('-----BEGIN')}"
        )
    try:
        certificate, public, names, authority = _own_signed(pem)
    except InvalidSignature as error:
        raise ConfigError(
            f"{where} is not signed by its own key; use one made by `bruit peer key`"
        ) from error
    except (
        ValueError,
        TypeError,
        UnsupportedAlgorithm,
        x509.InvalidVersion,
        x509.ExtensionNotFound,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
    ) as error:
        raise ConfigError(
            f"{where} cannot be read ({error}); use one made by `bruit peer key`"
        ) from error
    if not isinstance(public, ec.EllipticCurvePublicKey) or not isinstance(
        public.curve, ec.SECP256R1
    ):
        raise ConfigError(f"{where} does not hold a P-256 key; use one made by `bruit peer key`")
    if names != [TLS_NAME] or authority:
        raise ConfigError(
            f"{where} is not a peer's: it must name {TLS_NAME} and may not sign others; "
            f"use one made by `bruit peer key`"
        )
    return certificate


@lru_cache(maxsize=1024)  # a book of many is asked for each of its certificates several times
def _own_signed(pem: str) -> tuple[x509.Certificate, PublicKeyTypes, list[str], bool]:
    """A certificate that its own key has signed, for a name and an Ed25519 key: with its key, whom
    TLS knows it as, and whether it may sign others. What is refused is not remembered."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    public, extensions = certificate.public_key(), certificate.extensions
    certificate.verify_directly_issued_by(certificate)
    names = extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    ).value.get_values_for_type(x509.DNSName)
    authority = extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    _signing_public(certificate)
    check_name(name_of(certificate))
    return certificate, public, names, authority


def name_of(certificate: x509.Certificate) -> str:
    """The participant's name."""
    values = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(values) != 1 or not isinstance(values[0].value, str):
        raise ConfigError("a certificate must carry exactly one name")
    return values[0].value


def check_name(name: str) -> None:
    """A name is short, printable, and not surrounded by blanks."""
    if not (
        isinstance(name, str)
        and 1 <= len(name) <= LONGEST_NAME
        and name.isprintable()
        and name == name.strip()
    ):
        raise ConfigError(
            f"a participant's name is 1 to {LONGEST_NAME} printable characters without blanks "
            f"around it, found {name!r}"
        )


def check_dates(certificate: x509.Certificate, where: str, now: datetime | None = None) -> None:
    """Refuse a certificate that is not valid now, showing its date and this machine's."""
    moment = now or datetime.now(UTC)
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    clock = f"this machine's clock says {moment:%Y-%m-%d %H:%M} UTC"
    if moment < begins:
        begin = f"{begins:%Y-%m-%d %H:%M} UTC"
        raise ConfigError(f"{where} is not valid before {begin}, but {clock}; set the clock right")
    if moment > ends:
        raise ConfigError(
            f"{where} expired on {ends:%Y-%m-%d %H:%M} UTC, and {clock}; if the clock is right, "
            f"make a new identity and send its entry to the others"
        )


def _unsigned(
    name: str, public: ec.EllipticCurvePublicKey, signing: ed25519.Ed25519PublicKey
) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(public)
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )  # digital signatures only
    both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    raw = signing.public_bytes(Encoding.Raw, PublicFormat.Raw)
    made = made.serial_number(x509.random_serial_number())
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(TLS_NAME)]), critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    made = made.add_extension(usage, critical=True).add_extension(both, critical=False)
    return made.add_extension(x509.UnrecognizedExtension(SIGNING_OID, raw), critical=False)


def _signing_public(certificate: x509.Certificate) -> bytes:
    """The raw Ed25519 public key inside a certificate."""
    value = certificate.extensions.get_extension_for_oid(SIGNING_OID).value
    if not isinstance(value, x509.UnrecognizedExtension) or len(value.value) != 32:
        raise ValueError("the Ed25519 key inside is not 32 bytes long")
    return value.value


def _public(key: object) -> bytes:
    """Public bytes by which two keys are compared: raw for Ed25519, as the certificate's extension
    has it."""
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    if isinstance(key, ec.EllipticCurvePublicKey):
        return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return b""


def _private_pem(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _load_key(path: Path, content: bytes) -> ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey:
    try:
        key = load_pem_private_key(content, None)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"the key {path} cannot be read ({error}); put back the right file"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey):
        raise ConfigError(
            f"the key {path} is neither a P-256 nor an Ed25519 key; put back the right file"
        )
    return key


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"there is no {path}; make an identity with `bruit peer key`") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error


def _warn_if_open(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        warnings.warn(
            f"the key {path} can be read by others on this machine (mode {mode:o}): chmod 600 it",
            stacklevel=3,
        )


def _write_secret(path: Path, content: bytes) -> None:
    """Write a file whole, never readable by others, not even while it is being written."""
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, path)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
