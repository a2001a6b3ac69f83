"""A shell runs a machine of any protocol: here one that knows nothing of leases.

The toy asks servers for the values of keys, over the transport within the process. It is what a
cache will be, without what makes a cache hard.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeAlias

import msgspec
import pytest
import pytest_asyncio

from tenure import ClosedError, NoManager, TenureError, UsageError
from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.base.machine import Output
from tenure.base.noted import Level, Noted, NotedKind
from tenure.client.callbacks import Job
from tenure.client.entering import Enterable
from tenure.client.environment import RealEnvironment
from tenure.client.servers import Servers
from tenure.client.shell import Shell, ShellConfig
from tenure.transport.contract import M, Role, Transport
from tenure.transport.doors import Connection
from tenure.transport.in_process import MemoryNetwork
from tenure.wire.frame import Bytes, Reader, framed

HERE, THERE = "http://here.test", "http://there.test"
RETRY_NS = seconds(5)

pytestmark = pytest.mark.asyncio


# --- its messages, events, actions ----------------------------------------------------------------


class ToyMessage(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The messages between clients and servers."""


class Greeting(ToyMessage, frozen=True):
    """A greeting, sent by both sides."""


class Fetch(ToyMessage, frozen=True):
    key: str


class Fetched(ToyMessage, frozen=True):
    key: str
    value: str


class Bye(ToyMessage, frozen=True):
    """A farewell, sent by both sides."""


ToToyServer: TypeAlias = Greeting | Fetch | Bye
ToToyClient: TypeAlias = Greeting | Fetched | Bye


class Said(msgspec.Struct, frozen=True):
    server: str
    message: ToToyClient


class ServerLost(msgspec.Struct, frozen=True):
    server: str


class Wanted(msgspec.Struct, frozen=True):
    key: str
    server: str


class LeaveAsked(msgspec.Struct, frozen=True):
    """Everything is to be returned."""


class Tell(msgspec.Struct, frozen=True):
    server: str
    message: ToToyServer


class Keep(msgspec.Struct, frozen=True):
    key: str
    value: str


class Enter(msgspec.Struct, frozen=True):
    """Every server has greeted."""


class Leave(msgspec.Struct, frozen=True):
    """Every server knows."""


WHYS = "a toy name", "a toy pool"


class ToyKind(NotedKind):
    LOST = "lost a server", Level.INFO, False
    REFUSED = "refused", Level.WARNING, True
    BLOCKED = "blocked", Level.WARNING, True


ToyEvent: TypeAlias = Said | ServerLost | Wanted | LeaveAsked
ToyAction: TypeAlias = Tell | Keep | Enter | Leave | Noted


class ToyMachine:
    """Greets each server until it greets back, asks, and says goodbye."""

    def __init__(self, servers: tuple[str, ...]) -> None:
        self.waiting = dict.fromkeys(servers)
        self.servers = servers
        self.is_leaving = False
        self.greet_at = Instant(0)

    def handle(self, now: Instant, event: ToyEvent) -> Output[ToyAction]:
        actions = self._greet(now)
        match event:
            case Said(server, Greeting()):
                if server in self.waiting:
                    del self.waiting[server]
                    actions += [] if self.waiting else [Enter()]
            case Said(_, Fetched(key, value)):
                actions.append(Keep(key, value))
            case Said(server, Bye()):
                self.servers = tuple(each for each in self.servers if each != server)
                actions += [] if self.servers else [Leave()]
            case ServerLost(server):
                actions.append(Noted(ToyKind.LOST, "", f"lost {server}"))
            case Wanted(key, server):
                assert key, "a key has a name"
                actions.append(Tell(server, Fetch(key)))
            case LeaveAsked():
                self.is_leaving = True
                actions += [Tell(each, Bye()) for each in self.servers]
        return self._output(actions)

    def advance(self, now: Instant) -> Output[ToyAction]:
        return self._output(self._greet(now))

    def invariants(self) -> None: ...

    def _greet(self, now: Instant) -> list[ToyAction]:
        if not self.waiting or now < self.greet_at:
            return []
        self.greet_at = Instant(now + RETRY_NS)
        return [Tell(each, Greeting()) for each in self.waiting]

    def _output(self, actions: list[ToyAction]) -> Output[ToyAction]:
        return Output(actions, self.greet_at if self.waiting else FAR_FUTURE)


