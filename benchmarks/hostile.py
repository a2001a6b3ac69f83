"""What attackers of all roles cost others: no lease, no row, no socket, some memory and disk.

    make bench ARGS=hostile
    make bench ARGS="--quick hostile"

200 owners renew what they hold, as the preset says how often. Beside their manager, which asks for
tokens, run a queue, a store, and processes of pools: entities, and an owner with state and caches.
Attackers, each role in a process of its own, do all that once cost others something: a stranger, an
owner of another pool, a viewer, a store client, a neighbour on the host, a rival manager whose
address clients list, a lying member that has its pool's secret, a visitor of a web service, one who
may write feeds, and one whose authority is withdrawn. If this process is root's,
they are another user's. Each attacks alone for a while, which says what it costs, and then all do
at once; the quick form has only that.

No lease may be lost, no number change, no row or message be gone, no socket be closed, nobody be
signed out, and no small read of the store fail beside reads of rows of 30 MiB. No attacker is led
to where nobody may come, nor let in after its authority was withdrawn. 99 of 100 renewals are
answered within a third of the time between two. Memory and disk grow by less than the bounds. How
late a process that only sleeps comes back is printed beside it: that is the machine's slack, and
where it is near the bound of renewals, these figures say more about the machine.
"""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import aiohttp
import msgspec

from benchmarks._attacked import Attacked, attacked, made_tokens
from benchmarks._attacked_services import POOLS, WITHDRAWN_SECONDS
from benchmarks._attacks.__main__ import Done, Orders
from benchmarks._attacks.members import Fares
from benchmarks._attacks.neighbours import OPENED
from benchmarks._attacks.roles import ROLES
from benchmarks._manager import allow_many_files, loop_name, running_manager
from benchmarks._process import Process
from benchmarks._quick import QUICK, sized, soon
from benchmarks.renewal import Owner, settle
from tenure.cli.demo.ports import free_ports
from tenure.wire.versions import SUBPROTOCOLS

OWNERS = sized(200, 40)
SHARE = sized(100, 20) / 100
"""How many of the connections that the families name are made."""
ALONE_SECONDS = 9
SECONDS = sized(60, 6)
RENEW_SECONDS = 3.0
"""The interval of the preset `default`."""
BOUND_SECONDS = soon(RENEW_SECONDS / 3)
LOST_SECONDS = 12.0
"""The term of the preset: an owner that is answered later has lost what it held."""
MEMORY_BYTES = 1 << 30
"""The most by which one process may grow: a quarter of it is what may wait of answers that nobody
reads, and SECURITY.md has the other bounds.
"""
DISK_BYTES = 256 << 20
SLEEP_SECONDS = 0.01
MIB = 1 << 20


class Measured(NamedTuple):
    """What the attacks of one phase were, and what they cost."""

    done: Mapping[str, Done]
    renewals: Sequence[float]
    lateness: Sequence[float]
    leases: int
    expired: int
    rows: int
    reads: Sequence[float]
    """How long small reads of the store took, which go on beside."""
    failed_reads: int
    failed_uses: Mapping[str, int]
    """By what was asked."""
    """Requests to services that failed, or were answered too late."""
    messages: int
    sign_ins: int
    fares: Fares
    grown: Mapping[str, int]
    disk: int
    cpu: float

    @property
    def costs(self) -> Mapping[str, tuple[float, float]]:
        """Each cost beside its bound."""
        others = (each for each in self.done.values() if each.is_another_user)
        files = sum(len(each.opened) for each in others)
        reached = sum(sum(each.reached.values()) for each in self.done.values())
        return {
            "leases changed": (self.leases, 0),
            "owners or services expired": (self.expired, 0),
            "ranges of members lost": (self.fares.lost_ranges, 0),
            "rows of a store lost": (self.rows, 0),
            "small reads of a store failed": (self.failed_reads, 0),
            "state of owners lost": (self.fares.lost_rows, 0),
            "wrong answers of entities": (self.fares.wrong_answers, 0),
            "calls of entities failed": (self.fares.failed_calls, 0),
            "requests to services failed": (sum(self.failed_uses.values()), 0),
            "messages or sockets lost": (self.messages, 0),
            "sign-ins of an admin lost": (self.sign_ins, 0),
            OPENED: (files, 0),
            "what attackers achieved": (reached, 0),
            "p99 of renewals, s": (percentile(self.renewals, 0.99), BOUND_SECONDS),
            "most memory, MiB": (max(self.grown.values()) / MIB, MEMORY_BYTES / MIB),
            "disk, MiB": (self.disk / MIB, DISK_BYTES / MIB),
        }

    @property
    def broken(self) -> list[str]:
        """The costs that are above their bounds."""
        return [name for name, (cost, bound) in self.costs.items() if cost > bound]


