"""URLs are put together from parts, and lead nowhere else than their origin does."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tenure.base.origin import parse
from tenure.errors import ConfigurationError
from tenure.transport.channels import ChannelLost
from tenure.transport.urls import url_at
from tenure.transport.websocket_channels import WebSocketChannels

OWNER = "http://10.0.0.7:8000/shop"
ODD_PATHS = ["//e.test:1/x", "/@e.test/x", "/%40e.test/%2F", "/a#b", "/../x", "/x/%2e%2e/y"]


@pytest.mark.parametrize("path", ODD_PATHS)
def test_whatever_the_path_the_host_is_that_of_the_origin(path: str) -> None:
    made = url_at(parse(OWNER, "address"), path, "a=%2f")
    assert (made.scheme, made.host, made.port) == ("http", "10.0.0.7", 8000)
    assert made.raw_path_qs == f"/shop{path}?a=%2f"


@pytest.mark.parametrize("target", ["@e.test:1/x", "http://e.test/x", "e.test:1", "*", ""])
def test_what_is_no_path_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="does not begin with /"):
        url_at(parse(OWNER, "address"), target)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/x?to=",
        "http://127.0.0.1:1/#x",
        "http://ann:secret@127.0.0.1:1",
        "http://127.0.0.1:1\\@e.test",
        "127.0.0.1:1",
        "file:///etc/passwd",
    ],
)
async def test_no_channel_is_opened_to_an_address_with_more_than_an_origin(url: str) -> None:
    with pytest.raises(ConfigurationError, match="URL of an HTTP server"):
        parse(url, "address")
    channels = WebSocketChannels()
    with pytest.raises(ChannelLost, match="URL of an HTTP server"):
        await channels.connect(url)
    await channels.close()


@pytest.mark.asyncio
async def test_no_channel_leads_to_where_its_listener_sends_it() -> None:
    asked: list[str] = []

    async def anything(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        if request.path == "/inside":
            return await _opened(request)
        raise web.HTTPFound("/inside")

    app = web.Application()
    app.router.add_get("/{path:.*}", anything)
    channels = WebSocketChannels()
    async with TestServer(app) as listener:
        with pytest.raises(ChannelLost, match="HTTP 302"):
            await channels.connect(str(listener.make_url("")).rstrip("/"))
        await channels.close()
    assert "/inside" not in asked


async def _opened(request: web.Request) -> web.StreamResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    return socket
