"""A process that writes to a store is killed: every acknowledged write is there afterwards."""

import subprocess
import sys
from pathlib import Path

from tenure import Family, Table, open_store

WRITER = """
import asyncio, sys
from tenure import Family, Table, open_store

mail = Table("mail", terms=Family(supers=str, columns=int, order="time"), texts=Family(columns=int))

async def write(store, n):
    words = {f"word-{n % 7}": {n: b""}, "all": {n: b""}}
    await store.insert(mail, f"user-{n % 5}", {"terms": words, "texts": {n: b"mail %d" % n}})
    print(n, flush=True)

async def main():
    async with open_store(sys.argv[1], mail, log=sys.argv[2]) as store:
        start = int(sys.argv[3])
        while True:
            await asyncio.gather(*(write(store, n) for n in range(start, start + 50)))
            start += 50

asyncio.run(main())
"""
MAIL = Table("mail", terms=Family(supers=str, columns=int, order="time"), texts=Family(columns=int))
LIVES = 3


def acknowledged(command: list[str], wanted: int) -> set[int]:
    """Return what a writer reports as kept until it is killed, in the middle of its writing."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = {int(writer.stdout.readline()) for _ in range(wanted)}
        writer.kill()
        told |= {int(line) for line in writer.stdout if line.endswith("\n")}
    return told


def test_kill_9_while_writing_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path, log = tmp_path / "store", tmp_path / "log"
    told: set[int] = set()
    for life in range(LIVES):
        start = str(life * 1_000_000)
        command = [sys.executable, "-c", WRITER, f"rocksdb:{path}", str(log), start]
        told |= acknowledged(command, 200 + 77 * life)
    assert len(told) >= 200 * LIVES
    with open_store(f"rocksdb:{path}", MAIL, log=log) as store:
        for n in told:
            user = f"user-{n % 5}"
            assert store.get(MAIL, user, "texts", n).value == b"mail %d" % n
            assert store.get(MAIL, user, "terms", "all", n) is not None
            assert store.get(MAIL, user, "terms", f"word-{n % 7}", n) is not None
        for row in store.scan(MAIL, within=10_000):
            texts = {each.name for each in row.families["texts"]}
            [terms] = [each for each in row.families["terms"] if each.name == "all"]
            assert {each.name for each in terms.columns} == texts  # whole mutations, or not at all
