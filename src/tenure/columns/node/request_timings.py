"""How long the requests of clients take at a node, by kind, level and outcome, for `/metrics`.

A request counts when it is answered, so what a client never hears of is not in the figures. What
takes long is also logged, with its row's key as a hash: whoever knows a key can find its lines, and
a log says nothing of the keys to others.
"""

import logging
from collections import defaultdict
from hashlib import blake2b
from typing import NamedTuple

from tenure.base.instants import MILLISECOND_NS, SECOND_NS, Instant, seconds
from tenure.observe.events import printable
from tenure.observe.metrics import Histogram
from tenure.protocol.replication.messages import ClientRequest, Failed, NotWritten, ReadRows
from tenure.transport.rate_bound import RateBound
from tenure.wire.columns import ToStoreClient

_log = logging.getLogger("tenure.columns")
SLOW_SECONDS = 1.0
LINES_A_SECOND = 1.0
LINES_AT_ONCE = 60
"""The lines about slow requests: on a slow disk every request is one."""
HASH_BYTES = 8


class Timed(NamedTuple):
    """What requests are told apart by."""

    request: str
    level: str
    outcome: str


class RequestBegun(NamedTuple):
    """A request that is not answered. What it writes is not kept here: that may be large."""

    at: Instant
    request: str
    table: str
    level: str
    key: bytes | None
    """None for a scan."""


class RequestTimings:
    """The requests of all clients of a node that it has not answered, and how long others took."""

    def __init__(self, slow_seconds: float) -> None:
        self._slow_ns = seconds(slow_seconds)
        self._begun: defaultdict[int, dict[int, RequestBegun]] = defaultdict(dict)
        """By client and number."""
        self._lines = RateBound(LINES_A_SECOND, LINES_AT_ONCE)
        self.taken: defaultdict[Timed, Histogram] = defaultdict(Histogram)
        self.slow = 0
        """How many took longer than that."""

    @property
    def under_way(self) -> int:
        return sum(map(len, self._begun.values()))

    def asked(self, now: Instant, client: int, request: ClientRequest) -> None:
        key = None if isinstance(request, ReadRows) else request.key
        begun = RequestBegun(now, type(request).__name__, request.table, request.level, key)
        self._begun[client][request.request] = begun

    def answered(self, now: Instant, client: int, answer: ToStoreClient) -> None:
        begun = self._begun[client].pop(answer.request, None) if client in self._begun else None
        if begun is None:
            return  # an opening, which may wait for a manager, or something that nobody asked for
        timed = Timed(begun.request, begun.level, _outcome(answer))
        self.taken[timed].observe((now - begun.at) / SECOND_NS)
        if now - begun.at >= self._slow_ns:
            self.slow += 1
            if self._lines.allows(now):
                self._log_slow(begun, now, timed.outcome)

    def _log_slow(self, begun: RequestBegun, now: Instant, outcome: str) -> None:
        _log.warning(
            "slow: %s of %s in %s at %s took %d ms: %s",
            begun.request,
            "all rows" if begun.key is None else f"the row #{key_hash(begun.key)}",
            printable(begun.table),  # whatever a client says: the table may be none
            begun.level,
            (now - begun.at) // MILLISECOND_NS,
            outcome,
        )

    def gone(self, client: int) -> None:
        """The client has left, and hears no answer."""
        self._begun.pop(client, None)


def _outcome(answer: ToStoreClient) -> str:
    if isinstance(answer, Failed):
        return answer.why
    return "not written" if isinstance(answer, NotWritten) else "done"


def key_hash(key: bytes) -> str:
    """The key of a row, as the log has it."""
    return blake2b(key, digest_size=HASH_BYTES).hexdigest()
