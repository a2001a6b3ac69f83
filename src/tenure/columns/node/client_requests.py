"""Client requests: what clients ask of a node, from when they say it until it is answered.

What begins, and when, is decided by a `RequestLine`.
"""

import asyncio
from collections.abc import Callable

import msgspec

from tenure.columns.node.request_line import RequestLine
from tenure.protocol.replication.messages import ClientRequest, Failed
from tenure.protocol.replication.node_events import StoreAsked
from tenure.runtime.clock import Clock
from tenure.wire.columns import ToStoreClient


class ClientRequests:
    """Begins requests with `begin`, and says with `answer` which are not begun."""

    def __init__(
        self,
        begin: Callable[[StoreAsked], None],
        answer: Callable[[int, ToStoreClient], object],
        wall: Callable[[], int],
        clock: Clock,
    ) -> None:
        self._begin = begin
        self._answer = answer
        self._wall = wall
        self._clock = clock
        self._line = RequestLine()
        self._goes_on = False

    def ask(self, client: int, request: ClientRequest, whose: str, places: int) -> None:
        """A client has asked this, which takes so many places."""
        asked = StoreAsked(client, request, self._wall(), whose, places)
        where = self._line.put(self._clock(), asked)
        if where == "begins":
            self._begin(asked)
        elif where == "is refused":
            self._refuse(asked)

    def answered(self, client: int, size: int) -> None:
        """A request of this client was answered by so many bytes."""
        self._line.answered(client, size)
        self._go_on()

    def left(self, client: int) -> None:
        """The client has gone."""
        self._line.left(client)

    def _go_on(self) -> None:
        """Begin what stands in line, one at a time, with everything else in between."""
        if not self._goes_on and self._line.has_next():
            self._goes_on = True
            asyncio.get_running_loop().call_soon(self._begin_next)

    def _begin_next(self) -> None:
        self._goes_on = False
        for late in self._line.late(self._clock()):
            self._refuse(late)
        asked = self._line.next()
        if asked is not None:
            self._begin(msgspec.structs.replace(asked, wall_us=self._wall()))
        self._go_on()

    def _refuse(self, asked: StoreAsked) -> None:
        self._answer(asked.client, Failed(request=asked.request.request, why="overloaded"))
