"""Rivals: what a leader does about living leaders of other journals (P25).

Two managers on two journals would each grant every key. A leader cannot see that in its journal, so
it asks the other managers that its operator has named, before it grants anything and again and
again. What strangers say counts for nothing, unless it proves itself; what an owner says stops the
owner's own pool.

A leader with a rival grants nothing. It also renews nothing, unless the rival has granted nothing
and has stopped as well: each may have granted the same key, and then both leases must end. Only an
operator can tell which journal is to go on (`Resolve`). A rival that goes on from a copy of this
very journal was made by the operator, which is the decision: this one gives up.
"""

from tenure.base.instants import FAR_FUTURE, Instant, in_seconds, seconds
from tenure.base.names import shown
from tenure.protocol.lease.answers import Impossible, JournalDecided
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.events import OtherSeen, Resolve
from tenure.protocol.lease.leader.first_start import FirstStart
from tenure.protocol.lease.leader.introductions import successions
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.view import RivalsView
from tenure.protocol.lease.records import PromiseLowered
from tenure.protocol.lease.rivalry import RIVALS_KEPT, Rival, Rivalry, is_proven_successor
from tenure.protocol.lease.timing import Timing

LOOK_NS = seconds(3)
"""How often the others are asked, at least: as often as an owner of the default preset asks."""
LOOKS_KEPT = 3
"""How many looks in a row may go wrong before nothing is granted. A leader that was stopped for
longer looks before it grants."""
TOLD_AGAIN_NS = seconds(60)
"""How often the log repeats what a client says: anybody can say it."""
WAY_OUT = (
    "Decide which journal goes on, and run `tenure resolve --keep URL` with its manager's URL; see "
    "`tenure docs operating/several-managers`"
)


def look_ns(timing: Timing) -> int:
    """How often the others are asked."""
    return min(LOOK_NS, timing.renew_ns)


