"""The topology of a cluster: its nodes, their places on the ring, and who keeps which range.

One value says all of it, and it never changes: a change makes another value with a higher version.
Nodes keep it on disk, and tell each other (R14). A version contains all changes before it, because
the leading manager makes changes one after the other, in the journal.

The replicas of a range are listed, not computed: nodes of another release, or with another idea of
racks, agree on them nevertheless. While a change runs, a range whose replicas change has two lists
(R15). While the change is *filling*, requests go by the old list, and nodes that are new copy what
there is. While it is *joint*, a request must meet its level in both lists.
"""

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec

from tenure.base.keys import Key
from tenure.base.numbers import Nonce, Number
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.topology.limits import NODES, RANGES, REMOVED, TABLES, TOKEN_BYTES
from tenure.protocol.topology.tables import TableRecord, Word

ClusterName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
NodeName: TypeAlias = ClusterName
Address: TypeAlias = Annotated[str, msgspec.Meta(max_length=1000)]
ClusterId: TypeAlias = Nonce
"""Drawn when the cluster is made, so that one that is made anew is another one."""
NodeId: TypeAlias = Nonce
"""Drawn by a node at its first start, and kept on its disk: another disk is another node."""
PROOF_BYTES = 32
Proof: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=PROOF_BYTES)]
"""The secret of a node, or its hash: see `proof.py`."""
Position: TypeAlias = Key
"""The place of a row on the ring: see `ring`."""
Token: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=1, max_length=TOKEN_BYTES)]
"""The place of a node on the ring: the end of its own range, which begins at the token before."""

Start: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=TOKEN_BYTES)]
"""The start of a range of the ring: a token, or nothing at the very start."""
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=9)]
"""So many replicas."""
ReplicaIds: TypeAlias = Annotated[tuple[NodeId, ...], msgspec.Meta(max_length=NODES)]
OF_NODES = msgspec.Meta(max_length=NODES)

Phase = Literal["settled", "filling", "joint"]
ChangeKind = Literal["add", "remove", "replace", "move"]
PlacementKind = Literal["rack_unaware", "rack_aware", "datacentre_aware"]

NO_NODE = 0
PLACEMENT_FORMS = "3; racks=3; or so many in each data centre, as in east=2,west=2"


class Placement(msgspec.Struct, frozen=True, array_like=True):
    """How many replicas a range has, and in what they must differ."""

    kind: PlacementKind = "rack_unaware"
    replicas: Count = 3
    """The number of replicas, in all data centres together: the paper's N."""
    datacentres: Annotated[tuple[tuple[NodeName, Count], ...], msgspec.Meta(max_length=9)] = ()
    """The number of replicas in each data centre; sorted, and empty unless it is
    datacentre aware.
    """

    @classmethod
    def read(cls, written: str) -> "Placement":
        """A placement as people write it. Raises ValueError for what is not one."""
        try:
            return cls._read(written.replace(" ", ""))
        except ValueError:  # msgspec's own errors are ValueErrors, too
            raise ValueError(
                f"{written[:60]!r} is not a placement: write {PLACEMENT_FORMS}"
            ) from None

    @classmethod
    def _read(cls, written: str) -> "Placement":
        if written.isdigit():
            return msgspec.convert(["rack_unaware", int(written)], cls)
        pairs = [pair.partition("=") for pair in written.split(",")]
        counts = {name: int(count) for name, _, count in pairs}
        if len(counts) != len(pairs) or "" in counts:
            raise ValueError(written)
        if counts.keys() == {"racks"}:
            return msgspec.convert(["rack_aware", counts["racks"]], cls)
        kinds = ["datacentre_aware", sum(counts.values()), sorted(counts.items())]
        return msgspec.convert(kinds, cls)

    def __str__(self) -> str:
        if self.kind == "datacentre_aware":
            return ",".join(f"{name}={count}" for name, count in self.datacentres)
        return str(self.replicas) if self.kind == "rack_unaware" else f"racks={self.replicas}"


