"""The calls of policies that a leader has made outside the machine, and how long it waits for them.

A policy is foreign code, and may never return. The thread that runs it cannot be ended, and a
second thread might hang as well, each time that a pool is planned. So there is one thread, which
makes the calls in order. If the first call in the line takes too long, all waiting calls are given
up at once: they would wait as long. Until that first one returns, no policy is asked.

Policies from outside run in processes of their own, which are ended when they take too long. Each
pool that has such a policy has a line of its own for its calls: they hold up nobody else's.
"""

from tenure.base.instants import FAR_FUTURE, Instant, in_seconds, seconds
from tenure.protocol.balance.planning import Planning

ROUNDS = 12
"""How many renewal times a policy may take. The largest pools take one to three seconds."""
OUTSIDE_NS = seconds(30)
"""How long a policy from outside may take at least: it is ended sooner, 15 s after it was begun, or
8 s after it was asked."""


class PolicyLines:
    """All calls of one leader, by their line."""

    def __init__(self, renew_ns: int) -> None:
        self._renew_ns = renew_ns
        self._lines: dict[str, PolicyCalls] = {}
        self.gives_up_at = FAR_FUTURE
        """When the first call in any line has taken too long."""

    def of(self, work: Planning) -> "PolicyCalls":
        """The line in which `work` waits."""
        if work.line not in self._lines:
            longest_ns = max(ROUNDS * self._renew_ns, OUTSIDE_NS if work.line else 0)
            self._lines[work.line] = PolicyCalls(longest_ns)
        return self._lines[work.line]

    def on_asked(self, now: Instant, work: Planning) -> None:
        """Note that `work` waits in its line."""
        self.of(work).on_asked(now, work)
        self._set_alarm()

    def on_made(self, now: Instant, work: Planning) -> bool:
        """Note that `work` is done; return False if nobody waits for it."""
        is_awaited = self.of(work).on_made(now, work)
        self._set_alarm()
        return is_awaited

    def give_up(self, now: Instant) -> list[Planning]:
        """The calls to give up, of all lines."""
        if now < self.gives_up_at:
            return []
        given_up = [work for each in self._lines.values() for work in each.give_up(now)]
        self._set_alarm()
        return given_up

    def _set_alarm(self) -> None:
        self.gives_up_at = min(each.gives_up_at for each in self._lines.values())


class PolicyCalls:
    """The calls of one line, in order."""

    def __init__(self, longest_ns: int) -> None:
        self.longest_ns = longest_ns
        self._waiting: dict[Planning, None] = {}
        self.gives_up_at = FAR_FUTURE
        """When the first call in the line has taken too long."""
        self._hangs: Planning | None = None
        """The call that was given up and has not returned."""

    @property
    def can_ask(self) -> bool:
        """Whether the thread may be asked: not while a policy that was given up is in it."""
        return self._hangs is None

    def on_asked(self, now: Instant, work: Planning) -> None:
        """Note that the thread has one more call to make."""
        if not self._waiting:
            self.gives_up_at = Instant(now + self.longest_ns)
        self._waiting[work] = None

    def on_made(self, now: Instant, work: Planning) -> bool:
        """Note that the thread has done `work`; return False if that was given up, or another
        leader asked for it.
        """
        if work is self._hangs:
            self._hangs = None
        if work not in self._waiting:
            return False
        del self._waiting[work]
        self.gives_up_at = Instant(now + self.longest_ns) if self._waiting else FAR_FUTURE
        return True

    def give_up(self, now: Instant) -> list[Planning]:
        """The calls to give up: all that wait, if the first of them has taken too long."""
        if now < self.gives_up_at:
            return []
        given_up = list(self._waiting)
        self._hangs = given_up[0]
        self._waiting.clear()
        self.gives_up_at = FAR_FUTURE
        return given_up

    def why_not(self, pool: str) -> str:
        """The reason why no policy can be asked for `pool`, in words, with the policy that is at
        fault.
        """
        assert self._hangs is not None
        at_fault = self._hangs
        whose = "" if at_fault.pool == pool else f" of the pool {at_fault.pool!r}"
        return (
            f"the policy {at_fault.called}{whose} has not returned after "
            f"{in_seconds(self.longest_ns):.0f} s"
        )
