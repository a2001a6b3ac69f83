"""`tenure columns repair`, `seals` and `hints`: what the nodes of a cluster do by themselves."""

from collections.abc import Callable, Mapping
from typing import Annotated

from cyclopts import App, Parameter

from tenure.cli.asking import ASKING, AskingOptions, ask
from tenure.cli.ordering import STEERING, ClusterName, SteeringOptions, ring_path
from tenure.cli.output import EXAMPLE, put, say, show
from tenure.cli.ring import shown_bytes, steer_ring
from tenure.manager.operator_verbs import RING_VERBS
from tenure.protocol.topology.answers import RangeUpkept, UpkeepRead


def repair(
    cluster: ClusterName,
    /,
    *,
    now: Annotated[bool, Parameter(negative="", help="Compare replicas at once.")] = False,
    how: SteeringOptions = STEERING,
) -> None:
    """Show when the replicas of each range were last compared, and how many rows differed.

    Nodes compare them automatically, every minute by default, and mend what differs.
    """
    if now:
        steer_ring(RING_VERBS["compare"], how, {"cluster": cluster})
        return
    found = _upkeep(cluster, how)
    if found is not None:
        rows = [
            (*_where(each), _ago(each.compared_seconds), each.differing, shown_bytes(each.bytes))
            for each in found.ranges
        ]
        show(("from", "to", "by", "compared", "differed", "sent"), rows, empty="no ring yet")


def seals(cluster: ClusterName, /, *, how: AskingOptions = ASKING) -> None:
    """Show when each range was last sealed, and which nodes delay the next seal.

    Deleted data is reclaimed after a seal.
    """
    found = _upkeep(cluster, how)
    if found is not None:
        rows = [
            (*_where(each), _ago(each.sealed_seconds), ", ".join(each.held_back_by))
            for each in found.ranges
        ]
        show(("from", "to", "by", "sealed", "held back by"), rows, empty="no ring yet")


def hints(cluster: ClusterName, /, *, how: AskingOptions = ASKING) -> None:
    """Show the writes that nodes keep for nodes that did not answer."""
    found = _upkeep(cluster, how)
    if found is not None:
        rows = [(each.target, each.at, each.count, shown_bytes(each.bytes)) for each in found.hints]
        show(("for", "at", "hints", "bytes"), rows, empty="no node keeps anything for another one")
        if found.hints_dropped:
            say(
                f"{found.hints_dropped} were too many, and not kept: comparing replicas brings them"
            )


def _upkeep(cluster: str, how: AskingOptions | SteeringOptions) -> UpkeepRead | None:
    """The upkeep of a cluster; None if it was printed as JSON."""
    reply = ask(how.manager, ring_path(cluster, "upkeep"))
    if how.json:
        put(reply.text)
        return None
    return reply.read(UpkeepRead)


def _where(each: RangeUpkept) -> tuple[str, str, str]:
    end = "-" if each.end is None else each.end
    return each.start or "-", end, each.by or "nobody yet"


def _ago(seconds: float | None) -> str:
    return "not yet" if seconds is None else f"{seconds:.0f} s ago"


COMMANDS: Mapping[str, tuple[Callable[..., None], str]] = {
    "repair": (repair, "repair chat --now"),
    "seals": (seals, "seals chat"),
    "hints": (hints, "hints chat"),
}


def add_upkeep_commands(app: App) -> None:
    """Add them to those of `tenure columns`."""
    for name, (command, example) in COMMANDS.items():
        app.command(command, name=name, help_epilogue=EXAMPLE.format(f"columns {example}"))
