"""`tenure columns`, as far as it is about clusters: their rings, and how these change."""

from collections.abc import Callable, Mapping
from typing import Annotated, TypeAlias
from urllib.parse import quote

from cyclopts import App, Parameter

from tenure.cli.asking import ASKING, AskingOptions, HttpReply, ask
from tenure.cli.ordering import (
    DRY_RUN,
    STEERING,
    ClusterName,
    Said,
    SteeringOptions,
    budget_of,
    check_cluster_name,
    command_of,
    order,
    ring_path,
)
from tenure.cli.output import EXAMPLE, counted, put, say, show
from tenure.errors import ConfigurationError
from tenure.manager.operator_verbs import RING_VERBS, Verb
from tenure.protocol.topology.answers import (
    ClusterForgotten,
    ClusterMade,
    ClustersListed,
    MovesRead,
    RingRead,
    RingSteered,
)
from tenure.protocol.topology.records import Placement

BalanceText: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="Whether the manager moves tokens on its own, one at a time, to even out the load: "
        "auto, which copies at most 100 GB a day; a number of bytes a day; or off."
    ),
]
UNITS = ("B", "kB", "MB", "GB", "TB")
THOUSAND = 1000


def create(
    cluster: ClusterName,
    /,
    *,
    placement: str = "3",
    first_nodes: int = 0,
    balance: BalanceText = None,
    how: SteeringOptions = STEERING,
) -> None:
    """Create a cluster. If the same cluster already exists, nothing happens.

    Parameters
    ----------
    placement
        How many replicas a range has: 3; racks=3, in as many racks as possible; or a number for
        each data centre, as in east=2,west=2.
    first_nodes
        The ring forms when this many nodes have registered; by default as many as the replicas.
    """
    check_cluster_name(cluster)
    try:
        Placement.read(placement)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    budget = None if balance is None else budget_of(balance)
    body = {
        "name": cluster,
        "placement": placement,
        "first_nodes": first_nodes,
        "dry_run": how.dry_run,
    }
    reply = ask(how.manager, "/v1/clusters", body)
    if not _as_json(reply, how):
        made = reply.read(ClusterMade)
        would = "would be created" if made.dry_run else "created"
        say(f"cluster {cluster} {would if made.created else 'exists already, with this placement'}")
    if budget is not None and not how.dry_run:
        reply = order(RING_VERBS["balance"], how, {"cluster": cluster, "bytes_a_day": balance})
        if not how.json:
            say(reply.read(RingSteered).done)


def forget(cluster: ClusterName, /, *, how: SteeringOptions = STEERING) -> None:
    """Forget a cluster whose nodes have been stopped. What they have stays on their disks."""
    check_cluster_name(cluster)
    parameters = "?dry_run=true" if how.dry_run else ""
    target = f"/v1/clusters/{quote(cluster, safe='')}{parameters}"
    reply = ask(how.manager, target, method="DELETE")
    if not _as_json(reply, how):
        gone = reply.read(ClusterForgotten)
        say(f"cluster {gone.name} {'can be forgotten' if gone.dry_run else 'is forgotten'}")


def clusters(*, how: AskingOptions = ASKING) -> None:
    """List the clusters."""
    reply = ask(how.manager, "/v1/clusters")
    if _as_json(reply, how):
        return
    rows = [
        (
            each.name,
            each.placement,
            each.nodes,
            each.waiting,
            each.tables,
            each.trouble or each.change or "settled",
        )
        for each in reply.read(ClustersListed).clusters
    ]
    columns = ("cluster", "replicas", "nodes", "waiting", "tables", "state")
    show(columns, rows, empty="no cluster yet")


def ring(
    cluster: ClusterName,
    /,
    *,
    ranges: Annotated[bool, Parameter(negative="", help="Show the nodes of each range.")] = False,
    how: AskingOptions = ASKING,
) -> None:
    """Show the nodes of a cluster, where they are on the ring, and the current change."""
    reply = ask(how.manager, ring_path(cluster, "ring"))
    if _as_json(reply, how):
        return
    found = reply.read(RingRead)
    if ranges:
        _show_ranges(found)
    else:
        _show_nodes(found)
    if found.change:
        say(found.change)
    for each in found.waits_for:
        say(f"  waits for {each}")
    for rack, excess in found.short_racks.items():
        more = counted(excess, "range")
        say(f"rack {rack} is short of nodes: its nodes replicate {more} too many")
    for node in found.nodes:
        if node.damage:
            say(f"{node.name} is damaged: {node.damage}")
        if node.replaces and node.standing == "waiting":
            say(
                f"{node.name} takes the place of {node.replaces}, which was damaged, as soon as a "
                "majority of the other replicas of each of its ranges is up"
            )
    if found.trouble:
        say(found.trouble)
    for each in found.doubted:
        say(each)


