"""How large a pool may grow, so that everything accepted can always be journaled, sent and read.

A request for more is refused at once: a leader that found out later, at its next snapshot, would
end, and so would each of its successors.
"""

from collections.abc import Sequence

from tenure.base.keys import KEY_BYTES, Key

RANGES_PER_TABLE = 1 << 17
"""The paper's 2,000 owners with 64 virtual nodes each are 128,000 ranges."""

RANGES_PER_PLAN = RANGES_PER_TABLE * 15 // 16
"""The most ranges of the table and a plan laid over it: the rest is for changes while a plan is
made.
"""

BOUND_BYTES_PER_TABLE = 4 << 20
"""The most bytes of the bounds of an ordered pool's ranges. An owner that has all of them lists
each bound twice, and that request must stay below `wire.limits.REQUEST_BYTES`."""

BOUND_BYTES_PER_PLAN = BOUND_BYTES_PER_TABLE * 15 // 16
"""The most of them in the table and a plan laid over it: policies cut at keys that owners report,
and these may be long."""

STARTS_BYTES = 2 * BOUND_BYTES_PER_TABLE
"""The most bytes of the starts of all ranges of a table, in one column: twice as many as a pool may
have, so that a lookup never refuses what a manager has.
"""
RANGES_PER_REPORT = 1 << 12
"""The most ranges whose load an owner reports: sixty-four times the paper's virtual nodes. The
report travels in the request that lists all leases, and must not crowd them out.
"""
KEYS_PER_REPORT = 1 << 8
"""The most hot keys in it: eight times as many as owners report. A manager keeps them for a while.
"""
SAMPLE_PER_REPORT = 1 << 7
"""The most sampled keys in it: twice as many as owners of ordered pools report."""
HOT_NAMES, HOT_NAME_CHARACTERS = 8, 256
"""The most of these whose names are told, and how long one may be: they are for people."""
REQUESTS = "requests"
"""The metric that is counted when an owner names none."""
LEVELS_PER_REPORT, METRIC_CHARACTERS = 2, 32
"""The most metrics beside requests, and how long the name of one may be: the leader keeps a picture
of each, as large as that of the requests."""
LABELS_PER_OWNER = 64
LABEL_CHARACTERS = 200
"""Labels say where an owner runs (zone, version, host); they are repeated in every record of it."""
CLASS_LABEL, CLASS_VERSION_LABEL = "tenure.class", "tenure.class-version"
"""The labels with which owners of entities say the name of their class, and its version."""
CAPACITY_LABEL = "tenure.capacity."
"""What comes before the metric in the labels that say an owner's capacity for others than requests.
"""

CHUNK_BYTES = 4 << 20
"""A chunk of state from owner to owner. A receiver has a handful of chunks for each of a handful of
ranges in memory. A sender encodes one in the application's event loop, which takes some
milliseconds.
"""
STATE_BYTES = 4 << 30
"""The state of one range, unless an owner is told another bound: it keeps what comes, and whoever
sends it may send without end.
"""

POOLS_PER_MANAGER = 1 << 12
"""The most pools: each is looked at whenever anything becomes due, and one owner may ask for as
many as it likes if pools are made by their first owner."""

OWNERS_PER_POOL = 1 << 15
"""The most owners of a pool: sixteen times the paper's 2,000, for pools of small processes."""

OWNER_CHARACTERS_PER_POOL = 8 << 20
"""The most characters of names, labels and addresses of any kind. A snapshot for a lookup repeats
all but the labels: 256 characters for each owner of a full pool, and 32 MiB if each character takes
four bytes."""

GONE_NAMES_PER_POOL = 1 << 13
"""The most names that are remembered of owners that are gone: all owners of the paper's pool, four
times within the minutes for which a name is remembered. Whoever may join can come under another
name each time.
"""

SPLIT_POINTS_PER_POOL = 1 << 16
"""The most split points: half of all ranges, since the rest is for later moves."""

PINNED_KEY_BYTES = KEY_BYTES - 1
"""The range of one key ends at the key that follows it, which is a byte longer."""


def wrong_with_points(split_points: Sequence[Key]) -> str | None:
    """The reason why a pool cannot be cut at these points; None if it can."""
    if len(split_points) > SPLIT_POINTS_PER_POOL:
        return f"{len(split_points)} split points; at most {SPLIT_POINTS_PER_POOL} are allowed"
    if sum(map(len, split_points)) > BOUND_BYTES_PER_TABLE // 2:
        return (
            f"split points of {sum(map(len, split_points))} bytes in all; at most "
            f"{BOUND_BYTES_PER_TABLE // 2} are allowed; choose fewer or shorter ones"
        )
    longest = max(map(len, split_points), default=0)
    if longest <= KEY_BYTES:
        return None
    return f"a split point of {longest} bytes; at most {KEY_BYTES} are allowed; choose shorter ones"
