"""What the manager machine is told, and what it wants done."""

from typing import TypeAlias

import msgspec

from tenure.base.keys import Key, PoolKind
from tenure.base.noted import Noted
from tenure.protocol.balance.planning import Planned, Planning, PlanningFailed
from tenure.protocol.lease.messages import Entry, FromManager, OwnerInfo, ToManager
from tenure.protocol.lease.records import JournalAction, JournalEvent
from tenure.protocol.lease.steering_events import (
    ExplainKey,
    KeyExplained,
    PlanRead,
    ReadPlan,
    Steered,
    SteeringCommand,
)

Connection: TypeAlias = int
"""A client's connection, numbered by whoever runs the machine."""
Ticket: TypeAlias = int
"""A question's number, drawn by whoever asks."""


# --- events -------------------------------------------------------------------------------------


class ClientSaid(msgspec.Struct, frozen=True):
    """A client's message came."""

    connection: Connection
    message: ToManager


class ClientLost(msgspec.Struct, frozen=True):
    """A connection is gone. It proves nothing about the client (P14)."""

    connection: Connection


class StopRequested(msgspec.Struct, frozen=True):
    """The process is to end: resign, so that a standby need not wait."""


class CreatePool(msgspec.Struct, frozen=True):
    """Make a pool, unless it is there already."""

    pool: str
    kind: PoolKind
    split_points: tuple[Key, ...] = ()


class DeletePool(msgspec.Struct, frozen=True):
    """Forget a pool that has no owners, all but its numbers."""

    pool: str
    dry_run: bool = False


class ListPools(msgspec.Struct, frozen=True):
    """Which pools are there?"""


class ListOwners(msgspec.Struct, frozen=True):
    """Who are the pool's owners?"""

    pool: str


class ReadTable(msgspec.Struct, frozen=True):
    """What changed in the pool's table after `since`, in `journal`?

    The whole table where that is forgotten, or the journal is another one.
    """

    pool: str
    since: int | None = None
    journal: int | None = None


class Locate(msgspec.Struct, frozen=True):
    """Who has this key?"""

    pool: str
    key: Key


Reading: TypeAlias = ListPools | ListOwners | ReadTable | Locate | ExplainKey
Question: TypeAlias = CreatePool | DeletePool | SteeringCommand | ReadPlan | Reading


class QuestionAsked(msgspec.Struct, frozen=True):
    """Somebody asks, or commands, over the JSON API; answered by Reply."""

    ticket: Ticket
    question: Question


class PlanMade(msgspec.Struct, frozen=True):
    """A policy was asked, as MakePlan wanted: what came of it."""

    work: Planning
    made: Planned | PlanningFailed


ManagerEvent: TypeAlias = (
    ClientSaid | ClientLost | StopRequested | QuestionAsked | PlanMade | JournalEvent
)


# --- answers to questions -----------------------------------------------------------------------


class PoolSummary(msgspec.Struct, frozen=True):
    """One pool in short."""

    pool: str
    kind: PoolKind
    owners: int
    ranges: int
    free_ranges: int
    lsn: int
    split_points: tuple[Key, ...] = ()


class Pools(msgspec.Struct, frozen=True):
    """All pools, by name."""

    pools: tuple[PoolSummary, ...]


class OwnerSummary(msgspec.Struct, frozen=True):
    """One owner in short."""

    name: str
    address: str
    incarnation: int
    ranges: int
    share: float
    """The part of the key space, from 0 to 1."""
    recalled_ranges: int
    connection: Connection | None
    """On which it asked last; None where that is gone."""
    hold_seconds: float
    """How long its ranges stay its own without a further request."""
    capacity: float
    labels: dict[str, str]
    steering: str = ""
    """What an operator ordered: cordoned, drained or evicted; otherwise empty."""
    load: float = 0.0
    """What is asked of its ranges a second, as far as owners have told."""
    same_address: str = ""
    """Another living owner that announces the same address; empty where there is none."""


class Owners(msgspec.Struct, frozen=True):
    """All owners of a pool, by name."""

    pool: str
    owners: tuple[OwnerSummary, ...]


class Table(msgspec.Struct, frozen=True):
    """A pool's table, or what changed in it, up to `lsn` of `journal`."""

    pool: str
    journal: int
    kind: PoolKind
    lsn: int
    snapshot: bool
    entries: tuple[Entry, ...]
    owners: tuple[OwnerInfo, ...]


class Location(msgspec.Struct, frozen=True):
    """The range around a key, and who has it; `owner` is None where nobody does."""

    pool: str
    entry: Entry
    owner: OwnerInfo | None


class CarriedOut(msgspec.Struct, frozen=True):
    """The command was carried out; `changed` is False where there was nothing to change."""

    changed: bool


class NotLeading(msgspec.Struct, frozen=True):
    """Ask the leader, where one is known."""

    leader: str | None


class Impossible(msgspec.Struct, frozen=True):
    """The question cannot be answered: what is wrong with it, and the way out."""

    why: str
    missing: bool = False
    """Whether what it names does not exist."""


Told: TypeAlias = Pools | Owners | Table | Location | PlanRead | KeyExplained
Answer: TypeAlias = Told | CarriedOut | Steered | NotLeading | Impossible


# --- actions ------------------------------------------------------------------------------------


class TellClient(msgspec.Struct, frozen=True):
    """Send a message to one client."""

    connection: Connection
    message: FromManager


class TellClients(msgspec.Struct, frozen=True):
    """Send one message to many clients; it is to be encoded once."""

    connections: tuple[Connection, ...]
    message: FromManager


class AnswerQuestion(msgspec.Struct, frozen=True):
    """Answer a question."""

    ticket: Ticket
    answer: Answer


class MakePlan(msgspec.Struct, frozen=True):
    """Carry out `work` where it keeps nobody waiting, and report it with PlanMade."""

    work: Planning


class GiveUp(msgspec.Struct, frozen=True):
    """The journal contradicts what was seen of it: end the process, safely and loudly (P22)."""

    why: str


ManagerAction: TypeAlias = (
    TellClient | TellClients | AnswerQuestion | MakePlan | Noted | GiveUp | JournalAction
)
