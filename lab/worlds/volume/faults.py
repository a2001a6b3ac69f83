"""All faults of caches, with or without owners."""

from lab.worlds.lease.strikes import FAULTS as OF_LEASES
from lab.worlds.volume.owned_strikes import OWNED
from lab.worlds.volume.strikes import ALONE
from tenure.sim.kernel.faults import FaultTable

FAULTS = FaultTable(
    (*ALONE.faults, *(fault for fault in OWNED.faults if fault.name not in ALONE.kinds)),
    {**OF_LEASES.aliases, **ALONE.aliases},
)
"""All faults. A world has those of its own table."""
