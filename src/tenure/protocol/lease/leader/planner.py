"""The plan of one pool: when it is made, and how long it holds.

A pool of few ranges and owners is planned at once, within the step that made it necessary. The
policy of a larger one, and any policy that is not our own, is asked outside the machine
(`MakePlan`), on a copy, and its result is an event (`PlanMade`). Meanwhile the last plan holds, as
it does between any two rounds, so a late plan is no worse: the same grants, returns and hand-offs
would have happened since.

There are two exceptions. If an operator steers meanwhile, the plan is thrown away. If an owner
goes, nobody gets its part of the plan until the next one (`Moving`). An owner that comes is in the
next plan. So a pool whose owners come and go all the time is planned nevertheless.

A plan is compared with the table where it is made. If the table has changed since, the step that
adopts it looks at these changes only: the whole would take as long as a small plan does.

A policy that raises, or does not return, costs its pool its balance and nothing else: the pool goes
on by the simplest rule (`Staying`), and `trouble` says so to everybody who asks.
"""

from collections.abc import Iterator, Mapping, Sequence

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.balance.metrics import levels_of_all
from tenure.protocol.balance.planning import Planned, Planning, PlanningFailed
from tenure.protocol.balance.policy import (
    NOBODY,
    Candidate,
    Pin,
    Policy,
    Situation,
    after_failure,
    follows_load,
    is_outside,
)
from tenure.protocol.balance.staying import Staying
from tenure.protocol.balance.tuning import DEFAULT
from tenure.protocol.lease.causes import joined
from tenure.protocol.lease.leader.change_log import ChangeLog
from tenure.protocol.lease.leader.class_versions import without_behind
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.load_watch import LoadWatch
from tenure.protocol.lease.leader.move_log import MoveLog
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.policies import policy_name
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.records import Steering
from tenure.protocol.lease.table import LeaseTable

RANGES_EACH = DEFAULT.ranges
"""How many ranges a plan gives to each owner, about."""
CHANGES_COMPARED = 1_000
"""How many changes of the table a late plan is compared with in a step. If there are more, all
owners are poked: each asks a little earlier than it would have."""

MOST_DOUBLINGS = 4
"""How often the time doubles until a failing policy from outside is asked again: to 48 s, so that
one that takes all its time costs a twelfth of a processor."""


