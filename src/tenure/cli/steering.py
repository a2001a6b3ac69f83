"""Steering a pool: an operator's orders, and what moves because of them."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from tenure.cli.asking import AskingOptions, ManagerUrls, OwnerName, PoolName, ask, path
from tenure.cli.draining import wait_until_drained
from tenure.cli.keys import TEXT, KeyForm, KeyText
from tenure.cli.output import complain, counted, put, say
from tenure.cli.waiting import without_line
from tenure.errors import PoolError, UsageError
from tenure.manager.steering_verbs import VERBS
from tenure.protocol.lease.answers import Flow, Owners, OwnerSummary, Steered


@Parameter(name="*")
@dataclass(frozen=True)
class SteeringOptions(AskingOptions):
    """The options of every command that steers."""

    dry_run: Annotated[
        bool, Parameter(negative="", help="Change nothing; show what would be done.")
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
    answer = _steer("drain", pool, how, owner=owner)
    if answer.ranges and answer.changed and not (answer.flows or how.json):
        say(f"  no other owner can take its ranges, so {owner} keeps them")
    if wait and not how.dry_run:
        wait_until_drained(how, pool, owner)


def _about_an_owner(verb: str) -> Callable[..., None]:
    def command(pool: PoolName, owner: OwnerName, /, *, how: SteeringOptions = STEERING) -> None:
        _steer(verb, pool, how, owner=owner)

    return command


def _about_a_pool(verb: str) -> Callable[..., None]:
    def command(pool: PoolName, /, *, how: SteeringOptions = STEERING) -> None:
        _steer(verb, pool, how)

    return command


cordon, uncordon = _about_an_owner("cordon"), _about_an_owner("uncordon")
freeze, unfreeze = _about_a_pool("freeze"), _about_a_pool("unfreeze")


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
    _steer("pin", pool, how, key, form, owner=owner)


def unpin(
    pool: PoolName, key: KeyText, /, *, form: KeyForm = TEXT, how: SteeringOptions = STEERING
) -> None:
    """Let the policy decide again where a key goes."""
    _steer("unpin", pool, how, key, form)


def policy(
    pool: PoolName,
    name: Annotated[str, Parameter(help="weighted, ring, or deal for an ordered pool.")],
    /,
    *,
    how: SteeringOptions = STEERING,
) -> None:
    """Choose the policy that decides where ranges go: weighted, ring or deal."""
    _steer("policy", pool, how, policy=name)


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
        Your word that this very process is gone: its ranges are free at once. If it is not gone,
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
            f"and is {heard}: if its process is alive, keys have two owners until it hears of this"
        )
    if confirmed_dead and not yes and not how.dry_run:
        _confirm(pool, found)
    answer = _steer(
        "evict",
        pool,
        how,
        owner=owner,
        incarnation=found.incarnation,
        confirmed_dead=confirmed_dead,
    )
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


def _steer(
    verb: str,
    pool: str,
    how: SteeringOptions,
    key: str = "",
    form: KeyForm = TEXT,
    **given: object,
) -> Steered:
    """Give the order, and say what was done, or would be, and what moves because of it."""
    order = VERBS[verb]
    fields = order.command.__struct_fields__
    body = {name: value for name, value in given.items() if name in fields}
    if "key" in fields:
        ((way, written),) = form.parameters(key).items()
        body[way] = int(written) if way == "int" else written
    reply = ask(how.manager, path(pool, verb), {**body, "dry_run": how.dry_run})
    answer = reply.read(Steered)
    if how.json:
        put(reply.text)
        return answer
    words = {"pool": pool, "key": key, **given}
    if not answer.changed:
        say(f"no change: {order.already.format(**words)}")
        return answer
    is_dry = "dry run, nothing was changed; otherwise: " if answer.dry_run else ""
    say(is_dry + order.done.format(**words))
    for flow in answer.flows:
        say("  " + in_words(flow))
    if not answer.flows:
        say("  no range moves because of this")
    return answer


def in_words(flow: Flow) -> str:
    """Return a sentence that says what moves from which owner to which."""
    count = f"{flow.ranges} range" + ("s" if flow.ranges != 1 else "")
    state = "with their state" if flow.with_state else "without state"
    if flow.giver is None:
        return f"{count} ({flow.share:.1%}) without an owner to {flow.taker}"
    if flow.taker is None:
        return f"{count} ({flow.share:.1%}) of {flow.giver}, which no other owner can be given"
    return f"{count} ({flow.share:.1%}) from {flow.giver} to {flow.taker}, {state}"
