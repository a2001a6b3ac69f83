"""A client of the store: it may read and write rows, and speaks as a node all the same."""

import asyncio

import msgspec

from benchmarks._attacks.attempt import Attempt, Family, masked
from benchmarks._attacks.other_owners import HUGE_FRAME
from benchmarks._attacks.strangers import MIB, STAYS_SECONDS, pieces_at
from tenure.columns.backends.cluster import STORE_PATH
from tenure.protocol.replication.messages import (
    NodeBody,
    NodeMessage,
    Outdated,
    ReadPage,
    ReadRows,
    TopologySaid,
)
from tenure.protocol.replication.openings import OpenStore, StoreOpened
from tenure.protocol.replication.row.pages import Slice
from tenure.protocol.topology.records import Removed, Topology
from tenure.protocol.topology.tables import FamilyRecord, TableRecord
from tenure.wire.columns import decode_to_store_client, encode_store
from tenure.wire.versions import NEWEST
from tests.unit.transport.test_large_messages import mutation
from tests.unit.wire.test_columns import TO_STORE

HIGHEST = 1 << 62
TABLE = "rows"
"""The table whose rows others have written."""
EDITS = 20_000
READS = 500
LARGE_READS = 1_800
LARGE_ROWS = 2
LARGE_COLUMNS, LARGE_BYTES = 6, 5 << 20
"""The columns of a large row, of 30 MiB."""


def large_key(number: int) -> str:
    return f"large-{number}"


async def _topology(it: Attempt) -> Topology:
    await it.upgrade(STORE_PATH)
    await it.send(masked(encode_store(OpenStore(request=1), NEWEST)))
    while not isinstance(
        said := decode_to_store_client(await it.hear_bytes(), NEWEST), StoreOpened
    ):
        pass
    assert said.topology is not None
    return said.topology


async def forgeries(it: Attempt) -> None:
    """S1: a topology of a version that leaps, in the name of another node, without one of them."""
    known = await _topology(it)
    gone = it.random.choice(known.nodes)
    rest = tuple(each for each in known.nodes if each is not gone)
    forged = msgspec.structs.replace(
        known,
        version=HIGHEST,
        nodes=rest,
        removed=(Removed(gone.id, gone.name),),
        ranges=(),
    )
    body: NodeBody = TopologySaid(ticket=1, topology=forged)
    if it.random.random() < 0.5:
        body = Outdated(ticket=2, topology=forged)
    for sender in known.nodes:
        for receiver in known.nodes:
            told = NodeMessage(
                cluster=known.cluster,
                id=known.id,
                sender=sender.id,
                receiver=receiver.id,
                version=known.version,
                body=body,
            )
            await it.send(masked(encode_store(told, NEWEST)))
    await it.read_on()


async def changed_bytes(it: Attempt) -> None:
    """Messages of which a few bytes are others."""
    await it.upgrade(STORE_PATH)
    random = it.random
    for _ in range(50):
        data = bytearray(encode_store(random.choice(TO_STORE), NEWEST))
        at = random.randrange(len(data) + 1)
        data[at : at + random.randrange(3)] = random.randbytes(random.randrange(4))
        await it.send(masked(bytes(data)))
    await it.read_on()


async def unread(it: Attempt) -> None:
    """Read all rows, again and again, and take no answer."""
    await it.upgrade(STORE_PATH)
    it.read_nothing()
    for number in range(READS):
        asked = ReadRows(request=number + 1, table=TABLE, part=Slice(100), within=1000)
        await it.send(masked(encode_store(asked, NEWEST)))
    await asyncio.sleep(STAYS_SECONDS)


async def large_reads(it: Attempt) -> None:
    """Read rows of 30 MiB, many at once, and take all that comes."""
    await it.upgrade(STORE_PATH)
    for number in range(LARGE_READS):
        key = large_key(number % LARGE_ROWS).encode()
        asked = ReadPage(
            request=number + 1, table=TABLE, key=key, family="said", part=Slice(LARGE_COLUMNS)
        )
        await it.send(masked(encode_store(asked, NEWEST)))
    await it.read_on()


async def many_edits(it: Attempt) -> None:
    """Mutations with as many columns as there may be, of a table that does not exist."""
    await it.upgrade(STORE_PATH)
    await it.send_on(masked(mutation(EDITS)))


async def many_tables(it: Attempt) -> None:
    """Make tables, without end."""
    await it.upgrade(STORE_PATH)
    record = TableRecord("ordered", "str", "", {"f": FamilyRecord("str")})
    for number in range(300):
        made = {f"t-{it.number}-{number}": record}
        await it.send(masked(encode_store(OpenStore(request=number + 1, tables=made), NEWEST)))
    await it.read_on()


async def unfinished(it: Attempt) -> None:
    """S14 at a node: a frame that does not end."""
    await it.upgrade(STORE_PATH)
    await it.send(HUGE_FRAME + bytes(MIB))
    await it.read_on()


FAMILIES = (
    Family(forgeries, "node", 5),
    Family(changed_bytes, "node", 10),
    Family(unread, "node", 10),
    Family(large_reads, "node", 1),
    Family(many_edits, "node", 3),
    Family(many_tables, "node", 2),
    Family(unfinished, "node", 20),
    pieces_at("node", 3),
)
