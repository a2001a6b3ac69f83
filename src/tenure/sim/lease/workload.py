"""What users do: clients that publish to owners and republish what is signalled as lost (PRS 2.1).

A client knows its lookup only: it asks it where a key is, and publishes there. If the owner is
alive, holds the key and takes it, the client relies on it from then on, until its lookup signals a
loss of that key. The promise S2 is judged by what clients rely on in vain, and for how long.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenure.base.instants import SECOND_NS
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.owner import events as owner_events
from tenure.sim.kernel.checkers import Violation
from tenure.sim.lease.checkers import lease_of, number_of
from tenure.sim.lease.processes import LeaseSite, LookupProcess, OwnerProcess

KEYS = 24


class Published(NamedTuple):
    """What a client relies on: that the owner has its state, under that number."""

    owner: OwnerProcess
    number: int


class Workload:
    """The clients, and the owners' callbacks."""

    def __init__(self, site: LeaseSite) -> None:
        self.site = site
        self.random = site.random
        self.keys: list[Key] = [self.random.randbytes(8) for _ in range(KEYS)]
        self.every_ns = site.timing.term_ns // 6
        self.published: dict[int, dict[Key, Published]] = {}
        self._lost_since: dict[tuple[int, Key], int] = {}
        self.counts = {"published": 0, "losses signalled": 0, "rejected": 0}
        self.slow_callbacks = self.random.random() < 0.3
        """Whether `on_revoke` sometimes takes longer than the manager waits for it."""

    def start(self, lookup: LookupProcess) -> None:
        """A client begins to use its lookup."""
        self.published[lookup.uid] = {}
        self.site.at(self.site.now + self.random.randrange(self.every_ns), self._act, lookup)

    def _act(self, lookup: LookupProcess) -> None:
        if not lookup.alive:
            self.published.pop(lookup.uid, None)
            return
        self.site.at(self.site.now + self.every_ns, self._act, lookup)
        self._check_losses(lookup)
        if not lookup.is_frozen:
            for key in self.random.sample(self.keys, 4):
                self._publish(lookup, key)

    def _publish(self, lookup: LookupProcess, key: Key) -> None:
        found = lookup.machine.find(key)
        owner = self.site.owner_at(found.address) if found else None
        if owner is None or owner.is_frozen or not owner.alive:
            return
        number = number_of(owner, key)
        if number is None:
            self.counts["rejected"] += 1
            return
        self.site.states.write(owner, key, number)
        relied_on = self.published[lookup.uid]
        if key not in relied_on:  # else only a signalled loss makes it publish again
            relied_on[key] = Published(owner, number)
            self.counts["published"] += 1

    def on_loss(self, lookup: LookupProcess, ranges: Sequence[KeyRange]) -> None:
        """A loss is signalled: rely on nothing there any more."""
        self.counts["losses signalled"] += 1
        relied_on = self.published.get(lookup.uid, {})
        for key in [key for key in relied_on if any(key in lost for lost in ranges)]:
            del relied_on[key]
            self._lost_since.pop((lookup.uid, key), None)

    def _check_losses(self, lookup: LookupProcess) -> None:
        """S2: every loss is signalled to every live lookup within a bounded time."""
        now = self.site.now
        for key, (owner, number) in self.published[lookup.uid].items():
            if number_of(owner, key) == number or self._has_moved(key, number):
                # An owner stopped past its term that had decided on a renewal in time goes on, if
                # no reader saw the end; and what was handed over is with another.
                self._lost_since.pop((lookup.uid, key), None)
                continue
            since = self._lost_since.setdefault((lookup.uid, key), now)
            counted_from = max(since, self.site.taken_over_at, lookup.thawed_at)
            if not lookup.is_frozen and now - counted_from > self.site.loss_bound_ns:
                waited = (now - since) / SECOND_NS
                raise Violation(
                    "S2: a loss was not signalled",
                    f"{lookup.slot} relies on {key.hex()} at {owner.slot} under number {number}, "
                    f"which is gone for {waited:.1f} s",
                )

    def _has_moved(self, key: Key, number: int) -> bool:
        """Whether what was published under a number is served by somebody, unbroken since."""
        holder = self.site.checkers.holders[key]
        lease = lease_of(holder, key) if holder is not None else None
        return lease is not None and lease.since <= number < lease.number

    def on_revoke(self, owner: OwnerProcess, revocation: int, ranges: Sequence[KeyRange]) -> None:
        """An owner's application lets go of its state, and takes its time."""
        longest = self.site.timing.term_ns // 100
        if self.slow_callbacks and self.random.random() < 0.2:
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
