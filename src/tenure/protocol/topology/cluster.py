"""One cluster, as the leading manager has it: its nodes come, and changes go on.

Every decision here is in the topology, which is journaled before anybody is told. So a manager that
takes over goes on from the last step: nodes say again which step they have completed, by the
version with which it began, so a report about an attempt that was taken back does not count.

A node that is silent changes nothing, however long it is (R18).
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from msgspec.structs import replace

from tenure.base.instants import Instant
from tenure.base.names import NAME_CHARACTERS
from tenure.base.noted import NotedKind
from tenure.base.numbers import JournalId
from tenure.protocol.topology.change import (
    ChangeRefused,
    begin,
    described,
    finish,
    form,
    join,
    take_back,
)
from tenure.protocol.topology.damage import may_leave, replaced_by, replacement
from tenure.protocol.topology.doubts import Doubts
from tenure.protocol.topology.history import AnyClusterRecord, Clusters, ClusterState, TopologySet
from tenure.protocol.topology.limits import NODES
from tenure.protocol.topology.messages import (
    DETAIL_CHARACTERS,
    NodeRefusalReason,
    NodeRefused,
    NodeRequest,
    ToNode,
    TopologyTold,
)
from tenure.protocol.topology.newcomers import Records, Room, room_for, version_ahead
from tenure.protocol.topology.noted import TopologyKind
from tenure.protocol.topology.placement import TooFewNodes
from tenure.protocol.topology.proof import is_proven, mark_of
from tenure.protocol.topology.records import Node, NodeId, Removed, Topology
from tenure.protocol.topology.restoring import believed, latest, missing
from tenure.protocol.topology.sessions import Connection, NodeSessions
from tenure.protocol.topology.tables import TableRecord, fencing_pools
from tenure.protocol.topology.weights import Weights

ANEW = " anew"
"""The end of a node's name while the node that it replaces has that name."""


class ClusterDesk(Protocol):
    """The services that a cluster needs of its leader: records go in, messages come
    out, in order.
    """

    @property
    def journal(self) -> JournalId:
        """The identity of the journal in which it leads."""

    @property
    def leadership(self) -> int:
        """The number of the leadership."""

    @property
    def next_lsn(self) -> int:
        """The LSN that the next record will have."""

    def next_numbers(self, pools: Iterable[str]) -> dict[str, int]:
        """The number that the next lease of each of these pools will have that is here."""

    def write(self, record: AnyClusterRecord) -> int:
        """Decide `record`, which holds from here on, and return its LSN."""

    def send(self, connection: Connection | None, message: ToNode) -> None:
        """Send `message`, once all that is decided is durable."""

    def push(self, connections: tuple[Connection, ...], message: ToNode) -> None:
        """Send `message` to many, once all that is decided is durable."""

    def note(self, kind: NotedKind, pool: str = "", detail: str = "") -> None:
        """Tell observers."""


def way_back(request: NodeRequest) -> str:
    """The way in which a manager knows the cluster of a node again, if its journal was lost."""
    lost = f"{request.cluster}={request.cluster_id:016x}@{request.version}"
    return f"tenure restore --journal URL --cluster {lost}"


