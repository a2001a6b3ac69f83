"""The context of a leader: its seal, its journal's history, and the only way to send something.

Everything that leaves a leader goes through here, so that one place holds the two rules of sending:
nothing leaves before the records that it may depend on are committed (P18), and nothing leaves
while the leadership is not proven (P19).
"""

from collections.abc import Collection
from typing import NamedTuple, Protocol

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.names import shown
from tenure.base.noted import Noted, NotedKind
from tenure.protocol.balance.planning import Planning
from tenure.protocol.lease.answers import Answer, Connection
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.events import (
    AnswerQuestion,
    GiveUp,
    LookAround,
    MakePlan,
    ManagerAction,
    TellClient,
    TellClients,
    Ticket,
)
from tenure.protocol.lease.leader.noted import REFUSED
from tenure.protocol.lease.leader.order_secrets import order_secret
from tenure.protocol.lease.leader.policy_calls import PolicyLines
from tenure.protocol.lease.leader.receipts import Receipt, opened, sealed
from tenure.protocol.lease.messages import (
    TEXT_CHARACTERS,
    FromManager,
    HandOff,
    Join,
    LeaseRequest,
    Refusal,
    RefusalReason,
)
from tenure.protocol.lease.records import AnyRecord
from tenure.protocol.lease.timing import Timing
from tenure.protocol.log.journal import Committed, Deposed, Mandate, Unknown
from tenure.protocol.log.ledger import Ledger

PLANS_AT_ONCE = 1_000
"""The largest pool, in ranges that it has or is to have, that is planned within a step: that is
25 ms of work at most, for which a beat, a renewal or an attested crash can wait."""
FRAGMENTS = 64
"""How many entries may be joinable with a neighbour before any is renumbered: so few cost nobody
anything.
"""
FRESH_PART = 64
"""A whole table is given to lookups, followed by the changes since, until this part of it has
changed. So a table of any size is made anew once in so many changes, however often it is asked for.
"""


class Seal(NamedTuple):
    """The seal on every message of a leader (P2)."""

    journal: int
    leadership: int
    nonce: int


class LeaderProof(Protocol):
    """The proof of a leadership, as far as the leader must know it."""

    @property
    def is_proven(self) -> bool:
        """Whether nobody else can lead, at the time of the present step."""


