"""Kill and stop owners, readers, nodes of the store and managers under load, and judge what clients
were told.

    python -m lab kills --count 200

Entities are kept on three nodes of a column store, and read everywhere. Clients in processes of
their own add texts to some of them, and read them, and note each call. What they have noted is all
that is judged: no acknowledged text is lost, nothing that was seen changes, and no reading is older
than an answer that was sent before it began.
"""

import asyncio
import secrets
import shutil
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec

from lab.histories.entities.kills import Kills
from lab.histories.entities.log_clients import LogClient
from lab.histories.entities.log_system import MANAGERS, NODES, LogSystem
from lab.judges.logs import Added, AnyLogCall, LookedAtLog, complaints

OWNERS = ("owner-1", "owner-2", "owner-3")
READERS = ("reader-1", "reader-2")
KINDS = {"owner": OWNERS, "reader": READERS, "node": NODES, "manager": MANAGERS}
PROCESSES, EACH = 2, 6
KEYS = [f"log-{number}" for number in range(6)]
WHOLE_SECONDS = 120.0
SHOWN = 5


async def record(place: Path, seed: int, count: int) -> Counter[str]:
    """Record a run into files of `place`; the trouble that there was."""
    random = Random(seed)
    clients = {
        f"clients-{number}": {
            "name": f"c{number}",
            "seed": seed,
            "place": str(place),
            "clients": EACH,
            "keys": KEYS,
        }
        for number in range(1, PROCESSES + 1)
    }
    system = LogSystem(place, clients)
    kills = Kills(system, random, count, KINDS)
    try:
        await system.start_all((*OWNERS, *READERS))
        for name in clients:
            await system.launch(name)
        await kills.all()
        await asyncio.sleep(1.0)  # the last calls are to a system that is well
        await system.end_clients()
        await read_all(place, system.members)
    finally:
        await system.end()
    return kills.counts


async def read_all(place: Path, members: Path) -> None:
    """Read the whole of each log, for the judge."""
    client = LogClient("judge", "judge", members, KEYS)
    with (place / "calls-judge.jsonl").open("wb") as file:
        async with asyncio.timeout(WHOLE_SECONDS):
            for key in KEYS:
                while (call := await client.whole(key)) is None:
                    await client.rest()
                file.write(msgspec.json.encode(call) + b"\n")
    client.leave()


def recorded(place: Path) -> Iterator[AnyLogCall]:
    """All calls of a run."""
    decoder = msgspec.json.Decoder(AnyLogCall)
    for file in sorted(place.glob("calls-*.jsonl")):
        yield from map(decoder.decode, file.read_bytes().splitlines())


def judge(place: Path) -> bool:
    """Print what was called, and what is wrong with it; whether nothing is."""
    calls = list(recorded(place))
    adds = Counter(each.told for each in calls if isinstance(each, Added))
    looks = [each for each in calls if isinstance(each, LookedAtLog)]
    copied = sum(each.copied for each in looks)
    print(f"texts: {dict(adds)}; readings: {len(looks)}, of which {copied} were of copies")
    found = list(complaints(calls))
    by_promise = Counter(each.promise for each in found)
    print(f"complaints: {len(found)} {dict(by_promise)}")
    for each in found[:SHOWN]:
        print(f"  {each}")
    # A run in which nothing was kept or read from copies would show nothing.
    return not found and adds["written"] > 0 and copied > 0


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; 1 if the judge complains."""
    parser = ArgumentParser(prog="python -m lab kills", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many kills and stops")
    parser.add_argument(
        "--seed", type=int, help="what goes wrong is drawn from it; drawn by default"
    )
    parser.add_argument("--place", type=Path, default=Path("build/kills"))
    asked = parser.parse_args(arguments)
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    place = (asked.place / f"seed-{seed}").resolve()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    print(f"seed {seed}, {asked.count} kills and stops, in {place}", flush=True)
    began = time.monotonic()
    counts = asyncio.run(record(place, seed, asked.count))
    print(f"recorded in {time.monotonic() - began:.0f} s: {dict(counts)}", flush=True)
    return 0 if judge(place) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
