"""Users: clients that publish to owners, and republish what was signalled as lost (PRS 2.1).

A client knows only its lookup: it asks where a key is, and publishes there. If the owner is alive,
holds the key and takes it, the client relies on it from then on, until its lookup signals a loss of
that key. `losses` judges S2 by what clients rely on in vain, and for how long.
"""

from collections.abc import Sequence

from lab.worlds.lease.losses import LossChecker
from lab.worlds.lease.processes import LookupProcess, OwnerProcess, OwnerSite
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.owner import events as owner_events
from tenure.sim.lease.beliefs import number_of
from tenure.sim.lease.faults import CALLBACK_HANGS


class Workload:
    """The clients, and the owners' callbacks."""

    def __init__(self, site: OwnerSite, losses: LossChecker) -> None:
        self.site = site
        self.losses = losses
        self.random = site.random
        self.every_ns = site.timing.term_ns // 6
        self._published: dict[int, dict[Key, None]] = {}
        self.counts = {"published": 0, "losses signalled": 0, "rejected": 0}
        self.hanging: list[OwnerProcess] = []
        """Owners whose application no longer lets go."""

    def start(self, lookup: LookupProcess) -> None:
        """A client begins to use its lookup."""
        self._published[lookup.uid] = {}
        self.site.at(self.site.now + self.random.randrange(self.every_ns), self._act, lookup)

    def _act(self, lookup: LookupProcess) -> None:
        self.losses.check(lookup)
        if not lookup.alive:
            del self._published[lookup.uid]
            return
        self.site.at(self.site.now + self.every_ns, self._act, lookup)
        if not lookup.is_frozen:
            for key in self.random.sample(self.site.watched_keys, 4):
                self._publish(lookup, key)

    def _publish(self, lookup: LookupProcess, key: Key) -> None:
        found = lookup.find(key)
        owner = self.site.owner_at(found) if found else None
        if owner is None or owner.is_frozen or not owner.alive or owner.pool != lookup.pool:
            return
        number = number_of(owner, key)
        if number is None:
            self.counts["rejected"] += 1
            return
        self.site.states.write(owner, key, number)
        published = self._published[lookup.uid]
        if key not in published:  # otherwise only a signalled loss makes it publish again
            published[key] = None
            self.losses.on_published(lookup, key, owner)
            self.counts["published"] += 1

    def on_loss(self, lookup: LookupProcess, ranges: Sequence[KeyRange]) -> None:
        """A lookup signals a loss: publish again the keys that are asked for there."""
        self.counts["losses signalled"] += 1
        published = self._published.get(lookup.uid, {})
        for key in [key for key in published if any(key in lost for lost in ranges)]:
            del published[key]

    def forget(self) -> None:
        """Publish everything again."""
        for published in self._published.values():
            published.clear()

    def end_hanging(self) -> None:
        """The operator ends the processes that hang."""
        for owner in self.hanging:
            owner.kill()
        self.hanging.clear()

    def on_revoke(self, owner: OwnerProcess, revocation: int, ranges: Sequence[KeyRange]) -> None:
        """An owner's application lets go of its state, and takes its time, or never does."""
        if self.site.faults.strikes(CALLBACK_HANGS):
            self.site.tell(owner.slot, "hangs")
            self.hanging.append(owner)
            return
        longest = self.site.timing.term_ns // 100
        if self.site.slow_callbacks and self.random.random() < 0.2:
            longest = 2 * self.site.timing.recall_ns
        at = self.site.now + self.random.randrange(longest)
        self.site.at(at, self._let_go, (owner, revocation, ranges))

    def _let_go(self, which: tuple[OwnerProcess, int, Sequence[KeyRange]]) -> None:
        owner, revocation, ranges = which
        if owner.is_frozen:
            self.site.at((owner.thaws_at or 0) + 1, self._let_go, which)
            return
        self.site.states.take_out(owner, ranges)
        owner.post(owner_events.Revoked(revocation))