class LeaderContext:
    """The leader's records and messages, in order."""

    def __init__(
        self,
        seal: Seal,
        timing: Timing,
        history: LeaseHistory,
        leadership: LeaderProof,
        plans_at_once: int = PLANS_AT_ONCE,
        fragments: int = FRAGMENTS,
        fresh_part: int = FRESH_PART,
        *,
        others: bool = False,
    ) -> None:
        self.seal = seal
        self.timing = timing
        self.history = history
        self.leadership = leadership
        self.plans_at_once = plans_at_once
        self.fragments = fragments
        self.fresh_part = fresh_part
        self.calls = PolicyLines(timing.renew_ns)
        self.ledger: Ledger[AnyRecord, ManagerAction] = Ledger(
            Mandate(seal.journal, seal.leadership), history.lsn
        )
        self.others = others
        """Whether there are other managers to ask in which journal they lead."""
        self.policies: Collection[str] = ()
        """The policies from outside that may be chosen."""
        self.is_withheld = False
        """Whether nothing may be granted, since another journal may have a living leader (P25)."""
        self.inherited_until = Instant(0)
        self.took_over_at = Instant(0)
        self.repeat_at = FAR_FUTURE
        """When to repeat the append whose fate is unknown: not at once, since a full disk stays
        full.
        """
        self._actions: list[ManagerAction] = []
        self.last_receipt = b""
        """The receipt that this leader told last, of the history up to here."""
        self._receipt_lsn = -1
        self.cause = ""
        """The cause of the story that is being told: decisions made now follow from it."""
        self._stories = 0

    @property
    def may_grant(self) -> bool:
        """Whether ranges may be granted (P22, P25)."""
        return self.history.waited_out and not self.is_withheld

    # --- causes ---

    def begin(self) -> str:
        """Begin a story: the cause of what follows."""
        self._stories += 1
        self.cause = f"{self.seal.leadership}.{self._stories}"
        return self.cause

    def story(self) -> str:
        """The cause of what is decided now; a story begins here if none has begun before."""
        return self.cause or self.begin()

    # --- receipts ---

    def receipt(self) -> bytes:
        """A proof for a later leader that the history goes as far as now (P22)."""
        lsn, secret = self.history.lsn, self.history.secret
        if self._receipt_lsn != lsn:
            mine = Receipt(self.seal.leadership, self.seal.nonce, lsn)
            self._receipt_lsn, self.last_receipt = lsn, sealed(mine, self.seal.journal, secret)
        return self.last_receipt

    def opened(self, receipt: bytes) -> Receipt | None:
        """The receipt that a client showed, if a leader of this journal made it."""
        return opened(receipt, self.seal.journal, self.history.secret)

    # --- asking again ---

    def again_ns(self, now: Instant, period_ns: int) -> int:
        """How long after its question a client that is answered now is to ask again: within a
        period, and at an instant at which others ask too.
        """
        bunch_ns = self.timing.bunch_ns
        return (now + period_ns) // bunch_ns * bunch_ns - now

    # --- records and messages ---

    def write(self, record: AnyRecord) -> int:
        """Decide `record`, which holds from here on and is on its way to the journal; return its
        LSN.
        """
        # Decided now, said once it is durable: until then nothing that depends on it leaves (P18).
        self.history.apply(record)
        return self.ledger.write(record)

    def send(self, connection: Connection | None, message: FromManager) -> None:
        """Send `message` to one client, once all that is decided is durable."""
        if connection is not None:
            self.say(TellClient(connection, message))

    def refuse(
        self,
        connection: Connection,
        message: Join | LeaseRequest,
        reason: RefusalReason,
        detail: str,
        retry_after_ns: int = 0,
    ) -> None:
        """Refuse `message`, and tell observers."""
        self.note(REFUSED[reason], message.pool, f"{_who(message)}: {detail}")
        refusal = Refusal(
            owner_nonce=message.owner_nonce,
            sequence=message.sequence,
            manager_nonce=self.seal.nonce,
            journal=self.seal.journal,
            leadership=self.seal.leadership,
            reason=reason,
            detail=detail[:TEXT_CHARACTERS],
            retry_after_ns=retry_after_ns,
        )
        self.send(connection, refusal)

    def push(self, connections: tuple[Connection, ...], message: FromManager) -> None:
        """Send `message` to many clients, once all that is decided is durable."""
        if connections:
            self.say(TellClients(connections, message))

    def reply(self, ticket: Ticket, answer: Answer) -> None:
        """Answer a question, once all that is decided is durable."""
        self.say(AnswerQuestion(ticket, answer))

    def ask_policy(self, now: Instant, work: Planning) -> None:
        """Ask a policy beside the machine; this waits for nothing."""
        self.calls.on_asked(now, work)
        self._actions.append(MakePlan(work))

    def look_around(self, now: Instant) -> None:
        """Ask the other managers; this waits for nothing."""
        self._actions.append(LookAround(now))

    def give_up(self, why: str) -> None:
        """End the process."""
        self._actions.append(GiveUp(why))

    def secret_of(self, order: HandOff, source: int) -> int:
        """The secret of an order to `source`; empty if the journal has no secret."""
        return order_secret(order, source, self.seal.journal, self.history.secret)

    def note(self, kind: NotedKind, pool: str = "", detail: str = "") -> None:
        """Tell observers; this waits for nothing."""
        self._actions.append(Noted(kind, pool, detail, self.cause))

    def say(self, action: ManagerAction) -> None:
        """Send something, once all that is decided is durable."""
        # Another may lead by now: what this one said would be believed beside it (P19).
        if not self.leadership.is_proven:
            return
        # Also what does not depend on it: the order of messages is that of decisions (P18).
        if self.ledger.unsettled:
            self.ledger.hold_back(action)
        else:
            self._actions.append(action)

    def on_appended(self, now: Instant, result: Committed | Deposed | Unknown) -> None:
        """Release what the append made durable, or repeat the append later if its fate is unknown.

        While the leadership is not proven, messages are dropped instead: owners and lookups ask
        again, and the answer says what holds by then.
        """
        match result:
            case Committed(lsn=lsn):
                self.repeat_at = FAR_FUTURE
                released = self.ledger.on_committed(lsn)
                if self.leadership.is_proven:
                    self._actions.extend(released)
            case Unknown():
                self.repeat_at = Instant(now + self.timing.beat_ns)
            case Deposed():
                msg = "a deposed leader is thrown away by its manager"
                raise AssertionError(msg)

    def advance(self, now: Instant) -> None:
        """Repeat an append if it is time."""
        if now >= self.repeat_at:
            self.repeat_at = FAR_FUTURE
            self._actions.append(self.ledger.repeated_append())

    def take_actions(self) -> list[ManagerAction]:
        """Everything that was said and decided since the last call, the next append included."""
        if self.ledger.unsettled and (append := self.ledger.next_append()) is not None:
            self._actions.append(append)
        actions, self._actions = self._actions, []
        return actions


def _who(message: Join | LeaseRequest) -> str:
    """An owner, as the log names it."""
    if isinstance(message, Join):
        return shown(message.name)
    return f"incarnation {message.incarnation}"