class Node(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One node, as it described itself."""

    id: NodeId
    name: NodeName
    address: Address
    """The address at which the node takes requests."""
    gossip: Address = ""
    """The address at which the node takes datagrams."""
    rack: NodeName = "rack"
    datacentre: NodeName = "datacentre"
    token: Token
    """The node's place on the ring; if it waits, the one that it drew."""
    since: Number = 0
    """The version with which it became a member; 0 while it waits."""
    mark: Proof = b""
    """The hash of the secret by which managers know it again; empty if it has shown none."""


class Removed(msgspec.Struct, frozen=True, array_like=True):
    """A node that was taken out. Its id is refused for ever (R18)."""

    id: NodeId
    name: NodeName


class ReplicaRange(msgspec.Struct, frozen=True, array_like=True):
    """The replicas from `start` on, up to the start of the next one."""

    start: Start
    old: ReplicaIds
    """The first is the node whose own range this is."""
    new: ReplicaIds = ()
    """The replicas as they will be; empty if nothing changes."""


class RingChange(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The change that runs."""

    kind: ChangeKind
    node: NodeId
    """The node that is added, removed or moved; or that replaces another."""
    replaces: NodeId = NO_NODE
    token: Token
    """The token that the node will have; its present one, if it is removed."""
    began: Number
    """The version with which it began to fill. A change that is begun again has another."""
    joint: Number = 0
    """The version with which it became joint; 0 while it is filling."""

    @property
    def phase(self) -> Phase:
        """The step of the change."""
        return "joint" if self.joint else "filling"


class Replicas(NamedTuple):
    """The nodes that keep a range."""

    range: KeyRange
    old: tuple[NodeId, ...]
    new: tuple[NodeId, ...]
    """The nodes that will keep it; the same as `old` if nothing changes."""
    phase: Phase
    """The phase of this range: *settled* if its lists are the same, whatever else changes."""

    @property
    def lists(self) -> tuple[tuple[NodeId, ...], ...]:
        """The lists in each of which the level of a request is needed (R15)."""
        return (self.old, self.new) if self.phase == "joint" else (self.old,)

    @property
    def everyone(self) -> tuple[NodeId, ...]:
        """Every replica that takes part in requests, each once (R6)."""
        return self.old + self.gaining if self.phase == "joint" else self.old

    @property
    def gaining(self) -> tuple[NodeId, ...]:
        """The nodes that did not have the range: they fill, then catch up."""
        return tuple(node for node in self.new if node not in self.old)


class Topology(msgspec.Struct, frozen=True, array_like=True, kw_only=True, dict=True):
    """All that nodes must agree on. It never changes, so what is looked up in it is found once."""

    cluster: ClusterName
    id: ClusterId
    version: Number
    """The LSN of the record that made it so, and more after each `tenure restore`."""
    placement: Placement
    first_nodes: Number
    """The ring is formed when so many nodes are there."""
    nodes: Annotated[tuple[Node, ...], OF_NODES] = ()
    """Members, sorted by id; with the one that joins, and the one that leaves."""
    waiting: Annotated[tuple[Node, ...], OF_NODES] = ()
    """Nodes that are known, and have not been added."""
    removed: Annotated[tuple[Removed, ...], msgspec.Meta(max_length=REMOVED)] = ()
    ranges: Annotated[tuple[ReplicaRange, ...], msgspec.Meta(max_length=RANGES)] = ()
    """Sorted; the first begins at the very start. None before the ring is formed."""
    tables: Annotated[dict[Word, TableRecord], msgspec.Meta(max_length=TABLES)] = {}
    change: RingChange | None = None
    balance_bytes: Number = 0
    """The bytes that may be copied in a day to even out the load; 0 if nothing moves by itself."""

    def at(self, position: Position) -> Replicas:
        """The replicas of the row at `position`; none before the ring is formed."""
        if not self.ranges:
            return Replicas(WHOLE, (), (), "settled")
        return self._replicas[bisect_right(self._starts, position) - 1]

    def each(self) -> Iterator[Replicas]:
        """All ranges, in order."""
        return iter(self._replicas)

    @cached_property
    def _starts(self) -> list[bytes]:
        return [each.start for each in self.ranges]

    @cached_property
    def _replicas(self) -> list[Replicas]:
        ends = [*self._starts, None][1:]
        return [self._of(each, end) for each, end in zip(self.ranges, ends, strict=True)]

    def _of(self, found: ReplicaRange, end: bytes | None) -> Replicas:
        key_range = KeyRange(found.start, end)
        if not found.new:
            return Replicas(key_range, found.old, found.old, "settled")
        return Replicas(key_range, found.old, found.new, self.phase)

    @property
    def phase(self) -> Phase:
        """The phase of the change that runs."""
        return self.change.phase if self.change else "settled"

    def node(self, node: NodeId) -> Node | None:
        """The member of that id."""
        return self._members.get(node)

    @cached_property
    def _members(self) -> dict[NodeId, Node]:
        return {each.id: each for each in self.nodes}

    def address(self, node: NodeId) -> str | None:
        """The address of a member, or of a node that waits."""
        return self._addresses.get(node)

    @cached_property
    def _addresses(self) -> dict[NodeId, str]:
        return {each.id: each.address for each in (*self.waiting, *self.nodes)}

    def place(self, node: NodeId) -> int | None:
        """The place of a member among all of them; None of a node that is none."""
        return self._places.get(node)

    @cached_property
    def _places(self) -> dict[NodeId, int]:
        return {each.id: place for place, each in enumerate(self.nodes)}

    def is_removed(self, node: NodeId) -> bool:
        """Whether that node was taken out: nothing that it says counts (R10, R18)."""
        return node in self._removed_ids

    @cached_property
    def _removed_ids(self) -> frozenset[NodeId]:
        return frozenset(each.id for each in self.removed)

    def kept_by(self, node: NodeId) -> list[Replicas]:
        """The ranges that have that node in one of their lists."""
        return [each for each in self.each() if node in each.old or node in each.new]

    def gaining(self) -> dict[NodeId, list[KeyRange]]:
        """The ranges that each node gains by the change that runs."""
        found: dict[NodeId, list[KeyRange]] = {}
        for replicas in self.each() if self.change else ():
            for node in replicas.gaining:
                found.setdefault(node, []).append(replicas.range)
        return found

    def is_taken_over(self, mine: "Topology | None") -> bool:
        """Whether somebody who has `mine` takes this in its place: it is of the same cluster, and
        later. A node that has none takes that of its manager.
        """
        return mine is None or (self.id == mine.id and self.version > mine.version)

    def invariants(self) -> None:
        """Assert what must always hold."""
        ids = [node.id for node in (*self.nodes, *self.waiting)]
        ids += [node.id for node in self.removed]
        assert len(set(ids)) == len(ids), ids
        assert [node.id for node in self.nodes] == sorted(node.id for node in self.nodes)
        starts = [each.start for each in self.ranges]
        assert starts == sorted(set(starts)), starts
        assert starts[:1] in ([], [b""]), starts
        members = {node.id for node in self.nodes}
        for each in self.ranges:
            for replicas in filter(None, (each.old, each.new)):
                assert len(set(replicas)) == len(replicas) == self.placement.replicas, each
                assert members.issuperset(replicas), (members, each)
            assert each.old != each.new
        assert self.change is not None or not any(each.new for each in self.ranges)
