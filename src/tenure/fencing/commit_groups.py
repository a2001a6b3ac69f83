"""One transaction for everything that waits for a database, so that one sync serves many keys.

While the database works, what is asked of it gathers; when it has done, all that waits begins at
once. Nobody waits for a timer: who asks alone is served alone.

What is asked is a program: it yields statements, and is sent the rows of each. The programs of a
group run in step: the database gets the first statements of all, then the second of all. A program
that raises Fenced has changed nothing, and the others are committed without it. Where the database
itself fails before the commit, nothing of the group was kept, so each program runs once more in a
transaction of its own, and only those that fail again are told.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
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


class InGroup(NamedTuple, Generic[T]):
    """A program that somebody waits for."""

    begin: Callable[[], Program[T]]
    """Begins the program, again where its first transaction was undone."""
    answer: asyncio.Future[T]


class CommitGroups:
    """What is asked of one database. One thread talks to it."""

    def __init__(self, database: "Database") -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(1, "tenure store")
        self._waiting: deque[InGroup[Any]] = deque()
        self._is_busy = False
        self._rest: asyncio.Future[None] | None = None
        """Is done when nothing waits any more and the connection is closed."""

    async def do(self, begin: Callable[[], Program[T]]) -> T:
        """Run a program. Raises what the program raises, and the errors of the database."""
        asked = InGroup(begin, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if not self._is_busy:
            self._begin_group()
        answer: T = await asked.answer
        return answer

    def _begin_group(self) -> None:
        group = [each for each in islice(self._waiting, MOST_TOGETHER) if not each.answer.done()]
        for _ in range(min(MOST_TOGETHER, len(self._waiting))):
            self._waiting.popleft()
        self._is_busy = True
        loop = asyncio.get_running_loop()
        self._thread.submit(self._work, loop, group)

    def _work(self, loop: asyncio.AbstractEventLoop, group: list[InGroup[Any]]) -> None:
        """Runs in the thread."""
        outcomes = self._run([each.begin for each in group])
        loop.call_soon_threadsafe(self._end_group, group, outcomes)

    def _end_group(self, group: list[InGroup[Any]], outcomes: list[object]) -> None:
        for each, outcome in zip(group, outcomes, strict=True):
            if each.answer.done():  # whoever asked has gone
                continue
            if isinstance(outcome, BaseException):
                each.answer.set_exception(outcome)
            else:
                each.answer.set_result(outcome)
        self._is_busy = False
        if self._waiting:
            self._begin_group()
        elif self._rest is not None:
            self._rest.set_result(None)

    def _run(self, begins: list[Callable[[], Program[Any]]]) -> list[object]:
        """What each of them returns or raises. Runs in the thread."""
        is_undone = True
        try:
            with self._database.transaction() as driver:
                outcomes = run_together(driver, [begin() for begin in begins])
                is_undone = False  # what fails from here on may have been committed
        except Exception as error:  # noqa: BLE001  # whoever asked gets it
            self._database.drop()
            if is_undone and len(begins) > 1:
                return self._run_each(begins)
            return [error] * len(begins)
        return outcomes

    def _run_each(self, begins: list[Callable[[], Program[Any]]]) -> list[object]:
        outcomes: list[object] = []
        for begin in begins:
            try:
                self._database.connect()
            except self._database.errors as error:  # it is away: the others need not find out
                return [*outcomes, *[error] * (len(begins) - len(outcomes))]
            outcomes += self._run([begin])
        return outcomes

    async def close(self) -> None:
        """Close the connection, when nothing waits any more."""
        loop = asyncio.get_running_loop()
        if self._is_busy:
            self._rest = loop.create_future()
            await self._rest
        await loop.run_in_executor(self._thread, self._database.drop)
        self._thread.shutdown(wait=False)


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
