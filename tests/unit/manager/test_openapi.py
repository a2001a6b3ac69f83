"""The OpenAPI document of the manager: every route is in it, and what it says of each is so."""

import json
import re

import msgspec
import pytest
from aiohttp import web

from tenure.manager.openapi import document, operations
from tests.unit.manager.serving import serving

NOT_SAID = {"/v1/owner", "/v1/lookup", "/v1/node", "/v1/live"}
"""WebSockets, and a stream: OpenAPI has no words for them."""
OF_REFUSALS = "positive_data_acceptance,negative_data_rejection,unsupported_method"
"""A schema cannot say which pools there are, nor that a key is given in one way of three; and 405
is answered before the rest of a path is looked at.
"""


@pytest.mark.asyncio
async def test_every_route_is_in_the_document_and_no_other() -> None:
    apps: list[web.Application] = []
    async with serving(None, apps.append):
        routes = {
            (route.method.lower(), route.resource.canonical)
            for route in apps[0].router.routes()
            if route.resource is not None and route.method != "HEAD"
        }
    listed = {(each.method, each.path) for each in operations()}
    said = {(method, path) for method, path in routes if path not in NOT_SAID}
    assert listed == said


@pytest.mark.asyncio
async def test_a_manager_shows_its_document() -> None:
    async with serving() as manager:
        status, told = await manager.get("/v1/openapi.json")
        _, index = await manager.get("/")
    expected = msgspec.json.encode(document(told["info"]["version"]))
    assert (status, told) == (200, json.loads(expected))
    assert "/v1/openapi.json" in index["paths"]


def test_what_the_document_refers_to_is_in_it() -> None:
    told = document("1")
    named = set(re.findall(r"#/components/schemas/(\w+)", repr(told)))
    assert named <= set(told["components"]["schemas"])
    identifiers = [each["operationId"] for path in told["paths"].values() for each in path.values()]
    assert len(identifiers) == len(set(identifiers))
