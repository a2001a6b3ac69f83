"""The backend on a cluster of our nodes: any node coordinates, and another one if that is down.

A handle asks a replica of the row, or any other node (see `known_nodes`), and goes on to another
one when the connection breaks. It repeats there every request that was not answered. A write keeps
its version, so it takes effect once, however often it comes (R4). But once it was sent, no other
node can say that it is not written: what the first one did with it is unknown.
"""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from tenure.columns.backends.contract import warming_of
from tenure.columns.backends.known_nodes import KnownNodes, reaches_too_few
from tenure.columns.requests import RowMutation
from tenure.columns.tables import Table
from tenure.errors import (
    ConfigurationError,
    LocalProtocolError,
    NotEnoughReplicas,
    Overloaded,
    SchemaError,
    StoreError,
    TenureError,
    Unreachable,
    WriteUnknown,
)
from tenure.protocol.replication.messages import (
    Adopted,
    AdoptRow,
    ClientRequest,
    DrawVersion,
    Failed,
    NotWritten,
    PageFound,
    ReadColumn,
    ReadPage,
    ReadRow,
    ReadRows,
    ReadSupers,
    RowFound,
    RowsFound,
    RowWritten,
    SupersFound,
    VersionDrawn,
    WholeRow,
    WriteRow,
)
from tenure.protocol.replication.openings import OpenStore, StoreOpened, TableMissing
from tenure.protocol.replication.request.adoption import FIRST_TRY
from tenure.protocol.replication.row.admission import Attempt, Outranked, Refused
from tenure.protocol.replication.row.layout import FamilyShape
from tenure.protocol.replication.row.pages import CellPage, FoundCell, SuperPage
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.topology.tables import TableRecord
from tenure.transport.contract import NeverConnected, Role, Transport
from tenure.wire.columns import ToStoreClient, decode_to_store_client, encode_store

Asked: TypeAlias = OpenStore | ClientRequest
PATIENCE_SECONDS = 15.0
"""How long a request may take in all: a node gives it up after five seconds, and then others are
tried.
"""
PAUSE_SECONDS = 0.2
"""How long to wait before nodes are tried again, once every node was tried."""
LAG_SECONDS = 3.0
"""How long a node may not know a table of this handle, which another node has made: nodes hear of
each other's topology within a second or two.
"""
ELSEWHERE = 2
"""How many other nodes are asked if one does not reach enough replicas: it may be cut off."""
RECONNECT_SECONDS = 1.0
"""How long a handle without a connection waits until it tries another node, asked or not."""
REQUEST_BITS = 52
STORE_PATH = "/v1/store"
WAITING = 4_096
"""The most messages that wait for one connection: a slow node has many requests at once."""
STORE_ROLE: Role[ToStoreClient] = Role(STORE_PATH, decode_to_store_client, encode_store, WAITING)
"""The name of the protocol that clients speak to nodes, and nodes to each other."""


NOT_SENT = Failed(request=0, why="too few replicas", detail="no connection was made")
"""Stands for an answer to what was not sent."""


class _Waiting:
    """A request that is not answered."""

    def __init__(self, asked: Asked, node: str) -> None:
        self.asked = asked
        self.node = node
        self.answer: asyncio.Future[ToStoreClient | None] = (
            asyncio.get_running_loop().create_future()
        )
        """The answer; None if the connection is lost, `NOT_SENT` if there never was one."""


