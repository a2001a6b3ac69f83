"""Every way into a manager's port, tried by everybody: what is not allowed is refused.

The ways are those that the application itself knows, so one that is added is tried, too.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web

from tenure.dashboard.pages import add_pages
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.sign_ins import COOKIE, KEY_HEADER
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.wire.versions import SUBPROTOCOLS
from tests.roles_table import may_ask
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio
OWNER, LOOKUP, VIEWER, ADMIN, NODE, STORE = AccessRole
OPEN = {"/healthz", "/readyz"}
"""They say whether the process is up, to everybody."""
SOCKETS = ("/v1/owner", "/v1/lookup", "/v1/node")
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol": SUBPROTOCOLS[0],
}


class Way(NamedTuple):
    method: str
    path: str
    """The path, with `rooms` for each pool, cluster and the like."""
    canonical: str

    @property
    def is_open(self) -> bool:
        """Whether nobody is asked for a token: pages have nothing in them, and signing in asks."""
        is_page = self.path.startswith("/dashboard")
        return self.path in OPEN or is_page or (self.method, self.path) == ("POST", "/v1/sign-in")


class Port(NamedTuple):
    manager: Serving
    ways: list[Way]
    shown: dict[str, str]
    """The header of a token of each role; those of a pool are for `rooms`. `other` owns `carts`."""

    async def ask(self, way: Way, **headers: str) -> tuple[int, bytes, str]:
        """Ask, and return the answer: its status, the beginning of its body, and its kind."""
        upgrade = UPGRADE if way.path in SOCKETS else {}
        body = None if way.method in ("GET", "HEAD") else b"{}"
        async with self.manager.session.request(
            way.method,
            self.manager.service.url + way.path,
            data=body,
            headers={**upgrade, "Content-Type": "application/json", **headers},
            allow_redirects=False,
        ) as answer:
            is_stream = answer.status in (101, 200) and way.path in (*SOCKETS, "/v1/live")
            found = b"" if is_stream else await answer.read()
            return answer.status, found, answer.headers.get("Content-Type", "")


@asynccontextmanager
async def port(directory: Path) -> AsyncIterator[Port]:
    tokens, apps = TokenFile(directory / "tokens"), list[web.Application]()
    shown = {}
    for who, role, pool in [
        *((str(each), each, "rooms" if each.is_of_a_pool else "") for each in AccessRole),
        ("other", OWNER, "carts"),
        ("gone", ADMIN, ""),
    ]:
        token = new_token(role, pool)
        tokens.add(token.entry)
        shown[who] = f"Bearer {token.text}"

    def pages(app: web.Application) -> None:
        add_pages(app)
        apps.append(app)

    async with serving(None, pages, tokens=tokens.path) as manager:
        tokens.remove(shown["gone"].split("_")[1])
        routes = {
            (route.method.replace("*", "GET"), resource.canonical)
            for resource in apps[0].router.resources()
            for route in resource
        }
        ways = [Way(method, named(canonical), canonical) for method, canonical in sorted(routes)]
        yield Port(manager, ways, shown)


def named(canonical: str) -> str:
    return "/".join("rooms" if "{" in part else part for part in canonical.split("/"))


async def test_a_stranger_gets_a_refusal_and_nothing_else(tmp_path: Path) -> None:
    """A stranger comes without a token, with a wrong one or one that is no longer valid, or with an
    invented sign-in.
    """
    async with port(tmp_path) as found:
        strangers: tuple[dict[str, str], ...] = (
            {},
            {"Authorization": "Bearer tenure_00000000_x"},
            {"Authorization": found.shown["gone"]},
            {"Authorization": found.shown["admin"].replace("Bearer ", "Basic ")},
            {"Authorization": found.shown["admin"].replace("Bearer ", "Digest ")},
            {"Authorization": found.shown["admin"][:-1]},
            {"Cookie": f"{COOKIE}=AAAA"},
        )
        tried = 0
        for way in found.ways:
            for headers in strangers if not way.is_open else ():
                status, body, kind = await found.ask(way, **headers)
                assert status == 401, (way, headers)
                if way.method != "HEAD":
                    assert kind.startswith("application/json"), way
                    assert set(json.loads(body)) == {"error", "way_out"}, way
                    assert b"rooms" not in body, way
                tried += 1
        assert tried > 200, found.ways
        for way in found.ways:
            if way.is_open and way.path not in OPEN and way.method == "GET":
                with_it, without = (
                    await found.ask(way, Authorization=found.shown["admin"]),
                    await found.ask(way),
                )
                assert without == with_it, f"a page is the same for all: {way}"


async def test_a_page_of_another_site_gets_nothing_whatever_it_shows(tmp_path: Path) -> None:
    async with port(tmp_path) as found:
        token = {"Authorization": found.shown["admin"]}
        for way in found.ways:
            for headers in (
                {"Origin": "https://evil.example"},
                {"Origin": "null"},
                {"Host": "evil.example"},
            ):
                assert (await found.ask(way, **token, **headers))[0] == 403, (way, headers)


def row(way: Way) -> str:
    """The row in SECURITY.md that a way belongs to."""
    if way.path in SOCKETS:
        of = {"/v1/node": "nodes"}.get(way.path, f"{way.path[4:]}s, each in its own pool")
        return f"WebSocket of {of}"
    if way.is_open:
        is_page = way.path != "/v1/sign-in"
        return "`/healthz`, `/readyz`, pages of the dashboard" if is_page else "sign in"
    if way.path in ("/", "/v1/sign-in"):
        return "see what it is signed in as, sign out, the index"
    if way.method not in ("GET", "HEAD"):
        is_table = way.canonical == "/v1/clusters/{cluster}/tables"
        return "make a table of a cluster" if is_table else "change anything else"
    if way.canonical.endswith("/entities/export"):
        return "export the entities of a pool"
    if "{pool}" in way.canonical:
        return "read a pool"
    if "{cluster}" in way.canonical:
        return "read a cluster of the store"
    return "read anything else: status, metrics, events, all pools"


@pytest.mark.parametrize("role", [*AccessRole, "other owner"])
async def test_each_role_gets_as_far_as_its_row_says_and_no_further(
    tmp_path: Path, role: str
) -> None:
    table = may_ask("manager")
    async with port(tmp_path) as found:
        allowed = 0
        for way in found.ways:
            token = found.shown[role.removesuffix(" owner")]
            status = (await found.ask(way, Authorization=token))[0]
            assert status != 401, way
            assert (status != 403) == (role in table[row(way)]), (way, status)
            allowed += status != 403
        assert 3 < allowed <= len(found.ways)
        assert {row(way) for way in found.ways} == set(table), "each row is of something"


async def test_nobody_gets_as_far_as_the_first_rows(tmp_path: Path) -> None:
    table = may_ask("manager")
    async with port(tmp_path) as found:
        for way in found.ways:
            assert way.is_open == ("nobody" in table[row(way)])
            status = (await found.ask(way))[0]
            if way.path != "/v1/sign-in":  # which refuses a token that is none
                assert (status == 401) == (not way.is_open), way


async def test_an_owner_of_another_pool_gets_nothing_of_this_one(tmp_path: Path) -> None:
    async with port(tmp_path) as found:
        ours = [way for way in found.ways if "{pool}" in way.canonical]
        assert len(ours) > 8
        for way in ours:
            assert (await found.ask(way, Authorization=found.shown["other"]))[0] == 403, way


async def test_a_cookie_changes_something_only_for_our_own_page(tmp_path: Path) -> None:
    """A browser names the origin of any request for a change, so a request without it does not come
    from a page.
    """
    async with port(tmp_path) as found:
        token = found.shown["admin"].removeprefix("Bearer ")
        url = found.manager.service.url
        body = {"token": token}
        async with found.manager.session.post(f"{url}/v1/sign-in", json=body) as answer:
            cookie = {"Cookie": f"{COOKIE}={answer.cookies[COOKIE].value}"}
            cookie[KEY_HEADER] = (await answer.json())["key"]
        found.manager.session.cookie_jar.clear()
        pool = {"name": "halls", "kind": "hashed"}
        assert (await found.manager.get("/v1/pools", **cookie))[0] == 200
        assert (await found.manager.post("/v1/pools", pool, **cookie))[0] == 401
        evil = {"Origin": "https://evil.example"}
        assert (await found.manager.post("/v1/pools", pool, **cookie, **evil))[0] == 403
        assert (await found.manager.post("/v1/pools", pool, **cookie, Origin=url))[0] == 201
