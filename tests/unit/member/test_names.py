"""Keys and addresses that are written in two ways mean the same."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from tenure import Entities, Member, owned
from tenure.base.keys import UserKey, hashed_key
from tenure.member.asgi import KEY, MEMBER
from tests.patience import DEADLINE_SECONDS
from tests.unit.entities.stage import Counter
from tests.unit.manager.serving import serving
from tests.unit.member.test_relay import Shop

pytestmark = pytest.mark.asyncio


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("template", "route"), [("42", "42"), ("42", 42), (42, "42"), (42, 42), (None, "42")]
)
async def test_the_lease_is_for_the_key_by_which_the_request_came(
    template: UserKey | None, route: UserKey
) -> None:
    async with serving() as manager, asyncio.timeout(DEADLINE_SECONDS):
        member = Member("rooms", manager.service.url, drain=0)
        async with member.serving(Shop("x")):
            await member.owner.ready()
            scope: dict[str, Any] = {MEMBER: member, KEY: template, "path_params": {"room": route}}
            request = SimpleNamespace(scope=scope, path_params=scope["path_params"])
            lease = await owned("room")(request)
            assert lease.key == hashed_key(route if template is None else template)


async def test_an_address_may_end_with_a_slash() -> None:
    async with serving() as manager, asyncio.timeout(DEADLINE_SECONDS):
        port = free_port()
        where: dict[str, Any] = {"listen": f"127.0.0.1:{port}", "drain": 0}
        address = f"http://127.0.0.1:{port}/"
        member = Member("carts", manager.service.url, address=address, **where)
        async with member.serving(Shop("x")):
            await member._probe()
        counters = Entities(Counter, "counters", manager.service.url, address=address, **where)
        async with counters:
            await counters.station._probe()
            assert await counters["a"].add(1) == 1
