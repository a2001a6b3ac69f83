"""Steering a pool: who is given nothing more, what stays where it is, and what that moves."""

import sys
from typing import Annotated, Any, NoReturn

from cyclopts import Parameter

from tenure.cli.asking import HttpReply, Json, Manager, ask, path
from tenure.cli.draining import wait_until_drained
from tenure.cli.keys import Hex, Int, KeyText, key_parameters
from tenure.cli.output import say
from tenure.errors import PoolError, UsageError
from tenure.manager.answers import OwnerAnswer, OwnersAnswer
from tenure.manager.steering_answers import FlowAnswer, SteeredAnswer

DryRun = Annotated[
    bool, Parameter(name="--dry-run", negative="", help="Change nothing; say what would be done.")
]


def drain(
    pool: str,
    owner: str,
    /,
    *,
    wait: bool = True,
    dry_run: DryRun = False,
    manager: Manager = None,
    json: Json = False,
) -> None:
    """Move everything away from an owner, and wait until it has nothing left.

    Parameters
    ----------
    wait
        Wait until the owner has nothing left, showing how many ranges it still has.
    """
    reply = _steer(pool, "drain", manager, owner=owner, dry_run=dry_run)
    _tell(reply, f"{owner} is drained: it is planned for nothing", json=json)
    answer = reply.read(SteeredAnswer)
    if answer.ranges and answer.changed and not (answer.flows or json):
        say(f"  what nobody can take, {owner} keeps")
    if wait and not dry_run:
        wait_until_drained(manager, pool, owner, quiet=json)


def cordon(
    pool: str,
    owner: str,
    /,
    *,
    dry_run: DryRun = False,
    manager: Manager = None,
    json: Json = False,
) -> None:
    """Give an owner nothing new; it keeps what it has."""
    reply = _steer(pool, "cordon", manager, owner=owner, dry_run=dry_run)
    _tell(reply, f"{owner} is cordoned: it is given nothing new", json=json)


def uncordon(
    pool: str,
    owner: str,
    /,
    *,
    dry_run: DryRun = False,
    manager: Manager = None,
    json: Json = False,
) -> None:
    """End the cordon, or the drain, of an owner."""
    reply = _steer(pool, "uncordon", manager, owner=owner, dry_run=dry_run)
    _tell(reply, f"{owner} is as any other owner", json=json)


def pin(
    pool: str,
    key: KeyText,
    owner: str,
    /,
    *,
    hex: Hex = False,  # noqa: A002 - it is the option's name
    int: Int = False,  # noqa: A002
    dry_run: DryRun = False,
    manager: Manager = None,
    json: Json = False,
) -> None:
    """Keep a key at an owner, while one of that name is there."""
    given = key_parameters(key, hex=hex, int=int)
    reply = _steer(pool, "pin", manager, **_for_json(given), owner=owner, dry_run=dry_run)
    _tell(reply, f"{key} is pinned to {owner}", json=json)


def unpin(
    pool: str,
    key: KeyText,
    /,
    *,
    hex: Hex = False,  # noqa: A002
    int: Int = False,  # noqa: A002
    dry_run: DryRun = False,
    manager: Manager = None,
    json: Json = False,
) -> None:
    """Let a key go where the policy has it."""
    given = key_parameters(key, hex=hex, int=int)
    reply = _steer(pool, "unpin", manager, **_for_json(given), dry_run=dry_run)
    _tell(reply, f"{key} is not pinned", json=json)


def freeze(
    pool: str, /, *, dry_run: DryRun = False, manager: Manager = None, json: Json = False
) -> None:
    """Balance nothing: only what has no owner is given one."""
    reply = _steer(pool, "freeze", manager, dry_run=dry_run)
    _tell(reply, f"{pool} is frozen: only what has no owner is given one", json=json)


def unfreeze(
    pool: str, /, *, dry_run: DryRun = False, manager: Manager = None, json: Json = False
) -> None:
    """Balance again."""
    reply = _steer(pool, "unfreeze", manager, dry_run=dry_run)
    _tell(reply, f"{pool} is balanced", json=json)


