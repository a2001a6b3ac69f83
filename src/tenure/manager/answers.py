"""What the JSON API says, as types: the machine's answers in words that any language can read.

A key is bytes, and JSON has none: it is an object with its bytes in hexadecimal, and as text where
they are printable UTF-8 and the pool is ordered. (In a hashed pool they are a hash; that eight of
its bytes look like text is chance.) An owner is its incarnation, null where nobody has the range.
"""

from collections.abc import Callable

import msgspec

from tenure.base.keys import Key, PoolKind
from tenure.protocol.lease.leader import events as machine
from tenure.protocol.lease.leader.view import ManagerRole
from tenure.protocol.lease.messages import Entry


class JsonKey(msgspec.Struct, frozen=True):
    """A key: its bytes, and its text where it has one."""

    hex: str
    text: str | None = None


class PoolAnswer(msgspec.Struct, frozen=True):
    """A pool in short."""

    name: str
    kind: PoolKind
    owners: int
    ranges: int
    free_ranges: int
    lsn: int
    split_points: tuple[JsonKey, ...]


class PoolsAnswer(msgspec.Struct, frozen=True):
    """All pools, by name."""

    pools: tuple[PoolAnswer, ...]


class CreatedAnswer(msgspec.Struct, frozen=True):
    """The pool is there; `created` says whether it was not before."""

    name: str
    kind: PoolKind
    created: bool


class DeletedAnswer(msgspec.Struct, frozen=True):
    """The pool is gone; with `dry_run` it could be deleted now."""

    name: str
    dry_run: bool


class OwnerAnswer(msgspec.Struct, frozen=True):
    """An owner in short."""

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
    """The version of the protocol that is spoken with it; null where it is not connected."""
    steering: str = ""
    """cordoned, drained or evicted; otherwise empty."""
    load: float = 0.0
    """What is asked of its ranges a second, in the unit in which the pool's owners count."""
    same_address: str = ""
    """Another living owner that announces the same address; empty where there is none."""


class OwnersAnswer(msgspec.Struct, frozen=True):
    """All owners of a pool, by name."""

    pool: str
    owners: tuple[OwnerAnswer, ...]


class WhoAnswer(msgspec.Struct, frozen=True):
    """Which owner an incarnation is."""

    incarnation: int
    name: str
    address: str


class EntryAnswer(msgspec.Struct, frozen=True):
    """A range: who has it, under which lease number, and since which its state is unbroken."""

    start: JsonKey
    end: JsonKey | None
    owner: int | None
    number: int
    since: int


class TableAnswer(msgspec.Struct, frozen=True):
    """The whole table (`snapshot`), or what changed in it after the LSN that was asked for.

    `journal` says which history the LSN is of (rule P22); text, since JSON's numbers are short.
    """

    pool: str
    journal: str
    kind: PoolKind
    lsn: int
    snapshot: bool
    entries: tuple[EntryAnswer, ...]
    owners: tuple[WhoAnswer, ...]


class LocationAnswer(msgspec.Struct, frozen=True):
    """The range around a key, and who has it."""

    pool: str
    key: JsonKey
    start: JsonKey
    end: JsonKey | None
    owner: WhoAnswer | None
    number: int
    since: int


class MemberAnswer(msgspec.Struct, frozen=True):
    """A member of an etcd cluster; `error` tells why it does not answer, or what it lacks."""

    endpoint: str
    version: str
    is_leader: bool
    db_bytes: int
    error: str


class JournalAnswer(msgspec.Struct, frozen=True):
    """How the journal is: what there is to know of its kind, and what is wrong with it."""

    file_bytes: int | None = None
    members: tuple[MemberAnswer, ...] = ()
    alarms: tuple[str, ...] = ()
    error: str = ""


class StatusAnswer(msgspec.Struct, frozen=True):
    """One manager, as it sees itself."""

    url: str
    version: str
    role: ManagerRole
    proven: bool
    """Whether it leads, and nobody can have taken over by waiting."""
    leader: str | None
    """The URL of whoever leads, as far as known."""
    leadership: int
    lsn: int
    grants_in_seconds: float
    """How long until ranges can be granted; 0 where they can, or where it does not lead."""
    preset: str
    journal: str
    connections: int
    events: dict[str, int]
    """What happened since the manager started, counted."""
    beat: int = 0
    """The last beat of the leadership that was seen; it grows while a leader lives."""
    journal_health: JournalAnswer = JournalAnswer()
    protocols: tuple[int, ...] = (1,)
    """The versions of the protocol that it speaks. The first tenure did not say: it speaks 1."""
    connections_by_protocol: dict[str, int] = {}
    """How many of its connections speak which version."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of every HTTP error."""

    error: str
    way_out: str
    leader: str | None = None
    """Where to ask instead, when this manager stands by and knows."""


def json_key(key: Key, kind: PoolKind) -> JsonKey:
    """A key for JSON."""
    text = None
    if kind == "ordered":
        try:
            text = key.decode()
        except UnicodeDecodeError:
            text = None
    return JsonKey(key.hex(), text if text is not None and text.isprintable() else None)


def json_end(key: Key | None, kind: PoolKind) -> JsonKey | None:
    """The end of a range for JSON; null where it has none."""
    return None if key is None else json_key(key, kind)


def pools_answer(answer: machine.Pools) -> PoolsAnswer:
    """All pools."""
    return PoolsAnswer(
        tuple(
            PoolAnswer(
                each.pool,
                each.kind,
                each.owners,
                each.ranges,
                each.free_ranges,
                each.lsn,
                tuple(json_key(point, each.kind) for point in each.split_points),
            )
            for each in answer.pools
        )
    )


def owners_answer(
    answer: machine.Owners, version: Callable[[machine.Connection | None], int | None]
) -> OwnersAnswer:
    """All owners of a pool; `version` says what is spoken on a connection."""
    owners = (
        OwnerAnswer(
            each.name,
            each.address,
            each.incarnation,
            each.ranges,
            each.share,
            each.recalled_ranges,
            each.connection is not None,
            each.hold_seconds,
            each.capacity,
            each.labels,
            version(each.connection),
            each.steering,
            each.load,
            each.same_address,
        )
        for each in answer.owners
    )
    return OwnersAnswer(answer.pool, tuple(owners))


def entry_answer(entry: Entry, kind: PoolKind) -> EntryAnswer:
    """One range of a table."""
    return EntryAnswer(
        json_key(entry.start, kind),
        json_end(entry.end, kind),
        entry.owner or None,
        entry.number,
        entry.since,
    )


def table_answer(answer: machine.Table) -> TableAnswer:
    """A table, or what changed in it."""
    return TableAnswer(
        answer.pool,
        f"{answer.journal:016x}",
        answer.kind,
        answer.lsn,
        answer.snapshot,
        tuple(entry_answer(entry, answer.kind) for entry in answer.entries),
        tuple(WhoAnswer(each.incarnation, each.name, each.address) for each in answer.owners),
    )


def location_answer(answer: machine.Location, key: Key, kind: PoolKind) -> LocationAnswer:
    """The range around `key`."""
    entry, owner = answer.entry, answer.owner
    return LocationAnswer(
        answer.pool,
        json_key(key, kind),
        json_key(entry.start, kind),
        json_end(entry.end, kind),
        WhoAnswer(owner.incarnation, owner.name, owner.address) if owner else None,
        entry.number,
        entry.since,
    )
