"""A chat room whose topic outlasts kill -9 of its owner: a row that a pool's leases fence.

    tenure manager --journal sqlite:./journal.sqlite --first-start
    python examples/lasting_room.py rocksdb:./rooms attic

Each line that you type becomes the topic. Kill the program with -9 and start it again: the topic
that it printed last is there. Reading the topic asks nobody, because the row of a room is in the
memory of its owner; and a former owner that has not noticed yet is refused by the store.
"""

import asyncio
import os
import sys

from tenure import Family, Lease, NotOwner, OwnedRow, OwnedRows, Owner, Table, open_store

MANAGERS = os.environ.get("TENURE_MANAGERS", "http://127.0.0.1:7400")
ROOMS = Table("rooms", fenced_by="rooms", state=Family(columns=str, values=str))


class Rooms:
    """The rooms of one owner."""

    def __init__(self, owner: Owner, kept: OwnedRows) -> None:
        self.owner = owner
        self.kept = kept

    async def row(self, lease: Lease, room: str) -> OwnedRow:
        """The room as its last owner left it; adopted once for each lease number."""
        return await self.kept.load(lease, room)

    async def topic(self, room: str) -> str | None:
        """Return the topic of the room."""
        async with self.owner.guard(room) as lease:
            column = (await self.row(lease, room)).get("state", "topic")
            return column and str(column.value)

    async def talk_about(self, room: str, topic: str) -> None:
        """Change the topic; on the disk when this returns."""
        async with self.owner.guard(room) as lease:  # NotOwner: ask the owner
            await (await self.row(lease, room)).insert({"state": {"topic": topic}})


async def main(url: str, room: str) -> None:
    async with (
        open_store(url, ROOMS) as store,
        Owner(MANAGERS, pool="rooms", address="http://127.0.0.1:8001") as owner,
    ):
        rooms = Rooms(owner, OwnedRows(store, ROOMS))
        await owner.ready()
        print(f"topic: {await rooms.topic(room)}", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                await rooms.talk_about(room, line.strip())
                print(f"topic: {await rooms.topic(room)}", flush=True)
            except NotOwner as error:
                print(error, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
