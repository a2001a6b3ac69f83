"""The API never fails while nothing changes: of 53 million calls none did (Centrifuge 5.1.2).

In each process an owner that has all keys of a pool, and a lookup, beside a real manager, so that
leases are renewed all the while. Every `check` must say yes, and every `find` must name the owner.
"""

import os
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.queues import Queue
from time import monotonic

from benchmarks._manager import running_manager
from benchmarks._quick import sized
from benchmarks._report import Promise, Section, Table, prose
from benchmarks.peers.holders import KEYS
from tenure import Lookup, Owner

CALLS = sized(53_000_000, 500_000)
PARTS = 20
ADDRESS = "http://bench"
PATIENCE_SECONDS = 120.0
TEXT = """{processes} processes, each with one owner that has all keys of a pool, and one lookup,
half of the calls each, while leases are renewed by a real manager. Centrifuge counted none that
failed in 53 million, where nothing changed (5.1.2)."""


def call(url: str, pool: str, rounds: int, told: "Queue[tuple[int, int]]") -> None:
    """Ask for every key in each round; tell of each part how many calls were made, and failed."""
    with (
        Owner(url, pool=pool, address=ADDRESS) as owner,
        Lookup(url, pool=pool) as lookup,
    ):
        while not all(lookup.find(key) == ADDRESS and owner.check(key) for key in KEYS):
            pass
        check, find = owner.check, lookup.find
        for _ in range(PARTS):
            failed = 0
            for _ in range(rounds):
                for key in KEYS:
                    if check(key) is None or find(key) != ADDRESS:
                        failed += 1
            told.put((rounds * 2 * len(KEYS), failed))


def run(tell: Callable[[str], None], calls: int = CALLS) -> Section:
    """Count those that fail."""
    processes = os.cpu_count() or 1
    rounds = -(-calls // (processes * PARTS * 2 * len(KEYS)))
    done, failed, began = 0, 0, monotonic()
    context = get_context("spawn")
    told: Queue[tuple[int, int]] = context.Queue()
    with running_manager("--preset", "default") as manager:
        workers = [
            context.Process(target=call, args=(manager.url, f"bench-{n}", rounds, told))
            for n in range(processes)
        ]
        for each in workers:
            each.start()
        for part in range(processes * PARTS):
            made, wrong = told.get(timeout=PATIENCE_SECONDS)
            done, failed = done + made, failed + wrong
            if part % processes == 0:
                tell(f"{done:,} of {calls:,}")
        seconds = monotonic() - began
        for each in workers:
            each.join()
    rows = [
        ["Centrifuge (its paper)", "53,000,000", "0", ""],
        ["tenure", f"{done:,}", f"{failed}", f"{seconds:.0f}"],
    ]
    return Section(
        title="Calls that fail while nothing changes",
        text=prose(TEXT.format(processes=processes)),
        tables=[Table(["", "calls", "failed", "seconds"], rows)],
        promises=[Promise("calls that fail", f"{failed}", "0", failed == 0)],
    )
