"""Clients of all services decide whom to ask, how often, under which id, and for how long."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import web

from tenure.errors import (
    ConfigurationError,
    OutcomeUnknown,
    RemoteProtocolError,
    ServiceRefusal,
    UsageError,
)
from tenure.services.client import ID_HEADER, ServiceClient

pytestmark = pytest.mark.asyncio


class Process:
    """A process of a service, which counts requests, and answers each as it is told."""

    def __init__(self, *answers: int | bytes) -> None:
        self.answers = list(answers)
        """Statuses, or bodies of refusals that are not problems; the last one again and again."""
        self.ids: list[str] = []
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        self.ids.append(request.headers[ID_HEADER])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, bytes):
            return web.Response(status=502, body=answer)
        problem = {"status": answer, "error": "because", "detail": "of this"}
        return web.json_response(problem, status=answer)


@asynccontextmanager
async def listening(take: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", take)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def client_of(*processes: Process, deadline: float = 20.0) -> AsyncIterator[ServiceClient]:
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(listening(each.take)) for each in processes]
        client = ServiceClient(urls, deadline=deadline)
        client._at = 0
        yield await stack.enter_async_context(client)


@pytest.mark.parametrize("status", [421, 503])
async def test_where_one_process_cannot_the_next_is_asked_under_the_same_id(status: int) -> None:
    first, second = Process(status), Process(200)
    async with client_of(first, second) as client:
        assert (await client.ask("POST", "/a")).status == 200
        assert (await client.ask("POST", "/a")).status == 200
    assert len(first.ids) == 1, "who has answered is asked again"
    assert second.ids[0] == first.ids[0] != second.ids[1]


@pytest.mark.parametrize(
    ("status", "outcome"), [(502, "not-begun"), (502, "unknown"), (504, "unknown")]
)
async def test_where_a_gateway_reaches_nobody_the_next_is_asked_under_the_same_id(
    status: int, outcome: str
) -> None:
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers[ID_HEADER])
        return web.Response(status=status, headers={"Tenure-Outcome": outcome})

    process = Process(200)
    async with (
        listening(answer) as gateway,
        listening(process.take) as other,
        ServiceClient([gateway, other]) as client,
    ):
        client._at = 0
        assert (await client.ask("POST", "/a", id="mine")).status == 200
    assert asked == process.ids == ["mine"]


async def test_headers_of_a_client_go_with_each_request() -> None:
    said = []

    async def answer(request: web.Request) -> web.Response:
        said.append((request.headers.getall("X-Pool"), request.headers.get("If-Match")))
        return web.Response()

    async with (
        listening(answer) as url,
        ServiceClient(url, headers={"X-Pool": "devices"}) as client,
    ):
        await client.ask("GET", "/a")
        await client.ask("PUT", "/a", headers={"If-Match": "*"})
    assert said == [(["devices"], None), (["devices"], "*")]


async def test_where_one_process_is_not_there_the_next_is_asked() -> None:
    second = Process(200)
    async with client_of(second) as client:
        client._urls.insert(0, "http://127.0.0.1:1")
        assert (await client.ask("POST", "/a")).status == 200


async def test_a_process_alone_is_asked_again_and_no_refusal_is_asked_twice() -> None:
    alone = Process(503, 503, 404)
    async with client_of(alone) as client:
        with pytest.raises(ServiceRefusal) as refused:
            await client.ask("POST", "/a", id="mine")
    assert (refused.value.status, refused.value.error) == (404, "because")
    assert alone.ids == ["mine"] * 3


async def test_a_redirect_is_told_and_not_followed() -> None:
    other = Process(200)

    async def elsewhere(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(f"{there}/inside")

    async with (
        listening(other.take) as there,
        listening(elsewhere) as url,
        ServiceClient(url) as client,
    ):
        with pytest.raises(RemoteProtocolError, match="redirects POST /a"):
            await client.ask("POST", "/a")
    assert other.ids == []


async def test_a_refusal_of_something_between_is_raised_as_one() -> None:
    async with client_of(Process(b"<html>Bad gateway</html>")) as client:
        with pytest.raises(ServiceRefusal, match="Bad gateway") as refused:
            await client.ask("POST", "/a")
    assert (refused.value.status, refused.value.error) == (502, "other")


async def test_a_call_takes_so_long_and_where_the_service_waits_so_much_longer() -> None:
    answers = asyncio.Event()

    async def wait(_: web.Request) -> web.Response:
        await answers.wait()
        return web.Response()

    async with listening(wait) as url, ServiceClient(url, deadline=0.1) as client:
        with pytest.raises(OutcomeUnknown, match=r"timed out after 0\.1 s"):
            await client.ask("POST", "/a")
        asyncio.get_running_loop().call_later(0.5, answers.set)
        assert (await client.ask("POST", "/a", patience=60.0)).status == 200
        assert (await client.ask("POST", "/a", deadline=60.0)).status == 200


async def test_pauses_grow_so_that_a_service_in_need_is_not_asked_all_the_time() -> None:
    alone = Process(503)
    async with client_of(alone) as client:
        with pytest.raises(OutcomeUnknown, match="because"):
            await client.ask("POST", "/a", deadline=1.5)
    assert 2 <= len(alone.ids) <= 10


async def test_a_client_that_is_not_entered_says_so() -> None:
    with pytest.raises(UsageError, match="async with"):
        await ServiceClient("http://127.0.0.1:1").ask("GET", "/a")
    with pytest.raises(ConfigurationError, match="URL"):
        ServiceClient(" , ")
