"""Large messages of one name share an allowance, on however many connections they come."""

import asyncio
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

import pytest

from tenure.base.instants import SECOND_NS, Instant, seconds
from tenure.manager.peer_socket import PeerSocket
from tenure.protocol.lease.limits import RANGES_PER_TABLE
from tenure.protocol.lease.messages import Held, LeaseRequest
from tenure.protocol.replication.messages import WriteRow
from tenure.protocol.replication.openings import OpenStore
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.limits import MUTATION_EDITS
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.topology.tables import FamilyRecord, TableRecord
from tenure.protocol.volume.limits import OBJECT_LEASES, VALUE_BYTES
from tenure.protocol.volume.messages import Acknowledge, Write
from tenure.transport import large_messages
from tenure.transport.large_messages import (
    KIB_A_SECOND,
    KIB_AT_ONCE,
    LARGE_BYTES,
    TIMES_IF_UNTOLD,
    LargeMessages,
)
from tenure.transport.unfinished_messages import KEPT_BYTES
from tenure.wire.columns import EDIT_WEIGHT, FREE_EDITS, encode_store, weight
from tenure.wire.lease import encode
from tenure.wire.versions import NEWEST
from tenure.wire.volume import encode_volume, is_list
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.manager.serving import serving
from tests.unit.transport.test_frame_socket import ASKED, raw
from tests.unit.transport.test_websocket_door import Counting, opened
from tests.unit.transport.test_websocket_frames import sent

START, KIB = Instant(0), 1 << 10


def taken_in(of_seconds: int, size: int, *names: str, is_told: bool) -> int:
    """How many messages are taken of peers that send for ever."""
    all_large, taken = LargeMessages(), 0
    for name in names:
        now = START
        while now < seconds(of_seconds):
            rest = all_large.rest_ns(name, size, now, is_told=is_told)
            taken += not rest
            now = Instant(now + rest + 1)
    return taken


def test_what_was_told_is_taken_at_a_rate() -> None:
    size = 64 * KIB
    most = (KIB_AT_ONCE + 10 * KIB_A_SECOND) * KIB // size
    assert most <= taken_in(10, size, "a", is_told=True) <= most + 2
    assert taken_in(10, size, "a", "b", is_told=True) >= 2 * most, "each has its own"


def test_what_nobody_told_is_taken_more_rarely() -> None:
    size = 64 * KIB
    most = (KIB_AT_ONCE + 10 * KIB_A_SECOND) * KIB // size // TIMES_IF_UNTOLD
    assert most <= taken_in(10, size, "a", is_told=False) <= most + 2


def test_after_the_largest_message_the_next_one_waits_for_less_than_a_term() -> None:
    all_large, largest = LargeMessages(), 16 << 20
    for _ in range(2):
        assert all_large.rest_ns("a", largest, START, is_told=False) == 0
    rest = all_large.rest_ns("a", LARGE_BYTES, START, is_told=False)
    assert SECOND_NS < rest <= seconds(4)


def whole_table() -> bytes:
    """A valid request that lists as many ranges as there may be, made up."""
    bounds = [number.to_bytes(8) + bytes(42) for number in range(RANGES_PER_TABLE + 1)]
    held = tuple(Held(start=start, end=end, number=1) for start, end in pairwise(bounds))
    request = LeaseRequest(
        pool="other",
        incarnation=1,
        owner_nonce=1,
        manager_nonce=1,
        sequence=1,
        journal=1,
        leadership=1,
        held=held,
    )
    return encode(request, NEWEST)


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> list[PeerSocket]:
    """All sockets that a manager of this process has accepted, as they come."""
    made: list[PeerSocket] = []
    begin = PeerSocket.__init__

    def noted(self: PeerSocket, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
        begin(self, *arguments, **named)
        made.append(self)

    monkeypatch.setattr(PeerSocket, "__init__", noted)
    return made


@pytest.mark.asyncio
async def test_of_many_whole_tables_a_manager_reads_a_few_and_the_rest_waits(
    monkeypatch: pytest.MonkeyPatch, sockets: list[PeerSocket]
) -> None:
    def waiting() -> list[int]:
        return [len(each._held) for each in sockets if each._held is not None]

    monkeypatch.setattr(large_messages, "boot_clock", lambda: START)
    data, many = whole_table(), 4
    assert len(data) > 13 << 20
    assert many * len(data) < KEPT_BYTES, "all may arrive side by side, and none gives way"
    message = sent(data)  # once: masking it takes longer than all the rest
    async with serving() as manager, asyncio.timeout(DEADLINE_SECONDS), AsyncExitStack() as stack:
        url = manager.service.url
        for _ in range(many):
            reader, writer = await stack.enter_async_context(raw(f"{url}/v1/owner"))
            asked = ASKED.replace(b"/ws", b"/v1/owner").replace(b"b, a", b"tenure.3")
            writer.write(asked.replace(b"localhost", url.removeprefix("http://").encode()))
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
            writer.write(message)
        await until(lambda: len(waiting()) >= many - 2)
        assert waiting() == [len(data)] * (many - 2)


def acknowledged(most: int) -> bytes:
    items = tuple(range(most))
    return encode_volume(Acknowledge(client=1, epoch=1, reader=1, items=items), NEWEST)


@pytest.mark.asyncio
async def test_of_long_lists_a_volume_reads_a_few_and_values_do_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(large_messages, "boot_clock", lambda: START)
    value = Write(client=1, epoch=1, reader=1, sequence=1, key=b"k", value=bytes(VALUE_BYTES))
    listener, many, items = Counting(), 5, sent(acknowledged(OBJECT_LEASES))
    async with opened(listener, many, is_list=is_list) as (clients, door):
        for _, writer in clients:
            writer.write(sent(encode_volume(value, NEWEST)) * 2)
            writer.write(items)
        while sum(each._held is not None for each in door._open) < many - 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert listener.count == 2 * many + 2


def mutation(edits: int, size: int = 0) -> bytes:
    cells = tuple(Edit("f", None, b"%d" % each, bytes(size)) for each in range(edits))
    asked = WriteRow(
        request=1, table="t", key=b"k", edits=cells, attempt=Attempt(Version(0, 1), "merge")
    )
    return encode_store(asked, NEWEST)


@pytest.mark.asyncio
async def test_of_mutations_with_many_edits_a_node_reads_a_few_and_large_values_do_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(large_messages, "boot_clock", lambda: START)
    listener, many = Counting(), 6
    async with opened(listener, many, weigh=weight) as (clients, door):
        for _, writer in clients:
            writer.write(sent(mutation(1, VALUE_BYTES)) * 2)
            writer.write(sent(mutation(MUTATION_EDITS)))
        while sum(each._held is not None for each in door._open) < many - 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert listener.count == 2 * many + 2


def test_what_a_mutation_lists_has_weight_and_not_what_it_carries() -> None:
    assert weight(mutation(FREE_EDITS, 1_000)) == 0
    assert weight(mutation(2_000)) == weight(mutation(2_000, 1_000)) == 2_000 * EDIT_WEIGHT
    assert weight(mutation(MUTATION_EDITS)) == MUTATION_EDITS * EDIT_WEIGHT
    assert weight(mutation(10)) == 0


def test_what_declares_tables_or_cannot_be_read_weighs_what_it_is_long() -> None:
    families = {f"f{each}": FamilyRecord("str") for each in range(4_000)}
    opens = encode_store(
        OpenStore(request=1, tables={"t": TableRecord("hashed", "str", "", families)}), NEWEST
    )
    for data in (opens, opens[:-1], mutation(MUTATION_EDITS)[:-5]):
        assert weight(data) == len(data)
