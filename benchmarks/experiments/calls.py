"""The API never fails while nothing changes: of 53 million calls none did (Centrifuge 5.1.2).

An owner that has all keys, and a lookup, in one process beside a real manager, so that leases are
renewed all the while. Every `check` must say yes, and every `find` must name the owner.
"""

from collections.abc import Callable
from time import monotonic

from benchmarks._manager import running_manager
from benchmarks._quick import sized
from benchmarks._report import Promise, Section, Table, prose
from benchmarks.peers.holders import KEYS, POOL
from tenure import Lookup, Owner

CALLS = sized(53_000_000, 1_000_000)
PARTS = 20
ADDRESS = "http://bench"
TEXT = """One owner with all keys and one lookup, half of the calls each, while leases are renewed
by a real manager. Centrifuge counted none that failed in 53 million, where nothing changed
(5.1.2)."""


def run(tell: Callable[[str], None], calls: int = CALLS) -> Section:
    """Count those that fail."""
    failed, began = 0, monotonic()
    with (
        running_manager("--preset", "default") as manager,
        Owner(manager.url, pool=POOL, address=ADDRESS) as owner,
        Lookup(manager.url, pool=POOL) as lookup,
    ):
        while not all(lookup.find(key) == ADDRESS for key in KEYS):
            pass
        check, find = owner.check, lookup.find
        for part in range(PARTS):
            tell(f"{calls * part // PARTS:,} of {calls:,}")
            for _ in range(calls // PARTS // 2 // len(KEYS)):
                for key in KEYS:
                    if check(key) is None or find(key) != ADDRESS:
                        failed += 1
    done = calls // PARTS // 2 // len(KEYS) * PARTS * 2 * len(KEYS)
    rows = [
        ["Centrifuge (its paper)", "53,000,000", "0", ""],
        ["tenure", f"{done:,}", f"{failed}", f"{monotonic() - began:.0f}"],
    ]
    return Section(
        title="Calls that fail while nothing changes",
        text=prose(TEXT),
        tables=[Table(["", "calls", "failed", "seconds"], rows)],
        promises=[Promise("calls that fail", f"{failed}", "0", failed == 0)],
    )
