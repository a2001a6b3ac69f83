"""The question who leads, which an owner asks all managers: while it looks for a leader and, less
often, while it has one, because another may lead another journal (P25).
"""

from collections.abc import Iterator
from random import Random

from tenure.base.instants import FAR_FUTURE, Instant, seconds
from tenure.protocol.lease.client_events import TellManager
from tenure.protocol.lease.messages import Introduction
from tenure.protocol.lease.other_leaders import AROUND, OtherLeaders, rival_of
from tenure.protocol.lease.owner.events import OwnerConfig
from tenure.protocol.lease.rivalry import Rival

NONCE_LIMIT = 1 << 63
TOLD_NS = seconds(1)
"""How soon a leader of another journal is told of ours."""
FRESH_NS = seconds(5)
"""How long after the question an answer is taken for news: longer than answers take."""


class WhoLeads:
    """The token of the question, when to ask it next, and the leaders of other journals that have
    answered.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self.token = 0
        self._repeats_until = Instant(0)
        """The time until which an answer with this token may come to the question who leads."""
        self._fresh_until = Instant(0)
        self._led_by = 0
        """The journal whose leader was ours when the question was asked."""
        self.others = OtherLeaders()
        self._ours: Rival | None = None
        """Our leader, as another is told of it."""
        self.around_at = FAR_FUTURE

    def draw_nonce(self) -> int:
        """A nonce for one question, or one incarnation."""
        return self._random.randrange(1, NONCE_LIMIT)

    def ask(
        self, now: Instant, config: OwnerConfig, journal: int, receipt: bytes, needed_ns: int
    ) -> Iterator[TellManager]:
        """Ask every manager, of an owner that has met that journal's history."""
        if now >= self._repeats_until:
            self.token = self.draw_nonce()
            self._led_by = self._ours.journal if self._ours else 0
            self._repeats_until = Instant(now + needed_ns)
        self._fresh_until = Instant(now + FRESH_NS)
        rival, leaders = self.others.rival, self.others.managers
        for manager in config.managers:
            told = self._ours if manager in leaders else rival
            yield TellManager(manager, config.hello(self.token, journal, receipt, told))

    def follow(self, leader: Rival, over: tuple[int, ...]) -> None:
        """This is our leader from now on, and that is what it says of other journals."""
        self._ours = leader
        self.others.decided((*over, *(each.journal for each in leader.succeeds)))

    def hear(self, now: Instant, manager: str, message: Introduction) -> bool:
        """Take an answer beside that of our leader. Returns whether ours may have ended since, and
        must be asked: another leads its journal, or the first one a journal that is not over.
        """
        ours = self._ours
        is_fresh = 0 != message.token == self.token and now < self._fresh_until
        if ours is None or not is_fresh:
            return False  # it answers a question of long ago
        if manager == ours.manager and message.journal == ours.journal:
            self.follow(rival_of(manager, message), message.over)
        elif manager != ours.manager and message.journal != ours.journal:
            self.around_at = min(self.around_at, Instant(now + TOLD_NS))
            is_first = not self.others
            if self.is_after_ours():
                self.others.hear(now, rival_of(manager, message), granted=message.granted)
            else:
                self._repeats_until = now  # another question will tell
            return is_first and bool(self.others)
        return manager != ours.manager

    def is_after_ours(self) -> bool:
        """Whether our leader led before the question was asked: then whoever has answered that, and
        leads another journal, is not one that ended before ours began.
        """
        return self._ours is not None and self._led_by == self._ours.journal

    def has_leader(self, now: Instant, config: OwnerConfig, renew_ns: int) -> None:
        """The leader has answered: when to ask whether there is another. An owner that knows of one
        looks whether it goes on.
        """
        if len(config.managers) > 1:
            again_ns = renew_ns if self.others else AROUND * renew_ns
            self.around_at = min(max(self.around_at, now), Instant(now + again_ns))

    def is_due(self, now: Instant) -> bool:
        """Whether to ask around now; the next answer of the leader says when to ask again. Forgets
        leaders that have been silent for long.
        """
        self.others.advance(now)
        is_due = now >= self.around_at
        if is_due:
            self.around_at = FAR_FUTURE
        return is_due

    @property
    def wake_at(self) -> Instant:
        """When to ask around, or to forget a leader that is silent."""
        return min(self.around_at, self.others.wake_at)
