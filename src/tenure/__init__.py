"""One owner for every key, in a pool of ordinary Python processes."""

from importlib import import_module
from typing import TYPE_CHECKING

from tenure.base.keys import UserKey
from tenure.base.ranges import KeyRange
from tenure.cache.cache import BlockingCache, Cache
from tenure.cache.cache_server import CacheServer
from tenure.cache.hit import MISSING, LastKnown, Missing, Proof
from tenure.cache.volume import Volume
from tenure.cache.volume_write import VolumeWrite
from tenure.client.hand_off.handler import Granted, HandOffHandler
from tenure.client.hand_off.keyed_state import KeyedState
from tenure.client.lease import Lease
from tenure.client.lookup import Lookup
from tenure.client.owner import Owner
from tenure.client.refusals import HttpAnswer, refusal
from tenure.client.watching import KeyChange, Watch
from tenure.entities.entities import Entities
from tenure.entities.entity import Alarm, Entity, Socket
from tenure.entities.methods import reading
from tenure.errors import (
    Busy,
    ClosedError,
    ConfigurationError,
    EntityError,
    Fenced,
    ForkedError,
    Full,
    KeyTypeError,
    LeaseLost,
    LoadFailed,
    NameHeld,
    NoManager,
    NoOwner,
    NoQuorum,
    NotOwner,
    OutcomeUnknown,
    Overloaded,
    PoolError,
    ProtocolError,
    SchemaError,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreInUse,
    StoreTooNew,
    StoreUnwritable,
    TenureError,
    TooLate,
    TurnTooLong,
    Unreachable,
    Unsupported,
    UsageError,
    ValueTypeError,
    WriteUnknown,
)
from tenure.fencing.fence import Fence
from tenure.fencing.postgres_fence import PostgresFence
from tenure.fencing.sqlite_fence import SqliteFence
from tenure.member.dependency import owned
from tenure.member.member import Member
from tenure.member.relay import Relay
from tenure.owned_state.state import OwnedState
from tenure.owned_state.turn import Turn
from tenure.routing.aiohttp_middleware import route
from tenure.routing.derived_keys import blocking_quorum, derived_keys, quorum
from tenure.routing.httpx_transport import RoutingTransport
from tenure.transport.credentials import Credentials

if TYPE_CHECKING:
    from tenure.client.collector import MetricsCollector
    from tenure.columns.blocking import BlockingOwnedRows
    from tenure.columns.engines.rocksdb import EngineOptions
    from tenure.columns.opening import open_store
    from tenure.columns.owned_rows import OwnedRow, OwnedRows
    from tenure.columns.paths import DELETE
    from tenure.columns.results import Column, Page, Row, SuperColumn
    from tenure.columns.tables import Family, Table
    from tenure.member.aiohttp_relay import AiohttpRelay

__version__ = "0.1.0"

_LATER = {
    "AiohttpRelay": "tenure.member.aiohttp_relay",
    "BlockingOwnedRows": "tenure.columns.blocking",
    "Column": "tenure.columns.results",
    "DELETE": "tenure.columns.paths",
    "MetricsCollector": "tenure.client.collector",
    "EngineOptions": "tenure.columns.engines.rocksdb",
    "Family": "tenure.columns.tables",
    "OwnedRow": "tenure.columns.owned_rows",
    "OwnedRows": "tenure.columns.owned_rows",
    "Page": "tenure.columns.results",
    "Row": "tenure.columns.results",
    "SuperColumn": "tenure.columns.results",
    "Table": "tenure.columns.tables",
    "open_store": "tenure.columns.opening",
}
"""What is loaded when it is asked for, since it loads what few processes need."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


__all__ = [
    "DELETE",
    "MISSING",
    "AiohttpRelay",
    "Alarm",
    "BlockingCache",
    "BlockingOwnedRows",
    "Busy",
    "Cache",
    "CacheServer",
    "ClosedError",
    "Column",
    "ConfigurationError",
    "Credentials",
    "EngineOptions",
    "Entities",
    "Entity",
    "EntityError",
    "Family",
    "Fence",
    "Fenced",
    "ForkedError",
    "Full",
    "Granted",
    "HandOffHandler",
    "HttpAnswer",
    "KeyChange",
    "KeyRange",
    "KeyTypeError",
    "KeyedState",
    "LastKnown",
    "Lease",
    "LeaseLost",
    "LoadFailed",
    "Lookup",
    "Member",
    "MetricsCollector",
    "Missing",
    "NameHeld",
    "NoManager",
    "NoOwner",
    "NoQuorum",
    "NotOwner",
    "OutcomeUnknown",
    "Overloaded",
    "OwnedRow",
    "OwnedRows",
    "OwnedState",
    "Owner",
    "Page",
    "PoolError",
    "PostgresFence",
    "Proof",
    "ProtocolError",
    "Relay",
    "RoutingTransport",
    "Row",
    "SchemaError",
    "Socket",
    "SqliteFence",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreInUse",
    "StoreTooNew",
    "StoreUnwritable",
    "SuperColumn",
    "Table",
    "TenureError",
    "TooLate",
    "Turn",
    "TurnTooLong",
    "Unreachable",
    "Unsupported",
    "UsageError",
    "UserKey",
    "ValueTypeError",
    "Volume",
    "VolumeWrite",
    "Watch",
    "WriteUnknown",
    "__version__",
    "blocking_quorum",
    "derived_keys",
    "open_store",
    "owned",
    "quorum",
    "reading",
    "refusal",
    "route",
]
