"""Answers of the JSON API about a manager itself, and about faulty requests.

All other answers are the manager machine's, encoded as they are (`tenure.protocol.lease.answers`).
"""

from typing import Annotated, TypeAlias

import msgspec

from tenure.protocol.lease.leader.view import ManagerRole
from tenure.protocol.log.journal_health import MemberHealth


class JournalAnswer(msgspec.Struct, frozen=True):
    """The state of the journal: facts that its kind knows, and what is wrong with it."""

    file_bytes: int | None = None
    free_bytes: int | None = None
    """The room that is left on the disk of its file."""
    members: tuple[MemberHealth, ...] = ()
    alarms: tuple[str, ...] = ()
    error: str = ""


HexId: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[0-7]?[0-9a-f]{1,15}\Z")]
"""The identity of a journal: 63 bits, like `JournalId`. A leader writes down that of its rival, and
could not read a longer one again.
"""
HexBytes: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{2})*\Z", max_length=128)]


class RivalAnswer(msgspec.Struct, frozen=True):
    """A living leader of another journal, of which a leader has learned (P25)."""

    journal: HexId
    manager: str
    pool: str = ""
    """The pool that is stopped, on the word of one of its owners; empty if all are."""
    granted: bool = True
    """Whether it may have granted anything: then nothing is renewed here, either."""


class SuccessionAnswer(msgspec.Struct, frozen=True):
    """A journal that this one was restored from, and the proof of that."""

    journal: HexId
    proof: HexBytes


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
    """The events since the manager started, counted."""
    beat: int = 0
    """The last beat of the leadership that was seen; it grows while a leader lives."""
    journal_health: JournalAnswer = JournalAnswer()
    protocols: tuple[int, ...] = (1,)
    """The versions of the protocol that it speaks. The first tenure did not say: it speaks 1."""
    connections_by_protocol: dict[str, int] = {}
    """How many of its connections speak which version."""
    troubles: dict[str, str] = {}
    """The reasons why some pools are not planned by their policies."""
    lookups: int = 0
    """How many lookups are connected."""
    lookup_lag: int = 0
    """How many records the one furthest behind had not seen when it last asked."""
    journal_id: Annotated[str, msgspec.Meta(pattern=r"^[0-7]?[0-9a-f]{0,15}\Z")] = ""
    """The identity of the journal in which it leads; empty if it does not lead."""
    realm: str = ""
    """The name of the fleet of managers; empty if it has none."""
    granted: bool = True
    """Whether that journal may have granted anything."""
    is_over: bool = False
    """Whether an operator has declared that journal over: the manager answers no client."""
    rivals: tuple[RivalAnswer, ...] = ()
    """The living leaders of other journals that it knows. It grants nothing beside them."""
    over: tuple[HexId, ...] = ()
    """The journals that an operator has declared over."""
    succeeds: tuple[SuccessionAnswer, ...] = ()
    """The journals that it was restored from."""
    clock: float = 0.0
    """What its wall clock shows, in seconds since 1970. No lease depends on it."""
    oldest_token: Annotated[str, msgspec.Meta(max_length=40)] = ""
    """When the oldest of the tokens that it takes was made; empty if it demands none."""
    store_troubles: dict[str, tuple[str, ...]] = {}
    """What is wrong with clusters of the store, and which nodes were refused, or not believed."""


class SeenManager(msgspec.Struct, frozen=True):
    """One of the managers of a journal, as another found it a moment ago."""

    url: str
    role: ManagerRole | None = None
    """The role; None if the manager did not tell it."""
    proven: bool = False
    leadership: int = 0
    lsn: int = 0
    journal_id: str = ""
    """The identity of the journal in which it leads; empty if it does not lead."""
    error: str = ""
    """The reason why it did not answer."""


class ManagersAnswer(msgspec.Struct, frozen=True):
    """All managers that one of them knows of, itself first."""

    managers: tuple[SeenManager, ...]


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of every HTTP error."""

    error: str
    way_out: str
    leader: str | None = None
    """The URL to ask instead, if this manager stands by and knows."""
