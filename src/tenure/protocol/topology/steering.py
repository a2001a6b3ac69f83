"""Steering a cluster: an operator's orders about its ring, its tables and its balance."""

from collections.abc import Iterable
from typing import assert_never

from tenure.protocol.topology.answers import RingSteered
from tenure.protocol.topology.change import (
    ChangeRefused,
    WantedChange,
    begin,
    check_can_begin,
    described,
    finish,
    join,
    shown_token,
)
from tenure.protocol.topology.cluster import LedCluster
from tenure.protocol.topology.limits import FAMILIES, RESERVED_PART, TABLES
from tenure.protocol.topology.moves import relieving_token, unevenness
from tenure.protocol.topology.placement import excess_of
from tenure.protocol.topology.questions import (
    AddNode,
    CompareNow,
    MakeTable,
    MoveNode,
    RemoveNode,
    ReplaceNode,
    RingCommand,
    SetBalance,
    TakeBackChange,
)
from tenure.protocol.topology.records import Node, Topology
from tenure.protocol.topology.summaries import gains, waits
from tenure.protocol.topology.tables import why_not_same, wrong_with_table

MOST_NAMED = 20
"""The most clusters or nodes that a refusal lists, if a name is not there."""


def steer(cluster: LedCluster, command: RingCommand) -> RingSteered:
    """Carry out a command, or say what it would do. Raises ChangeRefused."""
    cluster.check_can_change()
    match command:
        case AddNode() | ReplaceNode() | MoveNode() | RemoveNode():
            return _change(cluster, command)
        case TakeBackChange():
            return _take_back(cluster, command)
        case SetBalance(bytes_a_day=wanted):
            changes = wanted != cluster.topology.balance_bytes
            if changes and not command.dry_run:
                cluster.set_balance(wanted)
            said = f"at most {wanted} bytes a day are moved" if wanted else "nothing is moved"
            return _steered(cluster, command, f"{said} to even out the load", changed=changes)
        case CompareNow():
            if not command.dry_run:
                cluster.compare()
            return _steered(cluster, command, "nodes compare what they replicate")
        case MakeTable():
            return _make_table(cluster, command)
        case _:
            assert_never(command)


def _change(
    cluster: LedCluster, command: AddNode | ReplaceNode | MoveNode | RemoveNode
) -> RingSteered:
    topology = cluster.topology
    if isinstance(command, RemoveNode):
        waiting = _find(topology.waiting, command.node)
        if waiting is not None:
            if not command.dry_run:
                cluster.forget_waiting(waiting)
            return _steered(cluster, command, f"{command.node} is removed, and had nothing")
    try:
        check_can_begin(topology)
    except ChangeRefused as refused:
        far = "; ".join(waits(cluster))
        how_far = f", and waits for {far}" if far else ""
        raise ChangeRefused(refused.why + how_far, refused.way_out) from None
    wanted = _wanted(cluster, command)
    weights = cluster.weights()
    begun = begin(topology, wanted, cluster.next_version, weights.of_a_thousand)
    if not command.dry_run:
        cluster.begin(begun)
    after = finish(join(begun, begun.version + 1), begun.version + 2)
    return RingSteered(
        cluster=command.cluster,
        done=described(begun),
        changed=True,
        dry_run=command.dry_run,
        version=cluster.topology.version,
        gains=gains(begun, weights),
        short_racks=excess_of(after),
        unevenness=unevenness(after, weights),
    )


def _wanted(
    cluster: LedCluster, command: AddNode | ReplaceNode | MoveNode | RemoveNode
) -> WantedChange:
    topology = cluster.topology
    match command:
        case AddNode(node=name, token=token):
            node = _waiting(topology, name)
            token = token or relieving_token(topology, cluster.weights()) or node.token
            return WantedChange(kind="add", node=node.id, token=token)
        case RemoveNode(node=name):
            node = _member(topology, name)
            return WantedChange(kind="remove", node=node.id, token=node.token)
        case ReplaceNode(node=name, by=by):
            old, node = _member(topology, name), _waiting(topology, by)
            return WantedChange(kind="replace", node=node.id, replaces=old.id, token=old.token)
        case MoveNode(node=name, token=token):
            node = _member(topology, name)
            token = token or relieving_token(topology, cluster.weights())
            if token is None or token == node.token:
                where = (
                    "nodes have not said what they carry"
                    if token is None
                    else (f"{name} is at {shown_token(token)} already")
                )
                raise ChangeRefused(
                    f"there is nowhere to move {name} to: {where}", "name a token with --token"
                )
            return WantedChange(kind="move", node=node.id, token=token)
        case _:
            assert_never(command)


