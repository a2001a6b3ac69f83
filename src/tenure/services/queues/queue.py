"""A queue: entries in order, each delivered again until it is acknowledged, to one reader.

Once a message is enqueued, the reader gets it, or a loss in its place (Centrifuge 4.3). A new queue
has a loss as its first entry, because nobody can know whether the key had an earlier queue whose
owner has crashed.
"""

import asyncio
from contextlib import suppress
from itertools import chain
from typing import Annotated, ClassVar, TypeAlias, TypeVar

import msgspec

from tenure import Socket, reading
from tenure.errors import MALFORMED, ServiceRefusal
from tenure.services.expiring import Expiring, ExpiringEntity
from tenure.services.limits import KEY_BYTES, NONE_REFUSED, TOO_LARGE, TOO_MANY, ServiceLimit
from tenure.services.lives import new_name
from tenure.services.problems import ServiceProblem
from tenure.services.queues.entries import (
    ENTRIES,
    NOTHING_REACHED,
    QUEUE_BYTES,
    EntryShown,
    QueueEntry,
    QueueLoss,
    SourcePlace,
    SourceReached,
    with_room,
)
from tenure.services.queues.watched_pools import Watched, WatchedPools

MESSAGE_BYTES = ServiceLimit(
    "message_bytes", 64 * 1024, TOO_LARGE, "messages say what has changed, and where to read it"
)
WATCHED_KEYS = ServiceLimit(
    "watched_keys", 256, TOO_MANY, "all are compared whenever a pool has lost something"
)
IDS = ServiceLimit(
    "ids", 1000, NONE_REFUSED, "a repeat of one of the last so many messages is known"
)
SOURCES = ServiceLimit(
    "sources", 256, NONE_REFUSED, "the queue knows the progress of that many sources"
)
LIMITS = (ENTRIES, QUEUE_BYTES, MESSAGE_BYTES, WATCHED_KEYS, IDS, SOURCES)
WINDOW = 64
WINDOW_BYTES = 96 * 1024
"""How much is sent to a socket before it acknowledges: less than the limit of what may be on its
way to one.
"""
TAKEN_OVER = 4409
"""The code with which the socket of a former reader is closed."""
T = TypeVar("T")
Reader: TypeAlias = str
"""A reader's number in a life of the queue, as text: the newest has the highest."""
NUMBER_DIGITS = 20
UNNAMED: Reader = "new"
"""A reader that takes nothing over before it has a name."""
BEGAN_ANEW = "began_anew"
"""The refusal of a reader of an earlier life of the queue."""


class QueueState(Expiring):
    life: str = ""
    """The life of the queue: another one each time that the queue begins."""
    entries: list[QueueEntry] = msgspec.field(default_factory=list)
    last: int = 0
    """The number of the newest entry."""
    acknowledged: int = 0
    delivered: int = 0
    """Up to which number the present reader was given entries."""
    reader: int = 0
    """The number of the present reader."""
    named: int = 0
    """The highest number that a reader was given to take over with."""
    socket: bytes = b""
    """The reader's, if it has one."""
    ids: dict[str, int] = msgspec.field(default_factory=dict)
    """The numbers of messages by their ids, the oldest first."""
    watched: Watched = msgspec.field(default_factory=dict)
    sources: dict[str, SourceReached] = msgspec.field(default_factory=dict)
    """The sources of its messages, the one that has been silent for longest first."""


class QueueShown(msgspec.Struct):
    """A queue, from outside."""

    entries: int
    last: int
    acknowledged: int
    expires: float
    watch: dict[str, tuple[str, ...]]
    is_new: bool = False
    leases: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """The number of the lease that each watched key was under when it was looked at last: every
    loss after it is told.
    """


class Enqueued(msgspec.Struct):
    """The fate of a message."""

    number: int
    is_repeat: bool = False