# --- its wire -------------------------------------------------------------------------------------


def _encode(message: ToyMessage, version: int) -> bytes:
    return framed(message, version)


def _check(message: ToyMessage, version: int) -> None:
    """Types say all of it."""


def _reader(kind: object) -> Callable[[Bytes, int], ToyMessage]:
    decoder: msgspec.msgpack.Decoder[ToyMessage] = msgspec.msgpack.Decoder(kind)
    return Reader(decoder, 1 << 20, _check)


TOY: Role[ToToyClient] = Role("/v1/toy", _reader(ToToyClient), _encode)  # type: ignore[arg-type]
read_by_server = _reader(ToToyServer)


class ToyServer:
    """Greets, and answers with the key in capitals."""

    def __init__(self) -> None:
        self.heard: list[ToyMessage] = []

    def connected(self, connection: Connection) -> None: ...
    def disconnected(self, connection: Connection) -> None: ...
    def received(self, connection: Connection, data: bytes) -> None:
        message = read_by_server(data, connection.version)
        self.heard.append(message)
        answer = message
        if isinstance(message, Fetch):
            answer = Fetched(message.key, message.key.upper())
        connection.send(_encode(answer, connection.version))


# --- its engine, and its face ---------------------------------------------------------------------


class ToyEngine:
    """Says what the machine's actions mean."""

    def __init__(
        self, servers: tuple[str, ...], environment: RealEnvironment, timeout: float
    ) -> None:
        client = ShellConfig(
            "a toy", environment, logging.getLogger("toy"), timeout, "nothing is held"
        )
        self.shell: Shell[ToyEvent, ToyAction, ToToyClient] = Shell(
            client, TOY, Servers(servers), self
        )
        self._urls = servers
        self.answers: dict[str, Future[str]] = {}
        self.calls: list[tuple[str, str]] = []
        self.ended: list[str] = []
        self.left = asyncio.Event()

    async def prepare(self) -> ToyMachine:
        self.shell.cleanup.callback(self.ended.append, "cleaned up")
        if not self._urls:
            raise UsageError("no server is named")
        return ToyMachine(self._urls)

    def perform(self, action: ToyAction) -> None:
        match action:
            case Tell(server, message):
                self.shell.send(server, message)
            case Keep(key, value):
                call = Job("on_kept", self._on_kept, (key, value), key)
                self.shell.callbacks.put(call)
            case Enter():
                self.shell.have_entered()
            case Leave():
                self.left.set()
            case Noted():
                self.shell.note(action)

    def _on_kept(self, kept: tuple[str, str]) -> None:
        self.calls.append((threading.current_thread().name, kept[1]))
        self.answers[kept[0]].set_result(kept[1])

    def hear(self, server: str, message: ToToyClient) -> None:
        self.shell.driver.post(Said(server, message))

    def on_lost(self, server: str) -> None:
        self.shell.driver.post(ServerLost(server))

    def why_not_entered(self) -> TenureError:
        return NoManager(f"no server: {self.shell.servers}")

    async def give_back(self) -> None:
        self.shell.driver.post(LeaveAsked())
        await self.left.wait()

    def end(self) -> None:
        self.ended.append("ended")

    def give_up(self) -> None:
        self.ended.append("gave up")
        self.left.set()


class Readers:
    is_forked = False

    def on_fork(self) -> None:
        self.is_forked = True


class Toy(Enterable[ToyEngine]):
    """The object that a user would have."""

    def __init__(self, network: MemoryNetwork, *servers: str, timeout: float = 5.0) -> None:
        class Environment(RealEnvironment):
            def transport(self, role: Role[M]) -> Transport[M]:
                return network.transport(role)

        environment = Environment()
        super().__init__("Toy", Readers(), lambda: ToyEngine(servers, environment, timeout))

    def fetch(self, key: str, server: str) -> Awaitable[None]:
        self._check_usable()
        answer: Future[str] = Future()
        self._engine.answers[key] = answer
        self._engine.shell.post(Wanted(key, server))
        return self._wait(answer)  # type: ignore[arg-type]


