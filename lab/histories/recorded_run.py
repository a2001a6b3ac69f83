"""One recorded run: the ring starts, clients use it while it is in trouble, and all is judged."""

import asyncio
import json
import secrets
import shutil
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from lab.histories.hosts import Hosts, hosts
from lab.histories.operations_of_clients import KINDS
from lab.histories.program import command
from lab.histories.ring import CLOCKS_APART, Ring
from lab.histories.trouble import CLIENTS, Trouble
from lab.histories.verdicts import Verdict, first_judge, read, second_judge
from lab.judges.operations import Complaint

NODES = 4
PROCESSES = 3
EACH = 6
ENDS_SECONDS = 15.0
SHOWN = 5


async def record(place: Path, seed: int, asked: Namespace, on: Hosts) -> Trouble:
    """Record a run into files of `place`."""
    random = Random(seed)
    ring = Ring(place, on, random)
    trouble = Trouble(ring, random)
    clients: list[asyncio.subprocess.Process] = []
    try:
        await ring.start(NODES)
        on.make(CLIENTS)
        for number in range(PROCESSES):
            said = {
                "name": f"c{number}",
                "seed": seed * PROCESSES + number,
                "file": str(place / f"history-{number}.jsonl"),
                "url": str(ring.url),
                "began_ns": time.monotonic_ns(),
                "clients": EACH,
                "operations": asked.operations // PROCESSES or -1,
                "kinds": [kind for kind in KINDS if kind not in asked.without],
                "ends_seconds": ENDS_SECONDS,
                "clock_seconds": random.choice((0.0, CLOCKS_APART, -CLOCKS_APART)),
            }
            clients.append(
                await _client(place, on.command(CLIENTS, command("client_program", **said)))
            )
        await _until_over(trouble, clients, asked.seconds)
    finally:
        for client in clients:
            if client.returncode is None:
                client.kill()
        await ring.end()
    return trouble


async def _client(place: Path, command: list[str]) -> asyncio.subprocess.Process:
    with (place / "clients.log").open("ab") as log:
        return await asyncio.create_subprocess_exec(
            *command, stdout=log, stderr=log, start_new_session=True
        )


async def _until_over(
    trouble: Trouble, clients: Sequence[asyncio.subprocess.Process], seconds: float
) -> None:
    """Make trouble until the time is over or the clients have done enough; then mend all."""
    going = asyncio.create_task(trouble.go_on())
    done = asyncio.gather(*(client.wait() for client in clients))
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.shield(done)
    going.cancel()
    with suppress(asyncio.CancelledError):
        await going  # which raises what it has died of
    await trouble.end()
    await asyncio.sleep(2.0)  # the last operations of all clients are of a ring that is well
    for client in clients:
        if client.returncode is None:
            client.terminate()
    async with asyncio.timeout(2 * ENDS_SECONDS):
        await done


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; 1 if a judge complains, or could not be asked."""
    parser = ArgumentParser(prog="python -m lab histories", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long clients do something")
    parser.add_argument("--operations", type=int, default=0, help="end after so many; 0 for no end")
    parser.add_argument(
        "--seed", type=int, help="what goes wrong is drawn from it; drawn by default"
    )
    parser.add_argument("--place", type=Path, default=Path("build/histories"))
    parser.add_argument(
        "--without", action="append", default=[], choices=KINDS, help="no rows of this kind"
    )
    parser.add_argument("--one-judge", action="store_true", help="do without Porcupine, and Go")
    asked = parser.parse_args(arguments)
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    place = (asked.place / f"seed-{seed}").resolve()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    with hosts(place) as on:
        print(f"seed {seed}, {asked.seconds:.0f} s, in {place}", flush=True)
        for lack in on.lacks:
            print(f"without {lack}")
        trouble = asyncio.run(record(place, seed, asked, on))
    return judge(place, seed, trouble, has_second=not asked.one_judge)


def judge(place: Path, seed: int, trouble: Trouble, *, has_second: bool) -> int:
    """Ask both judges, and print what they say."""
    files = sorted(place.glob("history-*.jsonl"))
    began = time.monotonic()
    verdict = first_judge(read(files))
    took = time.monotonic() - began
    print(f"trouble: {dict(trouble.counts)}")
    print(f"{sum(verdict.counts.values())} operations: {dict(verdict.counts)}")
    print(f"longest outages: {_outages(place)} s")
    kinds = Counter(complaint.promise for complaint in verdict.complaints)
    print(f"first judge: {len(verdict.complaints)} complaints {dict(kinds)}, {took:.0f} s")
    for complaint in sorted(verdict.complaints, key=lambda each: each.promise)[-SHOWN:]:
        print(f"\n{complaint}, with seed {seed}")
        print("\n".join(_story(complaint, trouble)))
    return int(bool(verdict.complaints) | _second(files, has_second=has_second) | _open(verdict))


def _open(verdict: Verdict) -> bool:
    if verdict.undecided:
        print(f"first judge: {verdict.undecided} searches were given up")
    return bool(verdict.undecided)


def _second(files: Sequence[Path], *, has_second: bool) -> bool:
    """Whether the second judge complains, or could not be asked though it was wanted."""
    if not has_second:
        print("second judge: not asked (--one-judge)")
        return False
    said = second_judge(files)
    if said is None:
        print("second judge: NOT RUN, there is no Go here; say --one-judge to do without it")
        return True
    print(f"second judge: {json.dumps(said)}")
    return bool(said["failed"])


def _outages(place: Path) -> list[float]:
    lines = (place / "clients.log").read_text().splitlines()
    said = [json.loads(line) for line in lines if line.startswith("{")]
    return [round(each["longest_outage_seconds"], 1) for each in said]


def _story(complaint: Complaint, trouble: Trouble) -> list[str]:
    """The operations, and what was done to the ring in the same seconds."""
    lines = [
        (each.began / 1e9, f"until {each.ended / 1e9:.6f}  {each}") for each in complaint.operations
    ]
    first = min((at for at, _ in lines), default=0.0)
    last = max((each.ended / 1e9 for each in complaint.operations), default=0.0)
    lines += [(at, f"-- {what}") for at, what in trouble.story if first - 5 <= at <= last]
    return [f"  {at:.6f}  {what}" for at, what in sorted(lines)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
