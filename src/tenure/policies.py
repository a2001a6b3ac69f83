"""What a policy of your own is made of: see `tenure docs guides/your-own-policy`.

A policy is a class that is called without arguments, and whose instances are called with a
`Situation` and return a `Plan`. `Weighted`, `Ring` and `Deal` are ours; yours may ask them.
"""

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE, KeyRange
from tenure.protocol.balance.deal import Deal
from tenure.protocol.balance.load import Loads, Position, share_of
from tenure.protocol.balance.policy import (
    NOBODY,
    Candidate,
    HeldBack,
    Pin,
    Plan,
    Policy,
    Situation,
    Why,
    forbidden,
    nothing_to_plan,
    obeying,
    open_to_more,
)
from tenure.protocol.balance.ring import Ring
from tenure.protocol.balance.tuning import ORDERED
from tenure.protocol.balance.weighted import Weighted
from tenure.protocol.lease.table import Right

__all__ = (
    "FAR_FUTURE",
    "NOBODY",
    "ORDERED",
    "WHOLE",
    "Candidate",
    "Deal",
    "HeldBack",
    "Instant",
    "KeyRange",
    "Loads",
    "Pin",
    "Plan",
    "Policy",
    "Position",
    "RangeMap",
    "Right",
    "Ring",
    "Situation",
    "Weighted",
    "Why",
    "forbidden",
    "nothing_to_plan",
    "obeying",
    "open_to_more",
    "share_of",
)