class Planner:
    """The leader's planning of one pool."""

    def __init__(
        self,
        context: LeaderContext,
        table: LeaseTable,
        policy: Policy,
        sessions: Mapping[int, Session],
        log: MoveLog,
        changed: ChangeLog,
    ) -> None:
        self.context = context
        self.table = table
        self.policy = policy
        self.sessions = sessions
        self.log = log
        self.changed = changed
        """What has changed in the table."""
        self.load_watch = LoadWatch(table, context.timing.renew_ns)
        self.plan: RangeMap[int] = table.owners()
        """The owner that each range should have."""
        self._by_owner: Mapping[int, Sequence[KeyRange]] = {}
        self._memory: object = None
        self._due = FAR_FUTURE
        self.wake_at = FAR_FUTURE
        """When to plan next; never while a plan is being made. The value is kept, because the
        leader looks at it after each message, and few messages change it."""
        self._cause = ""
        """The cause of the next plan, if it is something other than time."""
        self._under_way: Planning | None = None
        self._under_way_because = ""
        self.trouble = ""
        """The reason why the pool is not planned by its policy; empty if it is."""
        self._failed = 0
        """How often in a row the policy has failed."""

    # --- when ---

    def by(self, at: Instant) -> None:
        """Plan anew at that time, or earlier."""
        self._due = min(self._due, at)
        self._cause = joined(self._cause, self.context.cause)
        self.set_alarm()

    def soon(self, now: Instant) -> None:
        """Plan anew when others that arrive together with this one have arrived too (P12)."""
        self.by(Instant(now + self.context.timing.gather_ns))

    def advance(self, now: Instant) -> None:
        """Plan, if it is time."""
        if now >= self.wake_at:
            self.replan(now)

    def set_alarm(self) -> None:
        """Set the wake-up anew, after something on which it depends has changed."""
        self.wake_at = FAR_FUTURE if self._under_way else self._next()

    def _next(self) -> Instant:
        """When to plan next, because of the load or for another reason."""
        is_for_load = follows_load(self.policy) and not (self._failed and is_outside(self.policy))
        load_at = self.load_watch.at if is_for_load else FAR_FUTURE
        return min(self._due, load_at)

    # --- planning ---

    def situation(
        self, now: Instant, steering: Steering | None = None, gone: int = NOBODY
    ) -> Situation:
        """The situation to plan for; or as it would be with other steering, or without `gone`."""
        wanted = self.table.steering if steering is None else steering
        candidates, leavers = [], []
        for session in self.sessions.values():
            member = self.table.members[session.incarnation]
            cordoned = session.name in wanted.cordoned or session.stuck
            it = Candidate(
                session.incarnation,
                session.name,
                member.capacity,
                member.labels,
                cordoned,
                hands_over=member.hand_off is not None,
            )
            if session.leaving or session.incarnation == gone or session.name in wanted.drained:
                leavers.append(it)
            elif session.proven:
                candidates.append(it)
        return Situation(
            without_behind(candidates),
            self.table.rights,
            now,
            self.load_watch.loads(now),
            pins=[Pin(*pin) for pin in wanted.pins],
            frozen=wanted.frozen,
            memory=self._memory,
            leavers=leavers,
            kind=self.table.kind,
            split_points=self.table.split_points,
            levels=self.load_watch.levels(now),
        )

    def _labels(self) -> Sequence[Mapping[str, str]]:
        """The labels of those who may have ranges."""
        staying = (it.incarnation for it in self.sessions.values() if it.proven and not it.leaving)
        return [self.table.members[each].labels for each in staying]

    def planning(
        self,
        now: Instant,
        policy: Policy | None = None,
        steering: Steering | None = None,
        gone: int = NOBODY,
    ) -> Planning:
        """The question for the policy; or for another policy, or about the effect of other
        steering.
        """
        wanted = self.table.steering if steering is None else steering
        fails = self.trouble and is_outside(self.policy)  # and takes eight seconds for that, maybe
        before: Policy = Staying(self.plan) if fails else self.policy
        return Planning(
            self.table.pool,
            policy or self.policy,
            self.situation(now, steering, gone),
            wanted,
            self.context.history.lsn,
            None if steering is None else (before, self.situation(now)),
            policy_name(self.table, wanted.policy),
        )

    def replan(self, now: Instant) -> None:
        """Plan now, or as soon as the planning under way is done."""
        if self._under_way:
            self.by(now)
            return
        self.context.cause = joined(self._cause, self.context.cause)
        self._cause = ""
        self.load_watch.begin(now, levels_of_all(self._labels()))
        is_for_load = now < self._due
        self._due = FAR_FUTURE
        work = self.planning(now)
        calls = self.context.calls.of(work)
        if self.is_done_at_once(work):
            self._adopt(now, work, work.carry_out())
        elif calls.can_ask:
            if work.line and self.trouble:  # nobody waits until it has failed again
                self._stand_in(now)
            self._under_way = work
            self._under_way_because = self.context.cause
            self.context.ask_policy(now, work)
        elif is_for_load:
            self.trouble = calls.why_not(self.table.pool)
        else:
            why_not = calls.why_not(self.table.pool)
            self.on_failed(now, PlanningFailed(why_not, hangs=True))
        self.set_alarm()

    def is_done_at_once(self, work: Planning) -> bool:
        """Whether the policy is asked within the step: then it takes no longer than
        other steps do. A pool of one range has much to plan if many owners have come.
        """
        if work.line:
            return False
        ranges = max(len(self.table.rights), RANGES_EACH * len(self.sessions))
        return ranges <= self.context.plans_at_once

    def on_made(self, now: Instant, work: Planning, made: Planned | PlanningFailed) -> bool:
        """Adopt the result of the planning that is under way; return False if it is the result of
        another.
        """
        if work is not self._under_way:
            return False
        self._under_way = None
        self.context.cause = self._under_way_because
        self._adopt(now, work, made)
        self.set_alarm()
        return True

    def _adopt(self, now: Instant, work: Planning, made: Planned | PlanningFailed) -> None:
        if isinstance(made, PlanningFailed):
            self.on_failed(now, made)
        elif work.steering != self.table.steering or work.policy is not self.policy:
            self._due = now
        else:
            self.trouble, self._failed = "", 0
            self.follow(now, work, made)

    def steer(self, now: Instant, work: Planning, made: Planned | PlanningFailed) -> None:
        """Carry out a command, by the plan and the policy that were made for it."""
        self.policy = work.policy
        if isinstance(made, PlanningFailed):
            self.on_failed(now, made)
        else:
            self.trouble, self._failed = "", 0
            self.follow(now, work, made)
        self.set_alarm()

    def _goes(self, candidate: Candidate) -> bool:
        return candidate.incarnation not in self.sessions or self._is_leaving(candidate.incarnation)

    def _is_leaving(self, incarnation: int) -> bool:
        session = self.sessions.get(incarnation)
        return session is not None and session.leaving

    def on_failed(self, now: Instant, failed: PlanningFailed) -> None:
        """Keep the last plan, and ask the policy again as a new leader would: its memory may be
        what it failed at. A policy that hangs is asked when it has returned.
        """
        kind = LeaderKind.POLICY_HANGS if failed.hangs else LeaderKind.POLICY_FAILED
        self.context.note(kind, self.table.pool, failed.why)
        self.trouble = failed.why
        self._stand_in(now)
        if not failed.hangs:
            doublings = min(self._failed, MOST_DOUBLINGS) if is_outside(self.policy) else 0
            self.by(Instant(now + (self.context.timing.renew_ns << doublings)))
        self._failed += 1

    def _stand_in(self, now: Instant) -> None:
        kept = after_failure(self.policy, self._memory)
        work = self.planning(now, Staying(self.plan))
        made = work.carry_out()
        if isinstance(made, Planned):
            self.follow(now, work, made)
        self._memory = kept

    def follow(self, now: Instant, work: Planning, made: Planned) -> None:
        """Follow this plan from now on, without what it gives to owners that have left since."""
        if any(map(self._goes, work.situation.candidates)):
            self._due = now
        plan = made.plan
        self.plan, self._memory, self._by_owner = plan.owners, plan.memory, made.by_owner
        self._due = min(self._due, plan.again_at)
        self.log.follow(now, plan)
        for each in (*work.situation.candidates, *work.situation.leavers):
            if each.incarnation in self.sessions:
                self.sessions[each.incarnation].planned = True
        moving = (session.incarnation for session in self.sessions.values() if session.is_moving)
        leaving = filter(self._is_leaving, made.losers)
        for incarnation in sorted({*made.movers, *leaving, *moving, *self._changed(work.as_of)}):
            session = self.sessions.get(incarnation)
            if session is not None:
                session.unsettle(self.context)

    def _changed(self, as_of: int) -> Iterator[int]:
        """The owners to which the plan means something new, because the table has changed while it
        was made.
        """
        entries = self.changed.since(as_of, at_most=CHANGES_COMPARED)
        if entries is None:
            yield from self.sessions
            return
        for entry in entries:
            for piece, right in self.table.within(entry.range):
                for _, taker in self.plan.within(piece):
                    if taker != right.owner:
                        yield right.owner or taker

    def invariants(self) -> None:
        """The planner wakes for whatever is due."""
        due = FAR_FUTURE if self._under_way else self._next()
        assert self.wake_at == due, (self.wake_at, due)

    def wanted_by(self, incarnation: int) -> Sequence[KeyRange]:
        """The ranges that the incarnation should have."""
        return self._by_owner.get(incarnation, ())
