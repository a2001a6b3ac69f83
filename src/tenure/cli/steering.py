"""Steering a pool: an operator's orders, and what moves because of them."""

import sys
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

from cyclopts import Parameter

from tenure.cli.asking import AskingOptions, ManagerUrls, OwnerName, PoolName, ask, path
from tenure.cli.draining import wait_until_drained
from tenure.cli.keys import TEXT, KeyForm, KeyText
from tenure.cli.output import complain, say
from tenure.errors import PoolError, UsageError
from tenure.manager.answers import OwnerAnswer, OwnersAnswer
from tenure.manager.steering_answers import FlowAnswer, SteeredAnswer


@Parameter(name="*")
@dataclass(frozen=True)
class SteeringOptions(AskingOptions):
    """The options of every command that steers."""

    dry_run: Annotated[
        bool, Parameter(negative="", help="Change nothing; say what would be done.")
    ] = False


STEERING = SteeringOptions()


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
    done = f"{owner} is drained: everything that it has moves away"
    answer = _steer(pool, "drain", how, done, f"{owner} is already drained", owner=owner)
    if answer.ranges and answer.changed and not (answer.flows or how.json):
        say(f"  no other owner can take its ranges, so {owner} keeps them")
    if wait and not how.dry_run:
        wait_until_drained(how, pool, owner)


def cordon(pool: PoolName, owner: OwnerName, /, *, how: SteeringOptions = STEERING) -> None:
    """Give an owner nothing new; it keeps what it has."""
    done = f"{owner} is cordoned: it is given nothing new"
    _steer(pool, "cordon", how, done, f"{owner} is already cordoned", owner=owner)


def uncordon(pool: PoolName, owner: OwnerName, /, *, how: SteeringOptions = STEERING) -> None:
    """End the cordon, or the drain, of an owner."""
    done = f"{owner} can be given ranges again"
    _steer(pool, "uncordon", how, done, f"{owner} is not cordoned", owner=owner)


def pin(
    pool: PoolName,
    key: KeyText,
    owner: OwnerName,
    /,
    *,
    form: KeyForm = TEXT,
    how: SteeringOptions = STEERING,
) -> None:
    """Keep a key at an owner, while there is an owner of that name."""
    body = {**_for_json(form.parameters(key)), "owner": owner}
    _steer(pool, "pin", how, f"{key} is pinned to {owner}", f"{key} is already pinned", **body)


def unpin(
    pool: PoolName, key: KeyText, /, *, form: KeyForm = TEXT, how: SteeringOptions = STEERING
) -> None:
    """Let the policy decide again where a key goes."""
    body = _for_json(form.parameters(key))
    _steer(pool, "unpin", how, f"{key} is not pinned any more", f"{key} is not pinned", **body)


def freeze(pool: PoolName, /, *, how: SteeringOptions = STEERING) -> None:
    """Stop balancing a pool: only a range without an owner is given one."""
    done = f"{pool} is frozen: only a range without an owner is given one"
    _steer(pool, "freeze", how, done, f"{pool} is already frozen")


def unfreeze(pool: PoolName, /, *, how: SteeringOptions = STEERING) -> None:
    """Balance a pool again."""
    _steer(pool, "unfreeze", how, f"{pool} is balanced again", f"{pool} is not frozen")


def policy(
    pool: PoolName,
    name: Annotated[str, Parameter(help="weighted, ring, or deal for an ordered pool.")],
    /,
    *,
    how: SteeringOptions = STEERING,
) -> None:
    """Choose the policy that decides where ranges go: weighted, ring or deal."""
    done = f"{pool} is planned by {name}"
    _steer(pool, "policy", how, done, f"{pool} is already planned by {name}", policy=name)


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
    """Stop renewing an owner's leases: what it has is free when its hold has run out.

    Parameters
    ----------
    incarnation
        The incarnation that you mean, if another one may have the name by now.
    confirmed_dead
        Your word that this very process is gone: what it has is free at once. If it is not gone,
        keys have two owners.
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
            f"and is {heard}: if its process lives, keys have two owners until it hears of this"
        )
    if confirmed_dead and not yes and not how.dry_run:
        _confirm(pool, found)
    body = {"incarnation": found.incarnation, "confirmed_dead": confirmed_dead}
    which = f"{owner}, incarnation {found.incarnation},"
    done, already = f"{which} is evicted", f"{which} is already evicted"
    answer = _steer(pool, "evict", how, done, already, **body)
    if not how.json and not confirmed_dead:
        say(f"what it has is free in {answer.hold_seconds:.1f} s")


def _owner_of(manager: ManagerUrls, pool: str, name: str) -> OwnerAnswer:
    owners = ask(manager, path(pool, "owners")).read(OwnersAnswer).owners
    for each in owners:
        if each.name == name:
            return each
    there = ", ".join(each.name for each in owners) or "none yet"
    raise PoolError(
        f"there is no owner {name!r} in the pool {pool!r}; there are: {there}. To mend it: name "
        "one of those"
    )


def _confirm(pool: str, owner: OwnerAnswer) -> None:
    """Ask on the terminal. Raises UsageError without a terminal, or if the answer is no."""
    about = f"{owner.name} at {owner.address}, incarnation {owner.incarnation}, of {pool}"
    heard = "still connected" if owner.connected else "not connected"
    if not sys.stdin.isatty():
        raise UsageError(
            f"there is no terminal to confirm on that {about} is dead; pass --yes once you know"
        )
    say(f"{about}: {heard}, {owner.ranges} ranges, held for {owner.hold_seconds:.1f} s more")
    answer = input("If this very process still runs, keys get two owners. Is it gone? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        _not_confirmed()


def _not_confirmed() -> NoReturn:
    raise UsageError("nothing was done: not confirmed")


def _for_json(given: dict[str, str]) -> dict[str, Any]:
    """The key as the body of a command has it."""
    return {form: int(value) if form == "int" else value for form, value in given.items()}


def _steer(
    pool: str, what: str, how: SteeringOptions, done: str, already: str, **body: object
) -> SteeredAnswer:
    """Give the order, and say what was done, or would be, and what moves because of it."""
    reply = ask(how.manager, path(pool, what), {**body, "dry_run": how.dry_run})
    answer = reply.read(SteeredAnswer)
    if how.json:
        print(reply.text)
        return answer
    if not answer.changed:
        say(f"no change: {already}")
        return answer
    say(f"dry run, nothing was changed; otherwise: {done}" if answer.dry_run else done)
    for flow in answer.flows:
        say("  " + in_words(flow))
    if not answer.flows:
        say("  no range moves because of this")
    return answer


def in_words(flow: FlowAnswer) -> str:
    """What moves from whom to whom."""
    count = f"{flow.ranges} range" + ("s" if flow.ranges != 1 else "")
    state = "with their state" if flow.with_state else "without state"
    if flow.giver is None:
        return f"{count} ({flow.share:.1%}) without an owner to {flow.taker}"
    if flow.taker is None:
        return f"{count} ({flow.share:.1%}) of {flow.giver}, which no other owner can be given"
    return f"{count} ({flow.share:.1%}) from {flow.giver} to {flow.taker}, {state}"