class PutAnswered(msgspec.Struct, omit_defaults=True):
    """The result of one of several messages: it was enqueued, or there is a problem."""

    enqueued: Enqueued | None = None
    problem: ServiceProblem | None = None

    def outcome(self) -> Enqueued | ServiceRefusal:
        """Either of them."""
        if self.enqueued is not None:
            return self.enqueued
        return (self.problem or ServiceProblem(502, "answer", "it says nothing")).raised()


class SignedOn(msgspec.Struct):
    """The reader, and up to which number there is something to read."""

    reader: Reader
    upto: int
    """0 where there is nothing."""
    is_named_anew: bool = False
    """Whether it reads only once it asks under this name."""


class SocketSays(msgspec.Struct, forbid_unknown_fields=True):
    """The words of a reader on its socket."""

    acknowledge: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


_said = msgspec.json.Decoder(SocketSays).decode


class Queue(ExpiringEntity[QueueState]):
    """The queue of one key. A process makes a subclass that knows the pools that it watches."""

    pools: ClassVar[WatchedPools | None] = None

    async def on_activate(self) -> None:
        """Look for losses, because this process may have heard of some while another had the
        queue.
        """
        await super().on_activate()
        if self.state.watched:
            await self.look_for_losses()

    # --- the queue as a whole ---

    async def begin(self, ttl: float, watch: dict[str, list[str]] | None) -> QueueShown:
        """Begin the queue, or keep it for longer; `watch` replaces the keys on which its reader
        relies.
        """
        is_new = self._begin_if_new()
        state = self.state
        self._refresh(ttl or state.ttl or self.usual_ttl)
        if watch is not None:
            _check_watched(watch, 0)
            state.watched = await self._watching().watched(watch) if watch else {}
            await self.look_for_losses()
        return self._shown(is_new=is_new)

    async def watch(self, watch: dict[str, list[str]]) -> QueueShown:
        """Watch these keys too. Raises ServiceRefusal if there is no queue."""
        self._check_there()
        state = self.state
        new = {
            pool: [key for key in keys if key not in {it.key for it in state.watched.get(pool, ())}]
            for pool, keys in watch.items()
        }
        there = sum(len(keys) for keys in state.watched.values())
        _check_watched(new, there)
        found = await self._watching().watched(new)
        state.watched = {**state.watched} | {
            pool: (*state.watched.get(pool, ()), *keys) for pool, keys in found.items()
        }
        await self.look_for_losses()
        return self._shown()

    @reading
    async def look(self) -> QueueShown:
        """How long the queue is. Raises ServiceRefusal if there is no queue."""
        self._check_there()
        return self._shown()

    async def delete(self) -> None:
        """Delete the queue. Raises ServiceRefusal if there is no queue."""
        self._check_there()
        self._end()

    def _end(self) -> None:
        for socket in self.sockets:
            socket.close(TAKEN_OVER)
        if self.pools is not None:
            self.pools.drop(str(self.key))
        super()._end()

    def _begin_if_new(self) -> bool:
        if self.state.life:
            return False
        state = self.state = QueueState()
        state.life = new_name(self.lease)
        self._refresh(self.usual_ttl)
        self._append(loss=QueueLoss(began=True))
        return True

    def _shown(self, *, is_new: bool = False) -> QueueShown:
        state = self.state
        watch = {pool: tuple(it.key for it in keys) for pool, keys in state.watched.items()}
        leases = {
            pool: {it.key: it.standing.number for it in keys}
            for pool, keys in state.watched.items()
        }
        return QueueShown(
            *(len(state.entries), state.last, state.acknowledged, state.expires, watch),
            is_new=is_new,
            leases=leases,
        )

    # --- messages ---

    async def enqueue(
        self,
        message: bytes,
        id: str,  # noqa: A002  # what it is
        place: SourcePlace | None = None,
    ) -> Enqueued:
        """Put a message at the end, unless its id, or its place if it has one, is known already.
        Raises ServiceRefusal if there is no queue, and for a message that its source sent before it
        began another epoch.
        """
        self._check_there()
        known = self.state.ids.get(id) if place is None else self._reached(place)
        if known is not None:
            return Enqueued(known, is_repeat=True)
        MESSAGE_BYTES.check(len(message))
        number = self._append(message)
        if place is None:
            _keep_last(self.state.ids, id, number, IDS)
        else:
            reached = self._source(place).after(place, number)
            _keep_last(self.state.sources, place.name, reached, SOURCES)
        return Enqueued(number)

    def _source(self, place: SourcePlace) -> SourceReached:
        return self.state.sources.get(place.name, NOTHING_REACHED)

    def _reached(self, place: SourcePlace) -> int | None:
        """The newest entry of this source, if the message is in the queue already, or was in an
        earlier life of it: a source goes on only when a message was taken. So a late attempt,
        perhaps by a former owner of the source, puts nothing out of order.
        """
        there = self._source(place)
        if there.is_past(place.epoch):
            raise ServiceRefusal(
                409,
                "late",
                f"{place.source!r:.100} is at epoch {there.epoch}, and this message is of the "
                f"epoch {place.epoch}, which has ended: its reader was told of the loss",
            )
        is_known = place.epoch == there.epoch and place.number <= there.number
        return there.entry if is_known else None

    def _append(self, message: bytes = b"", loss: QueueLoss | None = None) -> int:
        state = self.state
        state.last += 1
        entry = QueueEntry(state.last, self.now(), message, loss)
        state.entries = with_room([*state.entries, entry])
        self._push()
        return state.last

    # --- losses of other pools ---

    async def look_for_losses(self) -> None:
        """Put in what was lost of the keys that are watched."""
        state = self.state
        if not state.watched:
            return
        pools = self._watching()
        pools.add(str(self.key))  # before the look, so that a later loss causes another look
        lost, state.watched = await pools.lost(state.watched)
        if lost:
            self._append(loss=QueueLoss(pools={pool: tuple(it) for pool, it in lost.items()}))

    def _watching(self) -> WatchedPools:
        if self.pools is None:
            raise ServiceRefusal(422, "pool", "no pool is watched here")
        return self.pools

    # --- reading, by polls ---

    async def sign_on(self, reader: Reader, acknowledge: int, most: int) -> SignedOn:
        """Be the reader, and say up to which number to read. One without a name takes over; one
        that another life has named is named anew, and takes over when it asks again. Raises
        ServiceRefusal for a former reader.
        """
        self._begin_if_new()
        state = self.state
        asked = _number(reader)
        if reader and reader.partition(".")[2] != state.life:
            # A question that was on its way for long takes nothing over: nobody asks a second time.
            state.named = max(state.named, state.reader) + 1
            return SignedOn(f"{state.named}.{state.life}", 0, is_named_anew=True)
        if not reader:
            self._take_over()
        elif self._is_named(asked):
            self._take_over(asked)
            acknowledge = 0  # it was given nothing: the number belongs to a life that is gone
        elif asked != state.reader:
            raise _taken_over()
        self._acknowledge(acknowledge)
        upto = max((each.number for each in state.entries[:most]), default=0)
        state.delivered = max(state.delivered, upto)
        return SignedOn(f"{state.reader}.{state.life}", upto)

    @reading
    async def entries_to(self, reader: Reader, upto: int) -> list[QueueEntry]:
        """The entries that are not acknowledged. Raises ServiceRefusal for a former reader."""
        self._check_reader(reader)
        return [each for each in self.state.entries if each.number <= upto]

    @reading
    async def wait(self, reader: Reader, seconds: float) -> None:
        """Wait until there is an entry. Raises ServiceRefusal for a former reader."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                if self._is_named(_number(reader)):  # a process of an older release asks again
                    return
                self._check_reader(reader)
                while not self.state.entries:
                    await self.changed()
                    self._check_reader(reader)

    async def acknowledge(self, reader: Reader, number: int) -> QueueShown:
        """Everything up to this number was received. Raises ServiceRefusal for a former reader, and
        for entries that this reader was not given.
        """
        self._check_there()
        self._check_reader(reader)
        self._acknowledge(number)
        return self._shown()

    def _is_named(self, number: int) -> bool:
        """Whether a reader was given this number, and has not taken over yet."""
        return self.state.reader < number <= self.state.named

    def _check_reader(self, reader: Reader) -> None:
        number, _, life = reader.partition(".")
        if life != self.state.life:
            raise ServiceRefusal(
                409, BEGAN_ANEW, "the queue has begun again: drain it, and it says what was lost"
            )
        if number != str(self.state.reader):
            raise _taken_over()

    def _acknowledge(self, number: int) -> None:
        state = self.state
        if number > state.delivered:
            raise ServiceRefusal(
                409,
                "never_sent",
                f"entries up to {state.delivered} were given to this reader, and not {number}",
            )
        if number > state.acknowledged:
            state.acknowledged = number
            state.entries = [each for each in state.entries if each.number > number]
            self._push()

    def _take_over(self, number: int | None = None) -> None:
        """Another reader reads from here on; close the socket of a former one."""
        state = self.state
        state.reader = number or max(state.named, state.reader) + 1
        state.delivered = state.acknowledged
        for socket in self.sockets:
            if socket.id == state.socket:
                socket.close(TAKEN_OVER)
        state.socket = b""

    # --- reading, by a socket ---

    async def on_connect(self, socket: Socket[None]) -> None:
        """The newest reader takes over."""
        self._begin_if_new()
        self._take_over()
        self.state.socket = socket.id
        self._push()

    async def on_message(self, socket: Socket[None], text: str) -> None:
        """The reader acknowledges."""
        if socket.id != self.state.socket:
            socket.close(TAKEN_OVER)
            return
        try:
            self._acknowledge(_said(text).acknowledge)
        except (*MALFORMED, TypeError) as error:
            _refuse(socket, ServiceRefusal(400, "json", f'say {{"acknowledge": 1}}: {error}'))
        except ServiceRefusal as error:
            _refuse(socket, error)

    async def on_disconnect(self, socket: Socket[None]) -> None:
        """The next reader gets again what this one did not acknowledge."""
        if socket.id == self.state.socket:
            self.state.socket = b""

    def _push(self) -> None:
        """Send the reader's socket what it does not have yet, as far as its window allows."""
        state = self.state
        if not state.socket:
            return
        socket = next((each for each in self.sockets if each.id == state.socket), None)
        if socket is None:
            return
        sent, size = 0, 0
        for each in state.entries:
            sent, size = sent + 1, size + each.size
            if sent > WINDOW or (size > WINDOW_BYTES and sent > 1):
                return
            if each.number > state.delivered:
                socket.send(msgspec.json.encode(EntryShown.of(each)).decode())
                state.delivered = each.number


def _check_watched(watch: dict[str, list[str]], there: int) -> None:
    """Raise ServiceRefusal if that many watched keys are too many, or one of them is not a key."""
    WATCHED_KEYS.check(there + sum(map(len, watch.values())))
    for key in chain.from_iterable(watch.values()):
        KEY_BYTES.check(len(key.encode()))


def _keep_last(kept: dict[str, T], name: str, what: T, most: ServiceLimit) -> None:
    """Keep it as the newest, and drop the oldest if there are too many."""
    kept.pop(name, None)
    kept[name] = what
    while len(kept) > most.most:
        del kept[next(iter(kept))]


def _number(reader: Reader) -> int:
    """The number in a reader's name; -1 if it cannot be one of ours."""
    number = reader.partition(".")[0]
    return int(number) if number.isdecimal() and len(number) < NUMBER_DIGITS else -1


def _taken_over() -> ServiceRefusal:
    return ServiceRefusal(409, "taken_over", "a newer reader has taken over this queue")


def _refuse(socket: Socket[None], error: ServiceRefusal) -> None:
    problem = {"error": error.error, "detail": error.detail}
    socket.send(msgspec.json.encode({"problem": problem}).decode())
