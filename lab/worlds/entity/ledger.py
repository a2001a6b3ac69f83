"""The entity of the simulated world: a ledger of what was done, in order.

Each operation has a name that is used once. It gets the next place in the ledger, and everything
that leaves the entity (answers, frames, readings) contains place and name. A ledger that begins
anew, because its former state is lost, begins another epoch.

The processes have two releases of its class. Both count what they have entered, and the new one in
a field that the old one does not know; so it does with each of the last operations. The new one
looks whether the old one has lost any of that.

All operations are in collections, too. They are of the same commits as the state, so one must
follow from the other, whoever looks, in whichever process.
"""

import asyncio
from typing import Any, Generic, TypeVar, cast

import msgspec

from lab.worlds.entity.entries import PlacedOp, Shown
from lab.worlds.entity.site import LedgerProcess
from tenure.entities.entity import Alarm, Entity, Socket
from tenure.entities.mapping import Mapping
from tenure.entities.methods import reading
from tenure.entities.series import Series

SHOWN = 30
"""How many of the last operations are kept by name."""
ENTERED = 100
"""How many of them the series keeps."""
COMPARED = 0.2
"""How often an operation that is under way compares the collections with the state."""
ROUNDED = 1e-6
"""Seconds: an alarm says when it was due as a datetime, which has whole microseconds."""
PAUSES = (0.0, 0.0, 0.4, 8.0)
"""Seconds for which an operation is half done."""


class Mark(msgspec.Struct):
    """An operation, and which release has entered it."""

    op: str = ""
    is_new: bool = False


class NewMark(Mark):
    """The same in the new release."""

    again: str = ""
    """The operation, if the new release has entered it."""


class Book(msgspec.Struct):
    """The contents of a ledger."""

    epoch: int = 0
    place: int = 0
    shown: list[str] = []
    waiting: list[str] = []
    """The alarms that have not rung."""
    now: float = 0.0
    said: dict[str, int] = {}
    """The number of the last message of each client, by its name."""
    by_old: int = 0
    """How many operations the old release has entered."""
    marks: list[Any] = []


class OldBook(Book):
    """What the old release knows of it."""

    marks: list[Mark] = []


class NewBook(Book):
    """What the new release knows of it."""

    by_new: int = 0
    marks: list[NewMark] = []


B = TypeVar("B", bound=Book)


class Failure(Exception):
    """Raised by an operation on purpose."""


def here() -> LedgerProcess:
    """The simulated process whose code runs."""
    loop = asyncio.get_running_loop()
    return cast("LedgerProcess", loop.host)  # type: ignore[attr-defined]


