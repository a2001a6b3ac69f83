"""Owners of a chat room that were stopped past their term and woken: what the store lets them do.

    python -m benchmarks rooms              # 1,000 rounds, or as many as half an hour has
    python -m benchmarks rooms --rounds 100 --seconds 300
    python -m benchmarks --quick rooms

Three nodes are processes of this host. In each round the owner of the room writes on while its
successor adopts the row, as one does that was stopped and knows nothing of it. What it writes after
that must be refused, and nobody may ever see it. What was acknowledged must be there for the
successor, and readers must see what the successor has in memory. Now and then a node is killed and
started again.
"""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from time import monotonic

from benchmarks._quick import sized
from lab.demo.ring.home_ring import HomeRing, until
from tenure.base.keys import hashed_key
from tenure.client.lease import Lease
from tenure.columns.opening import open_store
from tenure.columns.owned_rows import OwnedRow, OwnedRows
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table
from tenure.errors import LeaseLost, TenureError, WriteUnknown

ROUNDS = sized(1_000, 30)
NODE_KILLS = sized(10, 1)
ROOMS = Table("rooms", fenced_by="rooms", said=Family(columns=int))
SECONDS = 1_800
TOLD_ROUNDS = 25
WORDS = 3
"""How many words each owner says before its successor comes."""


class _Room:
    """One room, and all that its owners have said."""

    def __init__(self, store: ColumnStore, dice: Random) -> None:
        self._rows = OwnedRows(store, ROOMS)
        self._store = store
        self._dice = dice
        self._number = 0
        self._word = 0
        self._acknowledged: dict[int, bytes] = {}
        self._doubtful: dict[int, bytes] = {}
        """Rows sent before the successor had the row, and not acknowledged: they may
        exist or not.
        """
        self.counts: Counter[str] = Counter()
        self.owner: OwnedRow

    async def adopt(self) -> OwnedRow:
        self._number += 1
        lease = Lease(hashed_key("attic"), self._number, 1, "rooms")
        return await self._rows.load(lease, "attic")

    async def say(self, owner: OwnedRow) -> None:
        self._word += 1
        number, word = self._word, b"word %d" % self._word
        self._doubtful[number] = word
        try:
            await owner.insert({"said": {number: word}})
        except (LeaseLost, WriteUnknown):
            return
        del self._doubtful[number]
        self._acknowledged[number] = word

    async def round(self) -> None:
        """The successor comes while the owner writes; the owner wakes and writes once more."""
        former = self.owner
        for _ in range(WORDS):
            await self.say(former)

        async def comes() -> OwnedRow:
            await asyncio.sleep(self._dice.random() * 0.02)
            return await self.adopt()

        self.owner, _, _ = await asyncio.gather(comes(), self.say(former), self._write_on(former))
        before = self._word
        await self.say(former)  # it wakes, and does not know
        if self._word in self._acknowledged:
            self.counts["late writes acknowledged"] += 1
        self._doubtful.pop(before + 1, None)  # nobody may ever see it
        await self._check()

    async def _write_on(self, former: OwnedRow) -> None:
        await asyncio.sleep(self._dice.random() * 0.02)
        await self.say(former)

    async def _check(self) -> None:
        mine = {each.name: each.value for each in self.owner.get("said")}
        page = await self._store.get(ROOMS, "attic", "said", first=10_000)
        seen = {each.name: each.value for each in page}
        self.counts["acknowledged words lost"] += len(self._acknowledged.keys() - mine.keys())
        allowed = self._acknowledged.keys() | self._doubtful.keys()
        self.counts["late words seen"] += len((seen.keys() | mine.keys()) - allowed)
        self.counts["rounds in which readers saw another row"] += seen != mine
        # Rows that exist now exist for good, and the others never will (D6).
        self._doubtful.clear()
        self._acknowledged = dict(mine)
        self.counts["rounds"] += 1


async def _measured(rounds: int, seconds: float) -> Counter[str]:
    ends_at = monotonic() + seconds
    kills_each = max(2, rounds // (NODE_KILLS + 1))
    with tempfile.TemporaryDirectory(prefix="tenure-rooms-") as place:
        home = HomeRing(Path(place), 3, 0)
        try:
            await home.start()
            async with open_store(home.url, ROOMS) as store:
                room = _Room(store, Random(1))
                room.owner = await room.adopt()
                for number in range(rounds):
                    if monotonic() > ends_at:
                        break
                    if number % kills_each == 1 and number > 1:
                        await _kill_one(home, f"node-{1 + number % 3}", room)
                    await room.round()
                    if number % TOLD_ROUNDS == TOLD_ROUNDS - 1:
                        print(f"  {number + 1} of {rounds} rounds: {dict(room.counts)}", flush=True)
                return room.counts
        finally:
            await home.end()


async def _kill_one(home: HomeRing, name: str, room: _Room) -> None:
    home.kill(name)
    room.counts["nodes killed"] += 1
    for _ in range(WORDS):
        await room.round()
    await home.launch(name)
    await until(home.down, lambda down: not down, f"{name} is left out still")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks rooms")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how many rounds")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long they may take")
    said = parser.parse_args()
    try:
        found = asyncio.run(_measured(said.rounds, said.seconds))
    except TenureError as error:
        print(f"NOT REACHED: {error}")
        return 1
    for what, count in found.items():
        print(f"  {what}: {count}")
    wrong = [what for what in found if what not in ("rounds", "nodes killed") and found[what]]
    if found["rounds"] < said.rounds:
        wrong.append(f"{said.rounds} rounds in {said.seconds:g} s")
    for each in wrong:
        print(f"NOT REACHED: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
