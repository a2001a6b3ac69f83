"""The clusters of a leading manager, which answers nodes and carries out people's changes.

The manager keeps them beside the pools of leases, in the same journal, under the same leadership. A
manager without clusters has only this object.
"""

from typing import Protocol

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.names import shown, wrong_with_name
from tenure.protocol.topology.answers import (
    ClusterAnswer,
    ClusterForgotten,
    ClusterMade,
    ClusterRefused,
    ClustersListed,
)
from tenure.protocol.topology.balancing import Balancing
from tenure.protocol.topology.change import ChangeRefused
from tenure.protocol.topology.cluster import ClusterDesk, LedCluster, way_back
from tenure.protocol.topology.doubts import Doubts
from tenure.protocol.topology.history import ClusterDeleted, Clusters, TopologySet
from tenure.protocol.topology.limits import CLUSTERS, NODES
from tenure.protocol.topology.messages import DETAIL_CHARACTERS, NodeRefused, NodeRequest
from tenure.protocol.topology.noted import TopologyKind
from tenure.protocol.topology.questions import (
    ClusterQuestion,
    CreateCluster,
    DeleteCluster,
    ListClusters,
    ReadMoves,
    ReadRing,
    ReadUpkeep,
)
from tenure.protocol.topology.records import Topology
from tenure.protocol.topology.sessions import Connection
from tenure.protocol.topology.steering import listed, steer
from tenure.protocol.topology.summaries import cluster_summary, moves_read, ring_read
from tenure.protocol.topology.upkeep_read import upkeep_read


class TopologyDesk(ClusterDesk, Protocol):
    """The services that clusters need of their leader."""

    def reply(self, ticket: int, answer: ClusterAnswer) -> None:
        """Answer a question, once all that is decided is durable."""


