"""All that is kept of one entity: its state, and what another owner needs to continue its calls,
alarms and sockets as if nothing had happened. It moves with the key, and is stored as one value.

An envelope never changes: an operation makes a new one, `after` its changes, which is stored whole
or not at all. A process that fails in between has changed nothing.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from tenure.protocol.entity.items import ItemTable
from tenure.protocol.entity.socket_entry import Frame, SocketEntry
from tenure.protocol.entity.socket_table import SocketTable

_encode = msgspec.msgpack.Encoder().encode
MOST_ANSWERS = 64
ANSWER_SECONDS = 600.0
"""How many answers of a key are kept at least, and for how long: callers give up repeating a call
sooner.
"""
ANSWERS_BYTES = 1 << 20
"""The most bytes of all answers of a key. The newest answer is kept in any case."""
SOCKETS_BYTES = 3 << 19
"""The most bytes of all sockets of a key when it moves: beside a state and answers of a mebibyte
each, and alarms of half of one, they fit in a chunk.
"""
ENTRY_BYTES, CHARACTER_BYTES = 256, 4
"""The most bytes of a socket, or a frame, around its content, and of a character."""


class KeptAnswer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first answer to a call."""

    at: float
    data: bytes | None
    """None if the call has committed a part of its work, and has not ended."""

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.data) if self.data else 0


Answers: TypeAlias = tuple[dict[bytes, KeptAnswer], ...]
"""Answers by the ids of calls, some together, the oldest first: keeping one more copies few of
them. Large ones are apart, so that they go one by one.
"""
TOGETHER = 8


