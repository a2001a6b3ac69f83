"""One service behind real servers: whichever process is asked, the owner of the key answers."""

import hashlib
import json
import signal
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.integration.member.servers import WebServer
from tests.patience import DEADLINE_SECONDS, blocking_until

KEYS = [f"user-{i}" for i in range(12)]
NO_TLS = ssl.create_default_context()
"""Nothing here speaks TLS, but making a context for each request takes longer than the request."""
# Hypercorn cancels what it serves, which nothing in the application can see coming: it closes with
# 1011 whatever has not lost its lease by then. Granian cuts its sockets.
ENDS_WITH = {"hypercorn": {1011, 1012}, "granian": {1006, 1012}}
SIZES = (0, 10, 65_536, 65_537, 3_000_000)


@pytest.fixture
def client(server: WebServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=DEADLINE_SECONDS) as it:
        yield it


def ask_anew(server: WebServer, path: str) -> httpx.Response:
    """Ask by a new connection: the kernel chooses the process."""
    return httpx.get(server.url + path, timeout=DEADLINE_SECONDS, verify=NO_TLS)


def socket_to(server: WebServer, path: str) -> ClientConnection:
    return connect(server.url.replace("http", "ws") + path, open_timeout=DEADLINE_SECONDS)


def test_each_key_is_served_by_one_process_whichever_is_asked(server: WebServer) -> None:
    served = {
        (key, got.headers["Lease-Number"], got.text)
        for key in KEYS
        for got in (ask_anew(server, f"/carts/{key}/pid") for _ in range(6))
    }
    # A key may move between two requests: each lease of it is one process's.
    assert set(Counter((key, number) for key, number, _ in served).values()) == {1}
    assert ask_anew(server, "/ready").status_code == 200


def test_every_process_serves_keys(server: WebServer, client: httpx.Client) -> None:
    many = range(200)  # with a dozen keys, one process of four would have none in every eighth run
    pids = {client.get(f"/carts/user-{each}/pid").text for each in many}
    assert len(pids) == len(server.owners_with_keys())


@pytest.mark.parametrize("size", SIZES)
def test_bodies_arrive_as_they_were_sent(client: httpx.Client, size: int) -> None:
    body = bytes(i % 251 for i in range(size))

    def parts() -> Iterator[bytes]:
        for i in range(0, size, 7000):
            yield body[i : i + 7000]

    for key in KEYS[:5]:
        for content in (body, parts()):
            path = f"/carts/{key}/echo?x=1&y=%2F%20&y=2"
            got = client.put(path, content=content, headers={"Cookie": "a=1"}).json()
            assert got["hash"] == hashlib.sha256(body).hexdigest()
            assert (got["size"], got["method"]) == (size, "PUT")
            assert got["query"] == "x=1&y=%2F%20&y=2"
            assert got["cookie"] == "a=1"


def test_what_the_application_sees_is_who_asked(client: httpx.Client) -> None:
    for key in KEYS[:5]:
        got = client.post(f"/carts/{key}/echo").json()
        assert got["host"] == client.base_url.netloc.decode()
        assert (got["client"], got["greeting"], got["ours"]) == ("127.0.0.1", "hello", [])


@pytest.mark.parametrize(
    "forged", ["x", "http://127.0.0.1:1 6.6.6.6 80 https", "", "\xff", "a b c d"]
)
def test_a_forged_header_of_ours_is_taken_out(client: httpx.Client, forged: str) -> None:
    for key in KEYS[:5]:
        headers = {b"Tenure-Relayed": forged.encode("latin-1")}
        got = client.post(f"/carts/{key}/echo", headers=headers).json()
        assert (got["client"], got["ours"]) == ("127.0.0.1", [])


def test_what_was_relayed_to_the_shared_port_is_not_relayed_again(
    server: WebServer, client: httpx.Client
) -> None:
    member = server.owners_with_keys()[0]["address"]
    headers = {"Tenure-Relayed": f"{member} 127.0.0.1 1 http"}
    got = client.get(f"/carts/{KEYS[0]}/pid", headers=headers)
    assert got.status_code == 508
    assert "address" in got.text


def test_headers_of_answers_are_kept(client: httpx.Client) -> None:
    for key in KEYS[:5]:
        got = client.get(f"/carts/{key}/cookies")
        assert len(got.headers.get_list("set-cookie")) == 2
        assert len(got.headers.get_list("date")) == 1
        assert client.get(f"/carts/{key}/nowhere").status_code == 404
        assert client.head(f"/carts/{key}").status_code == 405


def test_streams_come_as_they_are_made(client: httpx.Client) -> None:
    for key in KEYS[:5]:
        text = client.get(f"/carts/{key}/lines?count=200").text
        assert text == "".join(f"{i}\n" for i in range(200))


def has_ended(client: httpx.Client, key: str) -> bool:
    return not client.get(f"/carts/{key}/streaming").json()


def test_events_come_at_once_and_end_when_the_client_goes(client: httpx.Client) -> None:
    for key in KEYS[:4]:
        with client.stream("GET", f"/carts/{key}/events") as events:
            got = ""
            for part in events.iter_text():
                got += part
                if got.count("tick") > 3:
                    break
        blocking_until(partial(has_ended, client, key))


def test_an_answer_that_breaks_off_is_no_whole_answer(client: httpx.Client) -> None:
    for key in KEYS[:5]:
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(f"/carts/{key}/breaks")


def test_a_lease_lost_in_the_middle_is_said_truthfully(client: httpx.Client) -> None:
    for key in KEYS[:5]:
        got = client.post(f"/carts/{key}/lost")
        assert got.status_code == 503
        assert got.headers["Tenure-Outcome"] == "unknown"


def test_websockets_carry_text_bytes_protocols_and_codes(server: WebServer) -> None:
    for key in KEYS[:5]:
        url = server.url.replace("http", "ws") + f"/carts/{key}/talk"
        with connect(url, subprotocols=["chat", "other"], open_timeout=DEADLINE_SECONDS) as socket:  # type: ignore[list-item]
            assert socket.subprotocol == "chat"
            pid = json.loads(socket.recv(30))
            assert str(pid) == ask_anew(server, f"/carts/{key}/pid").text
            for message in ("hello", b"\x00\xff", "x" * 100_000):
                socket.send(message)
                assert socket.recv(30) == message
            socket.send("bye")
            with pytest.raises(ConnectionClosed):
                socket.recv(30)
            assert socket.close_code == 4001
        with socket_to(server, f"/carts/{key}/talk") as socket:
            assert json.loads(socket.recv(30)) == pid


def test_a_websocket_that_the_owner_denies_is_denied(server: WebServer) -> None:
    for key in KEYS[:5]:
        with pytest.raises(InvalidStatus) as denied:
            socket_to(server, f"/carts/{key}/forbidden")
        assert denied.value.response.status_code == 403


def test_sigterm_hands_over_and_closes_sockets(server: WebServer) -> None:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket_to(server, f"/carts/{key}/talk")) for key in KEYS]
        for socket in sockets:
            socket.recv(30)
        assert server.stop() in (0, -signal.SIGTERM), server.log.read_text()
        for socket in sockets:
            with pytest.raises(ConnectionClosed):
                socket.recv(30)
        codes = {socket.close_code for socket in sockets}
        assert codes <= ENDS_WITH.get(server.kind, {1012})
    assert server.owners_with_keys() == []
