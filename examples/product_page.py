"""Product pages in SQLite, and frontends that read them from their own memory.

    python examples/product_page.py serve shop.db
    python examples/product_page.py watch tea
    python examples/product_page.py write tea "Green tea, 100 g"

Start as many `watch` as you like: each is a frontend. Stop one with Ctrl-Z while you write: the
write waits for it, 3.25 s and no longer. Kill the server: frontends go on for 3 s, then they say
that it is gone, and what they knew last.

A frontend is cut off when nothing passes between it and the server. Let one read through a relay,
and stop the relay with Ctrl-Z; `fg` lets everything pass again:

    python examples/product_page.py relay 7501
    python examples/product_page.py watch tea http://127.0.0.1:7501
"""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from tenure import Cache, CacheServer, Fenced, Unreachable, Volume

URL = os.environ.get("PAGES", "http://127.0.0.1:7500")
PLACE = URL.removeprefix("http://")


class Pages:
    """A table of pages, which refuses what a server before this one sends late."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("CREATE TABLE IF NOT EXISTS page (name TEXT PRIMARY KEY, text TEXT)")
        self._db.execute("CREATE TABLE IF NOT EXISTS fence (number INTEGER)")

    def load(self, name: str) -> str | None:
        """A page."""
        row = self._db.execute("SELECT text FROM page WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else None

    def store(self, name: str, text: str, fence: int) -> None:
        """Write a page, under the number of the server that does."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            if fence < self._seen():
                raise Fenced(f"server {fence} is past: {self._seen()} writes here")
            self._db.execute("INSERT OR REPLACE INTO page VALUES (?, ?)", (name, text))

    def fence(self, number: int) -> int:
        """Refuse lower numbers from here on; the highest that was seen before."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            seen = self._seen()
            self._db.execute("INSERT INTO fence VALUES (?)", (max(number, seen),))
        return seen

    def _seen(self) -> int:
        return int(self._db.execute("SELECT coalesce(max(number), 0) FROM fence").fetchone()[0])


async def serve(path: str) -> None:
    """Be the one process that writes, until it is stopped."""
    pages = Pages(path)
    volume = Volume(pages.load, pages.store, value_type=str)
    async with CacheServer(volume, listen=PLACE, memory=f"{path}.volume", fence=pages.fence):
        print(f"serving {path} at {URL}", flush=True)
        await asyncio.Event().wait()


async def watch(name: str, url: str = URL) -> None:
    """Be a frontend: read a page ten times a second, and show when it changes."""
    shown: object = ()
    async with Cache(url, value_type=str, patience=1) as cache:
        while True:
            try:
                text: object = await cache.get(name)
            except Unreachable:
                text = f"out of reach; last known: {cache.last_known(name)}"
            if str(text).partition(", age")[0] != shown:
                shown = str(text).partition(", age")[0]
                print(text, flush=True)
            await asyncio.sleep(0.1)


async def write(name: str, text: str) -> None:
    """Write a page from a frontend, by the server's store."""
    async with Cache(URL, value_type=str) as cache:
        await cache.write(name, text)
        print(f"every frontend shows {text!r} now", flush=True)


async def relay(port: str) -> None:
    """Be the network between frontends and the server: while this is stopped, nothing passes."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, its_port = PLACE.rpartition(":")
        try:
            from_server, to_server = await asyncio.open_connection(host, its_port)
        except OSError:  # the server is not there: the frontend sees that too
            writer.close()
            return
        await asyncio.gather(
            pass_on(reader, to_server), pass_on(from_server, writer), return_exceptions=True
        )

    async with await asyncio.start_server(accept, "127.0.0.1", int(port)) as listening:
        print(f"http://127.0.0.1:{port} leads to {URL}", flush=True)
        await listening.serve_forever()


COMMANDS: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "serve": serve,
    "watch": watch,
    "write": write,
    "relay": relay,
}

if __name__ == "__main__":
    asyncio.run(COMMANDS[sys.argv[1]](*sys.argv[2:]))
