"""Calls: how a handle has a request answered, by whichever node can.

It asks a replica of the row, or any other node (see `known_nodes`), and goes on to another one when
the connection breaks, when the node says nothing, or when the node does not reach enough replicas.
So a request is repeated until it is answered. A write keeps its version, so it takes effect once,
however often it comes (R4). But once it was sent, no other node can say that it is not written:
what the first one did with it is unknown.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Protocol, TypeAlias, TypeVar

import msgspec

from tenure.columns.backends.known_nodes import KnownNodes
from tenure.columns.backends.silences import SILENT_SECONDS, SilentNodes
from tenure.errors import (
    ConfigurationError,
    LocalProtocolError,
    Overloaded,
    TenureError,
    Unreachable,
    WriteUnknown,
)
from tenure.protocol.replication.messages import (
    AdoptRow,
    AnyRead,
    ClientRequest,
    Failed,
    FailedWhy,
    NotWritten,
    ReadRows,
    RowWritten,
    WriteRow,
)
from tenure.protocol.replication.openings import OpenStore, StoreOpened
from tenure.protocol.replication.row.admission import Outranked
from tenure.runtime.clock import wall_us
from tenure.transport.contract import NeverConnected, Transport
from tenure.wire.columns import ToStoreClient

Asked: TypeAlias = OpenStore | ClientRequest
A = TypeVar("A", bound=Asked)
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
CUT_OFF: tuple[FailedWhy, ...] = ("too few replicas", "unavailable", "unknown")
"""The reasons of a node that does not reach enough replicas."""
NOT_SENT = Failed(request=0, why="too few replicas", detail="no connection was made")
"""Stands for an answer to what was not sent."""


class NodeTransport(Transport[ToStoreClient], Protocol):
    """Connections to nodes."""

    on_bytes: Callable[[str], None] | None
    """Called with a node's URL when bytes have come from there, perhaps not a whole message: who
    receives a large answer is not waiting for a silent node.
    """


class _Waiting:
    def __init__(self, node: str) -> None:
        loop = asyncio.get_running_loop()
        self.node = node
        self.since = loop.time()
        self.answer: asyncio.Future[ToStoreClient | None] = loop.create_future()
        """The answer; None if the node is lost, `NOT_SENT` if it never was connected."""


class NodeCalls:
    def __init__(
        self, known: KnownNodes, transport: NodeTransport, patience_seconds: float
    ) -> None:
        self._known = known
        self._transport = transport
        self._patience_seconds = patience_seconds
        self._silent = SilentNodes(self._owes_since, self._on_quiet, self._on_silent)
        self._waiting: dict[int, _Waiting] = {}
        self._request = random.getrandbits(REQUEST_BITS)
        self._try = 0
        """The number of the last try to adopt a row that was not the first."""
        self._reconnects: asyncio.TimerHandle | None = None
        self._is_open = False

    def start(self) -> None:
        self._is_open = True
        self._transport.on_bytes = self._silent.on_heard
        self._transport.start(self._on_answer, self._on_lost)

    async def close(self) -> None:
        self._is_open = False
        self._silent.close()
        if self._reconnects is not None:
            self._reconnects.cancel()
        await self._transport.close()
        for waiting in self._waiting.values():
            waiting.answer.cancel()

    async def ask(self, asked: Asked) -> ToStoreClient:
        """Return the answer of any node that gives one. Raises Unreachable, Overloaded,
        WriteUnknown.
        """
        is_overloaded = was_sent = is_waiting = False
        now = asyncio.get_running_loop().time
        lags_until = now() + LAG_SECONDS
        if isinstance(asked, AnyRead):
            # Whichever node answers has answered. All may be slow, and if only the last one that
            # was asked counted, nothing that the others read would be of use.
            asked = self._numbered(asked)
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
                    if isinstance(answer, Failed) and answer.why in CUT_OFF:
                        refusing.append(node)
                        if len(refusing) <= ELSEWHERE and self._known.other_than(refusing):
                            was_sent |= answer.why == "unknown"
                            asked = self._again(asked)
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
                    was_sent |= answer is None and isinstance(asked, WriteRow)
                    asked = self._again(asked)
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

    def _numbered(self, asked: A) -> A:
        self._request += 1
        return msgspec.structs.replace(asked, request=self._request)

    def again(self, asked: AdoptRow) -> AdoptRow:
        """Another try to adopt a row, above those of other handles under the same lease."""
        self._try = max(self._try + 1, wall_us())
        return msgspec.structs.replace(asked, attempt=self._try)

    def _again(self, asked: Asked) -> Asked:
        """What is asked of another node. The same try to adopt a row would be refused there."""
        return self.again(asked) if isinstance(asked, AdoptRow) else asked

    def _choose(self, asked: Asked, refusing: list[str]) -> str:
        replicas: list[str] = []
        if not isinstance(asked, OpenStore | ReadRows):
            replicas = self._known.replicas(asked.table, asked.key)
        to_probe = self._known.to_probe(replicas, asyncio.get_running_loop().time())
        if to_probe is not None:
            self._probe(to_probe)
        return self._known.other_than(refusing) or self._known.choose(replicas)

    async def _ask_once(self, node: str, asked: Asked) -> ToStoreClient | None:
        if not asked.request:
            asked = self._numbered(asked)
        waiting = self._waiting[asked.request] = _Waiting(node)
        try:
            self._transport.send(node, asked)
            self._silent.on_asked(node)
            return await waiting.answer
        except LocalProtocolError as error:
            raise ConfigurationError(f"the request is too large: {error}") from error
        finally:
            del self._waiting[asked.request]

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

    # --- what is heard, and what is not ---

    def _on_answer(self, node: str, answer: ToStoreClient) -> None:
        self._known.on_answer(node)
        self._silent.on_heard(node)
        if isinstance(answer, StoreOpened):
            self._known.learn(answer.addresses, answer.topology)
        waiting = self._waiting.get(answer.request)
        # What another node was asked before says nothing of the one that is asked now.
        is_late = waiting is not None and waiting.node != node and isinstance(answer, Failed)
        if waiting is not None and not is_late and not waiting.answer.done():
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
        self._request += 1
        self._transport.send(node, OpenStore(request=self._request, tables={}))

    def _owes_since(self, node: str) -> float | None:
        return next((each.since for each in self._waiting.values() if each.node == node), None)

    def _on_quiet(self, node: str) -> None:
        """Ask it whether it is there, and one that was lost, which may be there again."""
        for each in (node, *list(self._known.lost)[:1]):
            self._probe(each)

    def _on_silent(self, node: str) -> None:
        """Ask another node, if there is one. This one is asked again once it has said something."""
        if self._known.other_than([node]) is not None:
            self._on_lost(node, f"it has said nothing for {SILENT_SECONDS:g} s")


def _knows_no_table(answer: ToStoreClient | None) -> bool:
    """Whether the node has not heard of the table, or of one of its families; nothing was begun."""
    return isinstance(answer, Failed) and answer.why == "no such table"


def _unknown_because(answer: ToStoreClient) -> Failed | NotWritten:
    """The answer to a write that was sent to another node before, and that this one refuses."""
    if isinstance(answer, NotWritten) and isinstance(answer.refused, Outranked):
        lost = msgspec.structs.replace(answer.refused, is_partial=True)
        return NotWritten(request=answer.request, refused=lost)
    return Failed(request=answer.request, why="unknown", detail="another node may have had it")
