"""A way to a server that can be cut, as by a switch that fails: no byte goes through any more.

Nothing is closed, so that neither side is told. A server at a socket in a directory, as PostgreSQL
is here, has its proxy in another directory.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

MOST_BYTES = 1 << 16
POSTGRES_SOCKET = ".s.PGSQL.5432"


class Proxy:
    """Passes bytes on, until it is cut."""

    def __init__(self, server: str, place: Path) -> None:
        self.is_cut = False
        self.url = ""
        self._server = server
        self._place = place
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    def cut(self) -> None:
        """Let nothing arrive from now on, on either side."""
        self.is_cut = True

    async def listen(self) -> None:
        scheme, _, rest = self._server.rpartition("//")
        if self._server.startswith("host="):
            directory = self._server.split()[0].removeprefix("host=")
            self._path = str(Path(directory, POSTGRES_SOCKET))
            socket = self._place / POSTGRES_SOCKET
            self._server_here = await asyncio.start_unix_server(self._accept, socket)
            self.url = self._server.replace(directory, str(self._place))
            return
        self._host, _, port = rest.rpartition(":")
        self._port, self._path = int(port), ""
        self._server_here = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        mine = self._server_here.sockets[0].getsockname()[1]
        self.url = f"{scheme}{'//' if scheme else ''}127.0.0.1:{mine}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opening = (
            asyncio.open_unix_connection(self._path)
            if self._path
            else asyncio.open_connection(self._host, self._port)
        )
        there = await opening
        self._writers += [writer, there[1]]
        for one, other in ((reader, there[1]), (there[0], writer)):
            self._tasks.add(asyncio.create_task(self._pass_on(one, other)))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(MOST_BYTES):
                if not self.is_cut:
                    writer.write(data)
        if not self.is_cut:
            writer.close()

    async def close(self) -> None:
        """Drop every connection."""
        self._server_here.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
        await asyncio.gather(
            *(each.wait_closed() for each in self._writers), return_exceptions=True
        )


@contextmanager
def proxied(server: str, place: Path) -> Iterator[Proxy]:
    """A proxy before a server, in a thread."""
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o755)
    proxy, loop = Proxy(server, place), asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(proxy.listen(), loop).result()
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(proxy.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
