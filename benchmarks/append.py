"""The cost of an append to the journal in etcd, beside that of a bare transaction of the same size.

A local cluster of three members; both go through its JSON gateway to the same member, by the same
HTTP client, in turn, within one run. The bare one puts one key of the same size under one condition
and does not read the answer. The append compares four keys and puts two, and is encoded, checked
and sealed before.
"""

import asyncio
import sys
import tempfile
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter_ns

import aiohttp

from benchmarks._quick import at_most, sized
from benchmarks._rounds import line, ratio
from tenure.journals import Journal, open_journal
from tenure.journals.etcd.values import AppendValue, packed, sealed
from tenure.protocol.lease.messages import Entry
from tenure.protocol.lease.records import AnyRecord, Changed, State
from tenure.protocol.log.journal import Committed, Mandate, Seat
from tenure.wire.lease_records import LEASE_RECORDS
from tests.integration.etcd.servers import running

BOUND = at_most(1.3)
ROUNDS = sized(400, 60)
WARM_UP = sized(50, 10)
ENTRIES = (1, 64, 1_024)
"""A key that moves; what one owner of an ordinary pool holds; the bounds of 64 owners at once."""


def record_of(entries: int) -> Changed:
    bounds = [i.to_bytes(8, "big") for i in range(entries + 1)]
    return Changed(
        pool="rooms",
        entries=tuple(
            Entry(start=bounds[i], end=bounds[i + 1], owner=7, number=1 << 20, since=1 << 20)
            for i in range(entries)
        ),
    )


def bare_transaction(size: int) -> bytes:
    """A transaction that puts that many bytes, if a key does not exist that never exists."""
    key, absent = (b64encode(each).decode() for each in (b"/bench/bare", b"/bench/absent"))
    value = b64encode(bytes(size)).decode()
    return (
        f'{{"compare":[{{"key":"{absent}","target":"CREATE","result":"EQUAL"}}],'
        f'"success":[{{"request_put":{{"key":"{key}","value":"{value}"}}}}]}}'
    ).encode()


async def timed(what: Callable[[], Awaitable[None]]) -> float:
    began = perf_counter_ns()
    await what()
    return (perf_counter_ns() - began) / 1e6


class Appends:
    """Appends of one record after another."""

    def __init__(
        self, journal: Journal[AnyRecord, State], leadership: Mandate, lsn: int, record: AnyRecord
    ) -> None:
        self._journal = journal
        self._leadership = leadership
        self._record = record
        self.lsn = lsn

    async def __call__(self) -> None:
        self.lsn += 1
        result = await self._journal.append(self._leadership, self.lsn - 1, (self._record,))
        assert result == Committed(self.lsn), result


async def compare(append: Appends, url: str, body: bytes) -> tuple[list[float], list[float]]:
    """Milliseconds of appends and of bare transactions, in turn."""
    async with aiohttp.ClientSession() as session:

        async def bare() -> None:
            async with session.post(f"{url}/v3/kv/txn", data=body) as response:
                assert b'"succeeded":true' in await response.read()

        appends: list[float] = []
        bares: list[float] = []
        both: list[tuple[Callable[[], Awaitable[None]], list[float]]]
        both = [(bare, bares), (append, appends)]
        for i in range(WARM_UP + ROUNDS):
            for what, times in both if i % 2 else reversed(both):
                times.append(await timed(what))
        return appends[WARM_UP:], bares[WARM_UP:]


async def measure(directory: Path) -> bool:
    good = True
    async with running(directory, size=3) as cluster:
        journal = open_journal(cluster.journal_url(), LEASE_RECORDS)
        mandate = await journal.campaign(Seat(), Seat(1, 0, "http://a", 1))
        assert mandate is not None
        lsn = 0
        for entries in ENTRIES:
            record = record_of(entries)
            size = len(sealed(AppendValue(1, 1, packed([LEASE_RECORDS.encode_record(record)]))))
            append = Appends(journal, mandate, lsn, record)
            appends, bares = await compare(append, cluster.urls[0], bare_transaction(size))
            lsn = append.lsn
            times = ratio(appends, bares)
            of_medians = median(appends) / median(bares)
            print(
                f"{entries:>5} entries, {size:>6,} bytes: append {median(appends):.2f} ms, "
                f"bare {median(bares):.2f} ms, ratio of medians {of_medians:.2f}"
            )
            kept = max(times, of_medians) <= BOUND
            good &= kept
            what = f"an append of {entries} entries beside a bare transaction"
            print(line(what, f"{times:.2f} x", f"<= {BOUND:g} x", is_kept=kept))
        await journal.close()
    return good


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        return 0 if asyncio.run(measure(Path(directory))) else 1


if __name__ == "__main__":
    sys.exit(main())
