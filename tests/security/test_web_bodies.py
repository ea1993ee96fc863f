"""A request body is bounded before any of it is kept, and reaches the application in pieces."""

import json
import re
from pathlib import Path

import pytest

from frostproject.server.http_channel import HELD_OF_ADDRESS, KEPT_FOR_SMALL, HttpConnections
from tests.conftest import TOKEN
from tests.security.wire import answer, ask, connected, head, status, status_of

MIB = 2**20
COOKIE = "Cookie: sessionid=made-up"
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: WebSocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==",
)
CLOSE = "Connection: close"
CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    ("method", "path", "size", "headers"),
    [
        ("POST", "/health", 5 * MIB, []),
        ("POST", "/agent/query", 4 * MIB + 1, [f"Authorization: Bearer {TOKEN}"]),
        ("PUT", "/nowhere", 10**15, []),
        ("POST", "/admin/login/", 5 * MIB, []),
        ("POST", "/admin/login/", 5 * MIB, ["Cookie: sessionid="]),
        ("POST", "/admin/login/", 102 * MIB, [COOKIE]),
        ("POST", "/agent/query?/admin/", 5 * MIB, [COOKIE]),
        ("POST", "/agent/query", 5 * MIB, [COOKIE, "Daphne-Root-Path: /agent"]),
        ("GET", "/health", 1, []),
        ("HEAD", "/admin/", 1, [COOKIE]),
        ("GET", "/ws/frostagent", 1, UPGRADE),
        ("POST", "/ws/frostagent", 1, UPGRADE),
        ("POST", "/agent/query", 5 * MIB, ["Expect: 100-continue"]),
    ],
)
def test_a_body_that_is_too_large_is_refused_by_its_head(live, method, path, size, headers):
    """Not one byte of it is sent, and the server does not wait for any."""
    assert status_of(live, head(method, path, *headers, f"Content-Length: {size}")) == 413


@pytest.mark.parametrize(("path", "kept"), [("/agent/query", 4), ("/ready", 4)])
def test_a_body_in_chunks_is_counted_as_it_comes(live, path, kept):
    with connected(live) as connection:
        connection.sendall(head("POST", path, CHUNKED))
        for _ in range(kept):
            connection.sendall(b"100000\r\n" + b"x" * MIB + b"\r\n")
        connection.sendall(b"1\r\nx\r\n")  # one too many, and no end
        assert status(connection.recv(65536)) == 413


def test_a_chunk_for_a_request_without_a_body_is_refused(live):
    assert status_of(live, head("GET", "/health", CHUNKED) + b"1\r\nx\r\n0\r\n\r\n") == 413


def test_an_empty_body_in_chunks_is_no_body(live):
    assert status(ask(live, head("GET", "/health", CHUNKED, CLOSE) + b"0\r\n\r\n")) == 200


def test_who_is_outside_admin_networks_brings_nothing_large(start_server):
    server = start_server(ADMIN_NETWORKS="10.0.0.0/8")
    for path in ("/admin/agent/mediafile/", "/agent/query", "/health"):
        assert status_of(server, head("POST", path, COOKIE, f"Content-Length: {MIB}")) == 413
    asked = head("POST", "/admin/login/", CLOSE, "Content-Length: 1") + b"x"
    assert b"ADMIN_NETWORKS=private,127.0.0.1" in ask(
        server, asked
    )  # a form's answer still says how to open it


def test_large_bodies_leave_room_for_small_ones():
    callers = HttpConnections(10)
    share = HELD_OF_ADDRESS - KEPT_FOR_SMALL
    assert callers.hold("192.0.2.1", share, is_small=False)
    assert not callers.hold("192.0.2.1", 1, is_small=False)
    assert callers.hold("192.0.2.1", 1, is_small=True)
    assert callers.hold("192.0.2.2", share, is_small=False)
    while callers.hold("", MIB, is_small=False):
        pass
    assert callers.hold("192.0.2.3", KEPT_FOR_SMALL // 2, is_small=True)
    assert not callers.hold("192.0.2.4", KEPT_FOR_SMALL, is_small=True)


def test_what_follows_a_refused_body_is_no_request(live):
    reply = ask(
        live, head("POST", "/health", "Content-Length: 5000000") + head("GET", "/health") * 3
    )
    assert reply.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "framing", [("Content-Length: 5", "Content-Length: 6"), ("Content-Length: 5", CHUNKED)]
)
def test_a_body_of_two_lengths_reaches_nobody(live, framing):
    sent = head("POST", "/health", *framing) + b"0\r\n\r\n" + head("GET", "/health")
    assert status_of(live, sent) == 400


def test_an_upload_of_a_hundred_mebibytes_gets_in_and_stays_out_of_memory(start_server):
    server = start_server()
    before = peak_memory(server.pid)
    for path in ("/admin/agent/mediafile/", "/%61dmin/agent/mediafile/"):
        with connected(server) as connection:
            connection.sendall(head("POST", path, COOKIE, CLOSE, f"Content-Length: {100 * MIB}"))
            for _ in range(100):
                connection.sendall(b"x" * MIB)
            reply = answer(connection)
            assert status(reply) in (302, 403)  # the application looked at it: nobody is signed in
    assert peak_memory(server.pid) - before < 40 * MIB


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_large_body_arrives_as_it_was_sent(live, model, is_chunked):
    model.script(["all of it"])
    body = b" " * (3 * MIB) + json.dumps({"input": "hi"}).encode() + b" " * 1000
    framing = CHUNKED if is_chunked else f"Content-Length: {len(body)}"
    sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if is_chunked else body
    reply = ask(
        live, head("POST", "/agent/query", f"Authorization: Bearer {TOKEN}", CLOSE, framing) + sent
    )
    assert status(reply) == 200
    assert b"all of it" in reply


def test_a_form_in_the_body_of_a_program_is_left_alone(live):
    """Twisted would read it itself, on the event loop, and refuse it in its own words."""
    sent = b"--x\r\nno form\r\n"
    form = ["Content-Type: multipart/form-data; boundary=x", f"Content-Length: {len(sent)}"]
    assert status(ask(live, head("POST", "/health", *form, CLOSE) + sent)) == 200


def peak_memory(pid: int) -> int:
    """The most memory that the process has had so far, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    assert found
    return int(found[1]) * 1024
