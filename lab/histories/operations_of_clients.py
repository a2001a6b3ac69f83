"""What one client does: it writes and reads hot rows, even rows and sets, and notes all of it.

A few clients are a group, which shares its rows; some rows are shared by all. A client stays with
one row for some operations: if that row has no quorum, other clients go on with theirs. Keys change
every few seconds, so that no history of a key grows long. A *hot* row has four columns in two
families, which are written and read in any combination. An *even* row has the same, but all of them
are written together, with one value, and read together. A *set* has members, which are added and
removed one by one, and read page by page. An *owned* row is fenced: a client adopts it under a
lease number that is higher than all before, and writes to it a few times, while others do the same.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from lab.histories.outages import CallWatch, Stretch
from lab.judges.operations import AnyRecord, PageOperation, ReadOperation, Told, WriteOperation
from tenure import DELETE, Family, OwnedRows, Table
from tenure.base.keys import hashed_key
from tenure.columns.requests import Consistency
from tenure.columns.store import ColumnStore
from tenure.columns.writes import RowWrite
from tenure.errors import (
    Fenced,
    LeaseLost,
    NotEnoughReplicas,
    Overloaded,
    TenureError,
    TooLate,
    WriteUnknown,
)

TABLE = Table(
    "histories",
    names=Family(columns=str),
    more=Family(columns=str),
    members=Family(columns=str),
)
OWNED = Table("owned", fenced_by="owners", names=Family(columns=str))
COLUMNS = tuple((family, name) for family in ("names", "more") for name in "ab")
KINDS = {"hot": 12, "even": 3, "set": 3, "owned": 2}
"""The kinds of rows, and how often of twenty times each is drawn."""
KEY_SECONDS = 8.0
"""How long a key is in use."""
STAYS = 10
"""How many operations a client stays with a row."""
SHARED = 1 / 8
"""How often a client draws a row that all groups share."""
OWNED_KEYS = "owned-"
"""What the keys of fenced rows begin with: they are judged by other rules."""
PAGE = 5
MEMBERS = 10
REPEATS = 3
NOTHING_SENT = (NotEnoughReplicas, Overloaded, TooLate)
"""The errors of a first attempt that say that nothing was written."""
OUTRANKED = (Fenced, LeaseLost)
"""The errors that are answers: another client has the row."""
Values = dict[tuple[str, str], str | None]


class OwnersLease(NamedTuple):
    """What a row needs of a lease. Time gives the numbers: later ones are higher."""

    key: bytes
    number: int
    journal: int = 1
    pool: str = "owners"


class ClientOperations:
    """See above. `note` is given each operation, and each stretch without an answer, when it has
    ended.
    """

    def __init__(
        self,
        name: str,
        random: Random,
        began_ns: int,
        note: Callable[[AnyRecord | Stretch], None],
        kinds: Sequence[str] = tuple(KINDS),
        group: str = "",
    ) -> None:
        self._name = name
        self._kinds = kinds
        self._random = random
        self._began_ns = began_ns
        self._note = note
        self._group = group
        self._written = 0
        self._row = ""
        """The kind of the present row, and what tells it from others of its kind and time."""
        self._stays = 0
        self._members: dict[str, list[str]] = {}
        """The members that this client has added to the present set, and may remove."""
        self._calls = CallWatch(name)
        self.failed_since: int | None = None
        """Since when nothing has succeeded."""

    async def one(self, store: ColumnStore) -> None:
        """Do one operation. Raises nothing that the store may raise."""
        if not self._stays:
            self._stays = STAYS
            [kind] = self._random.choices(self._kinds, [KINDS[kind] for kind in self._kinds])
            group = "all" if self._random.random() < SHARED else self._group
            half = f"-{self._random.randrange(2)}" if kind == "even" else ""
            self._row = f"{kind}-{group}{half}"
        self._stays -= 1
        number = int((time.monotonic_ns() - self._began_ns) / 1e9 / KEY_SECONDS)
        key = f"{self._row}-{number}"
        try:
            match self._row.partition("-")[0]:
                case "hot":
                    await self._hot(store, key)
                case "even":
                    await self._even(store, key)
                case "set":
                    await self._set(store, key)
                case _:
                    await self._owned(store, key)
        except OUTRANKED:
            self._has_answer(time.monotonic_ns())
        except TenureError as error:
            self._has_failed(error)

    def end(self) -> None:
        """This client asks nothing more."""
        self._has_answer(time.monotonic_ns())

    def _asks(self) -> int:
        """The time at which a call begins: now."""
        now = time.monotonic_ns()
        self._calls.asks(now)
        return now

    def _has_failed(self, error: Exception) -> None:
        self.failed_since = self.failed_since or time.monotonic_ns()
        self._calls.fails(error)

    def _has_answer(self, now: int) -> None:
        self.failed_since = None
        stretch = self._calls.answered(now)
        if stretch is not None:
            self._note(stretch)

    # --- kinds of rows ---

    async def _hot(self, store: ColumnStore, key: str) -> None:
        drawn, level = self._random.random(), self._level()
        if drawn < 0.5:
            chosen = self._random.sample(COLUMNS, self._random.choice((1, 2, 2, 4)))
            values: Values = {
                column: None if self._random.random() < 0.1 else self._value() for column in chosen
            }
            await self._write(store, key, values, level)
        elif drawn < 0.8:
            family, name = self._random.choice(COLUMNS)

            async def column() -> Values:
                found = await store.get(TABLE, key, family, name, consistency=level)
                return {(family, name): found.value.decode() if found else None}

            await self._read(key, level, column)
        else:
            family = self._random.choice(("names", "more"))

            async def page() -> Values:
                return _values_in(
                    {family: await store.get(TABLE, key, family, consistency=level)}, family
                )

            await self._read(key, level, page)

    async def _even(self, store: ColumnStore, key: str) -> None:
        if self._random.random() < 0.5:
            value = self._value()
            await self._write(store, key, dict.fromkeys(COLUMNS, value), "quorum")
            return

        async def row() -> Values:
            return _values_in((await store.get(TABLE, key)).families, "names", "more")

        await self._read(key, "quorum", row)

    async def _set(self, store: ColumnStore, key: str) -> None:
        if key not in self._members:
            self._members = {key: []}
        mine, drawn = self._members[key], self._random.random()
        if drawn < 0.4:
            await self._pages(store, key)
        elif mine and drawn * (len(mine) + MEMBERS) > MEMBERS:
            member = mine.pop(self._random.randrange(len(mine)))
            await self._write(store, key, {("members", member): None}, "quorum")
        else:
            mine.append(self._value())
            await self._write(store, key, {("members", mine[-1]): mine[-1]}, "quorum")

    async def _owned(self, store: ColumnStore, key: str) -> None:
        if self._random.random() < 0.6:

            async def page() -> Values:
                return _values_in({"names": await store.get(OWNED, key, "names")}, "names")

            await self._read(key, "quorum", page)
            return
        lease = OwnersLease(hashed_key(key), self._asks())
        row = await OwnedRows(store, OWNED).load(lease, key)
        self._has_answer(time.monotonic_ns())
        for _ in range(self._random.randrange(1, 6)):
            column = "names", self._random.choice("ab")
            values: Values = {column: self._value()}
            began = self._asks()
            told: Told = "unknown"
            try:
                await row.insert({"names": {column[1]: str(values[column]).encode()}})
                told = "written"
                self._has_answer(time.monotonic_ns())
            finally:
                ended = time.monotonic_ns()
                self._note(WriteOperation(self._name, key, _named(values), began, ended, told))

    def _level(self) -> Consistency:
        return "one" if self._random.random() < 0.05 else "quorum"

    def _value(self) -> str:
        self._written += 1
        return f"{self._name}.{self._written}"

    # --- writing ---

    async def _write(
        self, store: ColumnStore, key: str, values: Values, level: Consistency
    ) -> None:
        mutation: dict[str, dict[str, Any]] = {}
        for (family, name), value in values.items():
            mutation.setdefault(family, {})[name] = DELETE if value is None else value.encode()
        began = self._asks()
        told: Told = "unknown"
        try:
            told = await self._told(store.insert(TABLE, key, mutation, consistency=level))
        finally:
            ended, is_weak = time.monotonic_ns(), level == "one"
            columns = _named(values)
            self._note(WriteOperation(self._name, key, columns, began, ended, told, is_weak))

    async def _told(self, write: RowWrite) -> Told:
        """Write, and repeat it some times while it is unknown."""
        attempt: Awaitable[object] = write
        for tried in range(REPEATS):
            try:
                await attempt
            except WriteUnknown as error:
                self._has_failed(error)
                if self._random.random() < 0.3:
                    return "unknown"
                attempt = write.repeat()
            except NOTHING_SENT as error:
                self._has_failed(error)
                return "unknown" if tried else "not written"
            else:
                self._has_answer(time.monotonic_ns())
                return "written"
        return "unknown"

    # --- reading ---

    async def _read(
        self, key: str, level: Consistency, read: Callable[[], Awaitable[Values]]
    ) -> None:
        began = self._asks()
        columns = _named(await read())
        ended = time.monotonic_ns()
        self._has_answer(ended)
        self._note(ReadOperation(self._name, key, columns, began, ended, level == "one"))

    async def _pages(self, store: ColumnStore, key: str) -> None:
        following, after = None, ""
        while True:
            began = self._asks()
            page = await store.get(TABLE, key, "members", first=PAGE, next=following)
            ended = time.monotonic_ns()
            self._has_answer(ended)
            names = [f"members/{each.name}" for each in page]
            columns: dict[str, str | None] = {
                name: each.value.decode() for name, each in zip(names, page, strict=True)
            }
            following = page.next
            until = names[-1] if following is not None else None
            section = "members/"
            self._note(PageOperation(self._name, key, section, columns, began, ended, after, until))
            if following is None:
                return
            after = names[-1]


def _values_in(families: Any, *wanted: str) -> Values:
    found = {
        (family, each.name): each.value.decode()
        for family, page in families.items()
        for each in page
    }
    return {column: found.get(column) for column in COLUMNS if column[0] in wanted}


def _named(values: Values) -> dict[str, str | None]:
    return {f"{family}/{name}": value for (family, name), value in values.items()}