class Renewals:
    """The owners, each of which renews for as long as it lives, and how long each renewal took."""

    def __init__(self, owners: Sequence[Owner]) -> None:
        self.owners = owners
        self.took: list[float] = []

    async def go_on(self, number: int) -> None:
        """Renew one owner's leases, without end; with nothing, once an answer came too late."""
        loop, owner = asyncio.get_running_loop(), self.owners[number]
        at = loop.time() + RENEW_SECONDS * number / len(self.owners)
        while True:
            await asyncio.sleep(max(0.0, at - loop.time()))
            began = loop.time()
            try:
                async with asyncio.timeout(LOST_SECONDS):
                    await owner.renew()
            except (TimeoutError, TypeError, AssertionError):  # not answered, or with a refusal
                self.took.append(LOST_SECONDS)
                owner.held = ()
                return
            self.took.append(loop.time() - began)
            at = max(at + RENEW_SECONDS, loop.time())


async def lateness(seconds: float) -> list[float]:
    """How late this process comes back from its sleep, again and again for so long."""
    loop, found = asyncio.get_running_loop(), []
    until = loop.time() + seconds
    while (began := loop.time()) < until:
        await asyncio.sleep(SLEEP_SECONDS)
        found.append(loop.time() - began - SLEEP_SECONDS)
    return found


class Stage:
    """The owners, what is attacked beside them, and the attackers."""

    def __init__(
        self, renewals: Renewals, beside: Attacked, session: aiohttp.ClientSession, port: int
    ) -> None:
        self._renewals = renewals
        self._owners = renewals.owners
        self._beside = beside
        self._session = session
        self._orders = Orders(
            targets=beside.targets(),
            tokens={**beside.tokens, **beside.services.shown()},
            share=SHARE,
            rival_port=port,
        )

    async def measure(self, roles: Sequence[str], seconds: float) -> Measured:
        """Attack in these roles for this long."""
        beside, now = self._beside, time.monotonic()
        before, fared = [each.held for each in self._owners], await beside.fares()
        living, disk, had = await self._living(), beside.disk(), beside.forget_peaks()
        cpu = beside.manager.cpu_seconds()
        attackers = {name: Process("benchmarks._attacks", name) for name in roles}
        orders = msgspec.json.encode(self._orders)
        beside.services.withdrawal.let_in()
        await asyncio.gather(*(each.begin(orders) for each in attackers.values()))
        loop = asyncio.get_running_loop()
        loop.call_later(WITHDRAWN_SECONDS, beside.services.withdrawal.withdraw)
        waited: list[float] = []
        self._renewals.took = waited
        beside.reads, failed_reads = [], beside.failed_reads
        beside.services.failed.clear()
        late = await lateness(seconds)
        reads, failed_reads = beside.reads, beside.failed_reads - failed_reads
        failed_uses = dict(beside.services.failed)
        self._renewals.took = []
        peaks, grown_disk = beside.peaks(), beside.disk() - disk
        # All at once: those that were told last would go on beside the first, which could not end.
        lines = await asyncio.gather(*(each.end() for each in attackers.values()))
        done = {
            name: msgspec.json.decode(line, type=Done)
            for name, line in zip(attackers, lines, strict=True)
        }
        rows, messages = await beside.lost_rows(), await beside.lost_messages()
        return Measured(
            done=done,
            renewals=waited,
            lateness=late,
            leases=sum(was != each.held for was, each in zip(before, self._owners, strict=True)),
            expired=len(living - await self._living()),
            rows=rows,
            reads=reads,
            failed_reads=failed_reads,
            failed_uses=failed_uses,
            messages=messages,
            sign_ins=await beside.lost_sign_ins(),
            fares=difference(await beside.fares(), fared),
            grown={name: peaks[name] - had[name] for name in peaks},
            disk=grown_disk,
            cpu=(beside.manager.cpu_seconds() - cpu) / (time.monotonic() - now),
        )

    async def _living(self) -> set[tuple[str, int]]:
        """The owners of the pool and of services that have not expired, and their incarnations.
        Those of the decoys' pool expire all the time.
        """
        headers = {"Authorization": f"Bearer {self._beside.tokens['admin']}"}
        found = set()
        for pool in ("bench", "queues", "counters", "rooms", *POOLS):
            url = f"{self._beside.manager.url}/v1/pools/{pool}/owners"
            async with self._session.get(url, headers=headers) as answer:
                owners = (await answer.json())["owners"]
            found |= {(pool, each["incarnation"]) for each in owners}
        return found