class LedCluster:
    """A cluster under one leadership."""

    def __init__(self, now: Instant, desk: ClusterDesk, clusters: Clusters, name: str) -> None:
        self.desk = desk
        self.name = name
        self.sessions = NodeSessions(now)
        self.doubts = Doubts()
        self._clusters = clusters
        self._weights: Weights | None = None
        self._down: dict[NodeId, str] = {}
        """The nodes that others take to be down, and their names, as last noted."""
        self._let_be: set[NodeId] = set()
        """The damaged nodes whose replacement an operator has taken back."""
        self._records = Records()
        self._compares = 0
        """How often an operator wanted replicas to be compared at once."""

    @property
    def _state(self) -> ClusterState:
        return self._clusters.states[self.name]

    @property
    def topology(self) -> Topology:
        """The topology as it is decided."""
        return self._state.topology

    @property
    def next_version(self) -> int:
        """The version that the next topology will have."""
        return self.desk.next_lsn + self._clusters.passed

    def weights(self) -> Weights:
        """The weights of the ring, as nodes have told them."""
        if self._weights is None:
            self._weights = Weights.of(self.topology, self.sessions.weights())
        return self._weights

    # --- nodes ---

    def on_request(
        self, now: Instant, connection: Connection, request: NodeRequest, by: str = ""
    ) -> None:
        """Answer a node that has shown the token `by`."""
        node = request.node
        refused = self._why_not(request)
        if refused is not None:
            self._refuse(now, connection, request, *refused)
            return
        session = self.sessions.get(node.id)
        if session is not None and session.is_late(request):
            return  # the answer to what it said since is on its way, or here
        doubt = self._doubt(connection, request, by)
        if doubt:
            self._note_doubt(now, TopologyKind.DOUBTED_NODE, node, doubt)
            self.desk.send(connection, self._answer(request))
            return
        replaced = replaced_by(self.topology, request)
        room = room_for(now, self.topology, self.sessions, node, by, replaced)
        if room.refused is not None:
            self._refuse(now, connection, request, *room.refused)
            return
        self.sessions.hear(now, connection, request, by)
        self._note_down()
        self._weights = None
        if self._state.restored:
            self._read_back()
        elif self._is_behind:  # another topology of that version is out there
            self.desk.note(TopologyKind.AHEAD, self.name, self.trouble)
        else:
            self._know(now, request, room)
            self._go_on()
            self._repair(now)
        told = self._answer(request)
        if request.damage:
            can_leave = may_leave(now, self.topology, self.sessions, request.node.id)
            told = replace(told, may_leave=can_leave and not self.trouble)
        self.desk.send(connection, told)

    def _doubt(self, connection: Connection, request: NodeRequest, by: str) -> str:
        """The reason why nothing is taken down of what this says; empty if it is (R32, R34).

        It may be the node itself, of an earlier release: it goes on by what it hears.
        """
        node, known = request.node, self._known(request.node.id)
        session = self.sessions.get(node.id)
        if not is_proven(known, request.proof):
            return (
                f"somebody speaks for the node {node.id:016x} without its secret, and is not "
                "believed. If the node went back to an earlier release, have it replaced: "
                "tenure columns replace. Otherwise withdraw the token that was used"
            )
        if known is not None:
            is_second = session is not None and session.connection not in (None, connection)
            return (
                f"two speak for the node {node.name!r}, which has shown no secret yet: the one "
                "that came first is believed until it leaves. Upgrade the node, or withdraw the "
                "token that was used"
                if is_second and not known.mark
                else ""
            )
        if request.version > self.topology.version and not self._state.restored:
            return (
                f"a node {node.name!r} says that it has version {request.version}, and is not "
                "known here, where that is to come. Either withdraw its token, or this journal is "
                "an old copy: then put the present one back, or use `tenure restore`"
            )
        if session is None and len(self._strangers(by)) >= NODES:
            return f"{NODES} nodes that are not known have come with one token: {node.name!r} waits"
        return ""

    def _strangers(self, by: str) -> list[NodeId]:
        """The nodes that were heard with this token, and are not known."""
        everybody = {each.id for each in (*self.topology.nodes, *self.topology.waiting)}
        heard = self.sessions.heard_besides(everybody)
        return [node for node in heard if self.sessions.shown_by(node) == by]

    def _note_doubt(self, now: Instant, kind: NotedKind, node: Node, why: str) -> None:
        if self.doubts.add(now, node.id, why):
            self.desk.note(kind, self.name, why)

    def _note_down(self) -> None:
        """Note which nodes count as down, and which no longer do."""
        names = {node.id: node.name for node in self.topology.nodes}
        convicted = self.sessions.taken_down(names)
        down = {node: names[node] for node in convicted if node in names}
        for node, name in down.items():
            if node not in self._down:
                self.desk.note(TopologyKind.TAKEN_DOWN, self.name, name)
        for node, name in self._down.items():
            if node not in down and node in names:
                self.desk.note(TopologyKind.UP_AGAIN, self.name, name)
        self._down = down

    def _answer(self, request: NodeRequest) -> TopologyTold:
        topology, is_restored = self.topology, self._state.restored
        is_new = topology.version != request.version and not is_restored
        told = self._told(request.sequence, topology if is_new else None)
        return replace(told, wanted=is_restored, life=request.life)

    def _told(self, sequence: int, topology: Topology | None) -> TopologyTold:
        return TopologyTold(
            sequence=sequence,
            journal=self.desk.journal,
            leadership=self.desk.leadership,
            topology=topology,
            version=self.topology.version,
            compare=self._compares,
            numbers=self.desk.next_numbers(fencing_pools(self.topology.tables)),
        )

    def _refuse(
        self,
        now: Instant,
        connection: Connection,
        request: NodeRequest,
        reason: NodeRefusalReason,
        detail: str,
    ) -> None:
        why = f"{request.node.name}: {detail}"
        self._note_doubt(now, TopologyKind.REFUSED_NODE, request.node, why)
        refused = NodeRefused(
            sequence=request.sequence,
            node=request.node.id,
            reason=reason,
            detail=detail[:DETAIL_CHARACTERS],
            life=request.life,
        )
        self.desk.send(connection, refused)

    def _why_not(self, request: NodeRequest) -> tuple[NodeRefusalReason, str] | None:
        topology, node = self.topology, request.node
        if request.cluster_id not in (0, topology.id):
            return "cluster", (
                f"this node is of another cluster that was called {self.name!r}, "
                f"{request.cluster_id:016x}; this one is {topology.id:016x}. Give the node the "
                "name of its own cluster, or an empty directory. If the managers lost their "
                f"journal: {way_back(request)}"
            )
        if topology.is_removed(node.id):
            return "removed", (
                f"the node {node.name!r}, {node.id:016x}, was removed from {self.name!r}, for "
                "ever. Start it with an empty directory: it is another node then"
            )
        session = self.sessions.get(node.id)
        if session is not None and session.is_past(request):
            return "past", (
                f"the disk of {node.name!r} was put back to an earlier state: its counter was "
                f"{session.counter} in the life {session.request.life}, and is {request.counter} "
                f"in {request.life}. Replace it: tenure columns replace"
            )
        return None

    def _known(self, node: NodeId) -> Node | None:
        topology = self.topology
        everybody = (*topology.nodes, *topology.waiting)
        return next((each for each in everybody if each.id == node), None)

    def _as_known(self, request: NodeRequest) -> Node:
        """The node as it is written down: beside the node whose place it takes it has another
        name.
        """
        node, replaced = request.node, replaced_by(self.topology, request)
        if replaced is None or replaced.name != node.name:
            return node
        return replace(node, name=f"{node.name[: NAME_CHARACTERS - len(ANEW)]}{ANEW}")

    def _know(self, now: Instant, request: NodeRequest, room: Room) -> None:
        """Write down a node that is new here, a node's new address, or the mark of its secret, and
        who gave way for it.
        """
        topology, known = self.topology, self._known(request.node.id)
        node = self._described(request, known)
        if node == known and not room.leaving:
            return
        is_member = known is not None and known.since and known.mark
        if not is_member and not self._records.may_cause(now, self.sessions.shown_by(node.id)):
            return
        waiting = tuple(each for each in topology.waiting if each.id not in room.leaving)
        if known is None:
            detail, waiting = node.name, (*waiting, node)
        else:
            detail = f"{node.name}, at {node.address}"
        nodes, waiting = (
            tuple(node if each.id == node.id else each for each in group)
            for group in (topology.nodes, waiting)
        )
        self._set(replace(topology, nodes=nodes, waiting=waiting), TopologyKind.NODE_KNOWN, detail)
        for leaving in room.leaving:
            self.sessions.forget(leaving)

    def _described(self, request: NodeRequest, known: Node | None) -> Node:
        node, mark = self._as_known(request), mark_of(request.proof)
        if known is None:
            return replace(node, since=0, mark=mark)
        # Its rack stays: replicas were placed by it. A node that was carried to another rack must
        # be replaced.
        now = replace(known, name=node.name, address=node.address, gossip=node.gossip)
        now = replace(now, mark=known.mark or mark)
        if not known.since:
            now = replace(now, rack=node.rack, datacentre=node.datacentre)
        return now

    def on_lost(self, connection: Connection) -> None:
        """Take note that a connection is gone. Nothing follows from that."""
        self.sessions.lose(connection)

    # --- going on ---

    def _set(self, topology: Topology, kind: NotedKind, detail: str) -> None:
        """Decide a topology, and tell all nodes that are here once it is journaled."""
        self.desk.write(TopologySet(replace(topology, version=self.next_version)))
        self._weights = None
        self.desk.note(kind, self.name, detail)
        self.desk.push(self.sessions.connections(), self._told(0, self.topology))

    def _go_on(self) -> None:
        if not self.topology.ranges:
            self._form()
        while self.topology.change is not None and not self.waits_for():
            self._step()

    def _form(self) -> None:
        topology = self.topology
        if len(topology.waiting) < topology.first_nodes:
            return
        try:
            formed = form(topology, self.next_version)
        except TooFewNodes as error:
            self.desk.note(TopologyKind.NOT_FORMED, self.name, str(error))
        else:
            names = ", ".join(node.name for node in formed.nodes)
            self._set(formed, TopologyKind.RING_FORMED, names)

    def _step(self) -> None:
        topology, what = self.topology, described(self.topology)
        if topology.phase == "filling":
            self._set(join(topology, self.next_version), TopologyKind.CHANGE_JOINT, what)
            return
        done = finish(topology, self.next_version)
        self._set(done, TopologyKind.CHANGE_DONE, what)
        for removed in done.removed[len(topology.removed) :]:
            self.sessions.forget(removed.id)

    def _repair(self, now: Instant) -> None:
        """Begin to replace a node that was damaged, if one that takes its place is here."""
        wanted = replacement(now, self.topology, self.sessions)
        if wanted is None or wanted.replaces in self._let_be:
            return
        weigh = self.weights().of_a_thousand
        with suppress(ChangeRefused):  # there are too many removed nodes
            self.begin(begin(self.topology, wanted, self.next_version, weigh))

    def gaining(self) -> list[NodeId]:
        """The nodes that must be through before the step that runs is over."""
        return sorted(self.topology.gaining())

    def is_through(self, node: NodeId) -> bool:
        """Whether a node has said that it is through with the step that runs."""
        change, session = self.topology.change, self.sessions.get(node)
        if change is None or session is None:
            return False
        return session.request.through == (change.joint or change.began)

    def waits_for(self) -> list[NodeId]:
        """The nodes of the step that are not through."""
        return [node for node in self.gaining() if not self.is_through(node)]

    # --- restored ---

    def _read_back(self) -> None:
        told = self.sessions.told()
        found = latest(self.topology, told)
        if not self._cannot_read_back(found):
            detail = f"version {found.version}, from {len(believed(found, told))} nodes"
            self._set(found, TopologyKind.READ_BACK, detail)
            self._go_on()

    def _cannot_read_back(self, found: Topology) -> str:
        """The reason why `found` is not taken yet; empty if it is."""
        if found.version >= self.next_version:  # nodes would not follow
            return (
                f"a node has version {found.version}, and the next one here is "
                f"{self.next_version}; restore once more, with --cluster "
                f"{self.name}={found.id:016x}@{found.version}"
            )
        return missing(found, self.sessions.told())

    @property
    def _is_behind(self) -> bool:
        """Whether a node has a later topology than the journal, which then must be an old copy."""
        return version_ahead(self.topology, self.sessions) > 0

    @property
    def trouble(self) -> str:
        """The reason why nothing can be changed; empty if changes are possible."""
        if self._state.restored:
            found = latest(self.topology, self.sessions.told())
            why = self._cannot_read_back(found)
            return f"the journal was restored, and the topology is being read back: {why}"
        if self._is_behind:
            theirs, mine = version_ahead(self.topology, self.sessions), self.topology.version
            return f"a node has version {theirs} of the topology, and this journal {mine}"
        return ""

    def troubles(self, now: Instant) -> tuple[str, ...]:
        """The reason why nothing can be changed, and who was not believed."""
        trouble = self.trouble
        return (*((trouble,) if trouble else ()), *self.doubts.said(now))

    # --- commands ---

    def check_can_change(self) -> None:
        """Raise ChangeRefused if nothing can be changed."""
        if self.trouble:
            raise ChangeRefused(
                f"nothing can be changed in {self.name!r}: {self.trouble}",
                "start its nodes; if the journal is an old copy, put the present one back, or use "
                "`tenure restore`",
            )

    def begin(self, begun: Topology) -> None:
        """Begin a change, as `change.begin` has made it for the next version."""
        self._set(begun, TopologyKind.CHANGE_BEGUN, described(begun))
        self._go_on()

    def take_back(self) -> str:
        """Take back the change that runs, and return it. Raises ChangeRefused."""
        taken = take_back(self.topology, self.next_version)
        if self.topology.change is not None:
            self._let_be.add(self.topology.change.replaces)
        what = described(self.topology)
        self._set(taken, TopologyKind.CHANGE_TAKEN_BACK, what)
        return what

    def forget_waiting(self, node: Node) -> None:
        """Remove a node that waits. It has nothing, so there is nothing to copy."""
        topology = self.topology
        waiting = tuple(each for each in topology.waiting if each.id != node.id)
        removed = (*topology.removed, Removed(node.id, node.name))
        self._set(
            replace(topology, waiting=waiting, removed=removed), TopologyKind.CHANGE_DONE, node.name
        )
        self.sessions.forget(node.id)

    def set_table(self, name: str, table: TableRecord) -> None:
        """Make a table, or give it other families."""
        tables = {**self.topology.tables, name: table}
        self._set(replace(self.topology, tables=tables), TopologyKind.SCHEMA_CHANGED, name)

    def compare(self) -> None:
        """Have all nodes that are here compare the ranges that they replicate."""
        self._compares += 1
        self.desk.push(self.sessions.connections(), self._told(0, None))

    def set_balance(self, bytes_a_day: int) -> None:
        """Let moves copy so many bytes a day."""
        detail = f"{bytes_a_day} bytes a day" if bytes_a_day else "off"
        changed = replace(self.topology, balance_bytes=bytes_a_day)
        self._set(changed, TopologyKind.BALANCE_SET, detail)
