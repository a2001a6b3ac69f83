"""Epochs: how a server without owners begins, and how long it is quiet after its predecessor (V14,
V16).

A server's knowledge of its readers dies with it, but their leases do not. So before it answers
anybody, the next server records that it lives, under a higher number; it makes the store refuse
late writes of its predecessor; and it writes nothing until every volume lease that its predecessor
may have given has ended. There are two ways to know when that is (section 3.1.2): the longest
volume lease that was ever given, or the latest end of any, written ahead.

Its epoch is drawn anew each time. A number that is only counted up would come again if the memory
were restored from a copy; then leases and entries of another life would pass for present ones.
"""

from random import Random
from typing import Literal

import msgspec

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.volume.limits import NONCE_LIMIT
from tenure.protocol.volume.server.events import ServerConfig, VolumeMemory

AHEAD_TERMS = 4
"""How far ahead the latest end is written, in terms: it is written once in two terms, and a start
waits no longer than this.
"""
Phase = Literal["persisting", "fencing", "open", "stopping", "stopped"]


class Opening:
    """The steps from nothing to an open volume, and what is kept for the next server."""

    def __init__(self, config: ServerConfig, random: Random) -> None:
        self.config = config
        self.phase: Phase = "persisting"
        self.epoch = random.randrange(1, NONCE_LIMIT)
        self.quiet_until = Instant(0)
        self.ends_by = FAR_FUTURE
        """No volume lease may end later than this, unless a later instant is written down first."""
        found = config.memory
        # Higher: the store refuses what a body of the server before still writes (V14).
        self.number = found.number + 1 if found is not None else 1
        self.longest_ns = max(config.terms.term_ns, config.longest_ns)
        if found is not None:
            self.longest_ns = max(config.terms.term_ns, found.longest_ns)

    def begin(self, now: Instant) -> VolumeMemory:
        """Begin this life, and return the memory to write down before anything else."""
        self.quiet_until = Instant(now + self.quiet_ns(now))
        return self.memory(now)

    def quiet_ns(self, now: Instant) -> int:
        """How long readers of the predecessor may still hit."""
        config, found = self.config, self.config.memory
        # It closed with no lease left, and nobody has given any since (V16).
        if found is not None and found.drained:
            return 0
        whole = config.terms.held_ns(self.longest_ns)
        # Only the clock of a host that has not restarted since still shows what it showed then.
        same_boot = bool(config.boot_id) and found is not None and found.boot_id == config.boot_id
        if found is not None and found.until and same_boot:
            return min(max(0, found.until - now), whole)
        return whole

    def memory(self, now: Instant) -> VolumeMemory:
        """The memory of this life."""
        until = Instant(0)
        if self.config.remembers == "latest end":
            ahead = AHEAD_TERMS * self.config.terms.held_ns(self.config.terms.term_ns)
            until = max(Instant(now + ahead), self.quiet_until)
        return VolumeMemory(
            number=self.number,
            longest_ns=self.longest_ns,
            until=until,
            boot_id=self.config.boot_id,
        )

    def persisted(self, memory: VolumeMemory) -> None:
        """Take note that this memory is durable."""
        if memory.until:
            # Not before it is durable: the next server waits by what it reads (V16).
            self.ends_by = memory.until

    def went_back(self, now: Instant, seen: int) -> VolumeMemory:
        """Take note that the store has seen a higher number: the memory is an old copy, and does
        not count.
        """
        # Lengths and ends in an old copy are as old as its number: none of them counts.
        self.number = seen + 1
        self.longest_ns = max(self.longest_ns, self.config.longest_ns)
        self.quiet_until = Instant(now + self.config.terms.held_ns(self.longest_ns))
        return self.memory(now)

    def is_to_be_moved(self, now: Instant) -> bool:
        """Whether a later end is to be written down, while leases still have room below it."""
        terms = self.config.terms
        return now + AHEAD_TERMS * terms.held_ns(terms.term_ns) // 2 > self.ends_by

    def last_memory(self, now: Instant) -> VolumeMemory:
        """The memory of a server on which nobody holds a lease any more; leases of the server
        before it have ended only once the quiet is over.
        """
        if now < self.quiet_until:
            memory = self.memory(now)
            until = self.quiet_until if memory.until else Instant(0)
            return msgspec.structs.replace(memory, until=until)
        return msgspec.structs.replace(self.memory(now), until=Instant(0), drained=True)
