"""First starts: when the leader of a journal that has not waited out older promises may grant
(P22).

A journal without records does not know what was promised before it, so its leader waits for the
longest hold that is possible. An operator who knows that there was no manager before can say so.
Then the leader only listens for a moment: an owner or a lookup that brings the history of another
journal proves that there was one. From then on the leader waits as if nothing had been said. The
journal keeps that, because by the time that another leader takes over, the owner may have met the
new journal and forgotten the old one.

A client that lies causes one wait at most. Once the moment has passed, such a history no longer
counts: by then ranges may have been granted, and there is nothing left to wait for.
"""

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, Instant, in_seconds
from tenure.base.names import shown
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.messages import Hello, LeaseRequest, ShortRequest, Sync, ToManager
from tenure.protocol.lease.records import PromiseLowered, WaitedOut
from tenure.protocol.lease.timing import Timing

LISTENING_NS = 2_000 * MILLISECOND_NS
"""How long a first start listens. An owner that holds something and has lost its manager asks who
leads at least every 1.5 s, by a clock that is at most 8.33 % slower. The rest is for connecting."""


def listening_ns(timing: Timing) -> int:
    """How long a first start listens. Owners of the preset `test` ask at least every 0.225 s, so
    that tests need not wait for longer; in that time others may not be heard.
    """
    return min(LISTENING_NS, timing.renew_ns)


class FirstStart:
    """A leader's knowledge of the time before its journal."""

    def __init__(self, now: Instant, context: LeaderContext, *, is_said: bool) -> None:
        history, timing = context.history, context.timing
        self._context = context
        self._longest_at = Instant(now + timing.longest_hold_ns)
        self._listens_until = now
        self.grants_at = FAR_FUTURE
        """The time from which ranges are granted; far in the future if they may be
        granted already.
        """
        # For a restored journal the operator's word is never true: earlier managers of the same
        # history have made promises.
        if is_said and not (history.waited_out or history.has_granted or history.older):
            self._listens_until = Instant(now + listening_ns(timing))
            self.grants_at = self._listens_until
        elif not history.waited_out:
            self.grants_at = self._longest_at

    @property
    def is_listening(self) -> bool:
        """Whether the leader only waits to hear whether this is not a first start."""
        return self.grants_at == self._listens_until

    def hear(self, now: Instant, message: ToManager) -> None:
        """Look whether a client brings the history of another journal."""
        if now >= self._listens_until:
            return
        if not isinstance(message, Hello | LeaseRequest | ShortRequest | Sync):
            return
        context, older = self._context, message.journal
        if older in (0, context.seal.journal):
            return
        self._listens_until = now
        self.grants_at = self._longest_at
        context.write(PromiseLowered(promise_ns=context.history.promise_ns, older=older))
        context.note(
            LeaderKind.NOT_FIRST,
            message.pool,
            f"{_who(message)} comes with the history of the journal {older}, and this is the "
            f"journal {context.seal.journal}. So this is not the first start of these owners: "
            "nothing is granted before whatever the other journal's managers have promised has "
            f"run out, in {in_seconds(self.grants_at - now):.1f} s",
        )

    def advance(self, now: Instant) -> bool:
        """Whether granting begins now."""
        if now < self.grants_at:
            return False
        self._listens_until, self.grants_at = now, FAR_FUTURE
        self._context.write(WaitedOut())
        return True

    def wait_longest(self, now: Instant) -> None:
        """Grant nothing before what another journal's managers may have promised until now has run
        out, if this one is waiting or has been told to wait.
        """
        if not self._context.history.waited_out:
            self._listens_until = now
            self.grants_at = Instant(now + self._context.timing.longest_hold_ns)


def _who(message: Hello | LeaseRequest | ShortRequest | Sync) -> str:
    match message:
        case Hello(name=name):
            return f"the owner {shown(name)}" if name else "an owner"
        case LeaseRequest(incarnation=incarnation) | ShortRequest(incarnation=incarnation):
            return f"the owner of incarnation {incarnation}"
        case Sync():
            return "a lookup"
