"""The backend on a cluster of our nodes: what a handle asks them, and what it makes of answers."""

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from tenure.columns.backends.known_nodes import KnownNodes
from tenure.columns.backends.node_calls import PATIENCE_SECONDS, Asked, NodeCalls, NodeTransport
from tenure.columns.requests import RowMutation
from tenure.columns.tables import Table
from tenure.errors import (
    NotEnoughReplicas,
    Overloaded,
    SchemaError,
    StoreError,
    TenureError,
    WriteUnknown,
)
from tenure.protocol.replication.messages import (
    Adopted,
    AdoptRow,
    AnyRead,
    DrawVersion,
    Failed,
    NotWritten,
    PageFound,
    ReadColumn,
    ReadPage,
    ReadRow,
    ReadRows,
    Reads,
    ReadSupers,
    RowFound,
    RowsFound,
    RowWritten,
    SupersFound,
    VersionDrawn,
    WriteRow,
)
from tenure.protocol.replication.openings import OpenStore, StoreOpened, TableMissing
from tenure.protocol.replication.request.adoption import FIRST_TRY
from tenure.protocol.replication.row.admission import Attempt, Outranked, Refused
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.topology.tables import TableRecord
from tenure.transport.contract import Role
from tenure.wire.columns import ToStoreClient, decode_to_store_client, encode_store

A = TypeVar("A")
STORE_PATH = "/v1/store"
WAITING = 4_096
"""The most messages that wait for one connection: a slow node has many requests at once."""
STORE_ROLE: Role[ToStoreClient] = Role(STORE_PATH, decode_to_store_client, encode_store, WAITING)
"""The name of the protocol that clients speak to nodes, and nodes to each other."""


class ClusterBackend:
    """See `Backend`. `nodes` are URLs of some of the nodes."""

    def __init__(
        self,
        nodes: Sequence[str],
        tables: Sequence[Table],
        transport: NodeTransport,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._known = KnownNodes(nodes)
        self._calls = NodeCalls(self._known, transport, patience_seconds)
        self._tables = tables

    # --- opening ---

    async def open(self) -> None:
        self._calls.start()
        try:
            await self._open({table.name: table.record() for table in self._tables})
        except BaseException:
            await self._calls.close()
            raise

    async def _open(self, tables: Mapping[str, TableRecord]) -> StoreOpened:
        answer = await self._calls.ask(OpenStore(request=0, tables=dict(tables)))
        if isinstance(answer, TableMissing):
            raise SchemaError(f"the table {answer.table!r} cannot be used: {answer.detail}")
        return _wanted(answer, StoreOpened)

    async def _ask(self, asked: Asked, wanted: type[A]) -> A:
        return _wanted(await self._calls.ask(asked), wanted)

    async def records(self) -> Mapping[str, TableRecord]:
        return (await self._open({})).tables

    async def close(self) -> None:
        await self._calls.close()

    # --- writing ---

    async def draw(self, mutation: RowMutation, floor: int) -> Attempt:
        table, level, key = mutation.table.name, mutation.level, mutation.key
        asked = DrawVersion(table=table, level=level, key=key, floor=floor)
        drawn = await self._ask(asked, VersionDrawn)
        return Attempt(drawn.version, above=drawn.newest)

    async def write(self, mutation: RowMutation, attempt: Attempt) -> Refused | None:
        answer = await self._calls.ask(
            WriteRow(
                table=mutation.table.name,
                level=mutation.level,
                key=mutation.key,
                edits=tuple(mutation.edits),
                attempt=attempt,
            )
        )
        if isinstance(answer, NotWritten):
            return answer.refused
        _wanted(answer, RowWritten)
        return None

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
        answer = await self._calls.ask(asked)
        if isinstance(answer, Failed) and answer.why == "unavailable":
            answer = await self._calls.ask(self._calls.again(asked))
        adopted = _wanted(answer, Adopted)
        return adopted.refused or adopted.newest

    # --- reading ---

    async def read(self, asked: Reads[A]) -> A:
        question = cast("AnyRead", asked)
        match question, await self._calls.ask(question):
            case (
                (ReadColumn() | ReadPage(), PageFound(page=found))
                | (ReadSupers(), SupersFound(page=found))
                | (ReadRow(), RowFound(row=found))
                | (ReadRows(), RowsFound() as found)
            ):
                return cast("A", found)
            case _, answer:
                raise _failure(answer)


def _wanted(answer: ToStoreClient, wanted: type[A]) -> A:
    if not isinstance(answer, wanted):
        raise _failure(answer)
    return answer


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
