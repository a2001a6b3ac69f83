"""The faults of a world of caches with owners: those of the core, and those of caches."""

from typing import Any

from lab.worlds.lease.strikes import FAULTS as OF_LEASES
from lab.worlds.lease.strikes import PUT_BACK, OwnerStrikes
from lab.worlds.volume.strikes import READING, STORES, ReaderStrikes
from tenure.sim.kernel.faults import Fault, FaultTable, terms_apart


class OwnedStrikes(ReaderStrikes, OwnerStrikes):
    """The faults of managers, owners, lookups and caches."""

    site: Any

    def quick_restart(self) -> None:
        """An owner's next life starts at once, and its neighbours see that the last one is dead."""
        owner = self.any_of(self.site.owners())
        if owner is not None:
            owner.kill()
            self.site.restart_later(owner.slot, self.random.randrange(1, 1_000_000))


OWNED = FaultTable(
    (
        *(fault for fault in OF_LEASES.faults if fault is not PUT_BACK),
        *STORES,
        *READING,
        Fault("crash of a client", terms_apart, OwnedStrikes.crash_of_a_client),
        Fault("quick restart", terms_apart, OwnedStrikes.quick_restart),
        Fault("one-way cut from a client", terms_apart, OwnedStrikes.cut_one_way_from_a_client),
        Fault("cut from a client", terms_apart, OwnedStrikes.cut_from_a_client),
    )
)
"""All but the journal that is put back under its own identity: until that is noticed nothing is
promised, of leases or of caches."""
