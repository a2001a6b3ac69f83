"""One recorded run: the ring starts, clients use it while it is in trouble, and all is judged."""

import asyncio
import json
import secrets
import shutil
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from lab.histories.hosts import Hosts, hosts
from lab.histories.operations_of_clients import KINDS
from lab.histories.outages import Stretch, outages
from lab.histories.program import command
from lab.histories.ring import CLOCKS_APART, Ring
from lab.histories.starvation import Starvation
from lab.histories.trouble import CLIENTS, Trouble
from lab.histories.verdicts import judge_all, porcupine
from lab.judges.operations import Complaint

NODES = 4
PROCESSES = 3
EACH = 48
"""How many clients a process has: while some wait for a quorum, others have one."""
ENDS_SECONDS = 15.0
SHOWN = 5


async def record(place: Path, seed: int, asked: Namespace, on: Hosts) -> tuple[Trouble, Starvation]:
    """Record a run into files of `place`."""
    random = Random(seed)
    ring = Ring(place, on, random)
    trouble = Trouble(ring, random)
    clients: list[asyncio.subprocess.Process] = []
    starvation = Starvation(lambda: [*ring.pids(), *(each.pid for each in clients)])
    watching = asyncio.create_task(starvation.watch())
    try:
        await ring.start(NODES)
        on.make(CLIENTS)
        for number in range(PROCESSES):
            said = {
                "name": f"c{number}",
                "seed": seed * PROCESSES + number,
                "place": str(place),
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
        watching.cancel()
        for client in clients:
            if client.returncode is None:
                client.kill()
        await ring.end()
    return trouble, starvation


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
    program = None if asked.one_judge else porcupine(asked.place.resolve())
    with hosts(place) as on:
        print(f"seed {seed}, {asked.seconds:.0f} s, in {place}", flush=True)
        for lack in on.lacks:
            print(f"without {lack}")
        began = time.monotonic()
        trouble, starvation = asyncio.run(record(place, seed, asked, on))
    took = time.monotonic() - began
    print(f"recorded in {took:.0f} s, with trouble: {dict(trouble.counts)}", flush=True)
    if program is None and not asked.one_judge:
        print("second judge: NOT RUN, there is no Go here; say --one-judge to do without it")
    fails = _has_outages(place, trouble, starvation)
    fails |= judge(place, seed, trouble, program, are_kept=fails)
    return int(fails or (program is None and not asked.one_judge))


def judge(
    place: Path, seed: int, trouble: Trouble, program: Path | None, *, are_kept: bool
) -> bool:
    """Ask both judges, and print what they say; returns whether one complains. The histories of
    batches of which nobody complains are not kept, unless `are_kept` says so.
    """
    began = time.monotonic()
    verdicts = list(judge_all(place, program))
    counts = sum((each.first.counts for each in verdicts), Counter[str]())
    complaints = [found for each in verdicts for found in each.first.complaints]
    took = time.monotonic() - began
    print(f"{sum(counts.values())} operations: {dict(counts)}")
    kinds = Counter(complaint.promise for complaint in complaints)
    undecided = sum(each.first.undecided for each in verdicts)
    print(f"judged in {took:.0f} s, {len(verdicts)} batches")
    print(f"first judge: {len(complaints)} complaints {dict(kinds)}, {undecided} undecided")
    if program is not None:
        said = [each.second for each in verdicts if each.second is not None]
        print(f"second judge: {json.dumps(_together(said))}")
    for complaint in sorted(complaints, key=lambda each: each.promise)[-SHOWN:]:
        print(f"\n{complaint}, with seed {seed}")
        print("\n".join(_story(complaint, trouble)))
    for each in verdicts:
        for file in each.files if each.is_clean and not are_kept else ():
            file.unlink()
    return not all(each.is_clean for each in verdicts)


def _together(said: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the second judge says of several batches, as one."""
    return {name: sum((each[name] for each in said[1:]), said[0][name]) for name in said[0]}


def _has_outages(place: Path, trouble: Trouble, starvation: Starvation) -> bool:
    """Whether a handle got no answer for too long."""
    if not starvation.can_be_seen:
        print("outages of handles: NOT JUDGED, this system does not tell who waits for processors")
        return False
    decoder = msgspec.json.Decoder(Stretch)
    lines = (line for file in place.glob("outages-*.jsonl") for line in file.open("rb"))
    stretches = [decoder.decode(line) for line in lines]
    found = outages(stretches, trouble.spells, starvation.between)
    too_long = [each for each in found if each.is_too_long]
    print(f"outages of handles that are too long: {len(too_long)}; the longest:")
    for each in found[:SHOWN]:
        at = each.began / 1e9
        print(f"  {at:.3f}  {each}")
        if each.is_too_long:
            near = (line for line in trouble.story if at - 8 <= line[0] <= each.ended / 1e9)
            print("\n".join(f"    {when:.3f}  -- {what}" for when, what in near))
    return bool(too_long)


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
