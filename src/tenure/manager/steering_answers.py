"""What the JSON API says of steering, as types."""

import msgspec

from tenure.base.keys import Key, PoolKind
from tenure.manager.answers import JsonKey, WhoAnswer, json_end, json_key
from tenure.protocol.lease import steering_events as machine
from tenure.protocol.lease.records import Steering


class PinAnswer(msgspec.Struct, frozen=True):
    """A key that is pinned to an owner."""

    key: JsonKey
    owner: str


class SteeringAnswer(msgspec.Struct, frozen=True):
    """How a pool is steered."""

    cordoned: tuple[str, ...]
    drained: tuple[str, ...]
    evicted: tuple[int, ...]
    pins: tuple[PinAnswer, ...]
    frozen: bool
    policy: str
    """The policy that was chosen; empty where none was."""


class FlowAnswer(msgspec.Struct, frozen=True):
    """Ranges that go from one owner to another; null is nobody."""

    giver: str | None
    taker: str | None
    ranges: int
    share: float
    """The part of the key space, from 0 to 1."""
    with_state: bool
    phase: str
    reason: str


class SteeredAnswer(msgspec.Struct, frozen=True):
    """A command was carried out; with `dry_run`, what it would do."""

    pool: str
    changed: bool
    """False where it was so already."""
    dry_run: bool
    flows: tuple[FlowAnswer, ...]
    """What moves because of it."""
    steering: SteeringAnswer
    ranges: int
    """What the owner that was named has."""
    hold_seconds: float
    """For an eviction: after how long its ranges are free."""


class HeldBackAnswer(msgspec.Struct, frozen=True):
    """What the policy would do, and why it does not."""

    what: str
    why: str


class PlanAnswer(msgspec.Struct, frozen=True):
    """What the policy would do now."""

    pool: str
    policy: str
    steering: SteeringAnswer
    flows: tuple[FlowAnswer, ...]
    held_back: tuple[HeldBackAnswer, ...]


class MoveAnswer(msgspec.Struct, frozen=True):
    """A move of a key, some time ago."""

    seconds_ago: float
    how: str
    giver: str | None
    taker: str | None
    number: int
    since: int
    phase: str
    reason: str


class ExplainedAnswer(msgspec.Struct, frozen=True):
    """Which owner has a key, and how it came there."""

    pool: str
    key: JsonKey
    start: JsonKey
    end: JsonKey | None
    owner: WhoAnswer | None
    number: int
    since: int
    joined_seconds_ago: float | None
    planned: str | None
    pinned_to: str | None
    moves: tuple[MoveAnswer, ...]
    """The latest first."""
    remembered_seconds: float
    """How far back the leader remembers all moves."""
    stuck: tuple[str, ...] = ()
    """Owners that had the key and whose applications do not let go of it."""


def steered_answer(answer: machine.Steered, kind: PoolKind) -> SteeredAnswer:
    """What a command did."""
    return SteeredAnswer(
        answer.pool,
        answer.changed,
        answer.dry_run,
        tuple(FlowAnswer(*msgspec.structs.astuple(flow)) for flow in answer.flows),
        steering_answer(answer.steering, kind),
        answer.ranges,
        answer.hold_seconds,
    )


def steering_answer(steering: Steering, kind: PoolKind) -> SteeringAnswer:
    """How a pool is steered."""
    return SteeringAnswer(
        steering.cordoned,
        steering.drained,
        steering.evicted,
        tuple(PinAnswer(json_key(key, kind), owner) for key, owner in steering.pins),
        steering.frozen,
        steering.policy,
    )


def plan_answer(answer: machine.PlanRead, kind: PoolKind) -> PlanAnswer:
    """What the policy would do."""
    return PlanAnswer(
        answer.pool,
        answer.policy,
        steering_answer(answer.steering, kind),
        tuple(FlowAnswer(*msgspec.structs.astuple(flow)) for flow in answer.flows),
        tuple(HeldBackAnswer(each.what, each.why) for each in answer.held_back),
    )


def explained_answer(answer: machine.KeyExplained, key: Key, kind: PoolKind) -> ExplainedAnswer:
    """How a key came to where it is."""
    owner = answer.owner
    return ExplainedAnswer(
        answer.pool,
        json_key(key, kind),
        json_key(answer.start, kind),
        json_end(answer.end, kind),
        WhoAnswer(owner.incarnation, owner.name, owner.address) if owner else None,
        answer.number,
        answer.since,
        answer.joined_seconds_ago,
        answer.planned,
        answer.pinned_to,
        tuple(MoveAnswer(*msgspec.structs.astuple(move)) for move in answer.moves),
        answer.remembered_seconds,
        answer.stuck,
    )
