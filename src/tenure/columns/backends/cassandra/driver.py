"""Cassandra's driver for asyncio: the driver delivers answers by callback, in a thread of its own.

The driver's own futures block the threads that wait for them. Here each request has a future of the
loop instead. The driver's thread puts answers into a queue and wakes the loop once for all of them;
under load one turn of the loop takes hundreds. Calls that block in the driver (connecting,
preparing, closing) run in other threads. There are never more requests under way than the driver
has numbers for, because it would block to get one.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Literal, NamedTuple

from cassandra import ConsistencyLevel, ProtocolVersion
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    ExponentialReconnectionPolicy,
    TokenAwarePolicy,
)
from cassandra.query import BatchStatement, BatchType, SimpleStatement, tuple_factory

from tenure.columns.backends.cassandra.address import CassandraAddress
from tenure.columns.backends.cassandra.refusals import in_our_words
from tenure.columns.backends.cassandra.statements import Cql, batch_in_full, in_full
from tenure.columns.requests import Consistency
from tenure.errors import ClosedError, ConfigurationError, ForkedError, Overloaded, TenureError

Answer = list[tuple[Any, ...]]
"""The rows of one page."""

UNDER_WAY = 1024
"""The most requests that the driver has at once; a connection of a newer protocol has 32,768
numbers.
"""
UNDER_WAY_FIRST_PROTOCOLS = 100
"""The same for the first two protocols, whose connections have 128 numbers."""
WAITING = 10_000
"""The most requests that wait for one of those to end. Further ones are refused."""
SECONDS = 10.0
"""How long the driver waits for an answer."""
RECONNECT_SECONDS = 2.0
"""The longest wait between two attempts to reach a node that is down."""
_NUMBERED_WIDELY = 3
"""The first version of the protocol with more than 128 requests at a connection."""
Level = Consistency | Literal["serial"]
"""A level. At "serial" a read sees, and completes, what a condition has decided."""
_LEVELS: Mapping[Level, int] = {
    "one": ConsistencyLevel.ONE,
    "quorum": ConsistencyLevel.QUORUM,
    "all": ConsistencyLevel.ALL,
    "local_quorum": ConsistencyLevel.LOCAL_QUORUM,
    "each_quorum": ConsistencyLevel.EACH_QUORUM,
    "serial": ConsistencyLevel.SERIAL,
}


class _Arrival(NamedTuple):
    waiter: "asyncio.Future[Answer]"
    rows: Answer
    error: BaseException | None


class CassandraDriver:
    """A connection to a cluster, in one loop."""

    def __init__(self, address: CassandraAddress, options: Mapping[str, Any]) -> None:
        self.address = address
        self._options = options
        self._arrivals: deque[_Arrival] = deque()
        self._lock = Lock()
        self._prepared: dict[str, Any] = {}
        self._waiting = 0
        self._renews_at = 0.0
        self._process = os.getpid()
        self._cluster: Any = None
        self._session: Any = None
        self._loop: asyncio.AbstractEventLoop
        self._under_way: asyncio.Semaphore

    # --- connecting ---

    async def connect(self) -> None:
        """Connect to the cluster, without a keyspace. Raises StoreError if no node answers."""
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        try:
            await asyncio.to_thread(self._connect)
        except ConfigurationError:
            raise
        except Exception as error:  # the driver's, of many kinds
            await self.close()
            raise in_our_words(error, self.address, is_write=False) from error
        widely = self.protocol >= _NUMBERED_WIDELY
        self._under_way = asyncio.Semaphore(UNDER_WAY if widely else UNDER_WAY_FIRST_PROTOCOLS)

    def _connect(self) -> None:
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy()),
            consistency_level=ConsistencyLevel.QUORUM,  # 1.2 does not know the driver's LOCAL_ONE
            row_factory=tuple_factory,
            request_timeout=SECONDS,
        )
        defaults = {
            "port": self.address.port,
            "execution_profiles": {EXEC_PROFILE_DEFAULT: profile},
            # The driver's own waits up to ten minutes, and gives a node up after 64 attempts.
            "reconnection_policy": ExponentialReconnectionPolicy(1.0, RECONNECT_SECONDS, None),
        }
        try:
            self._cluster = Cluster(list(self.address.hosts), **{**defaults, **self._options})
        except (TypeError, ValueError, AttributeError) as error:
            names = ", ".join(self._options) or "nothing"  # their values may be secrets
            raise ConfigurationError(
                f"the driver's Cluster refuses what `driver` gives ({names}): {error}"
            ) from error
        self._session = self._cluster.connect()
        self._session.default_fetch_size = None  # each request has a limit of its own

    @property
    def protocol(self) -> int:
        return int(self._cluster.protocol_version)

    @property
    def speaks_in_full(self) -> bool:
        """Whether times and limits must be written into the statement: CQL 3.0.0 has no markers
        there.
        """
        return self.protocol == int(ProtocolVersion.V1)

    async def close(self) -> None:
        cluster, self._cluster, self._session = self._cluster, None, None
        if cluster is not None:
            await asyncio.to_thread(cluster.shutdown)

    # --- asking ---

    async def execute(
        self, statement: Cql, level: Level = "quorum", *, is_write: bool = False
    ) -> Answer:
        """The rows of an answer. Raises what `in_our_words` makes of a failure."""
        self._check()
        if self.speaks_in_full:
            return await self._send(SimpleStatement(in_full(statement)), level, is_write=is_write)
        bound = (await self._prepare(statement.text)).bind(statement.values)
        return await self._send(bound, level, is_write=is_write)

    async def apply(self, statements: Sequence[Cql], level: Consistency) -> Answer:
        """Carry out statements of one partition, all at once."""
        self._check()
        if len(statements) == 1:
            return await self.execute(statements[0], level, is_write=True)
        if self.speaks_in_full:
            return await self._send(
                SimpleStatement(batch_in_full(statements)), level, is_write=True
            )
        batch = BatchStatement(BatchType.UNLOGGED)
        for each in statements:
            batch.add((await self._prepare(each.text)).bind(each.values))
        return await self._send(batch, level, is_write=True)

    async def say(self, statement: Cql) -> Answer:
        """Execute a statement of the schema, which cannot be prepared."""
        self._check()
        return await self._send(SimpleStatement(in_full(statement)), "one", is_write=False)

    async def use(self, keyspace: str) -> None:
        self._check()
        try:
            await asyncio.to_thread(self._session.set_keyspace, keyspace)
        except Exception as error:  # the driver's, of many kinds
            raise in_our_words(error, self.address, is_write=False) from error

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise ForkedError(
                "this store belongs to the process that opened it, and this is a forked child: "
                "open stores after forking"
            )
        if self._session is None:
            raise ClosedError("the store is closed")

    async def _prepare(self, text: str) -> Any:  # noqa: ANN401 - the driver says nothing of its types
        prepared = self._prepared.get(text)
        if prepared is None:
            try:
                prepared = await asyncio.to_thread(self._session.prepare, text)
            except Exception as error:  # the driver's, of many kinds
                raise self._in_our_words(error, is_write=False) from error
            self._prepared[text] = prepared
        return prepared

    async def _send(
        self,
        statement: Any,  # noqa: ANN401 - one of the driver's
        level: Level,
        *,
        is_write: bool,
    ) -> Answer:
        """Send a request. If this is cancelled, nobody knows the outcome, as with any request that
        was sent.
        """
        if self._waiting >= WAITING:
            raise Overloaded(
                f"{WAITING} requests to Cassandra wait to be sent; this one was not begun. Ask "
                "less at once, or try again later"
            )
        self._waiting += 1
        try:
            await self._under_way.acquire()
        finally:
            self._waiting -= 1
        statement.consistency_level = _LEVELS[level]
        statement.is_idempotent = True  # the times are ours, so that a repeat is exact
        waiter: asyncio.Future[Answer] = self._loop.create_future()
        try:
            answer = self._session.execute_async(statement)
        except BaseException:
            self._under_way.release()
            raise
        answer.add_callbacks(self._on_rows(waiter), self._on_error(waiter))
        try:
            return await waiter
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except Exception as error:  # the driver's, of many kinds
            raise self._in_our_words(error, is_write=is_write) from error

    def _in_our_words(self, error: Exception, *, is_write: bool) -> TenureError:
        if isinstance(error, NoHostAvailable):
            self._renew_pools()
        return in_our_words(error, self.address, is_write=is_write)

    def _renew_pools(self) -> None:
        """Make the driver connect to nodes that it considers up, but to which it has no connection.

        When a node goes down, the driver ends its pool; but it does not consider the node down
        while another connection of the pool seems to be open. Then it would try again only after
        half a minute.
        """
        now = self._loop.time()
        if now >= self._renews_at and self._session is not None:
            self._renews_at = now + RECONNECT_SECONDS
            self._session.update_created_pools()

    # --- in the driver's thread ---

    def _on_rows(self, waiter: "asyncio.Future[Answer]") -> Callable[[Answer | None], None]:
        return lambda rows: self._arrive(_Arrival(waiter, rows or [], None))

    def _on_error(self, waiter: "asyncio.Future[Answer]") -> Callable[[BaseException], None]:
        return lambda error: self._arrive(_Arrival(waiter, [], error))

    def _arrive(self, arrival: _Arrival) -> None:
        with self._lock:
            self._arrivals.append(arrival)
            is_first = len(self._arrivals) == 1
        if is_first and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver)

    # --- in the loop again ---

    def _deliver(self) -> None:
        with self._lock:
            arrived, self._arrivals = self._arrivals, deque()
        for waiter, rows, error in arrived:
            self._under_way.release()
            if waiter.done():
                continue  # the request was cancelled
            if error is None:
                waiter.set_result(rows)
            else:
                waiter.set_exception(error)
