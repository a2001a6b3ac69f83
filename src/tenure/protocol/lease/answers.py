"""The answers of the manager machine to people and tools: the JSON API is these structs, encoded.

JSON has no bytes, so a key is spelled: in hexadecimal, and as text where it is printable UTF-8 and
the pool is ordered. (In a hashed pool it is a hash; that eight of its bytes look like text is
chance.) An owner is its incarnation; None if nobody has the range.

Other languages read this: fields keep their names, and new ones are added at the end.
"""

from typing import TypeAlias

import msgspec

from tenure.base.keys import Key, PoolKind
from tenure.protocol.lease.reports import EntityReport, VolumeReport
from tenure.protocol.topology.answers import ClusterAnswer

Connection: TypeAlias = int
"""A client's connection, numbered by whoever runs the machine."""


class SpelledKey(msgspec.Struct, frozen=True):
    """A key: its bytes, and its text if it has one."""

    hex: str
    text: str | None = None


def spelled(key: Key, kind: PoolKind) -> SpelledKey:
    """A key of a pool of that kind."""
    text = None
    if kind == "ordered":
        try:
            text = key.decode()
        except UnicodeDecodeError:
            text = None
    return SpelledKey(key.hex(), text if text is not None and text.isprintable() else None)


def spelled_end(end: Key | None, kind: PoolKind) -> SpelledKey | None:
    """The end of a range; None if it has none."""
    return None if end is None else spelled(end, kind)


# --- pools, owners, tables ----------------------------------------------------------------------


class PoolSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One pool in short."""

    name: str
    kind: PoolKind
    owners: int
    ranges: int
    free_ranges: int
    lsn: int
    split_points: tuple[SpelledKey, ...] = ()


class Pools(msgspec.Struct, frozen=True):
    """All pools, by name."""

    pools: tuple[PoolSummary, ...]


class PoolMade(msgspec.Struct, frozen=True):
    """The pool exists; `created` says whether it is new."""

    name: str
    kind: PoolKind
    created: bool


class PoolDeleted(msgspec.Struct, frozen=True):
    """The pool is gone; with `dry_run` it could be deleted now."""

    name: str
    dry_run: bool


class LevelOfOwner(msgspec.Struct, frozen=True):
    """What the keys of an owner take up by a metric, and its capacity for that."""

    amount: float
    capacity: float


class OwnerSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One owner in short."""

    name: str
    address: str
    incarnation: int
    ranges: int
    share: float
    """The part of the key space, from 0 to 1."""
    recalled_ranges: int
    connected: bool
    hold_seconds: float
    """How long its ranges stay its own without a further request."""
    capacity: float
    labels: dict[str, str]
    protocol: int | None = None
    """The version of the protocol that is spoken with it, as far as it is known."""
    steering: str = ""
    """The operator's order for it: cordoned, drained or evicted; otherwise empty, or stuck."""
    load: float = 0.0
    """The requests a second for its ranges, as far as owners have told."""
    same_address: str = ""
    """Another living owner that announces the same address; empty if no owner does."""
    volume: VolumeReport | None = None
    """The caches that read the owner's keys; None if it takes no caches."""
    entities: EntityReport | None = None
    """The entities that it runs."""
    levels: dict[str, LevelOfOwner] = {}
    """The metrics beside requests by which the pool is balanced, as far as owners have told."""


class Owners(msgspec.Struct, frozen=True, omit_defaults=True):
    """All owners of a pool, by name."""

    pool: str
    owners: tuple[OwnerSummary, ...]
    connections: tuple[Connection | None, ...] = ()
    """The connections on which they asked last, in the same order, for a shell that knows which
    protocol each speaks; it is told to nobody else.
    """


class HottestKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that is asked for often."""

    key: SpelledKey | None
    """Its place in the key space; None for those who may not know it."""
    name: str | None
    """What the application calls it; None if the manager does not know that, or may not say it."""
    owner: str | None
    rate: float
    """The requests a second."""


class HottestKeys(msgspec.Struct, frozen=True):
    """The keys of a pool that are asked for most, the hottest first."""

    pool: str
    keys: tuple[HottestKey, ...]


class NamedOwner(msgspec.Struct, frozen=True, kw_only=True):
    """The name of an owner beside its incarnation."""

    incarnation: int
    name: str
    address: str


class TableRange(msgspec.Struct, frozen=True, kw_only=True):
    """A range: who has it, under which lease number, and since which its state is unbroken."""

    start: SpelledKey
    end: SpelledKey | None
    owner: int | None
    number: int
    since: int


class TableAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The whole table (`snapshot`), or the changes in it after the LSN in the question.

    `journal` says which history the LSN is of (P22); text, since JSON's numbers are short.
    """

    pool: str
    journal: str
    kind: PoolKind
    lsn: int
    snapshot: bool
    entries: tuple[TableRange, ...]
    owners: tuple[NamedOwner, ...]


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """The range around a key, and its owner."""

    pool: str
    key: SpelledKey
    start: SpelledKey
    end: SpelledKey | None
    owner: NamedOwner | None
    number: int
    since: int


