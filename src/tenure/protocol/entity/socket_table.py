"""The sockets of one entity, of which there may be many thousands.

An envelope never changes, so each change of a socket makes a new table. If that copied all of them,
the ten-thousandth to connect would cost what the first two thousand did together. So the sockets
are in parts, by a byte of their ids, which are drawn at random; a change copies the parts that it
touches, and shares the others. A few sockets are one part, in the order in which they came.
"""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from itertools import chain
from typing import Any

from tenure.protocol.entity.socket_entry import SocketEntry

MOST_PARTS = 256
"""As many as a byte tells apart."""
PART_SOCKETS = 64
"""The sockets in a part, on average, above which there are four times as many parts: copying so
many costs about as much as the rest of a change."""
GROWTH = 4


class SocketTable(Mapping[bytes, SocketEntry]):
    """A mapping that never changes from the ids of sockets to what is known of them."""

    __slots__ = ("_count", "_parts")

    def __init__(self, parts: tuple[dict[bytes, SocketEntry], ...] = ({},), count: int = 0) -> None:
        self._parts = parts
        self._count = count

    @classmethod
    def of(cls, sockets: Mapping[bytes, SocketEntry]) -> "SocketTable":
        """The table of these sockets."""
        return sockets if isinstance(sockets, cls) else cls().after(sockets)

    def __getitem__(self, id_: bytes) -> SocketEntry:
        return self._parts[_part(id_, len(self._parts))][id_]

    def get(self, key: bytes, default: Any = None, /) -> Any:  # noqa: ANN401  # of Mapping
        """See `Mapping`, whose own takes three calls: a broadcast asks for every socket, twice."""
        return self._parts[_part(key, len(self._parts))].get(key, default)

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return self._count

    def plain(self) -> dict[bytes, SocketEntry]:
        """All of them in one dict, which encoders take."""
        found: dict[bytes, SocketEntry] = {}
        for each in self._parts:
            found.update(each)
        return found

    def items(self) -> ItemsView[bytes, SocketEntry]:
        """See `Mapping`, whose own looks each of them up."""
        return self.plain().items()

    def values(self) -> ValuesView[SocketEntry]:
        """See `Mapping`, whose own looks each of them up."""
        return self.plain().values()

    def after(self, changed: Mapping[bytes, SocketEntry | None]) -> "SocketTable":
        """The table with these sockets as they are now; None for one that is gone."""
        parts, number = list(self._parts), len(self._parts)
        own: dict[int, dict[bytes, SocketEntry]] = {}
        """The parts that are copied already."""
        for id_, entry in changed.items():
            i = _part(id_, number)
            if i not in own:
                own[i] = parts[i].copy()
            if entry is None:
                own[i].pop(id_, None)
            else:
                own[i][id_] = entry
        count = self._count
        for i, part in own.items():
            count += len(part) - len(parts[i])
            parts[i] = part
        return SocketTable(tuple(parts), count).divided()

    def divided(self) -> "SocketTable":
        """The table in as many parts as it needs."""
        number = len(self._parts)
        wanted = number
        while self._count > PART_SOCKETS * wanted and wanted < MOST_PARTS:
            wanted *= GROWTH
        while wanted > 1 and self._count * GROWTH * GROWTH < PART_SOCKETS * wanted:
            wanted //= GROWTH
        if wanted == number:
            return self
        parts: tuple[dict[bytes, SocketEntry], ...] = tuple({} for _ in range(wanted))
        for id_, entry in self.items():
            parts[_part(id_, wanted)][id_] = entry
        return SocketTable(parts, self._count)


def _part(id_: bytes, parts: int) -> int:
    return id_[-1] & (parts - 1) if id_ else 0