def _show_nodes(found: RingRead) -> None:
    rows = [
        (
            node.name,
            node.standing,
            f"{node.datacentre}/{node.rack}",
            node.token,
            node.ranges,
            shown_bytes(node.bytes),
            f"{node.load:.2f}",
            "never" if node.heard_seconds is None else f"{node.heard_seconds:.0f} s ago",
            node.address,
        )
        for node in found.nodes
    ]
    columns = ("node", "status", "rack", "token", "ranges", "size", "load", "last seen", "address")
    show(columns, rows, empty="no node yet", can_go=("address", "rack", "ranges"))


def _show_ranges(found: RingRead) -> None:
    rows = [
        (
            each.start or "-",
            "-" if each.end is None else each.end,
            ", ".join(each.replicas),
            ", ".join(each.new),
            shown_bytes(each.bytes),
            f"{each.load:.3f}",
        )
        for each in found.ranges
    ]
    show(("start", "end", "replicas", "new replicas", "size", "load"), rows, empty="no ring yet")


def moves(
    cluster: ClusterName,
    /,
    *,
    budget: Annotated[int | None, Parameter(help="How many bytes the moves may copy.")] = None,
    how: AskingOptions = ASKING,
) -> None:
    """Show which tokens should move to even out the load, why, and what that would copy."""
    parameters = "" if budget is None else f"?budget={budget}"
    reply = ask(how.manager, ring_path(cluster, "moves") + parameters)
    if _as_json(reply, how):
        return
    found = reply.read(MovesRead)
    if not found.known:
        say("nodes have not said what they carry: nothing can be proposed")
        return
    rows = [
        (
            each.node,
            each.token,
            shown_bytes(each.bytes),
            f"{each.before:.2f}",
            f"{each.after:.2f}",
            each.why,
        )
        for each in found.moves
    ]
    show(("node", "token", "copies", "before", "after", "why"), rows, empty="nothing should move")
    if found.moves:
        first = found.moves[0]
        how_to = f"tenure columns move {cluster} {first.node} --token 0x{first.token_hex}"
        say(f"to begin: {how_to}")
    else:
        say(f"the heaviest node carries {found.unevenness:.2f} times the mean")


def steer_ring(verb: Verb, how: SteeringOptions, said: Said) -> None:
    """Give the order, and say what was done, or would be, and what nodes copy because of it."""
    reply = order(verb, how, said)
    if _as_json(reply, how):
        return
    answer = reply.read(RingSteered)
    said_first = DRY_RUN if answer.dry_run else ""
    say(f"{said_first if answer.changed else 'no change: '}{answer.done}")
    for gain in answer.gains:
        say(f"  {gain.node} copies {counted(gain.ranges, 'range')}, {shown_bytes(gain.bytes)}")
    for rack, excess in answer.short_racks.items():
        more = counted(excess, "range")
        say(f"  rack {rack} is short of nodes: its nodes replicate {more} too many")
    if answer.gains:
        say(f"  after it the heaviest node carries {answer.unevenness:.2f} times the mean")


READING: Mapping[str, tuple[Callable[..., None], str]] = {
    "create": (create, "chat --placement racks=3"),
    "forget": (forget, "chat --dry-run"),
    "clusters": (clusters, ""),
    "ring": (ring, "chat --ranges"),
    "moves": (moves, "chat --budget 100000000000"),
}
ELSEWHERE = ("compare", "tables")
"""Verbs that are no commands of their own: `repair --now`, and what opens a store."""


def add_commands(app: App) -> None:
    """Add them to those of `tenure columns`."""
    steering = {
        name: (command_of(verb, steer_ring), verb.example)
        for name, verb in RING_VERBS.items()
        if name not in ELSEWHERE
    }
    for name, (command, example) in {**READING, **steering}.items():
        epilogue = EXAMPLE.format(f"columns {name} {example}".rstrip())
        app.command(command, name=name, help_epilogue=epilogue)


def _as_json(reply: HttpReply, how: AskingOptions) -> bool:
    if how.json:
        put(reply.text)
    return how.json


def shown_bytes(count: float) -> str:
    for unit in UNITS[:-1]:
        if count < THOUSAND:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= THOUSAND
    return f"{count:.1f} {UNITS[-1]}"
