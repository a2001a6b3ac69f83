"""How large the default journal grows, and what its beats cost, while a manager leads an idle pool
for long.

A leader beats every 0.3 seconds with the default preset: 105 million times in a year. Here it beats
as fast as it can, on a real file, with a standby that reads the seat beside it.

Bound: the files never take more than 5 MiB.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks._quick import sized
from benchmarks._rounds import line
from tenure.base.instants import in_seconds
from tenure.journals.sqlite.store import SqliteStore
from tenure.protocol.lease.timing import PRESETS
from tenure.protocol.log.journal import Seat
from tenure.wire.lease_records import LEASE_RECORDS

BOUND_MIB = 5
DAYS = sized(1_440, 60) / 1_440
LOOK_EVERY = 1_000


def measure(days: float, directory: Path) -> bool:
    beats = int(days * 24 * 3_600 / in_seconds(PRESETS["default"].beat_ns))
    leader, standby = (SqliteStore(directory / "journal.sqlite", LEASE_RECORDS) for _ in range(2))
    mandate = leader.campaign(Seat(), Seat(1, 0, "http://a", 1))
    assert mandate is not None
    largest, began = 0, perf_counter()
    for beat in range(1, beats + 1):
        leader.beat(mandate, beat)
        if beat % LOOK_EVERY == 0:
            assert standby.read_seat().beat == beat
            largest = max(largest, leader.file_bytes())
    took = perf_counter() - began
    standby.close()
    leader.close()
    print(f"{beats:,} beats, {took / beats * 1e6:.0f} µs each")
    mib = largest / (1 << 20)
    is_kept = mib <= BOUND_MIB
    what = f"the journal's files, at most, in {days:g} days"
    print(line(what, f"{mib:.1f} MiB", f"<= {BOUND_MIB} MiB", is_kept=is_kept))
    return is_kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=float, default=DAYS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        return 0 if measure(given.days, Path(directory)) else 1


if __name__ == "__main__":
    sys.exit(main())
