"""The users of a simulated service: requests and WebSockets, through whichever process the shared
port leads to.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from yarl import URL

from tenure.sim.app.processes import AppProcess
from tenure.testing.asgi_channel import ABNORMAL, decoded, encoded
from tenure.testing.programs import Program
from tenure.testing.relays import scope_of
from tenure.transport.channels import Channel, ChannelLost

ANSWER_SECONDS = 30.0
"""The simulated time for which a user waits for an answer."""
PATIENCE_SECONDS = 60.0
"""The time for which a user tries to be connected."""
AGAIN_SECONDS = 0.5
HANDSHAKE_SECONDS = 5.0
"""The time for which a user waits until a WebSocket is accepted, before trying another process."""


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    def json(self) -> Any:  # noqa: ANN401
        """The body, decoded."""
        return json.loads(self.body)


class ServiceUsers:
    """Everybody who uses one simulated service; to be used in their process's loop."""

    def __init__(self, process: AppProcess, program: Program) -> None:
        self._process = process
        self._program = program

    @property
    def is_served(self) -> bool:
        """Whether any process listens."""
        return bool(self._program.public)

    async def connect(self) -> Channel:
        """A connection to the shared port. Raises ConnectionError."""
        there = [each for each in self._program.public if each.alive]
        if not there:
            raise ConnectionRefusedError("no process of the service listens")
        chosen = self._process.random.choice(there)
        try:
            return await self._process.site.links.connect(
                self._program.public[chosen], self._process
            )
        except ChannelLost as error:
            raise ConnectionRefusedError(str(error)) from None

    async def request(  # what a request is
        self,
        method: str,
        path: str,
        *,
        json: Any = None,  # noqa: ANN401
        content: bytes = b"",
        headers: dict[str, str] | None = None,
        timeout: float = ANSWER_SECONDS,  # noqa: ASYNC109  # of simulated time
    ) -> Answer:
        """Ask once. Raises ConnectionError if the connection broke, and TimeoutError."""
        sent = dict(headers or {})
        if json is not None:
            content = _dumped(json)
            sent.setdefault("content-type", "application/json")
        if content:
            sent["content-length"] = str(len(content))
        scope = scope_of("http", method, URL(f"http://site{path}"), list(sent.items()))
        channel = await self.connect()
        try:
            async with asyncio.timeout(timeout):
                await channel.send(encoded(scope))
                await channel.send(encoded({"type": "http.request", "body": content}))
                return await _answer(channel)
        except ChannelLost as error:
            raise ConnectionResetError(f"{method} {path}: {error}") from None
        except TimeoutError:
            raise TimeoutError(
                f"{method} {path} was not answered within {timeout:g} s of simulated time"
            ) from None
        finally:
            await channel.close()

    async def websocket(self, path: str) -> "UserSocket":
        """A WebSocket, connected. Raises ConnectionError."""
        socket = UserSocket(self, path)
        await socket.connect()
        return socket


async def _answer(channel: Channel) -> Answer:
    start = decoded(await channel.receive())
    parts = []
    while True:
        message = decoded(await channel.receive())
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    headers = {name.decode().lower(): value.decode() for name, value in start.get("headers", ())}
    return Answer(start["status"], headers, b"".join(parts))


def _dumped(value: object) -> bytes:
    return json.dumps(value).encode()


class UserSocket:
    """A user's WebSocket. What it received is kept by connection."""

    def __init__(self, users: ServiceUsers, path: str) -> None:
        self._users = users
        self.path = path
        self.connections: list[list[str]] = []
        """The frames received, for each connection that there was."""
        self.close_code: int | None = None
        """The code with which the last connection was closed; None while one is open."""
        self._channel: Channel | None = None
        self._arrived = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is connected."""
        return self._channel is not None

    @property
    def received(self) -> list[str]:
        """All frames that were received."""
        return [text for each in self.connections for text in each]

    @property
    def repeats(self) -> list[str]:
        """Frames that came again over one connection; they must differ from each other."""
        return [text for each in self.connections for text in _repeated(each)]

    async def connect(self) -> None:
        """Connect anew. Raises ConnectionError where that is refused."""
        scope = scope_of("websocket", "GET", URL(f"http://site{self.path}"), [])
        channel = await self._users.connect()
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                await channel.send(encoded(scope))
                await channel.send(encoded({"type": "websocket.connect"}))
                answer = decoded(await channel.receive())
        except (ChannelLost, TimeoutError) as error:
            await channel.close()
            raise ConnectionResetError(f"{self.path}: {error}") from None
        if answer["type"] != "websocket.accept":
            await channel.close()
            self.close_code = answer.get("code")
            raise ConnectionRefusedError(f"{self.path} was refused: {answer}")
        self.close_code = None
        self._channel = channel
        self.connections.append([])
        self._reading = asyncio.ensure_future(self._read(channel, self.connections[-1]))

    async def _read(self, channel: Channel, frames: list[str]) -> None:
        code = ABNORMAL
        try:
            while (message := decoded(await channel.receive()))["type"] == "websocket.send":
                text = message.get("text")
                frames.append(message["bytes"].decode() if text is None else text)
                self._arrived.set()
            code = message.get("code", 1000)
        except ChannelLost:
            pass
        if self._channel is channel:
            self._channel, self.close_code = None, code
        self._arrived.set()
        await channel.close()

    async def keep_open(self, patience: float = PATIENCE_SECONDS) -> bool:
        """Connect again if the socket was closed, trying for a while. Returns whether
        it is open.
        """
        ends_at = asyncio.get_running_loop().time() + patience
        while self._channel is None and asyncio.get_running_loop().time() < ends_at:
            try:
                await self.connect()
            except OSError:
                await asyncio.sleep(AGAIN_SECONDS)
        return self.is_open

    async def send(self, text: str, patience: float = PATIENCE_SECONDS) -> bool:
        """Send a frame, connecting again if that is needed. Returns whether it was sent."""
        if not await self.keep_open(patience):
            return False
        assert self._channel is not None
        try:
            await self._channel.send(encoded({"type": "websocket.receive", "text": text}))
        except ChannelLost:
            return False
        return True

    async def lines(self, count: int) -> list[str]:
        """All frames, once there are so many. Raises TimeoutError, saying what came."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while len(self.received) < count:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            raise TimeoutError(
                f"{len(self.received)} of {count} frames came within {ANSWER_SECONDS:g} s of "
                f"simulated time: {self.received}"
            ) from None
        return self.received

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            self.close_code = 1000
            try:
                await channel.send(encoded({"type": "websocket.disconnect", "code": 1000}))
            except ChannelLost:
                return
            await channel.close()


def _repeated(frames: Sequence[str]) -> list[str]:
    seen: set[str] = set()
    return [text for text in frames if text in seen or seen.add(text)]  # type: ignore[func-returns-value]


def gaps_between(mine: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """The frames that another received between two that both received, and this one did not."""
    places = {text: place for place, text in enumerate(mine)}
    gaps: list[str] = []
    between: list[str] = []
    has_begun = False
    for text in theirs:
        if text in places:
            gaps += between if has_begun else []
            between, has_begun = [], True
        else:
            between.append(text)
    return gaps