class Stage:
    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.servers = {HERE: ToyServer(), THERE: ToyServer()}
        for url, server in self.servers.items():
            self.network.listen(url, server)

    def toy(self, *servers: str, timeout: float = 5.0) -> Toy:
        return Toy(self.network, *(servers or (HERE, THERE)), timeout=timeout)


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    yield Stage()


async def test_a_machine_of_another_protocol_is_entered_asks_two_servers_and_leaves(
    stage: Stage,
) -> None:
    async with stage.toy() as toy:
        await toy.fetch("a", HERE)
        await toy.fetch("b", THERE)
        here = threading.current_thread().name
        assert toy._engine.calls == [(here, "A"), (here, "B")]
        assert toy.stats() == {"sent": 4, "received": 4}
    assert stage.servers[HERE].heard == [Greeting(), Fetch("a"), Bye()]
    assert stage.servers[THERE].heard == [Greeting(), Fetch("b"), Bye()]
    assert toy._engine.ended[:2] == ["cleaned up", "ended"]
    with pytest.raises(ClosedError, match="this Toy was left"):
        await toy.fetch("a", HERE)


async def test_in_the_blocking_form_its_callbacks_have_a_thread_of_their_own(stage: Stage) -> None:
    def use() -> list[tuple[str, str]]:
        with stage.toy(HERE) as toy:
            _ = toy.fetch("a", HERE)
            return toy._engine.calls

    assert await asyncio.to_thread(use) == [("a toy calls", "A")]


async def test_what_it_waits_for_is_named_when_it_cannot_be_entered(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.client.shell.SAYS_AFTER_SECONDS", 0.05)
    monkeypatch.setattr("tenure.client.shell.LEAVE_SECONDS", 0.05)
    stage.network.fall_silent(THERE)
    with pytest.raises(NoManager, match=f"{HERE}: no answer; {THERE}: connection refused"):
        async with stage.toy(timeout=0.2):
            pass
    assert "a toy is not entered yet, and waits up to 0.2 s: it asks http://here" in caplog.text


async def test_who_has_been_entered_does_not_say_that_it_waits(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.client.shell.SAYS_AFTER_SECONDS", 0.05)
    async with stage.toy():
        await asyncio.sleep(0.1)
    assert "is not entered yet" not in caplog.text


async def test_a_lost_connection_reaches_the_machine_and_the_next_message_makes_another(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with stage.toy(HERE) as toy:
        stage.network.fall_silent(HERE)
        stage.network.listen(HERE, stage.servers[HERE])
        await toy.fetch("a", HERE)
        assert f"a toy lost {HERE}" in caplog.text
        assert toy.stats()["connections lost"] == toy.stats()["lost a server"] == 1


async def test_what_repeats_is_a_warning_once_until_something_else_is_said(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with stage.toy() as toy:
        for why in ("name", "name", "pool", "name"):
            toy._engine.shell.note(Noted(ToyKind.REFUSED, "", why))
        levels = [each.levelname for each in caplog.records if each.message in WHYS]
    assert levels == ["WARNING", "DEBUG", "WARNING", "WARNING"]
    assert toy.stats()["refused"] == 4


async def test_what_repeats_does_not_hide_another_event_that_concerns_the_same(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with stage.toy() as toy:
        for kind in (ToyKind.REFUSED, ToyKind.BLOCKED, ToyKind.REFUSED, ToyKind.BLOCKED):
            noted = Noted(kind, "", "name")
            toy._engine.shell.note(noted, noted.text)
        said = [(each.levelname, each.message) for each in caplog.records if "name" in each.message]
    refused, blocked = "a toy refused: name", "a toy blocked: name"
    loud = [("WARNING", refused), ("WARNING", blocked)]
    assert said == [*loud, ("DEBUG", refused), ("DEBUG", blocked)]


async def test_a_machine_that_cannot_be_prepared_is_an_error_of_entering(stage: Stage) -> None:
    toy = Toy(stage.network)
    with pytest.raises(UsageError, match="no server is named"):
        async with toy:
            pass
    assert "cleaned up" in toy._engine.ended


async def test_a_bug_of_the_machine_ends_it_and_leaving_waits_for_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage.toy() as toy:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await toy.fetch("", HERE)
        assert toy._engine.ended == ["gave up"]
    assert "a toy stops because of a bug, and holds nothing" in caplog.text
    assert toy.stats()["failed"] == 1
