"""The line of requests that a node has not begun yet, of each client one after the other.

A client asks in a few bytes for as much as it likes, and may leave, or ask another node, before it
is answered. Whatever was begun for it would go on. So only some of its requests are begun at once:
as many as bring no more than a bound, by what its last answers had. The others stand in line here.
They go when their client goes, and after a while they are told that nothing was begun.

Clients that stand in line take turns. One request begins in each pass of the loop, because what it
reads may be much.

The line is of one connection. What names it is the node's number for the connection; tokens and
addresses have places of their own (`request_room`).
"""

from collections import deque
from typing import Literal, NamedTuple, TypeAlias

from tenure.base.instants import Instant, seconds
from tenure.protocol.replication.node_events import StoreAsked
from tenure.protocol.replication.request_room import RequestPlaces

AT_FIRST = 64
"""The requests that are begun at once for a client of whose answers nothing is known."""
AT_ONCE = 512
"""The most for one whose answers are small. Of a range without a quorum a request takes five
seconds, and it must not hold up those for all other ranges.
"""
KEPT_PART = 0.75
"""The part of a size that counts after a smaller answer: a client may mix what it asks for."""
BROUGHT_BYTES = 64 << 20
"""How much those that are begun may bring together: two rows of the largest answers."""
PATIENCE_NS = seconds(5)
"""How long a request stands in line: for so long a begun one is tried (`NodeConfig`), and its
client asks another node after that.
"""
PLACES = 1_000
"""The most places (`places_of`) of requests that stand in line."""
Where: TypeAlias = Literal["begins", "waits", "is refused"]


class LinedRequest(NamedTuple):
    asked: StoreAsked
    since: Instant


class LinedClient:
    def __init__(self) -> None:
        self.begun = 0
        self.answer_bytes: int | None = None
        """How large its answers were lately; None before the first."""
        self.waiting: deque[LinedRequest] = deque()

    @property
    def may_begin(self) -> bool:
        return self.begun < at_once(self.answer_bytes)


def at_once(answer_bytes: int | None) -> int:
    """How many requests of a client are begun at once whose last answers had so many bytes."""
    if answer_bytes is None:
        return AT_FIRST
    return max(1, min(AT_ONCE, BROUGHT_BYTES // max(1, answer_bytes)))


class RequestLine:
    """Decides which requests are begun; see above."""

    def __init__(self, places: int = PLACES) -> None:
        self._places = RequestPlaces(places)
        self._clients: dict[int, LinedClient] = {}
        self._lined: dict[int, LinedClient] = {}
        """Those with something in line: the one that is looked at next is the first."""

    def put(self, now: Instant, asked: StoreAsked) -> Where:
        """Say what becomes of a request."""
        client = self._clients.setdefault(asked.client, LinedClient())
        if client.may_begin and not client.waiting:
            client.begun += 1
            return "begins"
        if not self._places.take(asked.by, asked.places):
            return "is refused"
        client.waiting.append(LinedRequest(asked, now))
        self._lined[asked.client] = client
        return "waits"

    def has_next(self) -> bool:
        """Whether anything that stands in line may begin."""
        return any(client.may_begin for client in self._lined.values())

    def next(self) -> StoreAsked | None:
        """Take out what begins next. Every client has its turn."""
        for number, client in self._lined.items():
            if client.may_begin:
                client.begun += 1
                return self._out(number, client)
        return None

    def late(self, now: Instant) -> list[StoreAsked]:
        """Take out what has stood in line for too long."""
        found = []
        for number, client in list(self._lined.items()):
            while client.waiting and now >= client.waiting[0].since + PATIENCE_NS:
                found.append(self._out(number, client))
        return found

    def answered(self, number: int, size: int) -> None:
        """A request of this client that was begun was answered by so many bytes."""
        client = self._clients.get(number)
        if client is not None:
            client.begun -= 1
            client.answer_bytes = max(size, int(KEPT_PART * (client.answer_bytes or 0)))

    def left(self, number: int) -> None:
        """The client has gone: nothing more is begun for it."""
        client = self._clients.pop(number, None)
        while client is not None and client.waiting:
            self._out(number, client)

    def _out(self, number: int, client: LinedClient) -> StoreAsked:
        asked = client.waiting.popleft().asked
        self._places.leave(asked.by, asked.places)
        del self._lined[number]
        if client.waiting:  # others come first
            self._lined[number] = client
        return asked