def _take_back(cluster: LedCluster, command: TakeBackChange) -> RingSteered:
    topology = cluster.topology
    if topology.change is not None and command.dry_run:
        return _steered(cluster, command, f"{described(topology)}: it can be taken back")
    return _steered(cluster, command, f"taken back: {cluster.take_back()}")


def _make_table(cluster: LedCluster, command: MakeTable) -> RingSteered:
    name, table, tables = command.name, command.table, cluster.topology.tables
    kept = tables.get(name)
    if kept is not None:
        why = why_not_same(name, kept, table)
        if why is not None:
            raise ChangeRefused(why, "declare it as it was, or choose another name")
        families = {**kept.families, **table.families}
        table = type(table)(kept.kind, kept.keys, kept.fenced_by, families, table.writes)
        if table == kept:
            return _steered(cluster, command, f"there is the table {name} already", changed=False)
    if (why := wrong_with_table(name, table)) is not None:
        raise ChangeRefused(why, "declare it as a `Table` can be declared")
    others = sum(len(each.families) for other, each in tables.items() if other != name)
    made = len({*tables, name}), others + len(table.families)
    if made[0] > TABLES or made[1] > FAMILIES:
        raise ChangeRefused(
            f"a cluster has {TABLES} tables with {FAMILIES} families at most",
            "make another cluster",
        )
    most = TABLES - TABLES // RESERVED_PART, FAMILIES - FAMILIES // RESERVED_PART
    if not command.by_operator and (made[0] > most[0] or made[1] > most[1]):
        raise ChangeRefused(
            f"programs make {most[0]} tables with {most[1]} families at most, and there are "
            f"{len(tables)} tables",
            f"look whether they are all yours, and make the others with an admin's token: POST "
            f"/v1/clusters/{cluster.name}/tables",
        )
    if not command.dry_run:
        cluster.set_table(name, table)
    return _steered(cluster, command, f"there is the table {name}")


def _steered(
    cluster: LedCluster, command: RingCommand, done: str, *, changed: bool = True
) -> RingSteered:
    return RingSteered(
        cluster=cluster.name,
        done=done,
        changed=changed,
        dry_run=command.dry_run,
        version=cluster.topology.version,
    )


def _find(nodes: tuple[Node, ...], name: str) -> Node | None:
    return next((node for node in nodes if name in (node.name, f"{node.id:016x}")), None)


def _member(topology: Topology, name: str) -> Node:
    node = _find(topology.nodes, name)
    if node is None:
        raise _no_node(topology, name, "member", topology.nodes)
    return node


def _waiting(topology: Topology, name: str) -> Node:
    node = _find(topology.waiting, name)
    if node is None:
        raise _no_node(topology, name, "node that waits", topology.waiting)
    return node


def _no_node(topology: Topology, name: str, what: str, there: tuple[Node, ...]) -> ChangeRefused:
    if any(name in (node.name, f"{node.id:016x}") for node in topology.removed):
        return ChangeRefused(
            f"{name!r} was removed from {topology.cluster!r}, for ever",
            "start it with an empty directory: it is another node then",
        )
    if _find(topology.nodes, name):
        return ChangeRefused(
            f"{name!r} is a member of {topology.cluster!r} already", "name another"
        )
    if _find(topology.waiting, name):
        return ChangeRefused(
            f"{name!r} waits, and is no member of {topology.cluster!r} yet",
            f"add it first: tenure columns add {topology.cluster} {name}",
        )
    return ChangeRefused(
        f"{topology.cluster!r} has no {what} {name!r}; {listed(node.name for node in there)}",
        "name one of these"
        if there is topology.nodes
        else "start it first: tenure columns node --cluster NAME --data DIR --manager URL",
        missing=True,
    )


def listed(names: Iterable[str]) -> str:
    """The names that are there, as an error lists them."""
    found = sorted(names)
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"there are: {', '.join(found[:MOST_NAMED]) + more or 'none yet'}"