def policy(
    pool: str,
    name: str,
    /,
    *,
    dry_run: DryRun = False,
    manager: Manager = None,
    json: Json = False,
) -> None:
    """Choose who decides where ranges go: ring, weighted or deal."""
    reply = _steer(pool, "policy", manager, policy=name, dry_run=dry_run)
    _tell(reply, f"{pool} is planned by {name}", json=json)


def evict(
    pool: str,
    owner: str,
    /,
    *,
    incarnation: int | None = None,
    confirmed_dead: Annotated[bool, Parameter(negative="")] = False,
    yes: Annotated[bool, Parameter(negative="")] = False,
    dry_run: DryRun = False,
    manager: Manager = None,
    json: Json = False,
) -> None:
    """Do not renew an owner's leases any more: what it has is free when its hold has run out.

    Parameters
    ----------
    incarnation
        The incarnation that is meant, if another may have the name by now.
    confirmed_dead
        Your word that this very process is gone: what it has is free at once. If it is not, keys
        have two owners.
    yes
        Do not ask for a confirmation.
    """
    found = _owner_of(manager, pool, owner)
    if incarnation not in (None, found.incarnation):
        raise PoolError(
            f"{owner} is incarnation {found.incarnation} now, and not {incarnation}, which is gone"
        )
    if confirmed_dead and not yes and not dry_run:
        _confirm(pool, found)
    body = {"incarnation": found.incarnation, "confirmed_dead": confirmed_dead}
    reply = _steer(pool, "evict", manager, **body, dry_run=dry_run)
    _tell(reply, f"{owner}, incarnation {found.incarnation}, is evicted", json=json)
    if not json and not confirmed_dead:
        seconds = reply.read(SteeredAnswer).hold_seconds
        say(f"what it has is free in {seconds:.1f} s")


def _owner_of(manager: Manager, pool: str, name: str) -> OwnerAnswer:
    owners = ask(manager, path(pool, "owners")).read(OwnersAnswer).owners
    for each in owners:
        if each.name == name:
            return each
    there = ", ".join(each.name for each in owners) or "none yet"
    raise PoolError(
        f"there is no owner {name!r} in the pool {pool!r}; there are: {there}. To mend it: name "
        "what is there"
    )


def _confirm(pool: str, owner: OwnerAnswer) -> None:
    """Ask whoever sits there. Raises UsageError where nobody does, or says no."""
    about = f"{owner.name} at {owner.address}, incarnation {owner.incarnation}, of {pool}"
    heard = "still connected" if owner.connected else "not connected"
    if not sys.stdin.isatty():
        raise UsageError(
            f"nobody is there to confirm that {about} is dead; say so with --yes, once you know"
        )
    say(f"{about}: {heard}, {owner.ranges} ranges, held for {owner.hold_seconds:.1f} s more")
    answer = input("If this very process still runs, keys get two owners. Is it gone? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        _not_confirmed()


def _not_confirmed() -> NoReturn:
    raise UsageError("nothing was done: not confirmed")


def _for_json(given: dict[str, str]) -> dict[str, Any]:
    """The key as the body of a command has it."""
    return {way: int(value) if way == "int" else value for way, value in given.items()}


def _steer(pool: str, what: str, manager: Manager, **body: object) -> HttpReply:
    return ask(manager, path(pool, what), body)


def _tell(reply: HttpReply, what: str, *, json: bool) -> None:
    """What was done, or would be, and what moves because of it."""
    if json:
        print(reply.text)
        return
    answer = reply.read(SteeredAnswer)
    if not answer.changed:
        say(f"nothing was changed, it is so already: {what}")
        return
    say(f"dry run, nothing was changed; then {what}" if answer.dry_run else what)
    for flow in answer.flows:
        say("  " + in_words(flow))
    if not answer.flows:
        say("  no range moves because of it")


def in_words(flow: FlowAnswer) -> str:
    """What moves from whom to whom."""
    count = f"{flow.ranges} range" + ("s" if flow.ranges != 1 else "")
    state = "with their state" if flow.with_state else "without state"
    if flow.giver is None:
        return f"{count} ({flow.share:.1%}) that nobody has to {flow.taker}"
    if flow.taker is None:
        return f"{count} ({flow.share:.1%}) of {flow.giver}, which nobody else can be given"
    return f"{count} ({flow.share:.1%}) from {flow.giver} to {flow.taker}, {state}"
