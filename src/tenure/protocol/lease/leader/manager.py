"""The manager machine: standing by, taking over, leading, being deposed.

It combines the leadership (which manager leads) with the leader (the work of the one that leads).
To take over, it wins the seat, so that no predecessor can append any longer; reads what was
appended since it last looked as a standby; records that it has taken over; and only then answers
anybody (P19). The nonce is drawn anew at each takeover (P2).
"""

from collections.abc import Callable, Mapping
from random import Random

import msgspec

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.machine import Output
from tenure.base.noted import Noted
from tenure.protocol.balance.policy import Policy
from tenure.protocol.lease.answers import Connection, NotLeading
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.context import (
    FRAGMENTS,
    FRESH_PART,
    PLANS_AT_ONCE,
    LeaderContext,
    Seal,
)
from tenure.protocol.lease.leader.events import (
    AnswerQuestion,
    ClientLost,
    ClientSaid,
    FromOutside,
    GiveUp,
    LeaderBroke,
    ManagerAction,
    ManagerEvent,
    NodeSaid,
    OthersSeen,
    PlanMade,
    QuestionAsked,
    StopRequested,
    TellClient,
    TellNodes,
)
from tenure.protocol.lease.leader.leader import Leader
from tenure.protocol.lease.leader.noted import place_of
from tenure.protocol.lease.leader.policies import PolicyMaker, chosen_policy, with_outside
from tenure.protocol.lease.leader.receipts import SECRET_BYTES
from tenure.protocol.lease.leader.view import NO_RIVALS, JournalPast, ManagerRole, ManagerView
from tenure.protocol.lease.messages import Hello, Standby, Sync, ToManager
from tenure.protocol.lease.records import AnyRecord, PromiseLowered, State
from tenure.protocol.lease.table import LeaseTable
from tenure.protocol.lease.timing import Timing
from tenure.protocol.log.compaction import Compaction
from tenure.protocol.log.follower import Follower
from tenure.protocol.log.journal import (
    Appended,
    Beaten,
    Campaigned,
    Compact,
    Deposed,
    Followed,
    JournalFailed,
    Load,
    Loaded,
    SeatRead,
)
from tenure.protocol.log.journal_health import JournalHealth
from tenure.protocol.log.leadership import Leadership
from tenure.protocol.log.noted import LogKind

NONCE_LIMIT = 1 << 63
DEFAULT_COMPACT_AFTER = 10_000
"""The number of records after which the journal is compacted: about a second of reading at a
takeover.
"""
COMPACT_AFTER_BYTES = 64 << 20
"""The bytes of records after which it is compacted, too: a join may have a hundred KiB."""

GONE_BACK = GiveUp(
    "the journal has gone back: this manager, owners or lookups have seen later leaderships or "
    "changes than it holds, so it is an old copy. Going on would give keys to two owners. Stop "
    "every manager of it; then put the present journal back, or go on from the copy with "
    "`tenure restore`, or start with a new one"
)


def wrong_realm(ours: str, journals: str) -> str:
    """The reason why a manager of one realm does not lead in the journal of another."""
    return (
        f"the journal is of the realm {journals!r}, and this manager was started with --realm "
        f"{ours}: name the journal of its own realm, or leave --realm out"
    )


def told_of_failure(event: ManagerEvent, error: Exception) -> LeaderBroke | None:
    """The event for a machine that raised at `event`; None if the process must end.

    It must end if its state contradicts itself, or if the event did not come from outside.
    """
    if isinstance(error, AssertionError) or not isinstance(event, FromOutside):
        return None
    asked = event.question if isinstance(event, QuestionAsked) else event
    why = f"{type(asked).__name__}: {type(error).__name__}: {error}"
    return LeaderBroke(event, why, place_of(error))


class ManagerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a manager machine."""

    url: str
    """The URL at which clients and other managers find it."""
    timing: Timing
    create_pools: bool = True
    """Whether a pool's first owner creates it."""
    compact_after: int = DEFAULT_COMPACT_AFTER
    compact_after_bytes: int = COMPACT_AFTER_BYTES
    plans_at_once: int | None = None
    """The largest pool, in ranges, that is planned within the machine. None stands for
    PLANS_AT_ONCE for our own policies, which return, and for 0 for any other."""
    fragments: int = FRAGMENTS
    """How many entries may be joinable with a neighbour before any is renumbered."""
    fresh_part: int = FRESH_PART
    """Lookups are given a whole table that was made before until this part of it has changed."""
    keeps_clusters: bool = True
    """Whether the journal outlives the manager, so that clusters can be kept in it."""
    others: bool = False
    """Whether there are other managers to ask whether they lead, and in which journal (P25)."""
    realm: str = ""
    """The name of the fleet of managers, kept in its journal; empty for whatever that says."""
    policies: Mapping[str, Callable[[LeaseTable], Policy]] = {}
    """The policies from outside that may be chosen, by name."""
    first_start: bool = False
    """The operator's word that no earlier manager has promised anything to these owners: then the
    leader of a new journal need not wait until old promises are over (P22). A restored journal is
    not new."""


def _past_of(history: LeaseHistory) -> JournalPast:
    if history.older:
        return "another journal"
    return "restored" if history.has_granted else "unknown"


