"""One transaction for everything that waits for a database, so that one sync serves many keys.

While the database works, what is asked of it gathers; when it has done, all that waits begins at
once. Nobody waits for a timer: who asks alone is served alone.

What is asked is a program: it yields statements, and is sent the rows of each. The programs of a
group run in step: the database gets the first statements of all, then the second of all. A program
that raises Fenced has changed nothing, and the others are committed without it. Where the database
itself fails before the commit, nothing of the group was kept, so each program runs once more in a
transaction of its own, and only those that fail again are told.

A database that hangs is not waited for. Its thread cannot be stopped, so the thread and its
connection are left behind, and what comes next has others. What the old thread still does arrives
late, as after any answer that was lost: `FencedRows` lets it change nothing.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from itertools import islice
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from tenure.errors import Fenced
from tenure.fencing.admission import Row, Statement
from tenure.fencing.database import BlockingDriver

if TYPE_CHECKING:
    from tenure.fencing.databases import Database

T = TypeVar("T")
Program: TypeAlias = Generator[Statement, list[Row], T]
MOST_TOGETHER = 128
"""A group that is longer holds other processes up, since SQLite lets one write at a time."""
PATIENCE_SECONDS = 10.0
"""How long a group may take: longer than a database waits for a lock, or for a connection."""


class DatabaseHung(TimeoutError):
    """The database has not answered: it may have done what it was asked, or do it yet."""


class InGroup(NamedTuple, Generic[T]):
    """A program that somebody waits for."""

    begin: Callable[[], Program[T]]
    """Begins the program, again where its first transaction was undone."""
    answer: asyncio.Future[T]


class DatabaseThread:
    """A connection to a database, and the thread that uses it, and that no process waits for."""

    def __init__(self, database: "Database") -> None:
        self.database = database
        self._asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._is_begun = False

    def ask(self, work: Callable[[], None]) -> None:
        """Do this after what was asked before."""
        if not self._is_begun:
            self._is_begun = True
            Thread(target=self._body, name="tenure store", daemon=True).start()
        self._asked.put(work)

    def end(self) -> None:
        """Close the connection after what was asked before."""
        self._asked.put(None)

    def leave_behind(self) -> None:
        """End whenever what hangs has come to an end; have it do so, where that can be done."""
        self.end()
        self.database.hang_up()

    def _body(self) -> None:
        while (work := self._asked.get()) is not None:
            work()
        self.database.drop()


class CommitGroups:
    """What is asked of one database, one group after the other."""

    def __init__(self, database: "Database") -> None:
        self._thread = DatabaseThread(database)
        self._waiting: deque[InGroup[Any]] = deque()
        self._group: list[InGroup[Any]] | None = None
        """The programs that the database runs."""
        self._patience: asyncio.TimerHandle
        self._rest: asyncio.Future[None] | None = None
        """Is done when nothing waits any more."""

    async def do(self, begin: Callable[[], Program[T]]) -> T:
        """Run a program. Raises what the program raises, the errors of the database, and
        DatabaseHung.
        """
        asked = InGroup(begin, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._group is None:
            self._begin_group()
        answer: T = await asked.answer
        return answer

    def _begin_group(self) -> None:
        group = [each for each in islice(self._waiting, MOST_TOGETHER) if not each.answer.done()]
        for _ in range(min(MOST_TOGETHER, len(self._waiting))):
            self._waiting.popleft()
        self._group = group
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(PATIENCE_SECONDS, self._give_up, group)
        self._thread.ask(partial(self._work, loop, self._thread.database, group))

    def _work(
        self, loop: asyncio.AbstractEventLoop, database: "Database", group: list[InGroup[Any]]
    ) -> None:
        outcomes = run_group(database, [each.begin for each in group])
        with suppress(RuntimeError):  # it was left behind, and its loop is closed by now
            loop.call_soon_threadsafe(self._end_group, group, outcomes)

    def _end_group(self, group: list[InGroup[Any]], outcomes: list[object]) -> None:
        if group is not self._group:
            return  # it was given up
        self._patience.cancel()
        for each, outcome in zip(group, outcomes, strict=True):
            if each.answer.done():  # whoever asked has gone
                continue
            if isinstance(outcome, BaseException):
                each.answer.set_exception(outcome)
            else:
                each.answer.set_result(outcome)
        self._group = None
        if self._waiting:
            self._begin_group()
        elif self._rest is not None:
            self._rest.set_result(None)

    def _give_up(self, group: list[InGroup[Any]]) -> None:
        hung = self._thread
        self._thread = DatabaseThread(hung.database.afresh())
        hung.leave_behind()
        if self._rest is not None:  # nobody waits for a second group to hang
            group += self._waiting
            self._waiting.clear()
        said = f"it has not answered for {PATIENCE_SECONDS:g} s"
        self._end_group(group, [DatabaseHung(said) for _ in group])

    async def close(self) -> None:
        """Close the connection, when nothing waits any more, or the database hangs."""
        if self._group is not None:
            self._rest = asyncio.get_running_loop().create_future()
            await self._rest
        self._thread.end()


def run_group(
    database: "Database", begins: list[Callable[[], Program[Any]]], *, is_again: bool = False
) -> list[object]:
    """What each of the programs returns or raises, run in one transaction if it can be kept."""
    is_undone = True
    try:
        with database.transaction() as driver:
            outcomes = run_together(driver, [begin() for begin in begins])
            is_undone = False  # what fails from here on may have been committed
    except Exception as error:  # noqa: BLE001  # whoever asked gets it
        database.drop()
        if is_undone and (len(begins) > 1 or (database.was_chosen(error) and not is_again)):
            return _run_each(database, begins)
        return [error] * len(begins)
    return outcomes


def _run_each(database: "Database", begins: list[Callable[[], Program[Any]]]) -> list[object]:
    outcomes: list[object] = []
    for begin in begins:
        try:
            database.connect()
        except database.errors as error:  # it is away: the others need not find out
            return [*outcomes, *[error] * (len(begins) - len(outcomes))]
        outcomes += run_group(database, [begin], is_again=len(begins) == 1)
    return outcomes


def run_together(driver: BlockingDriver, programs: list[Program[Any]]) -> list[Any]:
    """What each of the programs returns, or the Fenced that it raises."""
    outcomes: list[Any] = [None] * len(programs)
    rows: dict[int, Any] = dict.fromkeys(range(len(programs)))
    while rows:
        asked: dict[int, Statement] = {}
        for which, found in rows.items():
            try:
                asked[which] = programs[which].send(found)
            except StopIteration as end:
                outcomes[which] = end.value
            except Fenced as refusal:
                outcomes[which] = refusal
        questions: dict[object, Statement] = {}
        for which, statement in asked.items():
            questions.setdefault(_same(which, statement), statement)
        found_by = dict(zip(questions, driver.answers([*questions.values()]), strict=True))
        rows = {which: found_by[_same(which, statement)] for which, statement in asked.items()}
    return outcomes


def _same(which: int, statement: Statement) -> object:
    """Equal for the same question of several programs: the history, which each of them asks for."""
    return statement if statement[0].startswith("SELECT") else which
