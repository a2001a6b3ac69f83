"""What to simulate of caches."""

import msgspec

from tenure.base.instants import seconds
from tenure.protocol.volume.terms import Terms
from tenure.sim.volume.strikes import KINDS

SLOW = Terms(
    term_ns=seconds(30),  # ten times the default, so that an hour has a tenth of the messages
    lease_ns=seconds(600),
    keep_ns=seconds(60),
    mute_ns=seconds(60),
)


class VolumeTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What one seed runs."""

    seed: int
    hours: float = 1.0
    terms: Terms = SLOW
    """Its mode and its lengths, but for t_v, are drawn anew."""
    clients: int = 3
    keys: int = 4
    faults: tuple[str, ...] = KINDS
    fault_rate: float = 1.0
    skew: int = 40_000
    """How far the rate of a clock may be off, in a million: twice that is within 13/12."""