class Manager:
    """The machine of one manager process."""

    def __init__(
        self, config: ManagerConfig, random: Random, make_policy: PolicyMaker = chosen_policy
    ) -> None:
        self.config = config
        self.timing = config.timing
        self.random = random
        self.make_policy = with_outside(config.policies, make_policy)
        by_itself = PLANS_AT_ONCE if make_policy is chosen_policy else 0
        said = config.plans_at_once
        self._plans_at_once = by_itself if said is None else said
        self.leadership = Leadership(config.url, config.timing)
        self.follower: Follower[AnyRecord, State, LeaseHistory] = Follower(LeaseHistory)
        self.leader: Leader | None = None
        self._leader_wakes_at = FAR_FUTURE
        """The leader's wake-up after the last step: nothing happens to a leader between two steps.
        """
        self._actions: list[ManagerAction] = []
        self._load_failed = False
        """Whether the journal could not be read after a campaign was won: it is tried at the next
        beat.
        """
        self.compaction: Compaction[State] = Compaction(
            config.compact_after, config.compact_after_bytes
        )
        self._journal_health = JournalHealth()
        self._is_silent = False
        """Whether the log says that this leader does not answer."""
        self._is_taking = False
        """Whether everything due is done, and the step is about the event itself."""
        self._connections: dict[Connection, None] = {}
        self._unanswered: dict[Connection, Hello | Sync] = {}
        """The last question of each client that this manager could not answer, because it does not
        lead. It is answered when the manager leads; otherwise clients would hear of that one pause
        of their search later. Only questions that change nothing are kept; a client that has asked
        again does not take the answer."""

    # --- the machine ---

    def handle(self, now: Instant, event: ManagerEvent) -> Output[ManagerAction]:
        """Do what is due at `now`, then take `event`."""
        if isinstance(event, LeaderBroke):
            self._start_over(event)
            return self._output(now)
        self._is_taking = False
        self._advance(now)
        self._is_taking = True
        match event:
            case ClientSaid(connection=connection, message=message):
                self._on_received(now, connection, message)
            case NodeSaid():
                self._on_node(now, event)
            case ClientLost(connection=connection):
                self._connections.pop(connection, None)
                self._unanswered.pop(connection, None)
                if self.leader:
                    self.leader.on_disconnected(now, connection)
            case QuestionAsked():
                self._on_asked(now, event)
            case PlanMade():
                if self.leader:
                    self.leader.on_plan_made(now, event)
            case OthersSeen():
                if self.leader and self.leadership.is_proven:
                    self.leader.on_seen(now, event)
            case StopRequested():
                self._actions.extend(self.leadership.resign())
                self._step_down(LogKind.RESIGNED)
            case _:
                self._actions.extend(self._journal_health.hear(event))
                self._on_journal(now, event)
        return self._output(now)

    def advance(self, now: Instant) -> Output[ManagerAction]:
        """Do what is due at `now`."""
        self._advance(now)
        return self._output(now)

    def _advance(self, now: Instant) -> None:
        self._actions.extend(self.leadership.advance(now))
        if self.leader and now >= self._leader_wakes_at:
            self.leader.advance(now)

    def _output(self, now: Instant) -> Output[ManagerAction]:
        wake_at = self.leadership.wake_at
        if self.leader:
            self._actions.extend(self.leader.context.take_actions())
            self._leader_wakes_at = self.leader.wake_at
            wake_at = min(wake_at, self._leader_wakes_at)
        actions, self._actions = self._actions, []
        return Output(actions, max(wake_at, now))

    # --- clients ---

    def _on_received(self, now: Instant, connection: Connection, message: ToManager) -> None:
        self._connections[connection] = None
        if self.leader is None or self.leader.rivals.is_over:
            self._actions.append(TellClient(connection, self._standby()))
            if isinstance(message, Hello | Sync):
                self._unanswered[connection] = message
        elif not self.leadership.is_proven:
            if not self._is_silent:
                self._note(LogKind.SILENT)
            self._is_silent = True
        elif self.leader.has_gone_back(message):
            self.leadership.doubt(now)
            self._note(LogKind.DOUBTED)
        else:
            self._is_silent = False
            self.leader.on_message(now, connection, message)

    def _on_node(self, now: Instant, said: NodeSaid) -> None:
        self._connections[said.connection] = None
        if self.leader is None or self.leader.rivals.is_over:
            self._actions.append(TellNodes((said.connection,), self._standby()))
        elif self.leadership.is_proven:
            self.leader.on_node(now, said)

    def _standby(self) -> Standby:
        known = self.leadership.leader
        return Standby(leader=None if known == self.config.url else known)

    def _on_asked(self, now: Instant, asked: QuestionAsked) -> None:
        if self.leader and self.leadership.is_proven:
            self.leader.on_asked(now, asked)
        else:
            leader = self.leadership.leader
            known = None if leader == self.config.url else leader
            self._actions.append(AnswerQuestion(asked.ticket, NotLeading(known)))

    # --- the journal's answers ---

    def _on_journal(self, now: Instant, event: ManagerEvent) -> None:
        match event:
            case SeatRead(seat=seat) if self.leadership.has_gone_back(seat):
                self._actions.append(GONE_BACK)
            case SeatRead():
                self._actions.extend(self.leadership.on_seat_read(now, event))
                if self.leadership.phase == "standby":
                    self._actions.extend(self.follower.look())
            case Campaigned():
                if self.leadership.on_campaigned(event):
                    self._load_failed = False
                    self._note(LogKind.WON, str(event.leadership))
                    self._actions.append(self.follower.read(event.leadership))
            case Beaten():
                self._on_beaten(event)
            case Loaded() | Followed():
                self._on_read(now, event)
            case Appended():
                self._on_appended(now, event)
            case JournalFailed(action=Load() as load):
                if self.follower.on_failed(load):
                    self._load_failed = self._is_current(load.leadership)
            case JournalFailed():
                self.leadership.on_failed(event)

    def _on_beaten(self, event: Beaten) -> None:
        if self._load_failed and self._is_current(event.leadership):
            self._load_failed = False
            self._actions.append(self.follower.read(event.leadership))
        if not self.leadership.on_beaten(event):
            self._step_down(LogKind.DEPOSED)
        elif self.leadership.has_gone_back_since:
            # Either another manager leads, in which case this beat would have said so; or the
            # journal went back, and continuing would forget what was acknowledged (S4).
            self._actions.append(GONE_BACK)

    def _is_current(self, leadership: int) -> bool:
        mine = self.leadership
        return mine.phase == "leading" and mine.leadership == leadership

    def _on_read(self, now: Instant, event: Loaded[AnyRecord, State] | Followed[AnyRecord]) -> None:
        if self.follower.has_gone_back(event):
            self._actions.append(GONE_BACK)
        elif self.follower.on_read(event) and self._is_current(event.leadership):
            if event.journal == self.leadership.mandate.journal:
                self._lead(now, event)
            else:  # it was won in the journal that was there before
                self.leadership.become_standby()

    def _lead(self, now: Instant, event: Loaded[AnyRecord, State] | Followed[AnyRecord]) -> None:
        assert self.leader is None
        history = self.follower.take()
        self.compaction.begin(self.follower.snapshot_lsn)
        nonce = self.random.randrange(1, NONCE_LIMIT)  # for this leadership alone (P2)
        seal = Seal(event.journal, event.leadership, nonce)
        secret = history.secret or self.random.randbytes(SECRET_BYTES)
        realm = self.config.realm
        if realm and history.realm not in ("", realm):
            self._actions.append(GiveUp(wrong_realm(realm, history.realm)))
            return
        self.leader = Leader(
            now,
            LeaderContext(
                seal,
                self.timing,
                history,
                self.leadership,
                self._plans_at_once,
                self.config.fragments,
                self.config.fresh_part,
                others=self.config.others,
            ),
            secret,
            self.config.url,
            create_pools=self.config.create_pools,
            first_start=self.config.first_start,
            make_policy=self.make_policy,
            keeps_clusters=self.config.keeps_clusters,
        )
        self.leader.context.policies = self.config.policies
        if realm and not history.realm:
            named = PromiseLowered(promise_ns=history.promise_ns, realm=realm)
            self.leader.context.write(named)
        self._note(LogKind.LEADING, f"leadership {event.leadership}, LSN {history.lsn}")
        unanswered, self._unanswered = self._unanswered, {}
        for connection, message in unanswered.items():
            self._on_received(now, connection, message)

    def _on_appended(self, now: Instant, event: Appended) -> None:
        if self.leader is None or not self._is_current(event.leadership):
            return
        ledger = self.leader.context.ledger
        if event.after_lsn != ledger.committed or not ledger.is_appending:
            return
        if isinstance(event.result, Deposed):
            self.leadership.become_standby()
            self._step_down(LogKind.DEPOSED)
            return
        self.leader.context.on_appended(now, event.result)
        self._compact()

    def _compact(self) -> None:
        """Replace the records by their sum, if it is time and all of it is committed."""
        assert self.leader
        history, ledger = self.leader.context.history, self.leader.context.ledger
        self.compaction.take(history.lsn, history.bytes, history.state)
        replacing = self.compaction.durable(ledger.committed)
        if replacing is not None:
            self._actions.append(Compact(ledger.mandate, *replacing))

    def _step_down(self, why: LogKind, detail: str = "") -> None:
        """Forget everything that was decided and not committed, and tell clients to
        look elsewhere.
        """
        if self.leader is None:
            return
        self.leader = None
        self._note(why, detail)
        for connection in self._connections:
            self._actions.append(TellClient(connection, Standby(leader=None)))

    def _start_over(self, failed: LeaderBroke) -> None:
        """Throw the leader away, which may be half-changed, and stand by.

        No message or record of the step that failed has left. The next leader begins from the
        journal: that is this manager at once, if no other is quicker. To its clients it is as if it
        had died and come back, and their leases go on.
        """
        assert self._is_taking, "what only time brought would come again under each leader"
        assert self.leader
        answers = self.leader.given_up(failed.event, failed.why)
        self._actions.extend((*self.leadership.let_go(), *answers))
        self._step_down(LogKind.STARTED_OVER, f"{failed.why}, {failed.place}")

    def _note(self, kind: LogKind, detail: str = "") -> None:
        self._actions.append(Noted(kind, detail=detail))

    def view(self, now: Instant) -> ManagerView:
        """The manager as it is now."""
        mine, leader = self.leadership, self.leader
        role: ManagerRole = "stopped" if mine.phase == "resigned" else "standing by"
        if mine.phase == "leading":
            role = "leading" if leader else "taking over"
        known = None if mine.leader == self.config.url and role != "leading" else mine.leader
        grants_at = leader.grants_at if leader else FAR_FUTURE
        return ManagerView(
            url=self.config.url,
            role=role,
            is_proven=leader is not None and mine.is_proven_at(now),
            leader=known,
            leadership=mine.seat.leadership,
            beat=mine.seat.beat,
            lsn=leader.context.ledger.committed if leader else self.follower.lsn,
            grants_in_ns=max(grants_at - now, 0) if grants_at < FAR_FUTURE else 0,
            past=_past_of(leader.context.history) if leader else "unknown",
            is_listening=leader is not None and leader.first_start.is_listening,
            preset=self.timing.name,
            creates_pools=self.config.create_pools,
            pools={name: pool.table.kind for name, pool in leader.pools.items()} if leader else {},
            troubles=leader.troubles if leader else {},
            store_troubles=leader.clusters.troubles(now) if leader else {},
            journal=leader.context.seal.journal if leader else 0,
            rivals=leader.rivals.view() if leader else NO_RIVALS,
            history=leader.context.history if leader else None,
        )

    def invariants(self) -> None:
        """The invariants of all parts hold; only a manager that leads has a leader inside."""
        self.leadership.invariants()
        self.follower.invariants()
        if self.leader:
            assert self.leadership.phase == "leading"
            self.leader.invariants()
