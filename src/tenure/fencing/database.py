"""What fences in databases have in common.

A fence takes the connection with which the application writes, and imports no driver: the class of
the connection says which driver it is. A decision is a sequence of statements, which runs in the
same way whether the driver blocks a thread or is awaited.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, ClassVar, Protocol

from tenure.client.entering import Done
from tenure.client.lease import Lease
from tenure.errors import ConfigurationError, UsageError
from tenure.fencing.admission import Claim, Row, Statement, Steps, admission, declaration, lease_of


class BlockingDriver(Protocol):
    """A driver that waits in the caller's thread."""

    def transaction(self) -> AbstractContextManager[object]:
        """Begin a transaction, or join the open one."""
        ...

    def first(self, statement: str, values: tuple[object, ...]) -> Row:
        """The first row; None if there is no row."""
        ...

    def answers(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """The rows of each, in one round trip where the database can do that."""
        ...


class AwaitedDriver(Protocol):
    """A driver that is awaited."""

    def transaction(self) -> AbstractAsyncContextManager[object]: ...

    async def first(self, statement: str, values: tuple[object, ...]) -> Row: ...


class DatabaseFence:
    """The base of SqliteFence and PostgresFence."""

    tables: ClassVar[tuple[str, ...]]
    """The tables that the fence needs; `create_tables` makes them, or a migration of yours."""
    _lock_read: ClassVar[str] = ""
    """A clause behind a query, which keeps others from changing what was read."""
    _lock_write: ClassVar[str] = ""
    _blocking: ClassVar[Mapping[str, Callable[[Any], BlockingDriver]]]
    """The drivers, by the package and the class of the connection."""
    _awaited: ClassVar[Mapping[str, Callable[[Any], AwaitedDriver]]]

    def __init__(self, connection: object) -> None:
        self._driver: BlockingDriver | None = None
        self._awaited_driver: AwaitedDriver | None = None
        for each in type(connection).__mro__:
            name = f"{each.__module__.split('.')[0]}.{each.__name__}"
            if name in self._blocking:
                self._driver = self._blocking[name](connection)
                return
            if name in self._awaited:
                self._awaited_driver = self._awaited[name](connection)
                return
        known = ", ".join(sorted([*self._blocking, *self._awaited]))
        raise ConfigurationError(
            f"{type(self).__name__} takes the connection that you write with, a {known}, not "
            f"{connection!r:.100}"
        )

    def admit(self, claim: Claim) -> "FencedWrite":
        """A transaction that writes under the lease which `claim` is, or which its headers name.

        Enter it with `with`, or `async with`, as the driver has it, and write within, with the same
        connection, what belongs to the key of the lease. It is committed at the end, or rolled back
        where the body raises. A transaction that is open already is joined, and stays yours.

        Entering raises Fenced where a newer owner of the key was admitted before, or the lease is
        of another history; RemoteProtocolError for headers that cannot be read.
        """
        lease = lease_of(claim)
        steps = admission(lease, self._lock_read)
        return FencedWrite(lease, steps, self._driver, self._awaited_driver)

    def declare(self, pool: str, journal: int | str) -> Awaitable[None]:
        """The managers of `pool` have another journal from here on; leases of the one before are
        refused. Blocks, or is to be awaited, as the driver has it. Raises ConfigurationError for a
        journal that was replaced before.
        """
        return self._do(declaration(pool, journal, self._lock_write))

    def create_tables(self) -> Awaitable[None]:
        """Create what is missing of the fence's two tables. As `declare`."""
        return self._do(_creation(self.tables))

    def _do(self, steps: Steps) -> Awaitable[None]:
        if self._awaited_driver is not None:
            return _do_awaited(self._awaited_driver, steps)
        assert self._driver is not None
        with self._driver.transaction():
            run(self._driver, steps)
        return Done()


class FencedWrite:
    """A write to be admitted once: `with`, or `async with` if the driver is awaited."""

    def __init__(
        self,
        lease: Lease,
        steps: Steps,
        driver: BlockingDriver | None,
        awaited: AwaitedDriver | None,
    ) -> None:
        self._lease = lease
        self._steps = steps
        self._driver = driver
        self._awaited_driver = awaited
        self._open: AbstractContextManager[object]
        self._open_awaited: AbstractAsyncContextManager[object]

    def __enter__(self) -> Lease:
        if self._driver is None:
            raise UsageError("this driver is awaited: use `async with fence.admit(...)`")
        self._open = self._driver.transaction()
        self._open.__enter__()
        try:
            run(self._driver, self._steps)
        except BaseException as error:
            self._open.__exit__(type(error), error, error.__traceback__)
            raise
        return self._lease

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._open.__exit__(kind, error, trace)

    async def __aenter__(self) -> Lease:
        if self._awaited_driver is None:
            raise UsageError("this driver blocks: use `with fence.admit(...)`, in a thread")
        self._open_awaited = self._awaited_driver.transaction()
        await self._open_awaited.__aenter__()
        try:
            await run_awaited(self._awaited_driver, self._steps)
        except BaseException as error:
            await self._open_awaited.__aexit__(type(error), error, error.__traceback__)
            raise
        return self._lease

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return await self._open_awaited.__aexit__(kind, error, trace)


def _creation(tables: tuple[str, ...]) -> Steps:
    for each in tables:
        yield each, ()


def run(driver: BlockingDriver, steps: Steps) -> None:
    """Carry out every step."""
    row: Row = None
    while True:
        try:
            statement, values = steps.send(row)
        except StopIteration:
            return
        row = driver.first(statement, values)


async def run_awaited(driver: AwaitedDriver, steps: Steps) -> None:
    """Run the steps as `run` does, with a driver that is awaited."""
    row: Row = None
    while True:
        try:
            statement, values = steps.send(row)
        except StopIteration:
            return
        row = await driver.first(statement, values)


async def _do_awaited(driver: AwaitedDriver, steps: Steps) -> None:
    async with driver.transaction():
        await run_awaited(driver, steps)
