"""What to simulate of caches."""

from tenure.base.instants import seconds
from tenure.protocol.volume.server_events import Remembers
from tenure.protocol.volume.terms import Terms
from tenure.sim.kernel.world import AnyTrial
from tenure.sim.volume.faults import FAULTS

SLOW = Terms(
    term_ns=seconds(30),  # ten times the default, so that an hour has a tenth of the messages
    lease_ns=seconds(600),
    keep_ns=seconds(60),
    mute_ns=seconds(60),
)


class VolumeTrial(AnyTrial, frozen=True, kw_only=True):
    """What one seed of caches runs."""

    terms: Terms = SLOW
    """Its mode and its lengths, but for t_v, are drawn anew."""
    clients: int = 3
    keys: int = 4
    owners: bool | None = None
    """Whether owners serve, with managers and lookups, or one server without; None: every other
    seed.
    """
    lease_terms: float | None = None
    """How long an object lease is, in terms; None: drawn, as are the next two."""
    known_writes: int | None = None
    remembers: Remembers | None = None
    """What a server without owners writes down."""
    faults: tuple[str, ...] = FAULTS.kinds
    skew: int = 40_000
    """How far the rate of a clock may be off, in a million: twice that is within 13/12."""

    def lease_ns(self, term_ns: int, drawn_ns: int) -> int:
        """How long an object lease is, where a volume lease is so long."""
        return drawn_ns if self.lease_terms is None else round(self.lease_terms * term_ns)

    @property
    def has_owners(self) -> bool:
        """Whether owners serve in this world."""
        return self.seed % 2 == 1 if self.owners is None else self.owners
