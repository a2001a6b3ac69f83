"""One owner for every key, in a pool of ordinary Python processes."""

from leasehold.base.keys import UserKey
from leasehold.base.ranges import KeyRange
from leasehold.client.hand_off.handler import Granted, HandOffHandler
from leasehold.client.hand_off.keyed_state import KeyedState
from leasehold.client.lease import Lease
from leasehold.client.lookup import Lookup
from leasehold.client.owner import Owner
from leasehold.client.watching import KeyChange, Watch
from leasehold.errors import (
    ClosedError,
    ConfigurationError,
    ForkedError,
    KeyTypeError,
    LeaseholdError,
    LeaseLost,
    NameHeld,
    NoManager,
    NotOwner,
    PoolError,
    ProtocolError,
    UsageError,
)

__version__ = "0.1.0"

__all__ = [
    "ClosedError",
    "ConfigurationError",
    "ForkedError",
    "Granted",
    "HandOffHandler",
    "KeyChange",
    "KeyRange",
    "KeyTypeError",
    "KeyedState",
    "Lease",
    "LeaseLost",
    "LeaseholdError",
    "Lookup",
    "NameHeld",
    "NoManager",
    "NotOwner",
    "Owner",
    "PoolError",
    "ProtocolError",
    "UsageError",
    "UserKey",
    "Watch",
    "__version__",
]
