"""The five clients, asked in one way."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import NamedTuple, TypeAlias

import aiohttp
import httpx
import httpx2

from tenure.routing.aiohttp_middleware import route
from tenure.routing.httpx_transport import RoutingTransport
from tests.unit.routing.scripted import Table

BASE = "http://carts"
KEY = "/carts/{user}"


class Got(NamedTuple):
    status: int
    url: str


Ask: TypeAlias = Callable[..., Got]
"""Sends a method, a path, headers and a body."""
Client: TypeAlias = Callable[..., AbstractContextManager[Ask]]
"""Makes a client from a table and options of the routing."""


@contextmanager
def aiohttp_client(table: Table, **options: object) -> Iterator[Ask]:
    with asyncio.Runner() as runner:

        async def begin() -> aiohttp.ClientSession:
            routing = route(table, key=KEY, **options)  # type: ignore[arg-type]
            return aiohttp.ClientSession(BASE, middlewares=[routing])

        session = runner.run(begin())

        async def ask(
            method: str, path: str, headers: Mapping[str, str] | None = None, body: object = None
        ) -> Got:
            async with session.request(method, path, headers=headers, data=body) as response:
                await response.read()
                return Got(response.status, str(response.url))

        yield lambda *said, **more: runner.run(ask(*said, **more))
        runner.run(session.close())


def blocking(library: ModuleType) -> Client:
    @contextmanager
    def client(table: Table, **options: object) -> Iterator[Ask]:
        transport = RoutingTransport(table, key=KEY, **options)  # type: ignore[arg-type]
        with library.Client(base_url=BASE, transport=transport, follow_redirects=True) as it:

            def ask(
                method: str,
                path: str,
                headers: Mapping[str, str] | None = None,
                body: object = None,
            ) -> Got:
                response = it.request(method, path, headers=headers, content=body)
                return Got(response.status_code, str(response.url))

            yield ask

    return client


def in_a_loop(library: ModuleType) -> Client:
    @contextmanager
    def client(table: Table, **options: object) -> Iterator[Ask]:
        transport = RoutingTransport(table, key=KEY, **options)  # type: ignore[arg-type]
        with asyncio.Runner() as runner:
            it = library.AsyncClient(base_url=BASE, transport=transport, follow_redirects=True)

            async def ask(
                method: str,
                path: str,
                headers: Mapping[str, str] | None = None,
                body: object = None,
            ) -> Got:
                response = await it.request(method, path, headers=headers, content=body)
                return Got(response.status_code, str(response.url))

            yield lambda *said, **more: runner.run(ask(*said, **more))
            runner.run(it.aclose())

    return client


CLIENTS: dict[str, Client] = {
    "aiohttp": aiohttp_client,
    "httpx": blocking(httpx),
    "httpx-async": in_a_loop(httpx),
    "httpx2": blocking(httpx2),
    "httpx2-async": in_a_loop(httpx2),
}
