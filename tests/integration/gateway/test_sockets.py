"""WebSockets through a real gateway: those of entities outlive the workers behind it."""

import signal

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.integration.gateway.house import house
from tests.integration.gateway.liar import CLAIMS
from tests.patience import DEADLINE_SECONDS


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
