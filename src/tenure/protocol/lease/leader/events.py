"""The events and actions of the manager machine."""

from typing import TypeAlias

import msgspec

from tenure.base.instants import Instant
from tenure.base.keys import Key, PoolKind
from tenure.base.noted import Noted
from tenure.base.numbers import JournalId
from tenure.protocol.balance.planning import Planned, Planning, PlanningFailed
from tenure.protocol.lease.answers import Answer, Connection
from tenure.protocol.lease.messages import FromManager, Standby, ToManager
from tenure.protocol.lease.records import JournalAction, JournalEvent
from tenure.protocol.lease.rivalry import Successions
from tenure.protocol.lease.steering_events import ExplainKey, ReadPlan, SteeringCommand
from tenure.protocol.topology.messages import NodeRequest, ToNode
from tenure.protocol.topology.questions import ClusterQuestion

Ticket: TypeAlias = int
"""A question's number, drawn by whoever asks."""


# --- events -------------------------------------------------------------------------------------


class ClientSaid(msgspec.Struct, frozen=True):
    """A client's message came."""

    connection: Connection
    message: ToManager


class NodeSaid(msgspec.Struct, frozen=True):
    """The message of a cluster's node came."""

    connection: Connection
    message: NodeRequest
    token: str = ""
    """The id of the token that it has shown; empty if none are asked for."""


class ClientLost(msgspec.Struct, frozen=True):
    """A connection is gone. It proves nothing about the client (P14)."""

    connection: Connection


class StopRequested(msgspec.Struct, frozen=True):
    """The process is about to end: resign, so that a standby need not wait."""


class CreatePool(msgspec.Struct, frozen=True):
    """Make a pool, unless it exists already."""

    pool: str
    kind: PoolKind
    split_points: tuple[Key, ...] = ()


class DeletePool(msgspec.Struct, frozen=True):
    """Forget everything about a pool that has no owners, except its numbers."""

    pool: str
    dry_run: bool = False


class ListPools(msgspec.Struct, frozen=True):
    """Ask which pools exist."""


class ListOwners(msgspec.Struct, frozen=True):
    """Ask for the pool's owners."""

    pool: str


class ListHottest(msgspec.Struct, frozen=True):
    """Ask for the keys of the pool that are asked for most."""

    pool: str


class ReadTable(msgspec.Struct, frozen=True):
    """Ask for the changes in the pool's table after `since`, in `journal`.

    The answer is the whole table if those changes are forgotten, or the journal is another one.
    """

    pool: str
    since: int | None = None
    journal: int | None = None


class Locate(msgspec.Struct, frozen=True):
    """Ask which owner has this key."""

    pool: str
    key: Key


class Resolve(msgspec.Struct, frozen=True):
    """The operator's decision between two journals with living leaders: one of them is over.

    Where it is this leader's own, the leader falls silent for good.
    """

    over: JournalId
    confirmed_stopped: bool = False
    """The operator's word that every manager of it has stopped."""
    dry_run: bool = False


Reading: TypeAlias = ListPools | ListOwners | ListHottest | ReadTable | Locate | ExplainKey
Question: TypeAlias = (
    CreatePool | DeletePool | Resolve | SteeringCommand | ReadPlan | Reading | ClusterQuestion
)


class QuestionAsked(msgspec.Struct, frozen=True):
    """A question or a command has come over the JSON API; Reply answers it."""

    ticket: Ticket
    question: Question


class PlanMade(msgspec.Struct, frozen=True):
    """The outcome of a MakePlan."""

    work: Planning
    made: Planned | PlanningFailed


class OtherSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one of the other managers about itself."""

    manager: str
    journal: JournalId = 0
    """The journal in which it leads; 0 if it does not lead."""
    realm: str = ""
    granted: bool = True
    """Whether that journal may have granted anything."""
    is_over: bool = False
    """Whether an operator has declared that journal over: it is silent."""
    rivals: tuple[JournalId, ...] = ()
    """The journals whose leaders it knows as rivals, and for which it has stopped granting."""
    over: tuple[JournalId, ...] = ()
    """The journals that an operator has declared over, as it knows."""
    succeeds: Successions = ()


class OthersSeen(msgspec.Struct, frozen=True):
    """The outcome of a LookAround: the managers that answered."""

    asked_at: Instant
    seen: tuple[OtherSeen, ...]


FromOutside: TypeAlias = ClientSaid | NodeSaid | ClientLost | QuestionAsked | PlanMade | OthersSeen
"""Messages and questions of others, and the results of actions."""


class LeaderBroke(msgspec.Struct, frozen=True):
    """The machine raised while it handled `event`, which is a bug: nobody knows how far it came."""

    event: FromOutside
    why: str
    place: str


ManagerEvent: TypeAlias = FromOutside | LeaderBroke | StopRequested | JournalEvent


# --- actions ------------------------------------------------------------------------------------


class TellClient(msgspec.Struct, frozen=True):
    """Send a message to one client."""

    connection: Connection
    message: FromManager


class TellClients(msgspec.Struct, frozen=True):
    """Send one message to many clients; encode it once."""

    connections: tuple[Connection, ...]
    message: FromManager


class TellNodes(msgspec.Struct, frozen=True):
    """Send one message to nodes; encode it once."""

    connections: tuple[Connection, ...]
    message: ToNode | Standby


class AnswerQuestion(msgspec.Struct, frozen=True):
    ticket: Ticket
    answer: Answer


class MakePlan(msgspec.Struct, frozen=True):
    """Carry out `work` beside the machine, so that nobody has to wait for it, and report the
    outcome with PlanMade.
    """

    work: Planning


class LookAround(msgspec.Struct, frozen=True):
    """Ask the other managers whether they lead, and in which journal; answered by OthersSeen."""

    asked_at: Instant


class GiveUp(msgspec.Struct, frozen=True):
    """The journal contradicts what others have seen of it: end the process, safely and loudly
    (P22).
    """

    why: str


ManagerAction: TypeAlias = (
    TellClient
    | TellClients
    | TellNodes
    | AnswerQuestion
    | MakePlan
    | LookAround
    | Noted
    | GiveUp
    | JournalAction
)
