"""The room of a node for requests: how many it coordinates at once, and what they bring.

A request takes *places*, of which one name, that of a token or an address, never has all.

A read is asked in a few bytes, and brings up to 32 MiB from each replica, or a whole row, of any
size. So places are not enough. A node says to each replica how many bytes the answer may have; a
replica that has more says only that it has. A request keeps a *little* in each of its places. For a
page it needs one of a few places for pages, and for more than a page the one place for whole rows.
Until it has that, it waits, and so do later reads of the same name: otherwise each of them would be
begun for nothing.

While many places for pages are free, a read takes one before it asks: then it asks once.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Literal, TypeAlias

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.replication.messages import ClientRequest, ReadRows
from tenure.protocol.replication.row.limits import PAGE_BYTES, VALUE_BYTES, WHOLE_BYTES

LITTLE_BYTES = 256 << 10
"""What comes with each place of a request: a thousand have 256 MiB, in what is asked and found."""
PAGE_ANSWER_BYTES = PAGE_BYTES + VALUE_BYTES + (1 << 20)
"""A page ends with the column that brings it above its bound. Names and markers have the rest."""
ROWS_AT_ONCE = 16
"""The most rows that a scan reads side by side, each of which may bring a little."""

Size: TypeAlias = Literal["little", "page", "whole"]
_NEXT: dict[Size, Size] = {"little": "page", "page": "whole"}
_MOST: dict[Size, int] = {"page": PAGE_ANSWER_BYTES, "whole": WHOLE_BYTES}


def places_of(request: ClientRequest, size: int) -> int:
    """How many places a request of so many bytes takes: it may keep a little in each."""
    rows = min(request.part.first, ROWS_AT_ONCE) if isinstance(request, ReadRows) else 1
    return rows + size // LITTLE_BYTES


class RequestPlaces:
    """Places, and who has them.

    One client could take all of them, with requests that are as slow as they can be. So a name may
    have so many times as many as are left. Whoever is alone has most of them, and there are always
    some for whoever comes. (Choudhury and Hahne bound the queues of a switch in this way.)
    """

    TIMES = 3
    """One name has three quarters at most, and two that take all they can have 43 % each."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._by: Counter[str] = Counter()
        self.taken = 0

    @property
    def are_many_left(self) -> bool:
        """Whether less than half of them are taken."""
        return 2 * self.taken < self._count

    def has_room(self, name: str, places: int) -> bool:
        left = self._count - self.taken - places
        return left >= 0 and self._by[name] + places <= self.TIMES * left

    def take(self, name: str, places: int) -> bool:
        if not self.has_room(name, places):
            return False
        self._by[name] += places
        self.taken += places
        return True

    def leave(self, name: str, places: int) -> None:
        self.taken -= places
        self._by[name] -= places
        if not self._by[name]:
            del self._by[name]


class Portion:
    """What one request may keep of what replicas bring: a little, until it has more."""

    def __init__(self, room: "RequestRoom | None" = None, name: str = "", places: int = 1) -> None:
        """Without a room it stays a little."""
        self._room = room
        self.name = name
        self.places = places
        self.size: Size = "little"
        self.most_bytes = places * LITTLE_BYTES
        """The most bytes that the next answer may have."""
        self._then: Callable[[], None] | None = None
        """Called when there is room; None while nothing is waited for."""

    @property
    def is_waiting(self) -> bool:
        return self._then is not None

    def keep(self, size: int) -> None:
        """So much was brought."""
        if self.size == "little":
            self.most_bytes = max(self.most_bytes - size, 1)

    def may_ask(self) -> bool:
        """Whether it may ask now. Otherwise it has no room left, or is behind others of its name,
        and should grow.
        """
        if self.size != "little" or self._room is None:
            return True
        return self.most_bytes > 1 and not self._room.has_waiting(self.name)

    def can_grow(self) -> bool:
        return self._room is not None and self.size in _NEXT

    def grow(self, then: Callable[[], None]) -> None:
        """Wait for the next size, and call `then`."""
        assert self._room is not None
        if self._then is None:
            self._then = then
            self._room.put(self)

    def grown(self, size: Size) -> None:
        then, self._then = self._then, None
        self.size, self.most_bytes = size, _MOST[size]
        if then is not None:
            then()

    def give_back(self) -> None:
        """The request is answered."""
        if self._room is not None:
            self._room.take_back(self)
        self._room, self._then = None, None


class RequestRoom:
    def __init__(self, requests: int, pages: int) -> None:
        self.places = RequestPlaces(requests)
        """The places of the requests of clients that are not answered."""
        self._pages = RequestPlaces(pages)
        self._whole: Portion | None = None
        """The request that has the place for whole rows."""
        self._waiting: dict[str, deque[Portion]] = {}
        """By name: the one that is looked at next is the first."""
        self.due_at = FAR_FUTURE
        """When somebody who waits is let in: at once, but by an alarm, and one at a time. What it
        reads may take long, and everything else in the process has its turn in between.
        """

    def admit(self, name: str, places: int, *, reads: bool) -> Portion | None:
        """The portion of a request; None if it may not have its places."""
        if not self.places.take(name, places):
            return None
        portion = Portion(self, name, places)
        if reads and self._pages.are_many_left:  # then it needs not ask for a little first
            self._give(portion, "page")
        return portion

    def let_in(self) -> None:
        """Let in the first for whom there is room."""
        for name, waiting in list(self._waiting.items()):
            if self._has_room(waiting[0]):
                portion = waiting.popleft()
                del self._waiting[name]
                if waiting:  # other names come first
                    self._waiting[name] = waiting
                self._give(portion, _NEXT[portion.size])
                return

    def has_waiting(self, name: str) -> bool:
        return name in self._waiting

    def put(self, portion: Portion) -> None:
        """Let it wait."""
        self._waiting.setdefault(portion.name, deque()).append(portion)
        self._look()

    def take_back(self, portion: Portion) -> None:
        """Take back its places, or that it waits."""
        self.places.leave(portion.name, portion.places)
        if portion.size != "little":
            self._pages.leave(portion.name, 1)
        if self._whole is portion:
            self._whole = None
        waiting = self._waiting.get(portion.name)
        if waiting is not None and portion.is_waiting:
            waiting.remove(portion)
            if not waiting:
                del self._waiting[portion.name]
        self._look()

    def _give(self, portion: Portion, size: Size) -> None:
        if size == "whole":
            self._whole = portion
        else:
            taken = self._pages.take(portion.name, 1)
            assert taken, "there is room"
        self._look()
        portion.grown(size)

    def _look(self) -> None:
        is_due = any(self._has_room(each[0]) for each in self._waiting.values())
        self.due_at = Instant(0) if is_due else FAR_FUTURE

    def _has_room(self, portion: Portion) -> bool:
        if portion.size == "page":
            return self._whole is None
        return self._pages.has_room(portion.name, 1)