class SetAlarm(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An alarm that has not been handled yet. Instants are wall time, in seconds."""

    due: float
    next_at: float
    """When the alarm rings; later than it was due if its handler has failed."""
    attempts: int = 0


class Push(NamedTuple):
    """Frames for the sockets of one edge: for each of these, the number of the first frame."""

    edge: str
    frames: tuple[Frame, ...]
    sockets: tuple[tuple[bytes, int, int], ...]
    """The id of each socket, the number of its first frame, and the code to close it with, or 0."""


class TurnChanges:
    """The changes that an operation is to make, besides the state."""

    __slots__ = (
        "alarms",
        "answers",
        "closed",
        "frames",
        "gone",
        "items",
        "numbers",
        "opened",
        "received",
    )

    def __init__(self) -> None:
        self.alarms: dict[str, SetAlarm | None] = {}
        self.frames: dict[bytes, tuple[Frame, ...]] = {}
        self.closed: dict[bytes, int] = {}
        self.opened: dict[bytes, SocketEntry] = {}
        self.received: tuple[bytes, int] | None = None
        self.gone: bytes | None = None
        self.items: dict[str, dict[bytes, bytes]] = {}
        """What is at these places of collections from now on, by their names."""
        self.numbers: dict[str, int] = {}
        """The last number that each of these collections has given; 0 if it numbers nothing."""
        self.answers: tuple[tuple[bytes, KeptAnswer], ...] = ()
        """Answers that another pool has given, with the ids of their calls."""

    def __bool__(self) -> bool:
        return bool(
            self.alarms
            or self.frames
            or self.items
            or self.answers
            or self.closed
            or self.opened
            or self.received
            or self.gone
        )

    def add(self, later: "TurnChanges") -> None:
        """Make these changes, too, after the others."""
        for socket, frames in later.frames.items():
            self.frames[socket] = (*self.frames.get(socket, ()), *frames)
        self.alarms.update(later.alarms)
        self.closed.update(later.closed)
        self.opened.update(later.opened)
        self.received = later.received or self.received
        self.gone = later.gone or self.gone
        for name, items in later.items.items():
            self.items.setdefault(name, {}).update(items)
        self.numbers.update(later.numbers)
        self.answers = (*self.answers, *later.answers)


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """All that is kept of one entity."""

    number: int = 0
    journal: int = 0
    """The journal of the lease under which it was kept."""
    state: bytes = b""
    """Empty before any was kept."""
    latest: float = 0.0
    """The latest wall time that the entity was told: it is told no earlier one."""
    answers: Answers = ()
    alarms: Mapping[str, SetAlarm] = {}
    sockets: Mapping[bytes, SocketEntry] = {}
    answers_bytes: int = 0
    """The bytes that the answers take."""
    step: int = 0
    """A number that rises by one each time the envelope is stored or loaded. A store keeps an
    envelope only over the one before it, so a late write that its caller has given up changes
    nothing."""
    collections: Mapping[str, int] = {}
    """The collections that have ever had items, and the last number that each has given."""
    items: Mapping[str, Mapping[bytes, bytes]] = {}
    """The items of collections by their places. Where a store has items, these lie over them."""

    def answer_to(self, call: bytes) -> KeptAnswer | None:
        """The answer to the call of this id."""
        for some in self.answers:
            found = some.get(call)
            if found is not None:
                return found
        return None

    def counts(self, number: int, since: int, journal: int) -> bool:
        """Whether the envelope is of an unbroken time up to the lease of this number."""
        return self.journal == journal and since <= self.number <= number

    def next_alarm(self) -> float | None:
        """When the first alarm rings."""
        return min((each.next_at for each in self.alarms.values()), default=None)

    def due_alarm(self, now: float) -> str | None:
        """The alarm that is to be handled first."""
        due = [(each.next_at, name) for name, each in self.alarms.items() if each.next_at <= now]
        return min(due)[1] if due else None

    def after(
        self,
        changes: TurnChanges | None,
        state: bytes,
        lease: tuple[int, int],
        latest: float,
        answer: tuple[bytes, KeptAnswer, bool] | None,
        *,
        over_store: bool = False,
    ) -> "tuple[Envelope, list[Push]]":
        """This envelope with the changes, kept under `lease` (number and journal); and the frames
        to send. `answer` is the id of a call, its answer, and whether the envelope may know the id.
        `over_store` says that its items lie over those of a store.
        """
        sockets, pushes = self._sockets_after(changes) if changes else (self.sockets, [])
        alarms = self.alarms
        if changes and changes.alarms:
            merged = {**alarms, **changes.alarms}
            alarms = {name: each for name, each in merged.items() if each is not None}
        answers, size = self.answers, self.answers_bytes
        for call, each in changes.answers if changes else ():
            answers, size = with_answer(answers, size, call, each)
        if answer is not None:
            answers, size = with_answer(answers, size, *answer)
        latest = max(latest, self.latest)
        collections, items = self.collections, self.items
        if changes and changes.items:
            collections = {**collections, **changes.numbers}
            items = self._items_after(changes.items, keeps_gone=over_store)
        new = Envelope(
            *lease, state, latest, answers, alarms, sockets, size, self.step, collections, items
        )
        return new, pushes

    def _items_after(
        self, changed: Mapping[str, Mapping[bytes, bytes]], *, keeps_gone: bool
    ) -> dict[str, ItemTable]:
        tables = {name: ItemTable.of(items) for name, items in self.items.items()}
        for name, items in changed.items():
            table = tables.get(name) or ItemTable()
            tables[name] = table.after(items, keeps_gone=keeps_gone)
        return tables

    def _sockets_after(self, changes: TurnChanges) -> "tuple[SocketTable, list[Push]]":
        there = SocketTable.of(self.sockets)
        changed: dict[bytes, SocketEntry | None] = {**changes.opened}
        if changes.received is not None:
            socket, number = changes.received
            entry = changed.get(socket) or there.get(socket)
            if entry is not None:
                changed[socket] = msgspec.structs.replace(entry, received=number)
        groups: dict[tuple[str, tuple[Frame, ...]], list[tuple[bytes, int, int]]] = {}
        for socket in {**changes.frames, **changes.closed}:
            before = changed.get(socket) or there.get(socket)
            if before is None or before.closing:
                continue
            frames = changes.frames.get(socket, ())
            changed[socket] = new = before.sending(frames, changes.closed.get(socket, 0))
            sent = frames if new.sent > before.sent else ()
            where = groups.setdefault((before.edge, sent), [])
            where.append((socket, before.sent + 1, new.closing))
        if changes.gone is not None:
            changed[changes.gone] = None
        return there.after(changed), [Push(*to, tuple(those)) for to, those in groups.items()]

    def plain(self) -> "Envelope":
        """The envelope as encoders take it."""
        sockets = self.sockets
        if isinstance(sockets, SocketTable):
            sockets = sockets.plain()
        elif not self.items:
            return self
        items = {name: ItemTable.of(each).plain() for name, each in self.items.items()}
        return msgspec.structs.replace(self, sockets=sockets, items=items)

    def in_tables(self) -> "Envelope":
        """The envelope that was decoded, with its items in tables."""
        items = {name: ItemTable.of(each) for name, each in self.items.items()}
        return msgspec.structs.replace(self, items=items) if items else self

    @property
    def items_size(self) -> int:
        """The bytes of its items."""
        return sum(ItemTable.of(each).size for each in self.items.values())

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return not (self.state or self.answers or self.alarms or self.sockets or self.collections)

    def light(self) -> "Envelope":
        """The envelope, so that it fits in a message to the next owner.

        An edge that has not confirmed what is left out is told that it is unknown, and so are all
        if there are too many: their clients are asked to connect again.
        """
        plain = self.plain()
        sockets = plain.sockets
        if _may_exceed(sockets) and len(_encode(sockets)) > SOCKETS_BYTES:
            replace = msgspec.structs.replace
            sockets = {id_: replace(each, unread=()) for id_, each in sockets.items()}
            if len(_encode(sockets)) > SOCKETS_BYTES:
                sockets = {}
            return replace(plain, sockets=sockets)
        return plain

    def confirmed(self, received: Mapping[bytes, int]) -> "Envelope":
        """The envelope, if the edges have all frames up to these numbers; sockets that were closed
        and read are forgotten.
        """
        changed: dict[bytes, SocketEntry | None] = {}
        for socket, number in received.items():
            entry = self.sockets.get(socket)
            if entry is not None:
                new = entry.confirmed(number)
                if new.closing and not new.unread:
                    changed[socket] = None
                elif new is not entry:
                    changed[socket] = new
        if not changed:  # as for most questions of an edge
            return self
        sockets = SocketTable.of(self.sockets).after(changed)
        return msgspec.structs.replace(self, sockets=sockets)


def _may_exceed(sockets: Mapping[bytes, SocketEntry]) -> bool:
    """Whether their bytes may be too many, without encoding them."""
    room = SOCKETS_BYTES - ENTRY_BYTES * len(sockets)
    for each in sockets.values():
        room -= len(each.attachment)
        if each.unread:
            room -= CHARACTER_BYTES * sum(map(len, each.unread)) + ENTRY_BYTES * len(each.unread)
    return room < 0


def with_answer(
    answers: Answers,
    size: int,
    call: bytes,
    new: KeptAnswer,
    is_known: bool = True,  # noqa: FBT001, FBT002  # by position, which costs less
) -> tuple[Answers, int]:
    """The answers with one more, without those that are too old or too many; and their size."""
    size += new.size
    if is_known and new.data is not None:
        answers = _without(answers, call)  # which is there if it has committed a part before
    if answers and len(answers[-1]) < TOGETHER and size <= ANSWERS_BYTES:
        answers = (*answers[:-1], {**answers[-1], call: new})
    else:
        answers = (*answers, {call: new})
    horizon = new.at - ANSWER_SECONDS
    while len(answers) > 1:
        newest = next(reversed(answers[0].values())).at if answers[0] else 0.0
        too_many = len(answers) > MOST_ANSWERS // TOGETHER + 1
        if not (newest < horizon or too_many or size > ANSWERS_BYTES):
            break
        size -= sum(it.size for it in answers[0].values())
        answers = answers[1:]
    return answers, size


def _without(answers: Answers, call: bytes) -> Answers:
    for some in answers:
        if call in some:
            return tuple({id_: it for id_, it in each.items() if id_ != call} for each in answers)
    return answers
