"""Steering and explaining a pool over the JSON API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tenure.base.keys import hashed_key
from tests.integration.owner import WireOwner
from tests.unit.manager.serving import Serving, serving

pytestmark = pytest.mark.asyncio

UNSTEERED = {
    "cordoned": [],
    "drained": [],
    "evicted": [],
    "pins": [],
    "frozen": False,
    "policy": "",
}


@asynccontextmanager
async def with_ann() -> AsyncIterator[Serving]:
    """Yield a manager, and ann, who has all of the hashed pool `rooms`."""
    async with serving() as manager:
        owner = WireOwner("ann")
        async with owner.connected(manager.service.url):
            await owner.own_everything()
            yield manager


async def test_an_owner_is_drained_and_the_list_of_owners_says_so() -> None:
    async with with_ann() as manager:
        status, answer = await manager.post("/v1/pools/rooms/drain", {"owner": "ann"})
        assert (status, answer["changed"], answer["dry_run"]) == (200, True, False)
        assert answer["ranges"] == 1
        assert answer["steering"] == {**UNSTEERED, "drained": ["ann"]}
        _, again = await manager.post("/v1/pools/rooms/drain", {"owner": "ann"})
        assert not again["changed"]
        _, owners = await manager.get("/v1/pools/rooms/owners")
        assert [each["steering"] for each in owners["owners"]] == ["drained"]
        _, answer = await manager.post("/v1/pools/rooms/uncordon", {"owner": "ann"})
        assert answer["steering"] == UNSTEERED


async def test_a_dry_run_changes_nothing() -> None:
    async with with_ann() as manager:
        dry = {"incarnation": 1, "confirmed_dead": True, "dry_run": True}
        status, answer = await manager.post("/v1/pools/rooms/evict", dry)
        assert (status, answer["dry_run"], answer["steering"]) == (200, True, UNSTEERED)
        [flow] = answer["flows"]
        assert (flow["giver"], flow["taker"], flow["ranges"], flow["share"]) == ("ann", None, 1, 1)
        _, owners = await manager.get("/v1/pools/rooms/owners")
        assert len(owners["owners"]) == 1


async def test_who_is_confirmed_dead_is_gone_at_once() -> None:
    async with with_ann() as manager:
        body = {"incarnation": 1, "confirmed_dead": True}
        assert (await manager.post("/v1/pools/rooms/evict", body))[0] == 200
        assert (await manager.get("/v1/pools/rooms/owners"))[1]["owners"] == []


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"key": "room-42"}, hashed_key("room-42")),
        ({"hex": "00ff"}, hashed_key(b"\0\xff")),
        ({"int": 513}, hashed_key(513)),
    ],
)
async def test_a_key_is_pinned_however_it_is_given(given: dict[str, object], key: bytes) -> None:
    async with with_ann() as manager:
        status, answer = await manager.post("/v1/pools/rooms/pin", {**given, "owner": "ann"})
        pin = {"key": {"hex": key.hex(), "text": None}, "owner": "ann"}
        assert (status, answer["steering"]["pins"]) == (200, [pin])
        (query,) = (f"{way}={value}" for way, value in given.items())
        _, why = await manager.get(f"/v1/pools/rooms/why?{query}")
        assert (why["pinned_to"], why["owner"]["name"], why["planned"]) == ("ann", "ann", "ann")
        assert why["moves"][-1]["how"] == "granted"
        assert why["remembered_seconds"] >= why["moves"][-1]["seconds_ago"]
        _, answer = await manager.post("/v1/pools/rooms/unpin", given)
        assert answer["steering"] == UNSTEERED


async def test_the_plan_says_how_the_pool_is_steered_and_what_is_held_back() -> None:
    async with with_ann() as manager:
        assert (await manager.post("/v1/pools/rooms/policy", {"policy": "weighted"}))[0] == 200
        await manager.post("/v1/pools/rooms/freeze", {})
        status, plan = await manager.get("/v1/pools/rooms/plan")
        assert (status, plan["policy"]) == (200, "weighted")
        assert plan["steering"]["frozen"]
        assert plan["held_back"] == [{"what": "balance", "why": "the pool is frozen"}]
        _, answer = await manager.post("/v1/pools/rooms/unfreeze", {})
        assert answer["steering"] == {**UNSTEERED, "policy": "weighted"}


@pytest.mark.parametrize(
    ("what", "body", "status", "complaint"),
    [
        ("drain", {"owner": "bob"}, 409, "no owner 'bob' in the pool 'rooms'; there are: ann"),
        (
            "evict",
            {"incarnation": 5},
            409,
            "no incarnation 5 in the pool 'rooms'; there are: ann (1)",
        ),
        ("policy", {"policy": "deal"}, 409, "no policy 'deal' for hashed pools; there are: "),
        ("drain", {}, 400, "missing required field `owner`"),
        ("drain", {"owner": "ann", "now": True}, 400, "unknown field `now`"),
        ("pin", {"owner": "ann"}, 400, "give a key once; here it is given 0 times"),
        ("unpin", {"key": "a", "int": 1}, 400, "give a key once; here it is given 2 times"),
        ("unpin", {"int": -1}, 400, "not -1"),
        ("freeze", b"[]", 400, "Expected `object`, got `array`"),
        ("drain", b'{"owner":' + b"[" * 40_000, 400, "Expected `str`, got `array`"),
        ("drain", {"owner": "a" * 201}, 400, "of length <= 200 - at `$.owner`; it is 'aaaa"),
        ("evict", {"incarnation": -4}, 400, "Expected `int` >= 0 - at `$.incarnation`; it is -4"),
    ],
)
async def test_what_cannot_be_is_refused(
    what: str, body: object, status: int, complaint: str
) -> None:
    async with with_ann() as manager:
        found, problem = await manager.post(f"/v1/pools/rooms/{what}", body)
        assert found == status
        assert complaint in problem["error"]
        assert problem["way_out"]


async def test_the_way_out_of_a_pin_that_is_too_long_is_a_shorter_one() -> None:
    async with serving() as manager:
        await manager.post("/v1/pools", {"name": "docs", "kind": "ordered"})
        owner = WireOwner("ann", pool="docs", kind="ordered")
        async with owner.connected(manager.service.url):
            await owner.own_everything()
            pin = {"key": "x" * 2000, "owner": "ann"}
            status, problem = await manager.post("/v1/pools/docs/pin", pin)
    assert (status, problem["way_out"]) == (409, "pin a shorter key")
    assert "2000 bytes cannot be pinned" in problem["error"]


async def test_a_key_given_twice_in_one_form_is_refused() -> None:
    async with with_ann() as manager:
        for path in ("locate", "why"):
            status, problem = await manager.get(f"/v1/pools/rooms/{path}?key=a&key=b")
            assert (status, problem["error"]) == (400, "give a key once; here it is given 2 times")


async def test_a_key_that_is_not_utf_8_is_refused_and_not_read_as_another() -> None:
    async with with_ann() as manager:
        for path in ("locate", "why"):
            status, problem = await manager.get(f"/v1/pools/rooms/{path}?key=%ff")
            assert (status, problem["error"][:28]) == (400, "the parameters are not UTF-8")
        assert (await manager.get("/v1/pools/rooms/locate?key=%c3%a9+%25"))[0] == 200


async def test_a_command_that_is_not_said_to_be_json_is_refused() -> None:
    """A web page can send a form without being asked."""
    async with with_ann() as manager:
        said = {"Content-Type": "text/plain"}
        status, _ = await manager.post("/v1/pools/rooms/drain", {"owner": "ann"}, **said)
        assert status == 415
        assert (await manager.get("/v1/pools/rooms/plan"))[1]["steering"] == UNSTEERED


@pytest.mark.parametrize("what", ["plan", "why?key=a"])
async def test_a_pool_that_is_not_there_is_not_found(what: str) -> None:
    async with serving() as manager:
        status, problem = await manager.get(f"/v1/pools/nope/{what}")
        assert (status, problem["error"]) == (404, "there is no pool 'nope'; there are: none yet")
    async with serving() as manager:
        status, problem = await manager.post("/v1/pools/nope/freeze", {})
        assert (status, problem["error"]) == (404, "there is no pool 'nope'; there are: none yet")
