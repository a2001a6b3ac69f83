"""The judge of S2: every loss is signalled in time, and no lookup finds what it cannot know.

The judge is told what clients published and what lookups signalled, and shares no memory with the
workload that drives them. An owner holds what its readers see; a lookup finds what it has published
for its readers.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lab.worlds.lease.processes import LookupProcess, OwnerProcess, OwnerSite
from tenure.base.instants import SECOND_NS
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.sim.kernel.checkers import Violation
from tenure.sim.lease.beliefs import lease_of, number_of
from tenure.sim.lease.processes import OwnerParty


class Reliance(NamedTuple):
    """The owner that a client relies on to have the state of a key, and under which number."""

    owner: OwnerProcess
    number: int


class Relied(NamedTuple):
    """A lookup, and what its client relies on for a key."""

    lookup: LookupProcess
    key: Key
    reliance: Reliance


class LossChecker:
    """Judges what clients rely on, and how long they do so in vain."""

    def __init__(self, site: OwnerSite) -> None:
        self.site = site
        self._relied_on: dict[int, dict[Key, Reliance]] = {}
        self._lost_since: dict[tuple[int, Key], int] = {}

    def forget(self) -> None:
        """Begin anew: the journal is an old copy that nobody could notice."""
        self._relied_on.clear()
        self._lost_since.clear()

    def on_published(self, lookup: LookupProcess, key: Key, owner: OwnerProcess) -> None:
        """A client of the lookup has published to the owner, and relies on it from now on."""
        number = number_of(owner, key)
        assert number is not None
        self._relied_on.setdefault(lookup.uid, {})[key] = Reliance(owner, number)

    def on_loss(self, lookup: LookupProcess, ranges: Sequence[KeyRange]) -> None:
        """A lookup signals a loss: its client no longer relies on anything there."""
        relied_on = self._relied_on.get(lookup.uid, {})
        for key in [key for key in relied_on if any(key in lost for lost in ranges)]:
            del relied_on[key]
            self._lost_since.pop((lookup.uid, key), None)

    def check(self, lookup: LookupProcess) -> None:
        """Check that every loss is signalled to every live lookup within a bounded time."""
        if not lookup.alive:
            self._relied_on.pop(lookup.uid, None)
            return
        self._check_contact(lookup)
        now, site = self.site.now, self.site
        if site.is_old_copy:
            return
        for key, reliance in self._relied_on.get(lookup.uid, {}).items():
            if self._server(key, reliance) is not None:
                self._lost_since.pop((lookup.uid, key), None)
                continue
            since = self._lost_since.setdefault((lookup.uid, key), now)
            counted_from = max(since, site.taken_over_at, lookup.thawed_at)
            if not lookup.is_frozen and now - counted_from > site.loss_bound_ns:
                _violated(lookup, key, reliance, now - since)

    def relied_on_at(self, owner: OwnerProcess) -> list[Relied]:
        """The versions on which clients rely and which this owner serves now, even if another owner
        handed them over.
        """
        return [
            Relied(lookup, key, reliance)
            for lookup in self.site.lookups()
            for key, reliance in self._relied_on.get(lookup.uid, {}).items()
            if self._server(key, reliance) is owner
        ]

    def check_crash(self, lost: Sequence[Relied], crashed_at: int) -> None:
        """Check that every loss is signalled by now: nothing went wrong except that the owner of
        this crashed.

        What the owner had handed over before is not part of it. It may be changing hands again by
        now.
        """
        for lookup, key, reliance in lost:
            if self._relied_on.get(lookup.uid, {}).get(key) is reliance:
                _violated(lookup, key, reliance, self.site.now - crashed_at)

    def _server(self, key: Key, reliance: Reliance) -> OwnerParty | None:
        """The owner that serves what was published: the one in `reliance`, or another that has it
        unbroken.

        An owner that was stopped past its term, but had decided on a renewal in time, goes on if no
        reader saw the end. State that was handed over is with another owner.
        """
        owner, number = reliance
        if number_of(owner, key) == number:
            return owner
        holder = self.site.checkers.holders[owner.pool][key]
        lease = lease_of(holder, key) if holder is not None else None
        return holder if lease is not None and lease.since <= number < lease.number else None

    def _check_contact(self, lookup: LookupProcess) -> None:
        """P17: a lookup that finds anything asked the answered question less than the bound ago."""
        if lookup.is_frozen or lookup.routes is None or not lookup.routes.in_contact:
            return
        since, contact_ns = lookup.now() - lookup.asked_at, self.site.timing.contact_ns
        if since > contact_ns + self.site.faults.latest_timer_ns:
            raise Violation(
                "S2: finds without contact",
                f"{lookup.slot} asked {since / SECOND_NS:.1f} s ago what was answered last, and "
                f"may find for {contact_ns / SECOND_NS:.1f} s",
            )


def _violated(lookup: LookupProcess, key: Key, reliance: Reliance, lost_ns: int) -> None:
    owner, number = reliance
    raise Violation(
        "S2: a loss was not signalled",
        f"{lookup.slot} relies on {key.hex()} at {owner.slot} under number {number}, which is gone "
        f"for {lost_ns / SECOND_NS:.1f} s",
    )
