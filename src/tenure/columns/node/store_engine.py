"""Runs the machine of a node with its replica, its door, and its connections to other nodes."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from itertools import count
from random import Random
from typing import assert_never

import msgspec

from tenure.base.noted import Noted
from tenure.columns.commits import GroupCommit
from tenure.columns.engines.contract import EngineBusy, StorageEngine
from tenure.columns.node.client_requests import ClientRequests
from tenure.columns.node.node_directory import NodeDirectory
from tenure.columns.node.request_timings import SLOW_SECONDS, RequestTimings
from tenure.columns.node_replica import NodeReplica
from tenure.columns.tables import Table, table_of
from tenure.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    SchemaError,
    StoreError,
    StoreUnwritable,
)
from tenure.observe.metrics import Histogram
from tenure.protocol.replication.delays import Delays
from tenure.protocol.replication.messages import MessagePart, NodeMessage
from tenure.protocol.replication.node import StoreNode
from tenure.protocol.replication.node_events import (
    AnswerClient,
    AskManagers,
    DelaysMeasured,
    DoubtTopology,
    KeepTopology,
    NodeAction,
    NodeConfig,
    NodeEvent,
    NodeTold,
    RunStep,
    StepDone,
    StepFailed,
    StepThrough,
    Synced,
    SyncUpTo,
    TellNode,
    TopologyKept,
)
from tenure.protocol.replication.openings import UNASKED, OpenStore, store_opened
from tenure.protocol.replication.operations import PartsRead, ReadParts
from tenure.protocol.replication.request_room import places_of
from tenure.protocol.topology.messages import NodeReport
from tenure.protocol.topology.records import NodeId, Topology
from tenure.runtime.clock import Clock, boot_clock
from tenure.runtime.driver import Driver
from tenure.transport.contract import Transport
from tenure.transport.doors import Connection
from tenure.wire.columns import (
    NodeHead,
    ToStoreClient,
    decode_from_client,
    decode_head,
    decode_to_store,
    encode_store,
    is_of_node,
)
from tenure.wire.message_parts import MessageJoiner, in_parts
from tenure.wire.node_seal import NodeSeal

_log = logging.getLogger("tenure.columns")
KEEP_SECONDS = 1.0
"""The pause until a topology that the disk has refused is kept."""
COUNT_SECONDS = 5.0
"""How often changes of a store raise its counter, which all nodes keep on their disks."""


class StoreEngine:
    """Runs a `StoreNode` from `start` to `stop`, and is the listener of its door.

    `fail` is called with an error after which the node cannot go on; `on_refused` with what the
    disk has refused or lost, and the node still answers what it can; `on_opening` with the first
    message of a client, the way to answer, and the client's name; `on_topology` with each topology
    that counts from then on; `on_promised` with how often the counter of the disk was raised;
    `on_news` when a manager is to be told or asked something.
    """

    def __init__(
        self,
        directory: NodeDirectory,
        storage: StorageEngine,
        transport: Transport[ToStoreClient],
        seal: NodeSeal,
        wall: Callable[[], int],
        fail: Callable[[Exception], None],
        clock: Clock = boot_clock,
        slow_seconds: float = SLOW_SECONDS,
    ) -> None:
        self._directory = directory
        self.replica = NodeReplica(storage, wall)
        self._transport = transport
        self._seal = seal
        self._fail = fail
        self._clock = clock
        self._driver: Driver[NodeEvent, NodeAction] | None = None
        self._commits: GroupCommit | None = None
        self._counting: asyncio.Task[None]
        self._connections: dict[int, Connection] = {}
        self._clients: set[int] = set()
        """The connections of clients, which are told each topology."""
        self._numbers: dict[Connection, int] = {}
        self._requests = ClientRequests(self.post, self._answer, wall, clock)
        self._drawn = count(1)
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._syncs_to = 0
        self._keeps = 0
        """The version of the topology that is being kept, or was last."""
        self._joiner = MessageJoiner()
        self._is_certain = True
        """Whether a sync says what the disk has: once one has failed, a later one does not."""
        self.on_refused: Callable[[StoreError], None] = fail
        self.on_opening: Callable[[OpenStore, Callable[[ToStoreClient], object], str], None]
        self.on_topology: Callable[[Topology], None] = lambda _: None
        self.on_news: Callable[[], None] = lambda: None
        self.seals: Callable[[NodeId], bool] = lambda _: True
        """Whether a node seals its messages, as far as is known."""
        self._doubted: set[tuple[NodeId, str]] = set()
        """The nodes whose topologies were not believed, and why: each was logged once."""
        self.on_promised: Callable[[int], None] = lambda _: None
        self.promises = 0
        """How often the counter of the disk was raised, durably (R26)."""
        self._counted = 0
        """How many changes there were when the counter was last raised."""
        self._delays = Delays()
        self._nearest: tuple[NodeId, ...] = ()
        self.timings = RequestTimings(slow_seconds)

    # --- running ---

    def load(self, topology: Topology) -> None:
        """Read what earlier lives have left. Call it before `start`."""
        self._commits = GroupCommit(self.replica.engine.sync)
        self._open_tables(topology)
        self.replica.load()
        self.promises = self.replica.promises

    def start(self, random: Random, config: NodeConfig) -> None:
        """Take part, under the topology that the directory has; `config` gets what the store knows
        of the node's filling.
        """
        topology = config.topology
        self._open_tables(topology)
        # The log has this before everything that is acknowledged in this life (R26).
        self._count_once_more()
        self._counting = asyncio.get_running_loop().create_task(self._count_changes())
        config = msgspec.structs.replace(config, filling=self.replica.filling)
        self.machine = StoreNode(config, random)
        self._transport.start(self._on_answer, self._on_lost)
        self._driver = Driver(self.machine, self._clock, self._perform, fail=self._fail)
        self._driver.start()
        self._on_topology(topology)

    async def stop(self) -> None:
        """Stop taking part, and write everything that was done to the disk."""
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.stop()
            self._counting.cancel()
            await self._transport.close()
        for task in list(self._tasks):  # they leave it when they end
            await asyncio.wait([task])
        if self._commits is not None:
            await self._commits.finish()

    @property
    def topology(self) -> Topology:
        return self.machine.context.topology

    @property
    def syncs(self) -> Histogram:
        """How many seconds syncs took."""
        return Histogram() if self._commits is None else self._commits.took

    def post(self, event: NodeEvent) -> None:
        """Hand the machine an event, if it runs."""
        if self._driver is not None:
            self._driver.post(event)

    # --- what the machine asks for ---

    def _perform(self, action: NodeAction) -> None:
        match action:
            case RunStep():
                self._run(action)
            case SyncUpTo(changes=changes):
                self._sync(changes)
            case TellNode(node=node, message=message):
                self._tell(node, message)
            case AnswerClient(client=client, answer=answer):
                self._requests.answered(client, self._answer(client, answer))
            case KeepTopology(topology=topology):
                self._begin(self._keep(topology))
            case DoubtTopology():
                self._doubt(action)
            case StepThrough() | AskManagers():
                self.on_news()
            case Noted():
                _log.log(action.kind.level, "%s", action.text)
            case _:
                assert_never(action)

    def _doubt(self, doubt: DoubtTopology) -> None:
        if (doubt.teller, doubt.why) not in self._doubted:
            self._doubted.add((doubt.teller, doubt.why))
            _log.error(
                "the node %x tells version %s of the topology, which %s: it counts only if a "
                "manager tells it, too",
                doubt.teller,
                doubt.version,
                doubt.why,
            )
        self.on_news()

    def _run(self, run: RunStep) -> None:
        try:
            result, changes = self.replica.run(run.step)
        except EngineBusy as error:
            _log.warning("the disk refuses: %s", str(error) or "it does not keep up")
            self.post(StepFailed(run.ticket))
        except StoreError as error:
            self.on_refused(error)
            self.post(StepFailed(run.ticket))
        else:
            self.post(StepDone(run.ticket, result, changes))

    def _sync(self, changes: int) -> None:
        if changes > self._syncs_to:
            self._sync_all()

    def _sync_all(self) -> None:
        assert self._commits is not None
        self._syncs_to = self.replica.changes
        synced = self._commits.durable()
        promises = self.replica.promises
        synced.add_done_callback(partial(self._on_synced, self._syncs_to, promises))

    def _count_once_more(self) -> None:
        self.replica.count_once_more()
        self._counted = self.replica.changes
        self._sync_all()

    async def _count_changes(self) -> None:
        """Count changes, so that a disk that was put back lacks something of which others have
        heard (R26).
        """
        while True:
            await asyncio.sleep(COUNT_SECONDS)
            self.count_changes()

    def count_changes(self) -> None:
        """Raise the counter if the store has changed since; this comes after the changes."""
        if self._driver is not None and self.replica.changes > self._counted:
            with suppress(StoreError, EngineBusy):  # the next call tries again
                self._count_once_more()

    def _on_synced(self, changes: int, promises: int, synced: "asyncio.Future[None]") -> None:
        error = synced.exception()
        if isinstance(error, StoreError):
            self._is_certain = False  # what waits is never answered: a next life reads the log
            self.on_refused(error)
        elif isinstance(error, Exception):
            self._fail(error)
        elif self._is_certain:
            self.post(Synced(changes))
            if promises > self.promises:
                self.promises = promises
                self.on_promised(promises)

    def _tell(self, node: NodeId, message: NodeMessage) -> None:
        address = self.topology.address(node)
        if address is None:
            return
        if isinstance(message.body, ReadParts):
            self._delays.asked(self._clock(), message.body.ticket, node)
        try:
            self._transport.send(address, message)
        except LocalProtocolError as error:
            parts = [] if isinstance(message.body, MessagePart) else [*in_parts(message)]
            if not parts:
                _log.warning("a message to %s was not sent: %s", address, error)
            for part in parts:
                self._tell(node, part)

    def _answer(self, client: int, answer: ToStoreClient) -> int:
        """Answer a client, if it is still there; return the bytes of the answer."""
        self.timings.answered(self._clock(), client, answer)
        connection = self._connections.get(client)
        if connection is None:
            return 0
        try:
            data = encode_store(answer, connection.version)
        except LocalProtocolError as error:
            connection.close(str(error))
            return 0
        connection.send(data)
        return len(data)

    async def _keep(self, topology: Topology) -> None:
        """Have the topology and its tables on the disk. While the disk refuses, try again, unless
        there is a later topology to keep: the machine asks once for each.
        """
        if not self.can_open(topology):
            return
        self._keeps = topology.version
        while self._driver is not None and self._keeps == topology.version:
            try:
                await self._directory.soon(self._directory.keep_topology, topology)
                self._open_tables(topology)
            except (StoreUnwritable, EngineBusy) as error:
                _log.warning("a newer topology is not kept yet: %s", error)
                await asyncio.sleep(KEEP_SECONDS)
            except StoreError as error:
                self._fail(error)
                return
            else:
                self.post(TopologyKept(topology))
                self._on_topology(topology)
                return

    def _begin(self, coroutine: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    def can_open(self, topology: Topology) -> bool:
        """Whether this release can open all tables of a topology. One that it cannot open is not
        kept: the node would end, and could never start again.
        """
        try:
            _tables_of(topology)
        except SchemaError as error:
            _log.error(
                "version %s of the topology has a table that this release cannot open (%s), and "
                "does not count here: run the release in which the table was made",
                topology.version,
                error,
            )
            return False
        return True

    def _open_tables(self, topology: Topology) -> None:
        if topology.tables != self.replica.records or not topology.tables:
            self.replica.open(_tables_of(topology))
            self.replica.load()

    def _on_topology(self, topology: Topology) -> None:
        self._look_who_is_near(topology)
        for number in sorted(self._clients):
            self._answer(number, store_opened(UNASKED, topology))
        self.on_topology(topology)

    def _look_who_is_near(self, topology: Topology) -> None:
        own = topology.node(self._directory.identity.node)
        if own is None:
            return
        distances = {
            node.id: (node.datacentre != own.datacentre)
            + ((node.datacentre, node.rack) != (own.datacentre, own.rack))
            for node in topology.nodes
            if node.id != own.id
        }
        nearest = self._delays.nearest(self._clock(), [*distances], distances.__getitem__)
        if nearest != self._nearest:
            self._nearest = nearest
            self.post(DelaysMeasured(nearest))

    # --- what comes in ---

    def connected(self, connection: Connection) -> None:
        number = next(self._drawn)
        self._connections[number], self._numbers[connection] = connection, number

    def disconnected(self, connection: Connection) -> None:
        number = self._numbers.pop(connection)
        self._connections.pop(number, None)
        self._clients.discard(number)
        self.timings.gone(number)
        self._requests.left(number)

    def received(self, connection: Connection, data: bytes) -> None:
        if self._driver is None:
            connection.close("this node is not part of its cluster yet; ask another one")
            return
        try:
            if is_of_node(data):
                message, is_proven = self._of_node(connection, data)
                self._hear(message, is_proven=is_proven)
            else:
                self._ask(connection, data)
        except RemoteProtocolError as error:
            connection.close(str(error))

    def _of_node(self, connection: Connection, data: bytes) -> tuple[NodeMessage, bool]:
        """A message of a node, and whether it is proven. Without a seal only the head is decoded
        before it is refused: millions of small parts would take seconds.
        """
        is_proven = self._seal.is_on(data)
        if not is_proven:
            self._check(decode_head(data, connection.version), is_proven=False)
        message = decode_to_store(data, connection.version)
        assert isinstance(message, NodeMessage)
        return message, is_proven

    def _check(self, message: NodeMessage | NodeHead, *, is_proven: bool) -> None:
        """Raises RemoteProtocolError for a message that may not be heard here."""
        topology = self.topology
        if (message.cluster, message.id) != (topology.cluster, topology.id):
            raise RemoteProtocolError(
                f"this is a node of the cluster {topology.cluster!r} ({topology.id:x}), and not of "
                f"{message.cluster!r} ({message.id:x})"
            )
        if topology.is_removed(message.sender):
            raise RemoteProtocolError(
                f"the node {message.sender:x} was removed from {topology.cluster!r}"
            )
        if not is_proven and self.seals(message.sender):
            raise RemoteProtocolError(
                "a message of a node is not sealed with the cluster's secret: only nodes may send "
                "such messages, and they need the same file as --secret"
            )

    def _hear(self, message: NodeMessage, *, is_proven: bool) -> None:
        self._check(message, is_proven=is_proven)
        if isinstance(message.body, MessagePart):
            whole = self._joiner.add(message, message.body)
            if whole is not None:
                self._hear(whole, is_proven=is_proven)
            return
        told = message.body
        if isinstance(told, PartsRead) and self._delays.answered(self._clock(), told.ticket):
            self._look_who_is_near(self.topology)
        self.post(NodeTold(message, is_proven))

    def _ask(self, connection: Connection, data: bytes) -> None:
        message = decode_from_client(data, connection.version)
        number = self._numbers[connection]
        is_first = number not in self._clients
        self._clients.add(number)
        if is_first and not isinstance(message, OpenStore):
            self._answer(number, store_opened(UNASKED, self.topology))
        if isinstance(message, OpenStore):
            self.on_opening(message, partial(self._answer, number), connection.whose)
        else:
            assert not isinstance(message, NodeMessage)
            self.timings.asked(self._clock(), number, message)
            self._requests.ask(number, message, connection.whose, places_of(message, len(data)))

    def _on_answer(self, url: str, message: object) -> None:
        """A node has answered by the connection that it made itself."""

    def _on_lost(self, url: str, why: str) -> None:
        _log.info("no connection to the node at %s: %s", url, why)

    def report(self) -> NodeReport:
        return self.machine.report(self._clock())


def _tables_of(topology: Topology) -> list[Table]:
    return [table_of(name, record) for name, record in topology.tables.items()]
