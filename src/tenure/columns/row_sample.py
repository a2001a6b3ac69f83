"""A sample of a node's rows: where they lie on the ring, and how large they are.

Each table lists its rows by a hash of their positions, so the first of that list are rows drawn at
random, and the hash up to which they go says which share of all they are.
"""

from itertools import islice

from tenure.columns.engines.contract import StorageEngine
from tenure.columns.range_sums import places_space
from tenure.columns.spaces import space
from tenure.columns.tables import Table
from tenure.protocol.replication.row.layout import AFTER, row_key
from tenure.protocol.replication.row.pages import Pace, Steps
from tenure.protocol.replication.row.sums import INNER_SUMS, PLACE_BYTES, SUMS
from tenure.protocol.topology.records import Position
from tenure.protocol.topology.ring import position as on_ring

SAMPLED_ROWS = 1_000
SAMPLED_ENTRIES = 65_536
"""How many rows are measured: they stand for the others."""
_PLACES = SUMS * INNER_SUMS


def row_sample(engine: StorageEngine, table: Table, into: dict[Position, float]) -> Steps[int]:
    """Add to `into` the weight of rows, each for all the rows that it stands for."""
    walk = engine.cursor(places_space(table.name)).walk(b"", None)
    found = [key for key, _ in islice(walk, SAMPLED_ROWS + 1)]
    share = 1.0
    if len(found) > SAMPLED_ROWS:
        last = max(1, int.from_bytes(found[-1][:PLACE_BYTES]))  # not all of its rows are here
        found = [key for key in found if int.from_bytes(key[:PLACE_BYTES]) < last]
        share = last / _PLACES
    sizes: dict[bytes, int] = {}
    pace, entries = Pace(), 0
    for key in found:
        at, size = key[PLACE_BYTES:], 0
        for family in table.families:
            cursor = engine.cursor(space(table.name, family))
            for each, value in cursor.walk(at, at + AFTER):
                size += len(each) + len(value)
                entries += 1
                if pace.is_over(len(each) + len(value)):
                    yield
        sizes[at] = size
        if entries >= SAMPLED_ENTRIES:
            break
    stands_for = len(found) / (len(sizes) * share) if sizes else 0.0
    for at, size in sizes.items():
        place = on_ring(row_key(at, table.kind)[0], table.kind)
        into[place] = into.get(place, 0.0) + size * stands_for
    return len(sizes)
