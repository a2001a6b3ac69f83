"""Steering a pool: an operator's orders, which its policy must follow.

A command says what is to hold from now on; it is journaled, so that a later leader knows, and the
pool is planned anew. Before that, the policy is asked what it would do with the command and without
it: the difference is what moves because of the command. A dry run ends there.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import assert_never

from msgspec.structs import asdict, replace

from tenure.base.instants import Instant, in_seconds
from tenure.base.names import shown
from tenure.protocol.balance.planning import Planned, Planning, PlanningFailed
from tenure.protocol.balance.policy import is_outside
from tenure.protocol.lease.answers import Flow, Impossible, Steered
from tenure.protocol.lease.leader.explaining import flows, no_plan, summary_of
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.policies import POLICIES, PolicyMaker
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.limits import PINNED_KEY_BYTES
from tenure.protocol.lease.records import Steering
from tenure.protocol.lease.steering_events import (
    ChoosePolicy,
    Cordon,
    Drain,
    Evict,
    Freeze,
    PinKey,
    SteeringCommand,
    Uncordon,
    Unfreeze,
    UnpinKey,
)
from tenure.protocol.lease.table import NOBODY, LeaseTable

LISTED = 20
"""The most names in an error."""
NAMED_AT_MOST = 1000
"""The most owners that are cordoned or drained, and the most pins: each record that steers has all
of them.
"""


def planning_to_steer(
    now: Instant, pool: Pool, command: SteeringCommand, make_policy: PolicyMaker
) -> Planning | Steered | Impossible:
    """The question for policies before `command` is carried out; or the answer, if it is known."""
    table, before = pool.table, pool.table.steering
    why_not = _wrong(table, command, pool.context.policies)
    if why_not is not None:
        return why_not
    wanted = _wanted(before, command)
    if max(len(wanted.cordoned), len(wanted.drained), len(wanted.pins)) > NAMED_AT_MOST:
        way_out = "uncordon those that will not come back, or unpin some"
        return Impossible(_too_many(wanted), way_out=way_out)
    if wanted == before and not _is_of_the_dead(command):
        return _answer(now, pool, command, ())
    policy = None
    if wanted.policy != before.policy:
        policy = make_policy(table, wanted.policy)
    return pool.planner.planning(now, policy, wanted, _gone(command))


def steer(
    now: Instant,
    pool: Pool,
    command: SteeringCommand,
    work: Planning,
    made: Planned | PlanningFailed,
) -> Steered | Impossible | None:
    """Carry out `command`, or say what it would do; None if it must be planned anew."""
    table = pool.table
    why_not = _wrong(table, command, pool.context.policies)
    if why_not is not None:
        return why_not
    wanted = _wanted(table.steering, command)
    if wanted != work.steering:
        return None
    if isinstance(made, PlanningFailed) and (command.dry_run or _is_to_try(command, work)):
        return no_plan(f"the policy {work.called} for the pool {table.pool!r}", made)
    moves = () if isinstance(made, PlanningFailed) else made.moves
    answer = _answer(now, pool, command, flows(pool, moves, _gone(command)))
    if command.dry_run:
        return answer
    pool.context.begin()
    pool.context.note(LeaderKind.STEERED, table.pool, _in_words(command))
    session = pool.sessions.get(_gone(command))
    if _is_of_the_dead(command) and session is not None:
        pool.on_death(now, session, LeaderKind.EVICTED)
    else:
        pool.steer(now, work, made)
    return replace(answer, steering=summary_of(table.steering, table.kind))


def _answer(now: Instant, pool: Pool, command: SteeringCommand, moved: tuple[Flow, ...]) -> Steered:
    """The answer to `command` before it is carried out."""
    table, gone = pool.table, _gone(command)
    wanted = _wanted(table.steering, command)
    is_dead = _is_of_the_dead(command)
    incarnation = gone or _present(table, getattr(command, "owner", ""))
    session = pool.sessions.get(gone)
    return Steered(
        pool=table.pool,
        changed=wanted != table.steering or is_dead,
        dry_run=command.dry_run,
        flows=moved,
        steering=summary_of(wanted, table.kind),
        ranges=len(table.held_by(incarnation)) if incarnation else 0,
        hold_seconds=0.0
        if session is None or is_dead
        else max(in_seconds(session.hold_until - now), 0.0),
    )


def _is_to_try(command: SteeringCommand, work: Planning) -> bool:
    """Whether the command chooses a policy from outside, which must plan before it is chosen."""
    return isinstance(command, ChoosePolicy) and is_outside(work.policy)


def _gone(command: SteeringCommand) -> int:
    return command.incarnation if isinstance(command, Evict) else NOBODY


def _is_of_the_dead(command: SteeringCommand) -> bool:
    return isinstance(command, Evict) and command.confirmed_dead


def _wanted(now: Steering, command: SteeringCommand) -> Steering:
    match command:
        case Drain(owner=owner):
            cordoned = _without(now.cordoned, owner)
            return replace(now, drained=_with(now.drained, owner), cordoned=cordoned)
        case Cordon(owner=owner):
            drained = _without(now.drained, owner)
            return replace(now, cordoned=_with(now.cordoned, owner), drained=drained)
        case Uncordon(owner=owner):
            rest = _without(now.drained, owner), _without(now.cordoned, owner)
            return replace(now, drained=rest[0], cordoned=rest[1])
        case PinKey(key=key, owner=owner):
            return replace(now, pins=tuple(sorted((dict(now.pins) | {key: owner}).items())))
        case UnpinKey(key=key):
            return replace(now, pins=tuple(pin for pin in now.pins if pin[0] != key))
        case Freeze() | Unfreeze():
            return replace(now, frozen=isinstance(command, Freeze))
        case Evict(confirmed_dead=True):
            return now
        case Evict(incarnation=incarnation):
            return replace(now, evicted=tuple(sorted({*now.evicted, incarnation})))
        case ChoosePolicy(policy=policy):
            return replace(now, policy=policy)
        case _:
            assert_never(command)


def _with(names: Sequence[str], name: str) -> tuple[str, ...]:
    return tuple(sorted({*names, name}))


def _without(names: Sequence[str], name: str) -> tuple[str, ...]:
    return tuple(each for each in names if each != name)


def _present(table: LeaseTable, name: str) -> int:
    """The incarnation that has the name now; NOBODY if none has."""
    incarnation, _ = table.numbered.get(name, (NOBODY, 0))
    return incarnation if incarnation in table.members else NOBODY


# --- refusals -----------------------------------------------------------------------------------


def _wrong(
    table: LeaseTable, command: SteeringCommand, policies: Collection[str]
) -> Impossible | None:
    """The refusal of a command that names something that does not exist, or cannot be pinned."""
    steering, where = table.steering, f"in the pool {table.pool!r}"
    match command:
        case Uncordon(owner=owner) if owner in (*steering.cordoned, *steering.drained):
            return None
        case (
            Drain(owner=owner) | Cordon(owner=owner) | PinKey(owner=owner) | Uncordon(owner=owner)
        ) if _present(table, owner) == NOBODY:
            there = _listed(member.name for member in table.members.values())
            return Impossible(f"there is no owner {shown(owner)} {where}; there are: {there}")
        case Evict(incarnation=incarnation) if incarnation not in table.members:
            there = _listed(f"{each.name} ({i})" for i, each in table.members.items())
            return Impossible(f"there is no incarnation {incarnation} {where}; there are: {there}")
        case PinKey(key=key) if len(key) > PINNED_KEY_BYTES:
            why = f"a key of {len(key)} bytes cannot be pinned; the limit is {PINNED_KEY_BYTES}"
            return Impossible(f"{why} in an ordered pool", way_out="pin a shorter key")
        case ChoosePolicy(policy=policy) if policy not in (*POLICIES[table.kind], *policies):
            there = ", ".join((*POLICIES[table.kind], *policies))
            why = f"there is no policy {shown(policy)} for {table.kind} pools; there are: {there}"
            way_out = f"start every manager with --policies {policy}" if ":" in policy else ""
            return Impossible(why, way_out=way_out)
        case _:
            pass
    return None


def _listed(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return (", ".join(found[:LISTED]) or "none yet") + more


def _too_many(wanted: Steering) -> str:
    return (
        f"{len(wanted.cordoned)} owners would be cordoned, {len(wanted.drained)} drained and "
        f"{len(wanted.pins)} keys pinned; at most {NAMED_AT_MOST} of each are allowed"
    )


def _in_words(command: SteeringCommand) -> str:
    said = asdict(command)
    words = [
        f"{name}={value.hex() if isinstance(value, bytes) else value}"
        for name, value in said.items()
        if name not in ("pool", "dry_run")
    ]
    return " ".join((type(command).__name__, *words))
