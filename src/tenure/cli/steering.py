"""Steering a pool: what moves because of an order, and the orders that ask for more than a line."""

import sys
from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter

from tenure.cli.asking import ManagerUrls, OwnerName, PoolName, ask, path
from tenure.cli.draining import wait_until_drained
from tenure.cli.ordering import DRY_RUN, STEERING, Said, SteeringOptions, command_of, order
from tenure.cli.output import complain, counted, put, say
from tenure.cli.waiting import without_line
from tenure.errors import PoolError, UsageError
from tenure.manager.operator_verbs import POOL_VERBS, Verb
from tenure.protocol.lease.answers import Flow, Owners, OwnerSummary, Steered


def drain(
    pool: PoolName,
    owner: OwnerName,
    /,
    *,
    wait: bool = True,
    how: SteeringOptions = STEERING,
) -> None:
    """Move everything away from an owner, and wait until it has nothing left.

    Parameters
    ----------
    wait
        Wait until the owner has nothing left, showing how many ranges it still has.
    """
    answer = _steer(POOL_VERBS["drain"], how, {"pool": pool, "owner": owner})
    if answer.ranges and answer.changed and not (answer.flows or how.json):
        say(f"  no other owner can take its ranges, so {owner} keeps them")
    if wait and not how.dry_run:
        wait_until_drained(how, pool, owner)


def evict(
    pool: PoolName,
    owner: OwnerName,
    /,
    *,
    incarnation: int | None = None,
    confirmed_dead: Annotated[bool, Parameter(negative="")] = False,
    yes: Annotated[bool, Parameter(negative="")] = False,
    how: SteeringOptions = STEERING,
) -> None:
    """Stop renewing an owner's leases: its ranges are free when its hold has run out.

    Parameters
    ----------
    incarnation
        The incarnation that you mean, if another one may have the name by now.
    confirmed_dead
        Confirm that this process is dead. Its ranges are freed at once; if it is still running,
        its keys will have two owners.
    yes
        Do not ask for a confirmation.
    """
    found = _owner_of(how.manager, pool, owner)
    if incarnation not in (None, found.incarnation):
        raise PoolError(
            f"{owner} is incarnation {found.incarnation} now, and not {incarnation}, which is gone"
        )
    if confirmed_dead and found.hold_seconds > 0:
        heard = "still connected" if found.connected else "not connected"
        complain(
            f"warning: {owner} was heard within its hold ({found.hold_seconds:.1f} s are left), "
            f"and is {heard}: if its process is alive, keys have two owners until it hears of this"
        )
    if confirmed_dead and not yes and not how.dry_run:
        _confirm(pool, found)
    said = {"pool": pool, "owner": owner, "incarnation": found.incarnation}
    answer = _steer(POOL_VERBS["evict"], how, {**said, "confirmed_dead": confirmed_dead})
    if not how.json and not confirmed_dead:
        say(f"its ranges are free in {answer.hold_seconds:.1f} s")


def _owner_of(manager: ManagerUrls, pool: str, name: str) -> OwnerSummary:
    owners = ask(manager, path(pool, "owners")).read(Owners).owners
    for each in owners:
        if each.name == name:
            return each
    there = ", ".join(each.name for each in owners) or "none yet"
    raise PoolError(
        f"there is no owner {name!r} in the pool {pool!r}; there are: {there}. To fix it: name "
        "one of those"
    )


def _confirm(pool: str, owner: OwnerSummary) -> None:
    """Ask on the terminal. Raises UsageError without a terminal, or if the answer is no."""
    about = f"{owner.name} at {owner.address}, incarnation {owner.incarnation}, of {pool}"
    heard = "still connected" if owner.connected else "not connected"
    if not sys.stdin.isatty():
        raise UsageError(
            f"there is no terminal to confirm on that {about} is dead; pass --yes once you know"
        )
    has = counted(owner.ranges, "range")
    say(f"{about}: {heard}, {has}, held for {owner.hold_seconds:.1f} s more")
    with without_line():
        answer = input("If this very process still runs, keys get two owners. Is it gone? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was done: not confirmed")


def _steer(verb: Verb, how: SteeringOptions, said: Said) -> Steered:
    """Give the order, and say what was done, or would be, and what moves because of it."""
    reply = order(verb, how, said)
    answer = reply.read(Steered)
    if how.json:
        put(reply.text)
        return answer
    if not answer.changed:
        say(f"no change: {verb.already.format(**said)}")
        return answer
    say((DRY_RUN if answer.dry_run else "") + verb.done.format(**said))
    for flow in answer.flows:
        say("  " + in_words(flow))
    if not answer.flows:
        say("  no range moves because of this")
    return answer


def in_words(flow: Flow) -> str:
    """Return a sentence that says what moves from which owner to which."""
    count = f"{flow.ranges} range" + ("s" if flow.ranges != 1 else "")
    state = "with their state" if flow.with_state else "without state"
    if flow.giver is None and flow.taker is None:
        return f"{count} ({flow.share:.1%}) without an owner, which no owner can be given"
    if flow.giver is None:
        return f"{count} ({flow.share:.1%}) without an owner to {flow.taker}"
    if flow.taker is None:
        return f"{count} ({flow.share:.1%}) of {flow.giver}, which no other owner can be given"
    return f"{count} ({flow.share:.1%}) from {flow.giver} to {flow.taker}, {state}"


def _command(verb: str) -> Callable[..., None]:
    return command_of(POOL_VERBS[verb], _steer)


cordon, uncordon = _command("cordon"), _command("uncordon")
freeze, unfreeze = _command("freeze"), _command("unfreeze")
pin, unpin = _command("pin"), _command("unpin")
policy = _command("policy")
