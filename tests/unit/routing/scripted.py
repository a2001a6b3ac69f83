"""A server that does what a script says, breaks off where it says, and tells what it had done."""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread, Timer
from typing import NamedTuple

from tenure import KeyChange
from tenure.base.keys import UserKey
from tenure.routing.template import Templates

DONE = {"answers", "says_unknown_done", "drops_done", "drops_in_answer"}
"""Behaviours in which the request is carried out."""
IN_DOUBT = {
    "says_unknown_done",
    "says_unknown",
    "drops",
    "drops_done",
    "drops_in_answer",
    "resets",
}
"""Behaviours that leave a client in doubt."""
BEHAVIOURS = sorted(DONE | IN_DOUBT | {"refuses"})


class Asked(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class ScriptedServer:
    """One owner, in a thread with a loop of its own."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.script: deque[str] = deque()
        self.hint: str | None = None
        self.redirect: str | None = None
        self.asked: list[Asked] = []
        self.acted = 0
        self.url = ""
        self.released = asyncio.Event()
        self._loop = asyncio.new_event_loop()

    def play(self, *script: str) -> None:
        """Follow this script from here on, and then answer."""
        self.script = deque(script)
        self.asked, self.acted = [], 0

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self.server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        asked = await self._read(reader)
        self.asked.append(asked)
        behaviour = self.script.popleft() if self.script else "answers"
        self.acted += behaviour in DONE
        match behaviour:
            case "answers" if self.redirect:
                writer.write(answer(307, {"Location": self.redirect}))
            case "answers":
                writer.write(answer(200, content=self.content))
            case "refuses":
                writer.write(answer(421, {"Tenure-Owner": self.hint} if self.hint else {}))
            case "refuses_and_drops":
                writer.write(b"HTTP/1.1 421 Misdirected Request\r\nContent-Length: 99\r\n\r\nthis")
                await writer.drain()
                return False
            case "says_unknown" | "says_unknown_done":
                writer.write(answer(503, {"Tenure-Outcome": "unknown"}))
            case "is_busy":
                writer.write(answer(503, {"Retry-After": "1"}))
            case "drops_in_answer":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-")
                await writer.drain()
                return False
            case "resets":
                raw = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            case "refuses_late":
                await self.released.wait()
                writer.write(answer(421))
            case "stands_still":
                await self.released.wait()
                return False
            case _:
                return False
        await writer.drain()
        return True

    async def _read(self, reader: asyncio.StreamReader) -> Asked:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        if headers.get("transfer-encoding") == "chunked":
            return Asked(method, target, headers, await read_chunks(reader))
        size = int(headers.get("content-length", 0))
        return Asked(method, target, headers, await reader.readexactly(size))

    def run(self) -> None:
        self._loop.run_forever()

    def call(self, what: str) -> None:
        asyncio.run_coroutine_threadsafe(getattr(self, what)(), self._loop).result(10)

    async def release(self) -> None:
        self.released.set()

    async def stop(self) -> None:
        self.server.close()
        self.released.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def end(self, thread: Thread) -> None:
        self.call("stop")
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join()
        self._loop.close()


async def read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


def answer(status: int, headers: dict[str, str] | None = None, content: bytes = b"ok") -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + content


@contextmanager
def scripted(content: bytes = b"ok") -> Iterator[ScriptedServer]:
    server = ScriptedServer(content)
    thread = Thread(target=server.run)
    thread.start()
    server.call("start")
    try:
        yield server
    finally:
        server.end(thread)


def refused_port() -> str:
    """The URL of a port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


class TableWatch:
    def __init__(self, table: "Table", callback: Callable[[KeyChange], object]) -> None:
        self.table = table
        self.callback = callback

    def cancel(self) -> None:
        self.table.watching.remove(self)


class Table:
    """A lookup that has all keys at one address, and is told when that changes."""

    hold = 10.0

    def __init__(self, address: str | None) -> None:
        self.address = address
        self.watching: list[TableWatch] = []
        self.waiting: list[Future[None]] = []
        self.found = 0
        self.then: str | None = None
        """The address that it finds as soon as somebody waits for a change."""

    def find(self, key: UserKey, /) -> str | None:
        assert Templates("/carts/{user}").find(f"/carts/{key!s}") == key
        self.found += 1
        return self.address

    def watch(self, key: UserKey, callback: Callable[[KeyChange], object]) -> TableWatch:
        self.key = key
        self.watching.append(TableWatch(self, callback))
        self._become_then()
        return self.watching[-1]

    def moved(self, key: UserKey, not_at: str | None, timeout: float) -> "Future[None]":
        del key, not_at
        future: Future[None] = Future()
        self.waiting.append(future)
        if not self._become_then():
            timer = Timer(timeout, ended, (future,))
            timer.daemon = True
            timer.start()
        return future

    def _become_then(self) -> bool:
        then, self.then = self.then, None
        if then is not None:
            self.become(then)
        return then is not None

    def become(self, address: str | None) -> None:
        self.address = address
        for watch in list(self.watching):
            watch.callback(KeyChange(self.key, address, lost=False))
        for future in self.waiting:
            ended(future)


def ended(future: "Future[None]") -> None:
    if not future.done():
        future.set_result(None)
