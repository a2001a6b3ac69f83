"""How large a cluster may grow, so that its topology can always be journaled, sent and kept."""

from typing import Final

from tenure.base.keys import KEY_BYTES

NODES = 64
"""The most members and waiting nodes. Each topology is sent to all of them as a whole."""
REMOVED = 10_000
"""The most removed nodes, which are remembered for ever: one a day for 27 years."""
WEIGHTS = 4_096
"""The most weights in one request: 64 for each node."""
RANGES = 1_024
"""The most ranges of a ring, and in one report: a cluster has some hundreds, and a node looks after
a few.
"""
TABLES = 256
FAMILIES = 4_096
"""The most families of all tables together."""
RESERVED_PART = 4
"""A quarter of the tables and families is kept for operators: programs make tables as they declare
them, and one that means harm could use up all, for ever.
"""
CLUSTERS = 64
"""The most clusters of one journal."""
TOKEN_BYTES = KEY_BYTES + 8
"""The most bytes of a token: as long as the position of a row, which is its key with a hash before
it.
"""
LEAP: Final = 1 << 40
"""A version is the number of a record in the journal, so a cluster needs years for so many. One
node alone is not believed that there is a version so much later.
"""
TOPOLOGY_BYTES = 4 << 20
"""The most bytes of an encoded topology, with everything that is sent along with it."""