class OpsLedger(Entity[B], Generic[B]):
    """The ledger of one key."""

    entered = Series(str, most=ENTERED)
    places = Mapping(str, int)
    """The places of the operations that are shown."""

    def _check(self) -> None:
        """Check that nothing is lost that a release has kept."""

    def _mark(self, op: str) -> None:
        """Mark an operation as this release does."""

    async def add(self, op: str, alarm: float | None = None) -> PlacedOp:
        """Enter an operation, and set an alarm that rings `alarm` seconds later."""
        async with here().turn_of(self.key):
            entry = await self._enter(op)
            if alarm is not None:
                self.set_alarm(op, self.now() + alarm)
                self.state.waiting.append(op)
            return entry

    async def fail(self, op: str) -> None:
        """Enter an operation, set an alarm, and raise."""
        async with here().turn_of(self.key):
            await self._enter(f"failed {op}")
            self.set_alarm(f"failed {op}", self.now())
            raise Failure(op)

    async def twice(self, op: str) -> PlacedOp:
        """Enter two operations, with a commit between them."""
        async with here().turn_of(self.key):
            if not self.is_repeat:
                await self._enter(f"{op}/1")
                await self.commit()
            return await self._enter(f"{op}/2")

    async def forward(self, op: str, to: str) -> PlacedOp:
        """Enter an operation here, and then one in another ledger."""
        async with here().turn_of(self.key):
            if not self.is_repeat:
                await self._enter(f"{op}/from")
            # An operation that runs again makes another call: only the operation itself is done
            # once.
            entry = await here().entities[to].add(f"{op}/to-{here().random.getrandbits(40)}")
            here().see(to, entry)
            return await self._enter(f"{op}/back")

    @reading
    async def look(self) -> Shown:
        """Show the ledger's contents."""
        book = self.state
        self._check()
        await asyncio.sleep(here().random.choice(PAUSES[:3]))  # turns change it meanwhile
        await self._compare_last()
        op = book.shown[-1] if book.shown else ""
        alarms = {name: due.timestamp() for name, due in self.alarms.items()}
        return Shown(PlacedOp(book.epoch, book.place, op), book.shown, book.waiting, alarms)

    @reading
    async def glance(self) -> PlacedOp:
        """Show the last operation: of a copy, in any process."""
        book = self.state
        self._check()
        return PlacedOp(book.epoch, book.place, book.shown[-1] if book.shown else "")

    @reading
    async def later(self, than: int) -> PlacedOp:
        """The same, once there is a later one."""
        while self.state.place <= than:
            await self.changed()
        book = self.state
        return PlacedOp(book.epoch, book.place, book.shown[-1])

    async def on_connect(self, socket: Socket[str]) -> None:
        """Tell the client where the ledger is."""
        book = self.state
        socket.send(_frame(PlacedOp(book.epoch, book.place, "")))

    async def on_message(self, socket: Socket[str], text: str) -> None:
        """Enter the message."""
        async with here().turn_of(self.key):
            number, _, op = text.partition(" ")
            said = self.state.said
            expected = said.get(socket.attachment, 0) + 1
            if int(number) != expected:
                here().wrong("sockets", f"message {number} of a client where {expected} is next")
            said[socket.attachment] = int(number)
            await self._enter(op)

    async def on_disconnect(self, socket: Socket[str]) -> None:
        """Forget the client."""
        self.state.said.pop(socket.attachment, None)

    async def on_alarm(self, alarm: Alarm) -> None:
        """Enter that the alarm rang."""
        async with here().turn_of(self.key):
            if self.now() < alarm.due.timestamp() - ROUNDED:
                here().wrong("alarms", f"{alarm.name} rings early")
            if alarm.name not in self.state.waiting:
                here().wrong("alarms", f"{alarm.name} rings, which has rung, or was never kept")
                return
            self.state.waiting.remove(alarm.name)
            await self._enter(f"{alarm.name}/rung")
            if here().random.random() < 0.1:
                raise Failure(alarm.name)

    async def _enter(self, op: str) -> PlacedOp:
        process, book = here(), self.state
        now = self.now()
        if now < book.now:
            process.wrong("time", f"{self.key}: now() went back from {book.now} to {now}")
        book.now = now
        self._check()
        self._mark(op)
        if not book.epoch:
            book.epoch = process.site.now
            process.site.judge.begins(self.key, book.epoch, self.lease.journal)
        book.place += 1
        self._collect(op)
        book.shown = [*book.shown, op][-SHOWN:]
        if process.random.random() < COMPARED:
            await self._compare()
        await asyncio.sleep(process.random.choice(PAUSES))
        entry = PlacedOp(book.epoch, book.place, op)
        self.broadcast(_frame(entry))
        return entry

    def _collect(self, op: str) -> None:
        book = self.state
        number = self.entered.add(op)
        if number != book.place:
            here().wrong("collections", f"{self.key}: {op} is {number} at place {book.place}")
        self.places.put(op, book.place)
        if len(book.shown) == SHOWN:
            self.places.remove(book.shown[0])

    async def _compare_last(self) -> None:
        """Check that the last operations of the series are those that are shown."""
        book = self.state
        expected = [*range(book.place, max(book.place - SHOWN, 0), -1)]
        page = await self.entered.page(SHOWN, newest=True)
        if [*page] != book.shown[::-1] or page.numbers != expected:
            here().wrong(
                "collections", f"{self.key}: {page} are the last, and {book.shown} are shown"
            )

    async def _compare(self) -> None:
        """Check that the collections are what the state says. Others may have changed more by the
        time at which a reading asks a store.
        """
        await self._compare_last()
        book = self.state
        oldest = await self.entered.page(1)
        if oldest.numbers != [max(book.place - ENTERED, 0) + 1][: book.place]:
            here().wrong("collections", f"{self.key}: {oldest.numbers} is the oldest")
        names = await self.places.page(SHOWN + 1)
        first = book.place - len(book.shown) + 1
        if names != {op: place for place, op in enumerate(book.shown, first)}:
            here().wrong("collections", f"{self.key}: {names} beside {book.shown}")


class OldLedger(OpsLedger[OldBook], name="OpsLedger"):
    """The ledger in the old release."""

    def _mark(self, op: str) -> None:
        self.state.by_old += 1
        self.state.marks = [*self.state.marks, Mark(op)][-SHOWN:]


class NewLedger(OpsLedger[NewBook], name="OpsLedger"):
    """The ledger in the new release."""

    def _check(self) -> None:
        book = self.state
        lost = [each for each in book.marks if each.again != (each.op if each.is_new else "")]
        if lost or book.by_old + book.by_new != book.place:
            here().wrong(
                "releases",
                f"{self.key} is at {book.place}, with {book.by_old} of the old release and "
                f"{book.by_new} of the new one; marks that have lost something: {lost}",
            )

    def _mark(self, op: str) -> None:
        self.state.by_new += 1
        self.state.marks = [*self.state.marks, NewMark(op, is_new=True, again=op)][-SHOWN:]


RELEASES: tuple[type[Entity[Any]], ...] = (OldLedger, NewLedger)


def _frame(entry: PlacedOp) -> bytes:
    return msgspec.msgpack.encode(entry)