class TopologyLeader:
    """The clusters, under one leadership."""

    def __init__(
        self, now: Instant, desk: TopologyDesk, clusters: Clusters, *, is_kept: bool
    ) -> None:
        """`is_kept` says whether the journal outlives its manager."""
        self.desk = desk
        self.clusters = clusters
        self.is_kept = is_kept
        self.led = {name: LedCluster(now, desk, clusters, name) for name in clusters.states}
        self._doubts = Doubts()
        """Who came for a cluster that is not here."""
        self._balancing = {name: Balancing(now) for name in self.led}

    # --- nodes ---

    def on_request(
        self, now: Instant, connection: Connection, request: NodeRequest, by: str = ""
    ) -> None:
        """Answer a node that has shown the token `by`."""
        cluster = self.led.get(request.cluster)
        if cluster is not None:
            cluster.on_request(now, connection, request, by)
            return
        detail = (
            f"there is no cluster {request.cluster!r} here: {listed(self.led)}. Name another one, "
            "or make it: tenure columns create"
        )
        if request.cluster_id:
            detail += f". If the managers lost their journal: {way_back(request)}"
        if self._doubts.add(now, request.node.id, detail):
            self.desk.note(TopologyKind.REFUSED_NODE, request.cluster, detail)
        refused = NodeRefused(
            sequence=request.sequence,
            node=request.node.id,
            reason="cluster",
            detail=detail[:DETAIL_CHARACTERS],
            life=request.life,
        )
        self.desk.send(connection, refused)

    def on_lost(self, connection: Connection) -> None:
        """Take note that a connection is gone."""
        for cluster in self.led.values():
            cluster.on_lost(connection)

    def troubles(self, now: Instant) -> dict[str, tuple[str, ...]]:
        """What is wrong with each cluster, and whom it did not believe."""
        found = {name: each.troubles(now) for name, each in self.led.items()}
        return {name: troubles for name, troubles in found.items() if troubles}

    # --- time ---

    def advance(self, now: Instant) -> None:
        """Begin a move if one is due."""
        for name, balancing in self._balancing.items():
            wanted = balancing.advance(now, self.led[name])
            if wanted is not None:
                self.led[name].begin(wanted)

    @property
    def wake_at(self) -> Instant:
        """When the next thing is due."""
        due = (
            balancing.wake_at
            for name, balancing in self._balancing.items()
            if self.led[name].topology.balance_bytes
        )
        return min(due, default=FAR_FUTURE)

    # --- questions ---

    def answer(self, now: Instant, question: ClusterQuestion) -> ClusterAnswer:
        """The answer to a question, or the result of a command."""
        try:
            return self._answer(now, question)
        except ChangeRefused as refused:
            return ClusterRefused(why=refused.why, way_out=refused.way_out, missing=refused.missing)

    def _answer(self, now: Instant, question: ClusterQuestion) -> ClusterAnswer:
        match question:
            case ListClusters():
                return ClustersListed(
                    tuple(cluster_summary(now, each) for each in self._in_order())
                )
            case CreateCluster():
                return self._create(now, question)
            case DeleteCluster():
                return self._delete(question)
            case ReadRing(cluster=name):
                return ring_read(now, self._named(name))
            case ReadMoves(cluster=name, budget=budget):
                return moves_read(self._named(name), budget)
            case ReadUpkeep(cluster=name):
                return upkeep_read(now, self._named(name))
            case _:
                return steer(self._named(question.cluster), question)

    def _in_order(self) -> list[LedCluster]:
        return [self.led[name] for name in sorted(self.led)]

    def _named(self, name: str) -> LedCluster:
        cluster = self.led.get(name)
        if cluster is None:
            raise ChangeRefused(
                f"there is no cluster {name!r}; {listed(self.led)}",
                "name one of those, or make it: tenure columns create",
                missing=True,
            )
        return cluster

    def _create(self, now: Instant, wanted: CreateCluster) -> ClusterMade:
        name, found = wanted.cluster, self.led.get(wanted.cluster)
        if found is not None:
            topology = found.topology
            if topology.placement != wanted.placement:
                raise ChangeRefused(
                    f"the cluster {name!r} is there, with the placement {topology.placement}, and "
                    f"not {wanted.placement}",
                    "use it as it is, or choose another name",
                )
            return ClusterMade(name=name, id=f"{topology.id:016x}", created=False)
        self._check_can_create(wanted)
        if not wanted.dry_run:
            topology = Topology(
                cluster=name,
                id=wanted.id,
                version=self.desk.next_lsn + self.clusters.passed,
                placement=wanted.placement,
                first_nodes=max(wanted.first_nodes, wanted.placement.replicas),
            )
            self.desk.write(TopologySet(topology))
            self.led[name] = LedCluster(now, self.desk, self.clusters, name)
            self._balancing[name] = Balancing(now)
            self.desk.note(TopologyKind.CLUSTER_CREATED, name, str(wanted.placement))
        made = f"{wanted.id:016x}"
        return ClusterMade(name=name, id=made, created=True, dry_run=wanted.dry_run)

    def _check_can_create(self, wanted: CreateCluster) -> None:
        why = wrong_with_name(wanted.cluster)
        if why is not None:
            raise ChangeRefused(
                f"{shown(wanted.cluster)} cannot be a cluster's name: {why}", "choose another one"
            )
        if not self.is_kept:
            raise ChangeRefused(
                "this manager's journal is memory, and would forget a cluster when it ends",
                "start it with --journal sqlite:PATH or etcd:URL,URL,...",
            )
        if wanted.first_nodes > NODES:
            raise ChangeRefused(
                f"{wanted.first_nodes} first nodes, where a cluster has {NODES} at most",
                "name fewer",
            )
        if len(self.led) >= CLUSTERS:
            raise ChangeRefused(f"there are {CLUSTERS} clusters; no more are allowed", "delete one")

    def _delete(self, wanted: DeleteCluster) -> ClusterForgotten:
        cluster = self._named(wanted.cluster)
        if cluster.sessions.connections():
            raise ChangeRefused(
                f"nodes of {wanted.cluster!r} are running", "stop all of its nodes first"
            )
        if not wanted.dry_run:
            self.desk.write(ClusterDeleted(wanted.cluster))
            del self.led[wanted.cluster], self._balancing[wanted.cluster]
            self.desk.note(TopologyKind.CLUSTER_DELETED, wanted.cluster)
        return ClusterForgotten(name=wanted.cluster, dry_run=wanted.dry_run)
