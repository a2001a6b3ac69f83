"""`tenure columns`, as far as it is about clusters: their rings, and how these change."""

import os
from collections.abc import Callable, Mapping
from typing import Annotated, TypeAlias
from urllib.parse import quote

from cyclopts import App, Parameter

from tenure.base.names import shown, wrong_with_name
from tenure.cli.asking import ASKING, AskingOptions, HttpReply, ask
from tenure.cli.output import EXAMPLE, counted, put, say, show
from tenure.cli.steering import STEERING, SteeringOptions
from tenure.errors import ConfigurationError
from tenure.protocol.topology.answers import (
    ClusterForgotten,
    ClusterMade,
    ClustersListed,
    MovesRead,
    RingRead,
    RingSteered,
)
from tenure.protocol.topology.limits import TOKEN_BYTES
from tenure.protocol.topology.records import Placement

ClusterName: TypeAlias = Annotated[str, Parameter(help="The cluster's name.")]
NodeName: TypeAlias = Annotated[
    str, Parameter(help="The node's name or id, as `tenure columns ring` lists it.")
]
TokenText: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="Where on the ring it stands: a key of an ordered table, or hexadecimal behind 0x. By "
        "default the token that halves the heaviest range."
    ),
]
BalanceText: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="Whether the manager moves tokens on its own, one at a time, to even out the load: "
        "auto, which copies at most 100 GB a day; a number of bytes a day; or off."
    ),
]
AUTO_BYTES = 100_000_000_000
"""A day, of a whole cluster: a twentieth of a disk of two terabytes."""
MOST_DIGITS = 18
"""What a journal can keep: an exabyte is more than there is to move."""
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
    _check_name(cluster)
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
        body = {"bytes_a_day": budget}
        reply = ask(how.manager, ring_path(cluster, "balance"), body)
        if not how.json:
            say(reply.read(RingSteered).done)


def budget_of(said: str) -> int:
    """The number of bytes that may be moved in a day. Raises ConfigurationError."""
    if said in ("auto", "off"):
        return AUTO_BYTES if said == "auto" else 0
    if said.isascii() and said.isdecimal() and len(said) <= MOST_DIGITS:
        return int(said)
    raise ConfigurationError(
        f"balance is auto, off or a number of bytes a day, of {MOST_DIGITS} digits at most, not "
        f"{shown(said)}"
    )


def forget(cluster: ClusterName, /, *, how: SteeringOptions = STEERING) -> None:
    """Forget a cluster whose nodes have been stopped. What they have stays on their disks."""
    _check_name(cluster)
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
    columns = ("node", "is", "rack", "token", "ranges", "has", "load", "heard", "address")
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
    show(("from", "to", "replicas", "will be", "has", "load"), rows, empty="no ring yet")


def add(
    cluster: ClusterName,
    node: NodeName,
    /,
    *,
    token: TokenText = None,
    how: SteeringOptions = STEERING,
) -> None:
    """Let a waiting node take a part of the ring."""
    steer_ring(cluster, "add", how, node=node, token=_hex(token))


def remove(cluster: ClusterName, node: NodeName, /, *, how: SteeringOptions = STEERING) -> None:
    """Take a node out for good; others copy what it has from its replicas."""
    steer_ring(cluster, "remove", how, node=node)


def replace(
    cluster: ClusterName,
    node: NodeName,
    by: Annotated[str, Parameter(help="The name of a waiting node.")],
    /,
    *,
    how: SteeringOptions = STEERING,
) -> None:
    """Let a waiting node take the place of another, which is taken out for good."""
    steer_ring(cluster, "replace", how, node=node, by=by)


def move(
    cluster: ClusterName,
    node: NodeName,
    /,
    *,
    token: TokenText = None,
    how: SteeringOptions = STEERING,
) -> None:
    """Move a node to another place on the ring."""
    steer_ring(cluster, "move", how, node=node, token=_hex(token))


def take_back(cluster: ClusterName, /, *, how: SteeringOptions = STEERING) -> None:
    """Go back to the ring as it was before the current change."""
    steer_ring(cluster, "take-back", how)


def balance(
    cluster: ClusterName,
    bytes_a_day: Annotated[str, Parameter(help="auto, which is 100 GB; a number; or off.")],
    /,
    *,
    how: SteeringOptions = STEERING,
) -> None:
    """Let the manager move tokens on its own, one at a time, to even out the load."""
    steer_ring(cluster, "balance", how, bytes_a_day=budget_of(bytes_a_day))


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


COMMANDS: Mapping[str, tuple[Callable[..., None], str]] = {
    "create": (create, "create chat --placement racks=3"),
    "forget": (forget, "forget chat --dry-run"),
    "clusters": (clusters, "clusters"),
    "ring": (ring, "ring chat --ranges"),
    "add": (add, "add chat node-4 --dry-run"),
    "remove": (remove, "remove chat node-2"),
    "replace": (replace, "replace chat node-2 node-5"),
    "move": (move, "move chat node-2 --token 0x8000"),
    "take-back": (take_back, "take-back chat"),
    "moves": (moves, "moves chat --budget 100000000000"),
    "balance": (balance, "balance chat auto"),
}


def add_commands(app: App) -> None:
    """Add them to those of `tenure columns`."""
    for name, (command, example) in COMMANDS.items():
        app.command(command, name=name, help_epilogue=EXAMPLE.format(f"columns {example}"))


def steer_ring(cluster: str, verb: str, how: SteeringOptions, **said: object) -> None:
    body = {name: value for name, value in said.items() if value is not None}
    reply = ask(how.manager, ring_path(cluster, verb), {**body, "dry_run": how.dry_run})
    if _as_json(reply, how):
        return
    answer = reply.read(RingSteered)
    said_first = "dry run, nothing was changed; otherwise: " if answer.dry_run else ""
    say(f"{said_first if answer.changed else 'no change: '}{answer.done}")
    for gain in answer.gains:
        say(f"  {gain.node} copies {counted(gain.ranges, 'range')}, {shown_bytes(gain.bytes)}")
    for rack, excess in answer.short_racks.items():
        more = counted(excess, "range")
        say(f"  rack {rack} is short of nodes: its nodes replicate {more} too many")
    if answer.gains:
        say(f"  after it the heaviest node carries {answer.unevenness:.2f} times the mean")


def _as_json(reply: HttpReply, how: AskingOptions) -> bool:
    if how.json:
        put(reply.text)
    return how.json


def ring_path(cluster: str, what: str) -> str:
    _check_name(cluster)
    return f"/v1/clusters/{quote(cluster, safe='')}/{what}"


def _check_name(cluster: str) -> None:
    why = wrong_with_name(cluster)
    if why is not None:
        raise ConfigurationError(f"{shown(cluster)} cannot be a cluster's name: {why}")


def _hex(token: str | None) -> str | None:
    if token is None:
        return None
    try:
        raw = bytes.fromhex(token[2:]) if token.startswith("0x") else os.fsencode(token)
    except ValueError:
        raise ConfigurationError(f"the token {shown(token)} is not in hexadecimal") from None
    if not 1 <= len(raw) <= TOKEN_BYTES:
        raise ConfigurationError(f"a token has 1 to {TOKEN_BYTES} bytes, and not {len(raw)}")
    return raw.hex()


def shown_bytes(count: float) -> str:
    for unit in UNITS[:-1]:
        if count < THOUSAND:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= THOUSAND
    return f"{count:.1f} {UNITS[-1]}"
