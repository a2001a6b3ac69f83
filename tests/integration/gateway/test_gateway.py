"""A real gateway before real workers: those of uvicorn, each with its share of the keys."""

import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.gateway.gateway_process import GatewayProcess, gateway
from tests.integration.member.servers import WebServer, serving
from tests.patience import DEADLINE_SECONDS

KEYS = [f"user-{i}" for i in range(12)]
HANDSHAKE = {
    "Upgrade": "websocket",
    "Connection": "upgrade",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with serving("uvicorn-4", tmp_path_factory.mktemp("server") / "log", 4) as it:
        yield it


@pytest.fixture(scope="module")
def before(server: WebServer) -> Iterator[GatewayProcess]:
    to_pool, rest = "/carts/{user}=carts", f"/={server.url}"
    with gateway("--manager", server.manager, "--route", to_pool, "--route", rest) as it:
        yield it


@pytest.fixture
def client(before: GatewayProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=before.url, timeout=DEADLINE_SECONDS) as it:
        yield it


def test_each_key_is_served_by_its_owner_at_once(
    server: WebServer, client: httpx.Client, before: GatewayProcess
) -> None:
    pids = {key: client.get(f"/carts/{key}/pid").text for key in KEYS}
    assert len(set(pids.values())) > 1
    for key, pid in pids.items():
        assert httpx.get(f"{server.url}/carts/{key}/pid", timeout=DEADLINE_SECONDS).text == pid
    assert before.page("/readyz").status_code == 200
    assert client.get("/health").text.isdigit(), "the rest goes to the port that all share"


@pytest.mark.parametrize("size", [0, 10, 65_536, 65_537, 3_000_000])
def test_bodies_arrive_as_they_were_sent(client: httpx.Client, size: int) -> None:
    body = bytes(i % 251 for i in range(size))

    def parts() -> Iterator[bytes]:
        for i in range(0, size, 7000):
            yield body[i : i + 7000]

    for content in (body, parts()):
        path = f"/carts/{KEYS[0]}/echo?x=1&y=%2F%20&y=2"
        got = client.put(path, content=content, headers={"Cookie": "a=1"}).json()
        assert got["hash"] == hashlib.sha256(body).hexdigest()
        assert (got["size"], got["method"]) == (size, "PUT")
        assert (got["query"], got["cookie"]) == ("x=1&y=%2F%20&y=2", "a=1")


def test_the_application_sees_who_asked_and_no_header_of_ours(client: httpx.Client) -> None:
    for forged in ("x", "http://127.0.0.1:1 6.6.6.6 80 https"):
        headers = {"Tenure-Relayed": forged, "X-Forwarded-For": "6.6.6.6"}
        got = client.post(f"/carts/{KEYS[0]}/echo", headers=headers).json()
        assert got["host"] == client.base_url.netloc.decode()
        assert (got["client"], got["ours"]) == ("127.0.0.1", [])


def test_streams_come_as_they_are_made_and_end_when_the_client_goes(client: httpx.Client) -> None:
    key = KEYS[1]
    text = client.get(f"/carts/{key}/lines?count=200").text
    assert text == "".join(f"{i}\n" for i in range(200))
    with client.stream("GET", f"/carts/{key}/events") as events:
        got = ""
        for part in events.iter_text():
            got += part
            if got.count("tick") > 3:
                break
    while client.get(f"/carts/{key}/streaming").json():
        pass


def test_what_breaks_off_and_what_is_unknown_is_said(client: httpx.Client) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(f"/carts/{KEYS[2]}/breaks")
    got = client.post(f"/carts/{KEYS[2]}/lost")
    assert (got.status_code, got.headers["Tenure-Outcome"]) == (502, "unknown")


def test_a_killed_worker_costs_no_request_that_may_be_repeated(
    server: WebServer, client: httpx.Client
) -> None:
    pids = {key: int(client.get(f"/carts/{key}/pid").text) for key in KEYS}
    victim = pids[KEYS[0]]
    os.kill(victim, signal.SIGKILL)
    for key, pid in pids.items():
        if pid != victim:
            assert client.get(f"/carts/{key}/pid").status_code == 200
    while True:  # the key is free when its lease has run out
        got = client.get(f"/carts/{KEYS[0]}/pid")
        if got.status_code == 200:
            break
        assert (got.status_code, got.headers["Tenure-Outcome"]) == (503, "not-begun")
    assert int(got.text) != victim
    server.wait_for(4)


def test_it_counts_and_logs_what_it_answers(client: httpx.Client, before: GatewayProcess) -> None:
    client.get("/carts/somebody?x=1", headers={"User-Agent": "a\\nb"})
    assert '"GET /carts/somebody?x=1 HTTP/1.1" 200' in before.until_logged("somebody")
    page = before.page("/metrics").text
    assert 'tenure_gateway_answers_total{status="200",target="carts"}' in page
    assert before.page("/nothing").status_code == 404
    assert before.page("/healthz").status_code == 200


def test_routes_are_read_again_and_a_mistake_keeps_the_old_ones(tmp_path: Path) -> None:
    file = tmp_path / "routes"
    file.write_text("/=http://127.0.0.1:1 # nobody is there\n")
    with gateway("--routes", str(file), "--deadline", "0.1") as it:
        assert httpx.get(it.url, timeout=DEADLINE_SECONDS).status_code == 502
        file.write_text("/a=http://127.0.0.1:1\n/b=nothing\n")
        it.process.send_signal(signal.SIGHUP)
        assert "routes:2: '/b=nothing' names 0 keys" in it.until_logged("stay as they were")
        assert httpx.get(it.url, timeout=DEADLINE_SECONDS).status_code == 502
        file.write_text("/a=http://127.0.0.1:1\n")
        it.process.send_signal(signal.SIGHUP)
        it.until_logged("read again")
        assert httpx.get(it.url, timeout=DEADLINE_SECONDS).status_code == 404
        assert it.stop() == 0


def test_without_a_manager_a_request_is_answered_in_time_and_it_is_not_ready() -> None:
    nobody = ("--manager", "http://127.0.0.1:1", "--route", "/carts/{user}=carts")
    with gateway(*nobody, "--deadline", "0.5") as it:
        got = httpx.post(f"{it.url}/carts/ann", timeout=DEADLINE_SECONDS)
        assert (got.status_code, got.headers["Tenure-Outcome"]) == (503, "not-begun")
        assert got.elapsed.total_seconds() < 10
        assert before_it_is_ready(it) == "no owners are known yet of carts\n"


@pytest.mark.parametrize("headers", [{}, HANDSHAKE])
def test_a_key_that_nobody_can_own_is_refused_at_once(
    client: httpx.Client, headers: dict[str, str]
) -> None:
    """One that is no text, of a request and of a WebSocket."""
    got = client.get("/carts/%FF/pid", headers=headers)
    assert (got.status_code, got.headers["Tenure-Outcome"]) == (400, "not-begun")


def before_it_is_ready(it: GatewayProcess) -> str:
    page = it.page("/readyz")
    assert page.status_code == 503
    return page.text
