"""The leader: the pools of a leading manager, and the checks of those who speak to them.

A leader is made when a manager has won the leadership and read the journal, and thrown away when
the manager is deposed; so nothing that a manager believed in its first leadership survives into its
second.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.names import wrong_with_name
from tenure.base.ranges import LOWEST
from tenure.protocol.balance.planning import Planned, Planning, PlanningFailed
from tenure.protocol.lease.answers import (
    Answer,
    CommandFailed,
    Connection,
    Impossible,
    JournalDecided,
    NotLeading,
    PoolDeleted,
    PoolMade,
    QuestionFailed,
    Steered,
)
from tenure.protocol.lease.leader import questions
from tenure.protocol.lease.leader.claims import NEVER
from tenure.protocol.lease.leader.clusters import LeaderClusters
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.events import (
    AnswerQuestion,
    CreatePool,
    DeletePool,
    FromOutside,
    NodeSaid,
    OthersSeen,
    PlanMade,
    Question,
    QuestionAsked,
    Resolve,
)
from tenure.protocol.lease.leader.explaining import planning_to_read, read_plan
from tenure.protocol.lease.leader.first_start import FirstStart
from tenure.protocol.lease.leader.introductions import introduction
from tenure.protocol.lease.leader.noted import LeaderKind, place_of
from tenure.protocol.lease.leader.policies import PolicyMaker
from tenure.protocol.lease.leader.pool import MAX_RETRY_NS, Pool
from tenure.protocol.lease.leader.pool_commands import (
    FULL,
    instead_of_creating,
    record_for,
    why_not_deleted,
    wrong_name,
)
from tenure.protocol.lease.leader.receipts import Receipt
from tenure.protocol.lease.leader.rivals import Rivals
from tenure.protocol.lease.leader.steering import planning_to_steer, steer
from tenure.protocol.lease.leader.witnesses import Witnesses
from tenure.protocol.lease.limits import POOLS_PER_MANAGER
from tenure.protocol.lease.messages import (
    TEXT_CHARACTERS,
    Attested,
    Entry,
    Hello,
    Join,
    LeaseRequest,
    ShortRequest,
    Sync,
    SyncRefusal,
    ToManager,
)
from tenure.protocol.lease.records import Changed, PoolCreated, PromiseLowered, TookOver
from tenure.protocol.lease.steering_events import ReadPlan, Steer, SteeringCommand
from tenure.protocol.lease.table import FIRST_NUMBER, NOBODY, LeaseTable
from tenure.protocol.topology.leader import TopologyLeader
from tenure.protocol.topology.questions import ClusterCommand, ClusterQuestion

R = TypeVar("R")


class Leader:
    """The part of a manager that leads."""

    def __init__(
        self,
        now: Instant,
        context: LeaderContext,
        secret: bytes,
        manager: str,
        *,
        create_pools: bool,
        first_start: bool,
        make_policy: PolicyMaker,
        keeps_clusters: bool = True,
    ) -> None:
        self.context = context
        self.clusters = TopologyLeader(
            now, LeaderClusters(context), context.history.clusters, is_kept=keeps_clusters
        )
        self.create_pools = create_pools
        self.make_policy = make_policy
        history, timing = context.history, context.timing
        inherited_ns = history.promise_ns
        self.promise_ns = timing.hold_ns + timing.on_any_clock(timing.leadership_ns)
        self.took_over_lsn = context.write(
            TookOver(
                leadership=context.seal.leadership,
                promise_ns=self.promise_ns,
                manager=manager,
                secret=secret,
            )
        )
        # Until then somebody may still believe what a predecessor has promised (P19).
        context.inherited_until = Instant(now + inherited_ns)
        context.took_over_at = now
        self.first_start = FirstStart(now, context, is_said=first_start)
        self.rivals = Rivals(now, context, self.first_start)
        self._lower_at = FAR_FUTURE
        if inherited_ns > self.promise_ns:
            self._lower_at = context.inherited_until
        self._asked: dict[Planning, list[QuestionAsked]] = {}
        """Questions that wait for the answer of a policy: several, if they only read one plan."""
        self.pools = {
            name: self._pool(table)
            for name, table in history.tables.items()
            if not table.is_deleted
        }
        self.witnesses = Witnesses(now, context, self.pools)

    def _pool(self, table: LeaseTable) -> Pool:
        policy = self.make_policy(table, table.steering.policy)
        return Pool(self.context, table, policy)

    # --- messages ---

    def on_message(self, now: Instant, connection: Connection, message: ToManager) -> None:
        """Answer a client."""
        self.context.cause = ""
        if not self.context.history.waited_out:
            self.first_start.hear(now, message)
        if isinstance(message, Hello | Sync) and message.rival is not None:
            self.rivals.hear_of(now, message.rival)
        match message:
            case ShortRequest() | LeaseRequest() | Join():
                self._on_request(now, connection, message)
            case Hello():
                self._introduce(connection, message)
            case Sync():
                self._on_sync(now, connection, message)
            case Attested():
                self.witnesses.on_attested(now, connection, message)

    def on_node(self, now: Instant, said: NodeSaid) -> None:
        """Answer a node of a cluster."""
        self.context.cause = ""
        self.clusters.on_request(now, said.connection, said.message, said.token)

    def _on_request(
        self, now: Instant, connection: Connection, message: Join | LeaseRequest | ShortRequest
    ) -> None:
        # It was made for another leadership, perhaps of this very manager (P2, P9).
        if message.manager_nonce != self.context.seal.nonce:
            self._introduce(connection, message)
            return
        pool = self.pools.get(message.pool)
        if (
            isinstance(message, LeaseRequest)
            and message.rival
            and pool
            and pool.sessions.of(message)
        ):
            self.rivals.on_told(now, message.pool, message.rival)
        if self.rivals.stops(message.pool):
            return  # what its owner holds may have been granted twice, and has to run out (P25)
        if isinstance(message, ShortRequest):
            if pool is None or not pool.on_short_request(now, connection, message):
                self._introduce(connection, message)  # it asks again, in full
            return
        if isinstance(message, LeaseRequest):
            if pool is None:
                self.context.refuse(connection, message, "past", NEVER, MAX_RETRY_NS)
            else:
                pool.on_request(now, connection, message)
            return
        pool = pool or self._pool_for(connection, message)
        if pool is None:
            return
        if message.kind not in (None, pool.table.kind):
            detail = (
                f"the pool {message.pool!r} is {pool.table.kind}, not {message.kind}; "
                f"ask for kind={pool.table.kind!r}, or name another pool"
            )
            self.context.refuse(connection, message, "pool_kind", detail, MAX_RETRY_NS)
            return
        pool.on_join(now, connection, message)
        self.witnesses.on_joined(now, connection, pool, message)

    def _pool_for(self, connection: Connection, message: Join) -> Pool | None:
        """A new pool for its first owner, if that is allowed."""
        is_wrong = wrong_with_name(message.pool) is not None
        is_full = len(self.pools) >= POOLS_PER_MANAGER
        if message.kind is None or not self.create_pools or is_wrong or is_full:
            detail = FULL if is_full else self._no_pool(message.pool)
            self.context.refuse(connection, message, "no_pool", detail, MAX_RETRY_NS)
            return None
        return self._create(PoolCreated(pool=message.pool, kind=message.kind))

    def _no_pool(self, pool: str) -> str:
        return wrong_name(pool) or (
            # Without the names of those that exist: a client may read of its own pool only.
            f"{questions.no_pool(self.pools, pool).why} (`tenure pool list` shows those that "
            f"exist). Create it with `tenure pool create {pool} --kind hashed`, or start the "
            "manager with --create-pools so that a pool's first owner does"
        )

    def _create(self, record: PoolCreated) -> Pool:
        self.context.write(record)
        table = self.context.history.tables[record.pool]
        if table.next_number > FIRST_NUMBER + 1:
            self._lay_anew(record.pool)  # older managers read only from entries that numbers go on
        self.context.note(LeaderKind.POOL_CREATED, record.pool, record.kind)
        pool = self.pools[record.pool] = self._pool(table)
        return pool

    def _lay_anew(self, pool: str, *, deleted: bool = False) -> None:
        number = self.context.history.tables[pool].next_number
        entry = Entry(start=LOWEST, end=None, owner=NOBODY, number=number, since=number)
        self.context.write(Changed(pool=pool, entries=(entry,), deleted=deleted))

    def _introduce(
        self, connection: Connection, message: Hello | Join | LeaseRequest | ShortRequest
    ) -> None:
        answer = introduction(self.context)
        if isinstance(message, Hello):
            answer = replace(answer, token=message.token)
        else:
            answer = replace(answer, owner_nonce=message.owner_nonce, sequence=message.sequence)
        self.context.send(connection, answer)

    def _on_sync(self, now: Instant, connection: Connection, message: Sync) -> None:
        pool = self.pools.get(message.pool)
        if pool is None:
            detail = self._no_pool(message.pool)[:TEXT_CHARACTERS]
            refusal = SyncRefusal(sequence=message.sequence, nonce=message.nonce, detail=detail)
            self.context.send(connection, refusal)
            return
        seal = self.context.seal
        claimed = Receipt(message.leadership, seal.nonce, message.lsn)
        is_beyond = message.lsn > self.context.history.lsn or self.is_missing(claimed)
        if message.journal == seal.journal and is_beyond:
            # No leader told it so. An honest lookup never goes back, so it would not take this.
            self.context.note(LeaderKind.REFUSED_CLAIM, message.pool)
            return
        pool.publisher.on_sync(now, connection, message)

    def has_gone_back(self, message: ToManager) -> bool:
        """Whether the peer shows a receipt of more than this journal's history holds (P22)."""
        if isinstance(message, Join | Attested):
            return False
        if message.receipt and message.receipt == self.context.last_receipt:
            return False  # mostly it shows what this very leader told it last
        shown = self.context.opened(message.receipt)
        return shown is not None and self.is_missing(shown)

    def is_missing(self, shown: Receipt) -> bool:
        """Whether a leader of this journal saw what the journal lacks: a later leadership, another
        leader under this very number, or an earlier one that got further than this one began.
        """
        seal = self.context.seal
        if shown.leadership == seal.leadership:
            return shown.nonce != seal.nonce  # drawn once for each leadership (P2)
        return shown.leadership > seal.leadership or shown.lsn >= self.took_over_lsn

    def on_disconnected(self, now: Instant, connection: Connection) -> None:
        """Stop pushing there. Leases stay, since a closed socket proves nothing (P14)."""
        self.context.cause = ""
        self.witnesses.on_disconnected(now, connection)
        for pool in self.pools.values():
            pool.on_disconnected(connection)
        self.clusters.on_lost(connection)

    # --- questions ---

    def on_asked(self, now: Instant, asked: QuestionAsked) -> None:
        """Answer over the JSON API, once everything that the answer depends on is durable."""
        self.context.cause = ""
        question = asked.question
        if isinstance(question, CreatePool):
            self.context.reply(asked.ticket, self._create_asked(question))
        elif isinstance(question, DeletePool):
            self._reply_by(asked, lambda: self._delete_asked(now, question))
        elif isinstance(question, Resolve):
            self._reply_by(asked, lambda: self._resolve(now, question))
        elif isinstance(question, Steer | ReadPlan):
            self._ask_policy(now, asked, question)
        elif isinstance(question, ClusterQuestion):
            self._reply_by(asked, lambda: self.clusters.answer(now, question))
        else:
            self._reply_by(asked, lambda: questions.answer(now, self.pools, question))

    def _reply_by(self, asked: QuestionAsked, read: Callable[[], Answer]) -> None:
        self.context.reply(asked.ticket, self._read(asked, read))

    def _read(self, asked: QuestionAsked, read: Callable[[], R]) -> R | QuestionFailed:
        """The result of `read`. Questions and dry runs change nothing, wherever they fail.

        So a bug there costs the answer, and not the leader: otherwise a client that asks again and
        again would end each manager in turn. Commands that change something, and a state that
        contradicts itself, raise all the same: see `LeaderBroke`.
        """
        try:
            return read()
        except Exception as error:
            if isinstance(error, AssertionError) or _changes(asked.question):
                raise
            why = f"{type(asked.question).__name__}: {type(error).__name__}: {error}"
            self.context.note(LeaderKind.QUESTION_FAILED, detail=f"{why}, {place_of(error)}")
            return QuestionFailed(why)

    def _ask_policy(
        self, now: Instant, asked: QuestionAsked, question: SteeringCommand | ReadPlan
    ) -> None:
        pool = self.pools.get(question.pool)
        if pool is None:
            self.context.reply(asked.ticket, questions.no_pool(self.pools, question.pool))
            return
        work: Planning | Steered | Impossible | QuestionFailed
        if isinstance(question, ReadPlan):
            # There is one thread for policies, and whoever may read a pool may ask without end.
            for under_way, those in self._asked.items():
                if isinstance(those[0].question, ReadPlan) and under_way.pool == question.pool:
                    those.append(asked)
                    return
            work = self._read(asked, lambda: planning_to_read(now, pool))
        else:
            make = self.make_policy
            work = self._read(asked, lambda: planning_to_steer(now, pool, question, make))
        if not isinstance(work, Planning):
            self.context.reply(asked.ticket, work)
        elif pool.planner.is_done_at_once(work):
            self._answer_with(now, asked, work, work.carry_out())
        elif self.context.calls.of(work).can_ask:
            self._asked[work] = [asked]
            self.context.ask_policy(now, work)
        else:
            why_not = self.context.calls.of(work).why_not(work.pool)
            self._answer_with(now, asked, work, PlanningFailed(why_not, hangs=True))

    def given_up(self, event: FromOutside, why: str) -> Iterator[AnswerQuestion]:
        """The answers to all who wait, after `event` has broken this leader."""
        failed = event.work if isinstance(event, PlanMade) else None
        if isinstance(event, QuestionAsked):
            yield AnswerQuestion(event.ticket, CommandFailed(why))
        for work, those in self._asked.items():
            answer = CommandFailed(why) if work is failed else NotLeading(None)
            yield from (AnswerQuestion(each.ticket, answer) for each in those)

    def on_plan_made(self, now: Instant, event: PlanMade) -> None:
        """Take the plan that a policy has made, for a pool or for an operator's question."""
        self.context.cause = ""
        calls = self.context.calls.of(event.work)
        could_ask = calls.can_ask
        if self.context.calls.on_made(now, event.work):
            self._on_plan(now, event.work, event.made)
        elif not could_ask and calls.can_ask:
            self.context.note(LeaderKind.POLICY_RETURNED, event.work.pool, event.work.called)
            for pool in self.pools.values():
                if pool.planner.trouble:
                    pool.planner.by(now)

    def _on_plan(self, now: Instant, work: Planning, made: Planned | PlanningFailed) -> None:
        pool = self.pools.get(work.pool)
        if pool is None or pool.planner.on_made(now, work, made):
            return
        for each in self._asked.get(work, ()):  # or this manager asked for it when it led before
            self._answer_with(now, each, work, made)
        self._asked.pop(work, None)

    def _answer_with(
        self, now: Instant, asked: QuestionAsked, work: Planning, made: Planned | PlanningFailed
    ) -> None:
        pool, question = self.pools[work.pool], asked.question
        if isinstance(question, ReadPlan):
            self._reply_by(asked, lambda: read_plan(pool, made))
            return
        assert isinstance(question, Steer)
        answer = self._read(asked, lambda: steer(now, pool, question, work, made))
        if answer is None:  # another operator has steered meanwhile
            self._ask_policy(now, asked, question)
        else:
            self.context.reply(asked.ticket, answer)

    def _create_asked(self, question: CreatePool) -> PoolMade | Impossible:
        answer = instead_of_creating(self.pools, question)
        if answer is None:
            self._create(record_for(question))
            answer = PoolMade(question.pool, question.kind, created=True)
        return answer

    def _delete_asked(self, now: Instant, question: DeletePool) -> PoolDeleted | Impossible:
        name = question.pool
        pool = self.pools.get(name)
        if pool is None:
            return questions.no_pool(self.pools, name)
        if why_not := why_not_deleted(now, name, pool):
            return why_not
        if not question.dry_run:
            self._lay_anew(name, deleted=True)
            del self.pools[name]
            for work in [work for work in self._asked if work.pool == name]:
                for each in self._asked.pop(work):
                    self.context.reply(each.ticket, questions.no_pool(self.pools, name))
            self.context.note(LeaderKind.POOL_DELETED, name)
        return PoolDeleted(name, question.dry_run)

    def _resolve(self, now: Instant, question: Resolve) -> JournalDecided | Impossible:
        answer = self.rivals.resolve(now, question)
        self._offer_if(begins=self.rivals.advance(now))
        return answer

    # --- time ---

    def advance(self, now: Instant) -> None:
        """Do what is due."""
        self.context.advance(now)
        for work in self.context.calls.give_up(now):
            self.context.cause = ""
            why_not = self.context.calls.of(work).why_not(work.pool)
            self._on_plan(now, work, PlanningFailed(why_not, hangs=True))
        begins = self.rivals.advance(now)
        self._offer_if(begins=self.first_start.advance(now) or begins)
        if now >= self._lower_at:
            self._lower_at = FAR_FUTURE
            self.context.write(PromiseLowered(promise_ns=self.promise_ns))
        for pool in self.pools.values():
            self.context.cause = ""
            pool.advance(now)
        self.context.cause = ""
        self.witnesses.advance(now)
        if self.clusters.led:  # a manager that leads no cluster has no upkeep for any
            self.clusters.advance(now)

    def on_seen(self, now: Instant, event: OthersSeen) -> None:
        """The other managers have answered."""
        self.context.cause = ""
        self._offer_if(begins=self.rivals.on_seen(now, event.asked_at, event.seen))

    def _offer_if(self, *, begins: bool) -> None:
        """Offer everything where granting begins."""
        for pool in self.pools.values() if begins and self.context.may_grant else ():
            pool.offer_all()

    @property
    def wake_at(self) -> Instant:
        """When the next thing is due."""
        wake_at = min(
            self.context.repeat_at,
            self.context.calls.gives_up_at,
            self.first_start.grants_at,
            self.rivals.wake_at,
            self._lower_at,
            self.witnesses.wake_at,
            self.clusters.wake_at if self.clusters.led else FAR_FUTURE,
        )
        for pool in self.pools.values():
            wake_at = min(wake_at, pool.wake_at)
        return wake_at

    @property
    def troubles(self) -> dict[str, str]:
        """The reasons why some pools are not planned by their policies."""
        planners = {name: pool.planner for name, pool in self.pools.items()}
        return {name: planner.trouble for name, planner in planners.items() if planner.trouble}

    @property
    def grants_at(self) -> Instant:
        """When ranges may be granted; far in the past, or 0, if they may be granted now."""
        return Instant(0) if self.context.history.waited_out else self.first_start.grants_at

    def invariants(self) -> None:
        """The invariants of all parts hold."""
        self.context.history.invariants()
        self.context.ledger.invariants()
        for pool in self.pools.values():
            pool.invariants()


def _changes(question: Question) -> bool:
    is_command = isinstance(question, CreatePool | DeletePool | Resolve | Steer | ClusterCommand)
    return is_command and not getattr(question, "dry_run", False)
