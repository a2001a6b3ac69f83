"""An owner of another pool: its token counts, but not for the pool that it attacks."""

import asyncio
from functools import cache
from itertools import count as numbers_from

from benchmarks._attacks.attempt import Attempt, Family, masked
from benchmarks._attacks.strangers import MIB, flood
from tenure.protocol.lease.messages import (
    Attested,
    Hello,
    Introduction,
    Join,
    LeaseRequest,
    LeaseResponse,
    Process,
)
from tenure.protocol.lease.rivalry import Rival
from tests.hostile.test_bounds import join_of_many_labels
from tests.unit.transport.test_large_messages import whole_table

POOL, LIARS = "decoys", "liars"
"""The pools of which it has tokens; it lies about other journals in one only, which that stops."""
STAYS_SECONDS = 4.0
HUGE_FRAME = b"\x82\xff" + (15 * MIB).to_bytes(8) + bytes(4)
NUMBERS = numbers_from(1)


@cache
def _labels() -> bytes:
    return masked(join_of_many_labels())


@cache
def _table() -> bytes:
    return masked(whole_table())


def prepare() -> None:
    """Make what takes long to make."""
    _labels()
    _table()


async def labels(it: Attempt) -> None:
    """S2: a lookup says what only an owner says, with millions of labels."""
    await it.upgrade("/v1/lookup")
    await it.send(_labels())
    await it.reader.read()


async def large_joins(it: Attempt) -> None:
    """Who may own sends as much as an owner may, and none of it is for the pool."""
    await it.upgrade("/v1/owner")
    await it.send(_labels())
    await it.reader.read()


async def tables(it: Attempt) -> None:
    """Valid requests that list as many ranges as there may be, one after the other."""
    await it.upgrade("/v1/owner")
    await it.send_on(_table())


async def unfinished(it: Attempt) -> None:
    """S14: a frame that does not end."""
    await it.upgrade("/v1/owner")
    await it.send(HUGE_FRAME + bytes(MIB))
    await it.reader.read()


async def _introduced(it: Attempt, pool: str, rival: Rival | None = None) -> Introduction:
    await it.upgrade("/v1/owner")
    await it.say(Hello(pool=pool, token=it.number + 1, rival=rival))
    while not isinstance(said := await it.hear(), Introduction):
        pass
    return said


def _join(pool: str, number: int, said: Introduction) -> Join:
    return Join(
        pool=pool,
        kind="hashed",
        name=f"decoy-{number}",
        address="http://10.0.0.1",
        owner_nonce=number,
        manager_nonce=said.manager_nonce,
        sequence=1,
        labels={f"label-{n}": "x" * 150 for n in range(50)},
    )


async def decoys(it: Attempt) -> None:
    """Come, stay until it is planned for, and be gone: each time the journal has a record more."""
    said, number = await _introduced(it, POOL), next(NUMBERS)
    await it.say(_join(POOL, number, said))
    while not isinstance(joined := await it.hear(), LeaseResponse):
        pass
    asking = LeaseRequest(
        pool=POOL,
        incarnation=joined.incarnation,
        owner_nonce=number,
        manager_nonce=said.manager_nonce,
        sequence=2,
        journal=joined.journal,
        leadership=joined.leadership,
        held=(),
    )
    await it.say(asking)
    async with asyncio.timeout(STAYS_SECONDS):
        await it.read_on()


async def trespass(it: Attempt) -> None:
    """Join the pool of others: where no tokens are asked for, anybody may."""
    if not it.token:
        await asyncio.sleep(STAYS_SECONDS)
        return
    said = await _introduced(it, POOL)
    await it.say(_join("bench", next(NUMBERS), said))
    await it.read_on()


async def false_deaths(it: Attempt) -> None:
    """Say of owners of another pool that their processes are gone."""
    said = await _introduced(it, POOL)
    dead = Process(boot_id="0" * 32, pid_namespace=1, time_namespace=1, pid=1, start_time=1)
    for incarnation in range(1, 200):
        told = Attested(
            pool="bench",
            incarnation=incarnation,
            process=dead,
            witness=dead,
            owner_nonce=incarnation - 1 + (1 << 62),
            manager_nonce=said.manager_nonce,
        )
        await it.say(told)
    await it.read_on()


async def other_leaders(it: Attempt) -> None:
    """Say that a manager that does not exist leads another journal."""
    rival = Rival(manager="http://127.0.0.1:1", journal=it.random.getrandbits(62) + 1)
    await _introduced(it, LIARS, rival)
    await it.read_on()


MINE = f"owner {POOL}"
FAMILIES = (
    Family(labels, "manager", 3, MINE),
    Family(large_joins, "manager", 3, MINE),
    Family(tables, "manager", 6, MINE),
    Family(unfinished, "manager", 30, MINE),
    Family(flood, "manager", 30, MINE),
    Family(decoys, "manager", 200, MINE),
    Family(trespass, "manager", 10, MINE),
    Family(false_deaths, "manager", 5, MINE),
    Family(other_leaders, "manager", 5, f"owner {LIARS}"),
)