# --- steering and explaining --------------------------------------------------------------------


class PinnedKey(msgspec.Struct, frozen=True):
    """A key that is pinned to an owner."""

    key: SpelledKey
    owner: str


class SteeringSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How a pool is steered."""

    cordoned: tuple[str, ...]
    drained: tuple[str, ...]
    evicted: tuple[int, ...]
    pins: tuple[PinnedKey, ...]
    frozen: bool
    policy: str
    """The policy that was chosen; empty if none was."""


class Flow(msgspec.Struct, frozen=True):
    """Ranges that go from one owner to another."""

    giver: str | None
    """The giver; None if nobody has the ranges."""
    taker: str | None
    """The taker; None if nobody is to have the ranges."""
    ranges: int
    share: float
    """The part of the key space, from 0 to 1."""
    with_state: bool
    phase: str = ""
    reason: str = ""


class JournalDecided(msgspec.Struct, frozen=True, kw_only=True):
    """A journal is over; with `dry_run`, it would be."""

    over: str
    """The journal, in hexadecimal."""
    is_own: bool
    """Whether it is the journal of the leader that answers, which is silent from here on."""
    changed: bool
    """False if it was so already."""
    dry_run: bool
    waits_seconds: float = 0.0
    """How long until ranges are granted: what was promised under the other journal runs out."""


class Steered(msgspec.Struct, frozen=True, kw_only=True):
    """The command was carried out; with `dry_run`, what it would do."""

    pool: str
    changed: bool
    """False if it was so already."""
    dry_run: bool
    flows: tuple[Flow, ...]
    """The ranges that move because of it, and would not without it."""
    steering: SteeringSummary
    """The steering that holds now, or would hold."""
    ranges: int = 0
    """The ranges that the named owner has at the moment."""
    hold_seconds: float = 0.0
    """After an eviction, how many seconds until the ranges are free."""


class HeldBackMove(msgspec.Struct, frozen=True):
    """A move that the policy would make, and the reason why it does not."""

    what: str
    why: str


class PlanRead(msgspec.Struct, frozen=True, kw_only=True):
    """The plan that the policy would make now, as it is steered."""

    pool: str
    policy: str
    steering: SteeringSummary
    flows: tuple[Flow, ...]
    held_back: tuple[HeldBackMove, ...]


class PastMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move of a range that this leader remembers."""

    seconds_ago: float
    how: str
    giver: str | None
    taker: str | None
    number: int
    since: int
    phase: str
    reason: str


class KeyExplained(Location, frozen=True, kw_only=True):
    """The owner of a key, and how the key came there."""

    joined_seconds_ago: float | None
    """How long ago the owner joined; None if that was before the leader remembers anything."""
    planned: str | None
    """The owner that should have it by the present plan."""
    pinned_to: str | None
    moves: tuple[PastMove, ...]
    """The key's moves, the latest first."""
    remembered_seconds: float
    """How far back the leader remembers all moves; it does not know earlier ones."""
    stuck: tuple[str, ...] = ()
    """Owners that had the key and whose applications do not let go of it."""
    trouble: str = ""
    """The reason why the pool is not planned by its policy; empty if it is."""


# --- refusals -----------------------------------------------------------------------------------


class NotLeading(msgspec.Struct, frozen=True):
    """The manager does not lead; `leader` is the one to ask, if it is known."""

    leader: str | None


class Impossible(msgspec.Struct, frozen=True):
    """The question cannot be answered: the reason, and the way out."""

    why: str
    missing: bool = False
    """Whether what it names does not exist."""
    way_out: str = ""
    """The way out, if the kind of the question does not tell it."""
    there: str = ""
    """What does exist, for whoever may read about all pools."""


class QuestionFailed(msgspec.Struct, frozen=True):
    """The answer could not be made, which is a bug. Nothing was changed."""

    why: str


class CommandFailed(msgspec.Struct, frozen=True):
    """The command broke off, which is a bug. Nothing of it is kept: the leader was thrown away."""

    why: str


Told: TypeAlias = Pools | Owners | HottestKeys | TableAnswer | Location | PlanRead | KeyExplained
Answer: TypeAlias = (
    Told
    | PoolMade
    | PoolDeleted
    | JournalDecided
    | Steered
    | NotLeading
    | Impossible
    | QuestionFailed
    | CommandFailed
    | ClusterAnswer
)
