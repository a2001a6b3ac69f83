"""WebSockets through a real gateway: those of entities outlive the workers behind it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tenure.cli.demo.ports import free_ports
from tests.integration.gateway.gateway_process import GatewayProcess, gateway
from tests.integration.gateway.liar import CLAIMS
from tests.integration.processes import manager
from tests.patience import DEADLINE_SECONDS
from tests.repo.reading import ROOT


class Worker:
    """One process of the application."""

    def __init__(self, manager_url: str, port: int, app: str, path: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._ready = f"{self.url}{path}"
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", f"tests.integration.gateway.{app}:app"),
                *("--port", str(port), "--log-level", "error"),
            ],
            cwd=ROOT,
            env={**os.environ, "TENURE_MANAGERS": manager_url},
        )

    def wait(self) -> "Worker":
        """Wait until it serves."""
        while True:
            try:
                if httpx.get(self._ready, timeout=DEADLINE_SECONDS).is_success:
                    return self
            except httpx.TransportError:
                assert self.process.poll() is None, "it has ended"

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(DEADLINE_SECONDS)


class House:
    """A manager, workers, and a gateway before them."""

    def __init__(self, stack: ExitStack, first_route: Sequence[str]) -> None:
        self._stack = stack
        beside = stack.enter_context(manager("--first-start", "--create-pools", preset="default"))
        self.manager = beside.wait_for("listening")["url"]
        [self.port] = free_ports(1)
        routes = (*first_route, "--route", f"/=http://127.0.0.1:{self.port}")
        self.gateway: GatewayProcess = stack.enter_context(
            gateway("--manager", self.manager, *routes, "--sockets", "rooms")
        )

    def worker(self, port: int | None = None) -> Worker:
        """Another worker, at the port to which handshakes go, or at one of its own."""
        return self._begin(port or free_ports(1)[0], "rooms", "/rooms/attic/pid")

    def liar(self) -> Worker:
        """A worker of another pool."""
        return self._begin(free_ports(1)[0], "liar", "/lies/unsealed")

    def _begin(self, port: int, app: str, path: str) -> Worker:
        made = Worker(self.manager, port, app, path)
        self._stack.callback(made.end, signal.SIGKILL)
        return made.wait()

    def socket(self, path: str, **options: Any) -> ClientConnection:  # noqa: ANN401
        url = self.gateway.url.replace("http", "ws") + path
        opening: AbstractContextManager[ClientConnection]
        opening = connect(url, open_timeout=DEADLINE_SECONDS, **options)
        return self._stack.enter_context(opening)


@contextmanager
def house(*first_route: str) -> Iterator[House]:
    with ExitStack() as stack:
        yield House(stack, first_route)


def test_sockets_of_entities_outlive_every_worker_and_miss_no_frame() -> None:
    with house() as it:
        worker = it.worker(it.port)
        ann, bob = it.socket("/rooms/attic/ann"), it.socket("/rooms/attic/bob")
        said = 0

        def say(text: str) -> None:
            nonlocal said
            said += 1
            ann.send(text)
            for each in (ann, bob):
                assert each.recv(DEADLINE_SECONDS) == f"{said} ann: {text}"

        say("hello")
        for generation in range(3):
            follower = it.worker()
            ann.send(f"while {generation}")  # on its way while the worker ends
            worker.end()
            said += 1
            for each in (ann, bob):
                assert each.recv(DEADLINE_SECONDS) == f"{said} ann: while {generation}"
            say(f"after {generation}")
            worker = follower
        bob.close()
        say_alone = "I am alone"
        ann.send(say_alone)
        assert ann.recv(DEADLINE_SECONDS) == f"{said + 1} ann: {say_alone}"


def test_a_lost_room_closes_its_sockets_with_1012_and_no_silence() -> None:
    with house() as it:
        worker = it.worker(it.port)
        ann = it.socket("/rooms/attic/ann")
        ann.send("hello")
        assert ann.recv(DEADLINE_SECONDS) == "1 ann: hello"
        other = it.worker()
        pid = int(httpx.get(f"{other.url}/rooms/attic/pid", timeout=DEADLINE_SECONDS).text)
        victim = worker if pid == worker.process.pid else other
        victim.end(signal.SIGKILL)
        with pytest.raises(ConnectionClosed) as closed:
            ann.recv(DEADLINE_SECONDS)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012


def test_the_application_decides_who_comes_in_and_its_own_sockets_pass() -> None:
    with house() as it:
        it.worker(it.port)
        with pytest.raises(InvalidStatus) as refused:
            it.socket("/rooms/attic/mallory")
        assert refused.value.response.status_code == 403
        own = it.socket("/echo", subprotocols=["chat"])
        assert own.subprotocol == "chat"
        for text in ("a", "b" * 100_000):
            own.send(text)
            assert own.recv(DEADLINE_SECONDS) == text
        own.send("bye")
        assert own.recv(DEADLINE_SECONDS) == "bye"
        with pytest.raises(ConnectionClosed) as closed:
            own.recv(DEADLINE_SECONDS)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4000


def test_an_offer_that_no_gateway_has_sealed_gets_nothing() -> None:
    with house() as it:
        worker = it.worker(it.port)
        direct = worker.url.replace("http", "ws") + "/rooms/attic/ann"
        forged = {"Tenure-Sockets": "rooms 0123456789abcdef " + "0" * 32 + " " + "0" * 64}
        with connect(direct, additional_headers=forged, open_timeout=DEADLINE_SECONDS) as ann:
            ann.send("hello")
            assert ann.recv(DEADLINE_SECONDS) == "1 ann: hello", "it is accepted as ever"
        with it.socket("/rooms/attic/ann", additional_headers=forged) as ann:
            ann.send("hello")
            assert ann.recv(DEADLINE_SECONDS) == "2 ann: hello"


def test_a_worker_of_another_pool_attaches_nobody() -> None:
    with house("--route", "/lies/{how}=lies") as it:
        it.worker(it.port)
        it.liar()
        ann = it.socket("/rooms/attic/ann")
        through = f"{it.gateway.url}/lies/unsealed"
        assert httpx.get(through, timeout=DEADLINE_SECONDS).is_success, "it is an owner"
        for claim in CLAIMS:
            with pytest.raises(InvalidStatus) as refused:
                it.socket(f"/lies/{claim}")
            assert refused.value.response.status_code == 502
            it.gateway.until_logged("lies gave a socket over")
        assert httpx.get(through, timeout=DEADLINE_SECONDS).json() == [], "it gets no offers"
        ann.send("hello")
        assert ann.recv(DEADLINE_SECONDS) == "1 ann: hello"
