"""A hostile client: speaks gRPC, or nearly, with any identity one gives it."""

import socket
import ssl
import struct
import threading

import grpc
import numpy as np

from bruit.algorithms.schedules.machine import Envelope
from bruit.peers.wire import wire_pb2
from bruit.peers.wire.codec import METHOD, SERVICE, Conversation, Frame, encode
from bruit.peers.wire.identity import TLS_NAME

PATH = f"/{SERVICE}/{METHOD}"


def hello(run, algorithm, sender, acknowledged=0, echo=b""):
    return encode(
        Frame(
            conversation=Conversation(run, algorithm, sender),
            sequence=0,
            kind="hello",
            acknowledged=acknowledged,
            echo=echo,
        )
    )


def words(run, algorithm, sender, sequence, row, number=0, kind="round"):
    return encode(
        Frame.of(Conversation(run, algorithm, sender), sequence, Envelope(kind, number, row))
    )


def raw(run, algorithm, sender, sequence, row, kind="round", number=0):
    """A frame that no honest peer can encode: the row may hold anything."""
    field = wire_pb2.Field(
        name="", dtype="float64", shape=row.shape, data=np.ascontiguousarray(row, "<f8").tobytes()
    )
    return wire_pb2.Frame(
        run_id=bytes.fromhex(run),
        algorithm=algorithm,
        sender=sender,
        sequence=sequence,
        kind=kind,
        number=number,
        fields=[field],
    ).SerializeToString()


def say(identity, entry, frames, patience=60.0, open_end=False):
    """Send frames on one stream to that entry; the status the other side answers with, OK if it
    just listened. With an open end the stream is left to the other side to end."""
    over = threading.Event()

    def words():
        yield from frames
        if open_end:
            over.wait(patience)

    credentials = grpc.ssl_channel_credentials(
        entry.certificate.encode(), identity.key, identity.certificate.encode()
    )
    options = [("grpc.ssl_target_name_override", TLS_NAME), ("grpc.enable_retries", 0)]
    with grpc.secure_channel(entry.address, credentials, options) as channel:
        call = channel.stream_stream(PATH)(words(), timeout=patience, wait_for_ready=False)
        try:
            for _ in call:
                pass
        except grpc.RpcError as error:
            return error.code(), error.details()
        finally:
            over.set()
        return grpc.StatusCode.OK, ""


def _block(kind, flags, stream, content):
    return (
        struct.pack(">I", len(content))[1:]
        + bytes([kind, flags])
        + struct.pack(">I", stream)
        + content
    )


def speak_old_tls(identity, entry, folder, frame, patience=60.0):
    """The same by hand over TLS 1.2 and HTTP/2: everything the server answers until it ends the
    call."""
    key, certificate, root = (folder / name for name in ("k.pem", "c.pem", "r.pem"))
    key.write_bytes(identity.key)
    certificate.write_text(identity.certificate)
    root.write_text(entry.certificate)
    context = ssl.create_default_context(cafile=root)
    context.load_cert_chain(certificate, key)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["h2"])
    headers = {
        ":method": "POST",
        ":scheme": "https",
        ":path": PATH,
        ":authority": TLS_NAME,
        "te": "trailers",
        "content-type": "application/grpc",
    }
    packed = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(text)]) + text.encode()
        for name, text in headers.items()
    )
    with (
        socket.create_connection((entry.host, entry.port), patience) as plain,
        context.wrap_socket(plain, server_hostname=TLS_NAME) as line,
    ):
        version = line.version()
        message = b"\0" + struct.pack(">I", len(frame)) + frame
        line.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            + _block(4, 0, 0, b"")
            + _block(1, 4, 1, packed)
            + _block(0, 1, 1, message)
        )
        answer = b""
        while b"TLS" not in answer and (part := line.recv(4096)):
            answer += part
    return version, answer
