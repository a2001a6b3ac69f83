"""A chat room on three nodes that loses no word, whichever process dies, and takes none too late.

    tenure columns up --nodes 3 --first-start
    python examples/fenced_room.py columns:http://127.0.0.1:7500,http://127.0.0.1:7501 attic

Run the second line in two terminals. Each line that you type is a word in the room; the program
that owns the room keeps it, and the other says that it does not own it. A word is being said for a
moment. In that moment, or at any other:

- kill the owner with -9: the other one goes on with every word that was kept;
- stop it with `kill -STOP`, say something in the other terminal when that owns the room, and wake
  it with `kill -CONT`: it still wants to say its word, and the nodes refuse it;
- kill one of the nodes, whose process numbers `up` has printed: everything goes on.
"""

import asyncio
import os
import sys

from tenure import Family, LeaseLost, OwnedRows, Owner, Table, TenureError, WriteUnknown, open_store

MANAGERS = os.environ.get("TENURE_MANAGERS", "http://127.0.0.1:7499")
ROOMS = Table("rooms", fenced_by="rooms", said=Family(columns=int, values=str))
SAYING_SECONDS = 0.5


async def say(owner: Owner, kept: OwnedRows, room: str, word: str) -> str:
    """Say a word; what became of it."""
    lease = owner.check(room)
    if lease is None:
        return f"not mine: {word}"
    row = await kept.load(lease, room)  # adopts it: nobody with an earlier lease can write any more
    number = 1 + max((each.name for each in row.get("said")), default=0)
    print(f"saying {number}: {word}", flush=True)
    # Nobody looks at the lease again. A program that is stopped here wakes as a former owner.
    await asyncio.sleep(SAYING_SECONDS)
    while True:
        try:
            await row.insert({"said": {number: word}})
        except WriteUnknown:
            continue  # a row repeats what is unknown, and the word has its number already
        return f"kept {number}: {word}"


async def main(url: str, room: str) -> None:
    """Say each line."""
    async with (
        open_store(url, ROOMS) as store,
        Owner(MANAGERS, pool="rooms", address=f"http://127.0.0.1/{os.getpid()}") as owner,
    ):
        kept = OwnedRows(store, ROOMS)
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            word = line.strip()
            try:
                told = await say(owner, kept, room, word)
            except LeaseLost as error:
                told = f"refused: {word} ({error})"
            except TenureError as error:
                told = f"failed: {word} ({error})"
            print(told, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
