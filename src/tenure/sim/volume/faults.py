"""All faults of caches, with or without owners."""

from tenure.sim.kernel.faults import FaultTable
from tenure.sim.lease.strikes import FAULTS as OF_LEASES
from tenure.sim.volume.owned_strikes import OWNED
from tenure.sim.volume.strikes import ALONE

FAULTS = FaultTable(
    (*ALONE.faults, *(fault for fault in OWNED.faults if fault.name not in ALONE.kinds)),
    {**OF_LEASES.aliases, **ALONE.aliases},
)
"""All faults. A world has those of its own table."""
