"""A pool whose owners ask for more ranges than a table has: 2,049 owners of 64 ranges; 2,048 would
fill it.

The owners join from outside over real sockets, under the papers' ring, and at once let go of
whatever is recalled. What must hold: every owner has something, every range has an owner, the table
is not larger than it may be and a lookup reads it whole; the plan tells whoever asks for it which
ranges are not cut; an owner that lists more than a table has is refused, and no other client
notices; the leader continues to lead; and after `kill -9` another manager leads on from the
journal, with the same ranges.

The manager has the preset `paper`, so that owners on a busy machine have a minute to renew.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from benchmarks._manager import ManagerProcess, allow_many_files, running_manager
from benchmarks._packed import PackedSocket, packed, run_packed
from benchmarks._quick import QUICK, at_most, sized
from benchmarks._rounds import line
from benchmarks.renewal import Owner
from tenure.protocol.lease.limits import RANGES_PER_PLAN, RANGES_PER_TABLE
from tenure.protocol.lease.messages import Held, LeaseResponse, Refusal, Sync, SyncResponse
from tenure.protocol.lease.table import NOBODY
from tenure.wire.lease import decode_to_lookup, encode
from tenure.wire.versions import NEWEST

POOL = "full"
OWNERS = sized(2_049, 130)
POINTS = 64
EACH_ASKS_AGAIN = 1
"""Seconds between two rounds: a plan is made beside them."""
STILL_ROUNDS = 3
"""How many rounds in which nothing is granted or recalled show that everything is dealt out."""
FULL = min(OWNERS * POINTS, RANGES_PER_PLAN)
BOUND_SECONDS = at_most(180)
BOUND_TAKEOVER_SECONDS = at_most(40)
"""The leadership of the preset `paper`, and reading a journal of this size."""


def ask(manager: ManagerProcess, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401
    """Return the answer of the manager's JSON API."""
    connection = HTTPConnection(urlsplit(manager.url).netloc, timeout=60)
    said = None if body is None else json.dumps(body).encode()
    connection.request(method, path, said, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    read = json.loads(answer.read())
    assert answer.status in (200, 201), (path, answer.status, read)
    return read


async def whole_table(manager: ManagerProcess) -> SyncResponse:
    """Return the table as a lookup reads it that knows nothing."""
    socket = await PackedSocket.connect(manager.url + "/v1/lookup")
    sync = Sync(pool=POOL, sequence=1, journal=0, leadership=0, lsn=0, nonce=1)
    await socket.send_bytes(encode(sync, NEWEST))
    while True:
        told = decode_to_lookup(await socket.receive_bytes(), NEWEST)
        if isinstance(told, SyncResponse) and told.snapshot:
            socket.close()
            return told


class FullOwner(Owner):
    """Joins again when its hold has run out, as every owner does, and is as patient."""

    again_seconds = 15.0

    async def renew(self) -> None:
        response = await self._ask(self._request)
        if isinstance(response, LeaseResponse):
            self.held = tuple(
                Held(start=lease.start, end=lease.end, number=lease.number)
                for lease in response.leases
                if lease.mark != "recalled"
            )
        else:
            self.number, self.held = self.number + OWNERS, ()
            await self.join()


async def all_renew(owners: Sequence[FullOwner]) -> int:
    """Everybody asks with its whole list; how many were told of something new."""
    before = [owner.held for owner in owners]
    await asyncio.gather(*(owner.renew() for owner in owners))
    return sum(owner.held != held for owner, held in zip(owners, before, strict=True))


async def entered(owners: Sequence[FullOwner]) -> None:
    """Let all join, until nothing moves between them any more."""
    began = monotonic()
    await asyncio.gather(*(owner.join() for owner in owners))
    print(f"  {monotonic() - began:5.1f} s: {len(owners):,} owners have joined", flush=True)
    still = 0
    while still < STILL_ROUNDS:
        changed = await all_renew(owners)
        held = Counter(bool(owner.held) for owner in owners)[True]
        still = still + 1 if not changed and held == len(owners) else 0
        ranges = sum(len(owner.held) for owner in owners)
        print(
            f"  {monotonic() - began:5.1f} s: {ranges:,} ranges of {held:,} owners; "
            f"{changed:,} were told of something new",
            flush=True,
        )
        await asyncio.sleep(EACH_ASKS_AGAIN)


async def is_refused_for_more(owner: Owner) -> bool:
    """Whether an owner that lists more ranges than a table has is refused."""
    held = tuple(
        Held(
            start=i.to_bytes(8, "big"), end=(i + 1).to_bytes(8, "big"), number=owner.held[0].number
        )
        for i in range(1, RANGES_PER_TABLE)
    )
    asking = Owner(owner.number, owner.socket, POOL)
    asking.__dict__.update(owner.__dict__, held=held)
    refusal = await asking._ask(asking._request)
    owner.sequence = asking.sequence
    return isinstance(refusal, Refusal)


async def leads_on(manager: ManagerProcess) -> list[bool]:
    """Whether each of the promises was kept while one manager leads."""
    began = monotonic()
    sockets = await packed(manager.url + "/v1/owner", OWNERS)
    owners = [FullOwner(number, socket, POOL) for number, socket in enumerate(sockets)]
    await entered(owners)
    seconds = monotonic() - began
    kept = [seconds <= BOUND_SECONDS]
    what = f"{OWNERS:,} owners are dealt {POINTS} ranges each"
    print(line(what, f"{seconds:.0f} s", f"<= {BOUND_SECONDS:g} s", is_kept=kept[0]))
    entries = (await whole_table(manager)).entries
    kept.append(FULL // 2 < len(entries) <= RANGES_PER_TABLE)
    print(line("ranges that a lookup reads", f"{len(entries):,}", f"<= {RANGES_PER_TABLE:,}",
               is_kept=kept[-1]))  # fmt: skip
    have = len({entry.owner for entry in entries} - {NOBODY})
    kept.append(have == OWNERS and NOBODY not in {entry.owner for entry in entries})
    print(line("owners that have any of them, and nobody none", f"{have:,}", f"{OWNERS:,}",
               is_kept=kept[-1]))  # fmt: skip
    held_back = ask(manager, "GET", f"/v1/pools/{POOL}/plan")["held_back"]
    kept.append(any("cuts of ranges" in each["what"] for each in held_back) != QUICK)
    print(line("the plan says what is not cut", "yes" if held_back else "no", "yes, if full",
               is_kept=kept[-1]))  # fmt: skip
    kept.append(await is_refused_for_more(owners[0]))
    print(line("an owner that lists more than a table", "refused" if kept[-1] else "taken",
               "refused", is_kept=kept[-1]))  # fmt: skip
    changed = await all_renew(owners[1:])
    status = ask(manager, "GET", "/v1/status")
    kept.append(changed == 0 and (status["role"], status["leadership"]) == ("leading", 1))
    print(line("all others renew, at the same leader", f"{changed} changed", "0", is_kept=kept[-1]))
    return kept


def main() -> int:
    """Fill a pool, ask for more, end its leader, and print; return 1 if a promise was not kept."""
    allow_many_files()
    with tempfile.TemporaryDirectory() as directory:
        journal = f"sqlite:{Path(directory) / 'journal'}"
        with running_manager("--preset", "paper", journal=journal) as manager:
            ask(manager, "POST", "/v1/pools", {"name": POOL, "kind": "hashed"})
            ask(manager, "POST", f"/v1/pools/{POOL}/policy", {"policy": "ring"})
            kept = run_packed(leads_on(manager))
            ranges = len(run_packed(whole_table(manager)).entries)
            os.kill(manager.pid, signal.SIGKILL)
        began = monotonic()
        with running_manager("--preset", "paper", journal=journal) as successor:
            seconds = monotonic() - began
            kept.append(seconds <= BOUND_TAKEOVER_SECONDS)
            print(line("another manager leads on", f"{seconds:.1f} s",
                       f"<= {BOUND_TAKEOVER_SECONDS:g} s", is_kept=kept[-1]))  # fmt: skip
            again = len(run_packed(whole_table(successor)).entries)
            kept.append(again == ranges)
            print(line("ranges that it tells", f"{again:,}", f"{ranges:,}", is_kept=kept[-1]))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