class ClusterBackend:
    """See `Backend`. `nodes` are URLs of some of the nodes."""

    def __init__(
        self,
        nodes: Sequence[str],
        tables: Sequence[Table],
        transport: Transport[ToStoreClient],
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._patience_seconds = patience_seconds
        self._known = KnownNodes(nodes)
        self._tables = tables
        self._transport = transport
        self._waiting: dict[int, _Waiting] = {}
        self._request = random.getrandbits(REQUEST_BITS)
        self._try = 0
        """The number of the last try to adopt a row that was not the first."""
        self._reconnects: asyncio.TimerHandle | None = None
        self._is_open = False

    # --- opening ---

    async def open(self) -> None:
        """See `Backend.open`."""
        self._transport.start(self._on_answer, self._on_lost)
        try:
            await self._open({table.name: table.record() for table in self._tables})
        except BaseException:
            await self._transport.close()
            raise
        self._is_open = True

    async def _open(self, tables: Mapping[str, TableRecord]) -> StoreOpened:
        answer = await self._ask(OpenStore(request=0, tables=dict(tables)))
        if isinstance(answer, TableMissing):
            raise SchemaError(f"the table {answer.table!r} cannot be used: {answer.detail}")
        if not isinstance(answer, StoreOpened):
            raise _failure(answer)
        return answer

    async def records(self) -> Mapping[str, TableRecord]:
        """See `Backend.records`."""
        return (await self._open({})).tables

    async def close(self) -> None:
        """See `Backend.close`."""
        self._is_open = False
        if self._reconnects is not None:
            self._reconnects.cancel()
        await self._transport.close()
        for waiting in self._waiting.values():
            waiting.answer.cancel()

    # --- asking ---

    def _draw(self) -> int:
        self._request += 1
        return self._request

    def _draw_try(self) -> int:
        """A number above those of earlier tries, also of other handles under the same lease."""
        self._try = max(self._try + 1, time.time_ns() // 1_000)
        return self._try

    def _on_answer(self, node: str, answer: ToStoreClient) -> None:
        self._known.on_answer(node)
        if isinstance(answer, StoreOpened):
            self._known.learn(answer.addresses, answer.topology)
        waiting = self._waiting.get(answer.request)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_result(answer)

    def _on_lost(self, node: str, why: str) -> None:
        self._known.on_lost(node, why)
        for waiting in self._waiting.values():
            if waiting.node == node and not waiting.answer.done():
                waiting.answer.set_result(NOT_SENT if isinstance(why, NeverConnected) else None)
        if self._is_open and not self._known.is_any_heard and self._reconnects is None:
            loop = asyncio.get_running_loop()
            self._reconnects = loop.call_later(RECONNECT_SECONDS, self._reconnect)

    def _reconnect(self) -> None:
        """Connect to some node: a handle that is connected to none does not learn which nodes there
        are, and they may all be replaced by others before it is used again.
        """
        self._reconnects = None
        if not self._known.is_any_heard:
            self._probe(self._known.choose(()))

    def _probe(self, node: str) -> None:
        self._transport.send(node, OpenStore(request=self._draw(), tables={}))

    def _choose(self, asked: Asked, refusing: Sequence[str]) -> str:
        """The node to ask."""
        replicas: list[str] = []
        if not isinstance(asked, OpenStore | ReadRows):
            replicas = self._known.replicas(asked.table, asked.key)
        to_probe = self._known.to_probe(replicas, asyncio.get_running_loop().time())
        if to_probe is not None:
            self._probe(to_probe)
        return self._known.other_than(refusing) or self._known.choose(replicas)

    async def _ask(self, asked: Asked) -> ToStoreClient:
        """Return the answer of any node that gives one. Raises Unreachable, Overloaded,
        WriteUnknown.
        """
        is_overloaded = was_sent = is_waiting = False
        now = asyncio.get_running_loop().time
        lags_until = now() + LAG_SECONDS
        refusing: list[str] = []
        """The nodes that have just answered that they do not reach enough replicas."""
        try:
            async with asyncio.timeout(self._patience_seconds):
                while True:
                    is_overloaded = False
                    node = self._choose(asked, refusing)
                    is_waiting = True
                    answer = await self._ask_once(node, asked)
                    is_waiting = False
                    if answer is NOT_SENT:
                        if self._known.all_are_lost:
                            await asyncio.sleep(PAUSE_SECONDS)
                        continue
                    if reaches_too_few(answer, reads=not isinstance(asked, WriteRow | AdoptRow)):
                        refusing.append(node)
                        if len(refusing) <= ELSEWHERE and self._known.other_than(refusing):
                            continue
                    else:
                        self._known.demote(refusing, now())
                    refusing.clear()
                    if _knows_no_table(answer) and now() < lags_until:
                        await asyncio.sleep(PAUSE_SECONDS)
                        continue
                    is_overloaded = isinstance(answer, Failed) and answer.why == "overloaded"
                    if answer is not None and not is_overloaded:
                        if was_sent and not isinstance(answer, RowWritten):
                            return _unknown_because(answer)
                        return answer
                    if isinstance(asked, WriteRow) and answer is None:
                        was_sent = True
                    elif isinstance(asked, AdoptRow):  # a node would refuse the same try again
                        asked = msgspec.structs.replace(asked, attempt=self._draw_try())
                    if is_overloaded or self._known.all_are_lost:
                        await asyncio.sleep(PAUSE_SECONDS)
        except TimeoutError:
            if is_overloaded and not was_sent:
                raise Overloaded(
                    "the nodes have too many requests under way; this one was not begun. Ask less "
                    "at once, or again later"
                ) from None
            may_be_there = isinstance(asked, WriteRow) and (was_sent or is_waiting)
            raise self._silence(may_be_there=may_be_there) from None

    def _silence(self, *, may_be_there: bool) -> TenureError:
        said = "; ".join(f"{node}: {why}" for node, why in self._known.lost.items())
        if may_be_there:
            return WriteUnknown(
                f"no node has answered for {self._patience_seconds:.0f} s, and some may have the "
                f"write: repeat it ({said or ', '.join(self._known.all)})"
            )
        return Unreachable(
            f"no node of the store answers ({said or ', '.join(self._known.all)}): do they run?"
        )

    async def _ask_once(self, node: str, asked: Asked) -> ToStoreClient | None:
        request = self._draw()
        asked = msgspec.structs.replace(asked, request=request)
        waiting = self._waiting[request] = _Waiting(asked, node)
        try:
            self._transport.send(node, asked)
            return await waiting.answer
        except LocalProtocolError as error:
            raise ConfigurationError(f"the request is too large: {error}") from error
        finally:
            del self._waiting[request]

    # --- writing ---

    async def draw(self, mutation: RowMutation, floor: int) -> Attempt:
        """See `Backend.draw`."""
        answer = await self._ask(
            DrawVersion(
                table=mutation.table.name,
                level=mutation.level,
                key=mutation.key,
                floor=floor,
            )
        )
        if isinstance(answer, VersionDrawn):
            return Attempt(answer.version, above=answer.newest)
        raise _failure(answer)

    async def write(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        """See `Backend.write`."""
        answer = await self._ask(
            WriteRow(
                table=mutation.table.name,
                level=mutation.level,
                key=mutation.key,
                edits=tuple(mutation.edits),
                attempt=attempt,
            )
        )
        match answer:
            case RowWritten():
                return None
            case NotWritten(refused=refused):
                return refused
            case _:
                raise _failure(answer)

    async def adopt(
        self, table: Table, key: bytes, number: int, journal: int
    ) -> Version | Outranked:
        """See `Backend.adopt`.

        Mostly this is the first try under the lease, and nodes settle the row in one round. If it
        is not, since another handle has tried before, they refuse a first try, and the next try
        takes the longer way.
        """
        asked = AdoptRow(
            table=table.name,
            key=key,
            number=number,
            journal=journal,
            attempt=FIRST_TRY,
        )
        answer = await self._ask(asked)
        if isinstance(answer, Failed) and answer.why == "unavailable":
            answer = await self._ask(msgspec.structs.replace(asked, attempt=self._draw_try()))
        if isinstance(answer, Adopted):
            return answer.refused or answer.newest
        raise _failure(answer)

    # --- reading ---

    async def column(self, asked: ReadColumn) -> FoundCell | None:
        """See `Backend.column`."""
        answer = await self._ask(asked)
        if isinstance(answer, PageFound):
            return answer.page.cells[0] if answer.page.cells else None
        raise _failure(answer)

    async def page(self, asked: ReadPage) -> CellPage:
        """See `Backend.page`."""
        answer = await self._ask(asked)
        if isinstance(answer, PageFound):
            return answer.page
        raise _failure(answer)

    async def supers(self, asked: ReadSupers) -> SuperPage:
        """See `Backend.supers`."""
        answer = await self._ask(asked)
        if isinstance(answer, SupersFound):
            return answer.page
        raise _failure(answer)

    async def row(self, asked: ReadRow) -> WholeRow:
        """See `Backend.row`."""
        answer = await self._ask(asked)
        if isinstance(answer, RowFound):
            return answer.row
        raise _failure(answer)

    async def rows(self, asked: ReadRows) -> RowsFound:
        """See `Backend.rows`."""
        answer = await self._ask(asked)
        if isinstance(answer, RowsFound):
            return answer
        raise _failure(answer)

    async def warm(self, table: Table, key: bytes, families: Sequence[FamilyShape]) -> None:
        """See `Backend.warm`. The replicas read the row, and report nothing."""
        for family in families:
            asked = warming_of(table, key, family)
            answer = await self._ask(msgspec.structs.replace(asked, level="one", warms=True))
            if isinstance(answer, Failed):
                raise _failure(answer)


def _knows_no_table(answer: ToStoreClient | None) -> bool:
    """Whether the node has not heard of the table, or of one of its families; nothing was begun."""
    return isinstance(answer, Failed) and answer.why == "no such table"


def _unknown_because(answer: ToStoreClient) -> Failed | NotWritten:
    """The answer to a write that was sent to another node before, and that this one refuses."""
    if isinstance(answer, NotWritten) and isinstance(answer.refused, Outranked):
        lost = msgspec.structs.replace(answer.refused, is_partial=True)
        return NotWritten(request=answer.request, refused=lost)
    return Failed(request=answer.request, why="unknown", detail="a node was lost that had it")


def _detail(failed: Failed) -> str:
    return f": {failed.detail}" if failed.detail else ""


def _failure(answer: ToStoreClient) -> TenureError:
    if not isinstance(answer, Failed):
        return StoreError(f"a node has answered with a {type(answer).__name__}: it is broken")
    match answer.why:
        case "too few replicas":
            return NotEnoughReplicas(f"too few replicas are up, nothing was sent{_detail(answer)}")
        case "unknown":
            return WriteUnknown(
                f"too few replicas have answered in time{_detail(answer)}; repeat it"
            )
        case "overloaded":
            return Overloaded("the node has too many requests under way; nothing was begun")
        case "no such table":
            return SchemaError(
                f"the cluster has no such table: {answer.detail}; open the store with it"
            )
        case _:
            return NotEnoughReplicas(f"too few replicas have answered in time{_detail(answer)}")
