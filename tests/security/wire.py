"""Requests as no well-behaved client would send them, byte by byte."""

import socket

from tests.environment import PATIENCE
from tests.live_server import LiveServer


def connected(server: LiveServer, source: str = "127.0.0.1") -> socket.socket:
    """A TCP connection to ``server`` from the loopback address ``source``."""
    return socket.create_connection(
        ("127.0.0.1", server.port), timeout=PATIENCE, source_address=(source, 0)
    )


def head(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode(
        "latin1"
    )


def answer(connection: socket.socket) -> bytes:
    """Everything up to the end of the connection, however it ends."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def status(reply: bytes) -> int:
    """The status of the first response in ``reply``, 0 where there is none."""
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/") else 0


def ask(server: LiveServer, request: bytes, source: str = "127.0.0.1") -> bytes:
    """What the server says to ``request`` until it closes the connection."""
    with connected(server, source) as connection:
        connection.sendall(request)
        return answer(connection)


def status_of(server: LiveServer, request: bytes) -> int:
    """The status of the response to ``request``. A refused client could go on to send for a while,
    and its connection stays open that long: the end is not waited for."""
    reply = b""
    with connected(server) as connection:
        connection.sendall(request)
        while b"\r\n" not in reply and (part := connection.recv(65536)):
            reply += part
    return status(reply)
