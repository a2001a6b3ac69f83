"""A gateway in this process, a server behind it that answers with the bytes it is told, and clients
that write bytes.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from tenure.gateway.gateway import HttpGateway
from tenure.gateway.gateway_port import LIMITS
from tenure.gateway.passed_headers import TrustedProxies
from tenure.gateway.routes import GatewayRoutes
from tenure.gateway.targets import TargetSettings
from tenure.transport.connection_limits import ConnectionLimits
from tenure.transport.credentials import NOTHING
from tests.patience import DEADLINE_SECONDS

END = b"\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Client:
    """A connection to the gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def say(self, said: bytes) -> None:
        self.writer.write(said)

    async def head(self) -> bytes:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.reader.readuntil(END)

    async def part(self, count: int) -> bytes:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.reader.readexactly(count)

    async def all(self) -> bytes:
        """All that comes until the gateway closes."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.reader.read()


Answers = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], "asyncio.Future[None]"]


class Behind:
    """A plain server: `answer` is called with each head that comes."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.connections = 0
        self.came = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        length = next((x for x in head.split(b"\r\n") if x.startswith(b"content-length")), b":0")
        await reader.readexactly(int(length.partition(b":")[2]))
        writer.write(OK)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while not writer.is_closing():
                head = await reader.readuntil(END)
                self.heads.append(head)
                self.came.set()
                await self.answer(head, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def end(self) -> None:
        for each in self._tasks:
            each.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


class Front:
    """The gateway, as clients see it."""

    def __init__(self, gateway: HttpGateway, port: int, stack: AsyncExitStack, behind: str) -> None:
        self.gateway = gateway
        self.port = port
        self.behind = behind
        self._stack = stack

    async def client(self) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._stack.callback(writer.close)
        return Client(reader, writer)

    async def answer(self, said: bytes) -> bytes:
        """All that a client gets that says this."""
        client = await self.client()
        client.say(said)
        return await client.all()


@asynccontextmanager
async def front(
    behind: Behind,
    *,
    trusted: tuple[str, ...] = (),
    deadline: float = 10.0,
    answer_seconds: float = DEADLINE_SECONDS,
    limits: ConnectionLimits = LIMITS,
) -> AsyncIterator[Front]:
    """A gateway whose one route leads to `behind`."""
    async with AsyncExitStack() as stack:
        listening = await asyncio.start_server(behind.accept, "127.0.0.1", 0)
        stack.callback(listening.close)
        stack.push_async_callback(behind.end)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        settings = TargetSettings(None, NOTHING, TrustedProxies(trusted), deadline, answer_seconds)
        gateway = HttpGateway(
            GatewayRoutes.read([("x", f"/={url}")]), settings, drain=1.0, limits=limits
        )
        stack.push_async_callback(gateway.close)
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        await stack.enter_async_context(gateway.listening(taken, None))
        yield Front(gateway, port, stack, url)
