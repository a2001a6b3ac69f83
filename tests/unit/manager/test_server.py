"""Clients over real sockets: what is answered, and what happens to clients that talk nonsense."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest

from lab.contracts.transport import A_PROCESS
from tenure.manager.limits import ManagerLimits
from tenure.protocol.lease.messages import (
    Attested,
    Changes,
    Hello,
    Introduction,
    Join,
    LeaseRequest,
    LeaseResponse,
    Sync,
    SyncResponse,
)
from tenure.wire.lease import decode_to_lookup, decode_to_owner, encode
from tenure.wire.limits import REQUEST_BYTES
from tenure.wire.versions import NEWEST, SUBPROTOCOLS
from tests.unit.manager.serving import (
    Events,
    RawSocket,
    Serving,
    go_before_the_answer,
    masked,
    serving,
)

pytestmark = pytest.mark.asyncio

HELLO = Hello(pool="rooms", token=7)
SYNC = Sync(pool="rooms", sequence=1, journal=0, leadership=0, lsn=0, nonce=9)


async def introduced(manager: Serving) -> Introduction:
    socket = await manager.connect("/v1/owner")
    await socket.send_bytes(encode(HELLO, NEWEST))
    introduction = decode_to_owner(await socket.receive_bytes(), NEWEST)
    await socket.close()
    assert isinstance(introduction, Introduction)
    return introduction


def join(introduction: Introduction) -> Join:
    return Join(
        pool="rooms",
        kind="hashed",
        name="ann",
        address="http://a",
        owner_nonce=5,
        manager_nonce=introduction.manager_nonce,
        sequence=1,
    )


async def test_clients_that_go_before_they_are_answered_leave_no_errors_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving() as manager:
        await go_before_the_answer(manager.service.url, "/v1/owner")
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == []


async def test_an_owner_is_introduced_and_joins() -> None:
    async with serving() as manager:
        introduction = await introduced(manager)
        socket = await manager.connect("/v1/owner")
        await socket.send_bytes(encode(join(introduction), NEWEST))
        response = decode_to_owner(await socket.receive_bytes(), NEWEST)
        assert isinstance(response, LeaseResponse)
        assert response.incarnation == 1


async def test_every_lookup_hears_of_a_grant_without_asking() -> None:
    async with serving() as manager:
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        lookups = [await manager.connect("/v1/lookup") for _ in range(3)]
        for lookup in lookups:
            await lookup.send_bytes(encode(SYNC, NEWEST))
            assert isinstance(decode_to_lookup(await lookup.receive_bytes(), NEWEST), SyncResponse)
        await grant_everything(manager)
        for lookup in lookups:
            changes = decode_to_lookup(await lookup.receive_bytes(), NEWEST)
            assert isinstance(changes, Changes)
            assert [owner.name for owner in changes.owners] == ["ann"]


async def grant_everything(manager: Serving) -> None:
    introduction = await introduced(manager)
    owner = await manager.connect("/v1/owner")
    await owner.send_bytes(encode(join(introduction), NEWEST))
    response = decode_to_owner(await owner.receive_bytes(), NEWEST)
    assert isinstance(response, LeaseResponse)
    seal = introduction
    for sequence in (2, 3):
        request = LeaseRequest(
            pool="rooms",
            incarnation=response.incarnation,
            owner_nonce=5,
            manager_nonce=seal.manager_nonce,
            sequence=sequence,
            journal=seal.journal,
            leadership=seal.leadership,
            held=(),
        )
        await owner.send_bytes(encode(request, NEWEST))
        assert isinstance(decode_to_owner(await owner.receive_bytes(), NEWEST), LeaseResponse)
        if sequence == 2:  # planned when others that may come have come: then a poke
            await owner.receive_bytes()


@pytest.mark.parametrize(
    ("path", "frame", "code", "reason"),
    [
        ("/v1/owner", b"", 1002, "an empty message"),
        ("/v1/owner", bytes([NEWEST]) + b"\xc1", 1002, "a malformed message of 2 bytes"),
        (
            "/v1/owner",
            encode(HELLO, 1),
            1002,
            f"a message of protocol version 1, where version {NEWEST}",
        ),
        ("/v1/owner", b"GET / HTTP/1.1", 1002, "a message of protocol version 71"),
        ("/v1/owner", encode(SYNC, NEWEST), 1002, "a malformed message of "),
        ("/v1/lookup", encode(HELLO, NEWEST), 1002, "a malformed message of "),
        ("/v1/owner", "text", 1003, "a text frame, where messages are binary"),
    ],
)
async def test_what_cannot_be_understood_closes_its_connection_with_a_reason_and_no_other(
    path: str, frame: bytes | str, code: int, reason: str
) -> None:
    async with serving() as manager:
        other = await manager.connect("/v1/owner")
        socket = await manager.connect(path)
        await (socket.send_str(frame) if isinstance(frame, str) else socket.send_bytes(frame))
        closed = await socket.receive()
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, code)
        assert str(closed.extra).startswith(reason)
        assert manager.counted("malformed message") == 1
        await other.send_bytes(encode(HELLO, NEWEST))
        assert isinstance(decode_to_owner(await other.receive_bytes(), NEWEST), Introduction)


async def test_who_offers_no_version_speaks_the_first() -> None:
    async with serving() as manager:
        socket = await manager.connect("/v1/owner", ())
        assert socket.protocol is None
        await socket.send_bytes(encode(HELLO, 1))
        assert isinstance(decode_to_owner(await socket.receive_bytes(), 1), Introduction)


async def test_a_first_version_connection_takes_nothing_newer() -> None:
    async with serving() as manager:
        socket = await manager.connect("/v1/owner", ["chat"])
        attested = Attested(
            pool="rooms",
            incarnation=1,
            process=A_PROCESS,
            witness=A_PROCESS,
            owner_nonce=1,
            manager_nonce=2,
        )
        await socket.send_bytes(b"\x01" + encode(attested, NEWEST)[1:])
        closed = await socket.receive()
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1002)
        assert "Attested is of protocol version 2" in str(closed.extra)


async def test_the_highest_version_that_both_speak_is_chosen_whatever_the_order() -> None:
    async with serving() as manager:
        for offered, chosen in (
            (["tenure.1", "tenure.2"], "tenure.2"),
            (["tenure.9", "tenure.3", "tenure.2", "tenure.1"], "tenure.3"),
            (["tenure.1"], "tenure.1"),
        ):
            socket = await manager.connect("/v1/owner", offered)
            assert socket.protocol == chosen


async def test_who_speaks_newer_versions_only_is_told_so() -> None:
    async with serving() as manager:
        socket = await manager.connect("/v1/lookup", ["tenure.9", "tenure.8"])
        closed = await socket.receive()
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1002)
        assert closed.extra == (
            "no protocol version in common: one side speaks 1 to 3, the other 8 to 9; "
            "upgrade tenure on the first"
        )
        assert manager.counted("no common version") == 1
        assert (await manager.get("/v1/status"))[1]["connections"] == 0


async def test_a_change_is_told_to_each_lookup_in_its_own_version() -> None:
    async with serving() as manager:
        await manager.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        lookups = [(1, await manager.connect("/v1/lookup", ())) for _ in range(2)]
        lookups += [(NEWEST, await manager.connect("/v1/lookup")) for _ in range(2)]
        for version, lookup in lookups:
            await lookup.send_bytes(encode(SYNC, version))
            snapshot = decode_to_lookup(await lookup.receive_bytes(), version)
            assert isinstance(snapshot, SyncResponse)
        status = (await manager.get("/v1/status"))[1]
        assert (status["protocols"], status["connections_by_protocol"]) == (
            [1, 2, 3],
            {"1": 2, "3": 2},
        )
        await grant_everything(manager)
        for version, lookup in lookups:
            changes = decode_to_lookup(await lookup.receive_bytes(), version)
            assert isinstance(changes, Changes)


async def test_the_version_that_is_spoken_with_an_owner_is_told() -> None:
    async with serving() as manager:
        sockets = []
        for version, name in ((1, "old"), (NEWEST, "new")):
            introduction = await introduced(manager)
            socket = await manager.connect("/v1/owner", () if version == 1 else SUBPROTOCOLS)
            nonce = introduction.manager_nonce
            sockets.append(socket)
            joining = Join(
                pool="rooms",
                kind="hashed",
                name=name,
                address="http://a",
                owner_nonce=5,
                manager_nonce=nonce,
                sequence=1,
            )
            await socket.send_bytes(encode(joining, version))
            await socket.receive_bytes()
        owners = (await manager.get("/v1/pools/rooms/owners"))[1]["owners"]
        assert {each["name"]: each["protocol"] for each in owners} == {"old": 1, "new": NEWEST}


async def test_an_oversized_message_is_refused_by_its_header_before_it_is_read() -> None:
    async with serving() as manager:
        events = Events(manager.service.observer)
        async with RawSocket.connect(manager.service.url, "/v1/owner") as raw:
            header = b"\x82\xff" + (REQUEST_BYTES + 1).to_bytes(8, "big")
            raw.writer.write(header + b"\0\0\0\0abc")
            reason = f"a message of more than {REQUEST_BYTES} bytes"
            assert await raw.close_frame() == (1009, reason)
        await events.wait_for("oversized message")
        assert (await introduced(manager)).leadership == 1


async def test_frames_that_are_not_websocket_close_the_connection() -> None:
    async with serving() as manager:
        events = Events(manager.service.observer)
        async with RawSocket.connect(manager.service.url, "/v1/owner") as raw:
            raw.writer.write(b"\xf3\xff\xff\xff\xff")  # reserved bits, and no known opcode
            assert (await raw.close_frame())[0] == 1002
        await events.wait_for("malformed message")


async def test_a_peer_that_does_not_read_is_cut_off_while_others_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tenure.manager.peer_socket.LAG_BYTES", 10_000)
    limits = ManagerLimits(syncs_at_once=1 << 30)
    async with serving(limits=limits) as manager:
        events = Events(manager.service.observer)
        async with RawSocket.connect(manager.service.url, "/v1/lookup") as slow:
            flood = asyncio.create_task(keep_asking(slow))
            await events.wait_for("slow peer disconnected")
            assert (await introduced(manager)).leadership == 1
            flood.cancel()
            await asyncio.wait([flood])
        await events.wait_for("disconnected")


async def keep_asking(raw: RawSocket) -> None:
    no_such_pool = Sync(
        pool="x" * 90, sequence=1, journal=0, leadership=0, lsn=0, nonce=9
    )  # what is answered to it is long
    burst = masked(no_such_pool) * 500
    with suppress(ConnectionError):
        while True:
            raw.writer.write(burst)
            await raw.writer.drain()


async def test_a_connection_that_ends_is_forgotten() -> None:
    async with serving() as manager:
        events = Events(manager.service.observer)
        socket = await manager.connect("/v1/owner")
        await socket.close()
        await events.wait_for("disconnected")
        assert (await manager.get("/v1/status"))[1]["connections"] == 0


async def test_clients_are_told_when_the_manager_stops() -> None:
    async with serving() as manager:
        socket = await manager.connect("/v1/owner")
        stopping = asyncio.create_task(manager.service.stop())
        closed = await socket.receive()
        assert (closed.data, closed.extra) == (1001, "this manager stops")
        await stopping


@pytest.mark.parametrize("path", ["/v1/owner", "/v1/lookup"])
async def test_a_request_that_begins_no_websocket_is_told_to(path: str) -> None:
    async with serving() as manager:
        status, problem = await manager.get(path)
        assert (status, problem["error"]) == (400, f"GET {path} does not begin a WebSocket")
        assert problem["way_out"] == "open a WebSocket here, as Owner and Lookup do"


@pytest.mark.parametrize("method", ["HEAD", "POST"])
async def test_only_a_get_begins_a_websocket(method: str) -> None:
    asked = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    async with serving() as manager:
        url = manager.service.url + "/v1/owner"
        async with manager.session.request(method, url, headers=asked) as answer:
            assert answer.status in (400, 405)


async def test_a_page_of_another_origin_may_not_speak_to_a_manager() -> None:
    async with serving() as manager:
        status, problem = await manager.get("/v1/status", Origin="http://evil.example")
        assert (status, problem["error"].split(" may ")[0]) == (
            403,
            "a page of http://evil.example",
        )
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await manager.session.ws_connect(
                manager.service.url + "/v1/owner", origin="http://evil.example"
            )
        assert refused.value.status == 403
        own = manager.service.url
        assert (await manager.get("/v1/status", Origin=own))[0] == 200
        beside = own.rpartition(":")[0] + ":1"
        for other in (beside, f"{own}0", beside.rpartition(":")[0]):  # another server of this host
            assert (await manager.get("/v1/status", Origin=other))[0] == 403, other


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200),
        ("localhost", 200),
        ("[::1]:80", 200),
        ("manager.example", 200),
        ("evil.example", 403),
        ("[evil", 403),
    ],
)
async def test_a_name_that_was_made_to_mean_loopback_is_refused(host: str, status: int) -> None:
    async with serving(advertise="http://manager.example") as manager:
        port = manager.service.engine.view.url.rpartition(":")[2]
        url = f"http://127.0.0.1:{port}/v1/status"
        async with manager.session.get(url, headers={"Host": host}) as response:
            assert response.status == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("10.1.2.3:7400", 200),
        ("[2001:db8::1]", 200),
        ("manager-2:7400", 200),
        ("manager.example", 200),
        ("tenure.internal", 200),
        ("evil.example", 403),
        ("", 403),
    ],
)
async def test_without_tokens_only_names_of_ours_are_answered(host: str, status: int) -> None:
    """A page of a name that its owner lets mean our address could speak to us from a browser."""
    async with serving(
        host="0.0.0.0",  # noqa: S104
        insecure=True,
        advertise="http://manager.example",
        known_as=("tenure.internal",),
    ) as manager:
        port = manager.service.engine.view.url.rpartition(":")[2]
        url = f"http://127.0.0.1:{port}/v1/status"
        async with manager.session.get(url, headers={"Host": host}) as response:
            assert response.status == status
        assert manager.counted("insecure: other machines reach it") == 1, "said at every start"


@pytest.mark.parametrize(
    ("said", "makes"), [({}, False), ({"create_pools": True}, True), ({"host": "127.0.0.1"}, True)]
)
async def test_where_others_reach_it_a_first_owner_makes_a_pool_only_if_that_is_said(
    said: dict[str, object], *, makes: bool
) -> None:
    everywhere = {"host": "0.0.0.0", "advertise": "http://127.0.0.1"}  # noqa: S104
    async with serving(None, None, insecure=True, **{**everywhere, **said}) as manager:
        assert manager.service.engine.view.creates_pools == makes
