"""Finding the manager that leads, when the one that did is quiet (P24).

All managers are known to all clients. The search asks every one of them at once, since only the
leader answers for itself, and again after a while that grows and is jittered, so that the clients
of a manager that restarts do not come back in one wave.

Owners and lookups take only the answer to their newest message (P2, P15). If a message were
repeated at a fixed pace, a client whose answers take longer than that (a slow disk, a far manager)
would never be told anything. So patience is learned: each repetition doubles the wait so far, and
once an answer has come, the next message waits for twice the time that it took.
"""

from random import Random

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, Instant, in_seconds
from tenure.base.ranges import in_words

FIRST_PAUSE_NS = 100 * MILLISECOND_NS
"""A new leader of the default preset answers about 2 s after a crash: asked 5 times until then."""
LONGEST_PAUSE_NS = 2_000 * MILLISECOND_NS
"""The longest pause: with ten thousand clients, five thousand small messages a second to each
manager.
"""
HOLDERS_PAUSE_NS = 1_000 * MILLISECOND_NS
"""The pause of an owner that looks for a leader and holds something, before jitter: so it asks
every 1.5 s at least, and a manager that listens for two seconds hears it (`leader.first_start`).
"""


class Patience:
    """The knowledge of one asker about how long answers take."""

    def __init__(self) -> None:
        self._asking_since: Instant | None = None
        """When the first was sent of the messages that were repeated since anything was heard."""
        self._learned_ns = 0

    def asked(self, now: Instant, shortest_ns: int, longest_ns: int) -> int:
        """A message was sent: how long to wait before it is repeated."""
        if self._asking_since is None:
            self._asking_since = now
        waited_ns = now - self._asking_since
        return min(max(shortest_ns, waited_ns, self._learned_ns), longest_ns)

    def answered(self, round_trip_ns: int) -> None:
        """The newest message was answered, after so long."""
        self._asking_since = None
        self._learned_ns = 2 * round_trip_ns

    def heard(self) -> None:
        """A manager is there, though the message at hand is not answered yet."""
        self._asking_since = None

    @property
    def needed_ns(self) -> int:
        """How long to wait for the answer of a manager that is being looked for."""
        return min(self._learned_ns, LONGEST_PAUSE_NS)


class Search:
    """When to ask all managers next."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.at = FAR_FUTURE
        self._pause_ns = FIRST_PAUSE_NS

    @property
    def is_on(self) -> bool:
        """Whether a leader is being looked for."""
        return self.at != FAR_FUTURE

    def start(self, now: Instant) -> None:
        """Look for a leader, from now on."""
        if not self.is_on:
            self._pause_ns = FIRST_PAUSE_NS
            self.at = now

    def asked(self, now: Instant, longest_ns: int = LONGEST_PAUSE_NS, shortest_ns: int = 0) -> None:
        """All managers were asked: ask again after a pause, of `longest_ns` at the most, but not
        before `shortest_ns`.
        """
        pause_ns = min(self._pause_ns, longest_ns)
        jitter = 0.5 + self.random.random()
        self.at = Instant(now + round(max(pause_ns, shortest_ns) * jitter))
        self._pause_ns = min(2 * pause_ns, LONGEST_PAUSE_NS)

    def found(self) -> None:
        """A leader answered."""
        self.at = FAR_FUTURE


class Silence:
    """Why an owner's leases are not renewed: no manager answers, or its application is silent, and
    the watchdog lets them run out. The owner reports it at half the term, when there is still time
    to do something about it, and when the leases have ended.
    """

    def __init__(self, watchdog_ns: int | None) -> None:
        self.watchdog_ns = watchdog_ns
        self.alive_at: Instant | None = None
        """When the application last showed that it is not hung."""
        self.hangs_at = FAR_FUTURE
        """After this it has been silent for so long that its leases must run out."""
        self.answered_at: Instant | None = None
        """When the question was sent that was answered last."""
        self.speaks_at = FAR_FUTURE
        self._has_spoken = False

    def on_alive(self, now: Instant) -> None:
        """The application shows that it is not hung, or begins."""
        self.alive_at = now
        if self.watchdog_ns is not None:
            self.hangs_at = Instant(now + self.watchdog_ns)

    def broken(self, now: Instant, sent_at: Instant, term_ns: int) -> str | None:
        """A manager answered; what to say of that, where it was said that none does."""
        had_spoken, self._has_spoken = self._has_spoken, False
        words = f"is renewed again, after {_since(self.answered_at, now)}" if had_spoken else None
        self.answered_at = sent_at
        self.speaks_at = Instant(sent_at + term_ns // 2)
        return words

    def speak(self, now: Instant) -> str:
        """The word to tell now, and not again before a manager has answered."""
        self.speaks_at, self._has_spoken = FAR_FUTURE, True
        return self.why(now)

    def warning(self, now: Instant, held: int, ends_at: Instant) -> str:
        """The word while there is still time to do something about it."""
        left = in_seconds(ends_at - now)
        ends = f"it loses {in_words(held)} in {left:.1f} s" if held else "it holds nothing"
        return f"is not renewed: {self.speak(now)}, and {ends}"

    def why(self, now: Instant) -> str:
        """The reason, for the log."""
        if now > self.hangs_at:
            return (
                f"the watchdog has not seen the application live for {_since(self.alive_at, now)}"
            )
        return f"no manager has answered for {_since(self.answered_at, now)}"


def _since(before: Instant | None, now: Instant) -> str:
    return f"{in_seconds(now - before):.1f} s" if before is not None else "a while"