class Rivals:
    """A leader's knowledge of the leaders of other journals."""

    def __init__(self, now: Instant, context: LeaderContext, first_start: FirstStart) -> None:
        self._context = context
        self._first_start = first_start
        self._look_ns = look_ns(context.timing)
        self._looks_at = now if context.others else FAR_FUTURE
        self._looked_until = now if context.others else FAR_FUTURE
        """Until when the last look counts."""
        self._leading: dict[int, OtherSeen] = {}
        """The leaders of other journals, at the last look."""
        self._answered: frozenset[str] = frozenset()
        self._is_succeeded = False
        self._tells_at = now
        self._stays = False
        """Whether a journal that is over, or that this one succeeds, had a leader at the last look.
        """
        for each in context.history.rivalries:
            self._tell(each)
        self._withhold(now)

    def view(self) -> RivalsView:
        """What is known, for people and for the other managers."""
        history = self._context.history
        return RivalsView(
            realm=history.realm,
            granted=history.has_granted or bool(self._context.ledger.unsettled),
            is_over=self.is_over and not self._context.ledger.unsettled,
            rivals=history.rivalries,
            over=history.over,
            succeeds=successions(self._context),
        )

    @property
    def is_over(self) -> bool:
        """Whether an operator has declared this journal over."""
        return self._context.seal.journal in self._context.history.over

    def stops(self, pool: str) -> bool:
        """Whether no request of that pool is answered: what its owners hold may have been granted
        twice.
        """
        rivalries = self._context.history.rivalries
        return self._is_succeeded or any(
            each.granted and each.pool in ("", pool) for each in rivalries
        )

    # --- looking ---

    def advance(self, now: Instant) -> bool:
        """Look if it is time. Returns whether granting begins now."""
        if now >= self._looks_at:
            self._looks_at = Instant(now + self._look_ns)
            self._context.look_around(now)
        return self._withhold(now)

    @property
    def wake_at(self) -> Instant:
        """When to look next, or when the last look no longer counts."""
        is_old = self._context.is_withheld
        return self._looks_at if is_old else min(self._looks_at, self._looked_until)

    def _withhold(self, now: Instant) -> bool:
        was_withheld = self._context.is_withheld
        self._context.is_withheld = (
            # Silence is no proof that nobody else leads, so an old look counts for nothing (P25).
            not self.has_looked(now) or self.has_rival() or self._stays or self.is_over
        )
        return was_withheld and not self._context.is_withheld

    def has_looked(self, now: Instant) -> bool:
        """Whether the last look counts: it is not long ago."""
        return now < self._looked_until

    def has_rival(self) -> bool:
        """Whether this leader has seen the leader of another journal itself."""
        return any(not each.pool for each in self._context.history.rivalries)

    def on_seen(self, now: Instant, asked_at: Instant, seen: tuple[OtherSeen, ...]) -> bool:
        """Judge the answers of the others. Returns whether granting begins now."""
        counts_until = Instant(asked_at + LOOKS_KEPT * self._look_ns)
        if now >= counts_until:
            return False  # this process was stopped meanwhile: it looks again
        self._looked_until = max(self._looked_until, counts_until)
        self._answered = frozenset(each.manager for each in seen)
        ours = self._context.history.realm
        self._leading = {
            each.journal: each
            for each in seen
            if each.journal not in (0, self._context.seal.journal)
            and (each.realm == ours or not (each.realm and ours))
        }
        self._stays = False
        for each in self._leading.values():
            self._meet(now, each)
        return self._withhold(now)

    def _meet(self, now: Instant, other: OtherSeen) -> None:
        context, mine = self._context, self._context.seal.journal
        rival = Rival(manager=other.manager, journal=other.journal, succeeds=other.succeeds)
        if self._gives_way(rival) or self.is_over or other.is_over:
            return
        if mine in other.over:
            self._end(f"as the manager {other.manager} knows, this journal is over")
        elif self._has_succeeded(other.journal):
            self._stays = True
            self._wait_again(now, other.journal)
            context.note(
                LeaderKind.RIVAL_STAYS,
                detail=f"the manager {other.manager} leads the journal {other.journal:016x}, which "
                "is over. Nothing is granted here while it does: stop it",
            )
        else:
            granted = other.granted or mine not in other.rivals
            self._record(Rivalry(journal=other.journal, manager=other.manager, granted=granted))

    def _wait_again(self, now: Instant, over: int) -> None:
        """Wait for what the managers of that journal promise meanwhile, also where what they had
        promised before was waited for.
        """
        context = self._context
        if context.history.waited_out:
            promise_ns = context.history.promise_ns
            context.write(PromiseLowered(promise_ns=promise_ns, older=over, waits=True))
        self._first_start.wait_longest(now)

    def _has_succeeded(self, journal: int) -> bool:
        history = self._context.history
        return journal in history.over or any(
            each.journal == journal for each in history.predecessors
        )

    def _gives_way(self, rival: Rival) -> bool:
        """Give up if the rival goes on from a copy of this very journal."""
        history, mine = self._context.history, self._context.seal.journal
        if not is_proven_successor(rival, mine, history.secret):
            return False
        self._is_succeeded = True
        self._context.give_up(
            f"the journal {mine:016x} was restored: the manager {rival.manager} leads its "
            f"successor, {rival.journal:016x}, so this one is over. Stop this manager, and start "
            "it on the journal that goes on"
        )
        return True

    def _record(self, rivalry: Rivalry) -> None:
        context = self._context
        known = context.history.rivalries
        if rivalry in known or len(known) >= RIVALS_KEPT:
            return
        context.write(PromiseLowered(promise_ns=context.history.promise_ns, rivalry=rivalry))
        self._tell(rivalry)

    def _tell(self, rivalry: Rivalry) -> None:
        context = self._context
        where = f"in the pool {rivalry.pool!r} " if rivalry.pool else ""
        renewed = "granted or renewed" if rivalry.granted else "granted"
        context.note(
            LeaderKind.RIVAL,
            rivalry.pool,
            f"the manager {rivalry.manager} leads another journal, {rivalry.journal:016x}, and "
            f"this one leads {context.seal.journal:016x}: each would grant every key. Nothing is "
            f"{renewed} {where}here until an operator decides. {WAY_OUT}",
        )

    # --- what owners say ---

    def on_told(self, now: Instant, pool: str, rival: Rival) -> None:
        """An owner of the pool is answered by another leader, too. It can be believed about its own
        pool only: another pool's owners are none of its business.
        """
        history = self._context.history
        if rival.journal in (0, self._context.seal.journal) or self._gives_way(rival):
            return
        if self._has_succeeded(rival.journal) or any(
            each.pool in ("", pool) for each in history.rivalries
        ):
            return
        if self._looks_at != FAR_FUTURE:
            self._looks_at = min(self._looks_at, Instant(now + self._look_ns // 2))
        if rival.manager not in self._answered:
            self._record(Rivalry(journal=rival.journal, manager=rival.manager, pool=pool))

    def hear_of(self, now: Instant, rival: Rival) -> None:
        """Somebody who need not be believed speaks of a rival: say so, and ask the others."""
        context, journal = self._context, rival.journal
        is_known = journal in (0, context.seal.journal) or self._has_succeeded(journal)
        if is_known or self._gives_way(rival):
            return
        if self._looks_at != FAR_FUTURE:
            self._looks_at = min(self._looks_at, Instant(now + self._look_ns // 2))
        if now >= self._tells_at and not context.history.rivalries:
            self._tells_at = Instant(now + TOLD_AGAIN_NS)
            context.note(
                LeaderKind.TOLD_OF_RIVAL,
                detail=f"a client is answered by the manager {shown(rival.manager)} too, which "
                f"leads another journal, {journal:016x}. Name it with --others, so that this "
                f"manager asks it. {WAY_OUT}",
            )

    # --- the operator's decision ---

    def resolve(self, now: Instant, command: Resolve) -> JournalDecided | Impossible:
        """Take the operator's decision that a journal is over."""
        context, over = self._context, command.over
        is_own = over == context.seal.journal
        known = [each for each in context.history.rivalries if each.journal == over]
        changed = over not in context.history.over
        waits = not is_own and any(each.granted for each in known)
        if changed and not is_own and (why := self._why_not(command, known)):
            self._looks_at = min(self._looks_at, now)
            return Impossible(why, way_out="resolve there first, or stop it: `tenure resolve`")
        if changed and not command.dry_run:
            if is_own:
                self._end("an operator has decided so")
            else:
                self._declare_over(now, over, waits=waits)
        wait_ns = context.timing.longest_hold_ns if waits and changed else 0
        return JournalDecided(
            over=f"{over:016x}",
            is_own=is_own,
            changed=changed,
            dry_run=command.dry_run,
            waits_seconds=in_seconds(wait_ns),
        )

    def _why_not(self, command: Resolve, known: list[Rivalry]) -> str:
        seen = self._leading.get(command.over)
        if not known:
            return f"this manager knows of no leader of the journal {command.over:016x}"
        if seen is not None and not seen.is_over:
            return f"the manager {seen.manager} still leads the journal {command.over:016x}"
        if seen is None and not command.confirmed_stopped:
            return (
                f"the manager {known[0].manager} of the journal {command.over:016x} does not say "
                "whether it has stopped; say so with --confirmed-stopped if every manager of that "
                "journal has"
            )
        return ""

    def _declare_over(self, now: Instant, over: int, *, waits: bool) -> None:
        context = self._context
        promise_ns = context.history.promise_ns
        older = over if waits else 0
        context.write(PromiseLowered(promise_ns=promise_ns, older=older, over=over, waits=waits))
        if waits:
            self._first_start.wait_longest(now)
        wait = (
            "; ranges are granted when what its managers promised has run out, in "
            f"{in_seconds(context.timing.longest_hold_ns):.0f} s"
        )
        detail = f"the journal {over:016x} is over{wait if waits else ''}"
        context.note(LeaderKind.RESOLVED, detail=detail)

    def _end(self, why: str) -> None:
        context, mine = self._context, self._context.seal.journal
        context.write(PromiseLowered(promise_ns=context.history.promise_ns, over=mine))
        context.note(
            LeaderKind.RESOLVED,
            detail=f"this journal, {mine:016x}, is over: {why}. This manager answers nobody any "
            "more. Stop it, and start it on the journal that goes on",
        )