def difference(now: Fares, then: Fares) -> Fares:
    return Fares(
        **{
            name: getattr(now, name) - (0 if name == "besieged" else getattr(then, name))
            for name in Fares.__struct_fields__
        }
    )


async def run(directory: Path) -> bool:
    """Measure everything, and print it; whether all bounds are kept."""
    tokens = made_tokens(directory / "tokens")
    rival_port = free_ports(1)[0]
    guarded = ("--tokens", str(directory / "tokens"), "--audit-log", str(directory / "audit"))
    journal = f"sqlite:{directory / 'journal.sqlite'}"
    shows = {"Authorization": f"Bearer {tokens['owner bench']}"}
    with running_manager(*guarded, "--create-pools", log_level="error", journal=journal) as manager:
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
            attacked(directory, manager, tokens, rival_port) as beside,
        ):
            where = manager.url + "/v1/owner"
            owners = [
                Owner(n, await session.ws_connect(where, protocols=SUBPROTOCOLS, headers=shows))
                for n in range(OWNERS)
            ]
            for each in owners:
                await each.join()
            await settle(owners)
            renewals = Renewals(owners)
            stage = Stage(renewals, beside, session, rival_port)
            renewing = [asyncio.ensure_future(renewals.go_on(n)) for n in range(OWNERS)]
            try:
                return await all_phases(stage)
            finally:
                for one in renewing:
                    one.cancel()


async def all_phases(stage: Stage) -> bool:
    quiet = await stage.measure((), 2 * RENEW_SECONDS)
    report("nobody attacks", quiet)
    good = not quiet.broken
    for name in () if QUICK else ROLES:
        alone = await stage.measure((name,), ALONE_SECONDS)
        report(f"{name}, alone", alone)
        good &= not alone.broken
    beset = await stage.measure(tuple(ROLES), SECONDS)
    report("all at once", beset)
    for name, (cost, bound) in beset.costs.items():
        kept = "kept" if cost <= bound else "NOT KEPT"
        print(f"  {name:28} {cost:9.3g}   bound {bound:6.3g}   {kept}")
    ratio = percentile(beset.renewals, 0.99) / percentile(quiet.renewals, 0.99)
    print(f"  p99 of renewals, to the quiet one: {ratio:.1f}")
    return good and not beset.broken


def report(what: str, found: Measured) -> None:
    """Print one phase."""
    print(f"{what}:")
    for name, done in found.done.items():
        tried = ", ".join(
            f"{count:,} {kind}" + (f" ({refused:,} refused)" if refused else "")
            for kind, count in sorted(done.made.items())
            for refused in (done.refused.get(kind, 0),)
        )
        achieved = "".join(f"; ACHIEVED {n} {kind}" for kind, n in sorted(done.reached.items()))
        user = "" if done.is_another_user else " (of the same user)"
        print(f"  {name}{user}: {tried}{achieved}")
    of = percentile(found.renewals, 0.5), percentile(found.renewals, 0.99), max(found.renewals)
    slack = percentile(found.lateness, 0.99)
    print("  renewals {} ms (median, p99, longest)".format(", ".join(f"{s * 1e3:.0f}" for s in of)))
    print(f"  the machine is late by {slack * 1e3:.0f} ms (p99); manager {found.cpu:.2f} of a core")
    if found.reads:
        of = percentile(found.reads, 0.5), percentile(found.reads, 0.99), max(found.reads)
        print("  small reads {} ms".format(", ".join(f"{s * 1e3:.0f}" for s in of)))
    grown = ", ".join(f"{name} {size / MIB:.0f}" for name, size in found.grown.items())
    print(f"  memory, MiB: {grown}; disk {found.disk / MIB:.1f}")
    failed = {name: count for name, count in found.failed_uses.items() if count}
    if failed:
        print(f"  requests failed: {failed}")
    print(f"  {found.fares.calls} calls of entities; above a bound: {found.broken or 'nothing'}")


def percentile(waited: Sequence[float], part: float) -> float:
    return sorted(waited)[min(len(waited) - 1, int(len(waited) * part))]


def main() -> int:
    allow_many_files()
    print(f"{OWNERS} owners that renew every {RENEW_SECONDS:g} s, {loop_name()}")
    with TemporaryDirectory() as directory:
        good = asyncio.run(run(Path(directory)))
    print("all bounds are kept" if good else "a bound is not kept")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
