"""One owner for every key, in a pool of ordinary Python processes."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.base.keys import UserKey
    from tenure.base.ranges import KeyRange
    from tenure.base.standing import KeyStanding
    from tenure.cache.cache import BlockingCache, Cache
    from tenure.cache.cache_server import CacheServer
    from tenure.cache.hit import MISSING, LastKnown, Missing, Proof
    from tenure.cache.volume import Volume
    from tenure.cache.volume_write import VolumeWrite
    from tenure.client.collector import MetricsCollector
    from tenure.client.hand_off.handler import Granted, HandOffHandler
    from tenure.client.hand_off.keyed_state import KeyedState
    from tenure.client.hand_off.state_fields import was
    from tenure.client.lease import Lease
    from tenure.client.lookup import Lookup
    from tenure.client.owner import Owner
    from tenure.client.refusals import HttpAnswer, refusal
    from tenure.client.watching import KeyChange, Watch
    from tenure.columns.blocking import BlockingOwnedRows
    from tenure.columns.engines.rocksdb import EngineOptions
    from tenure.columns.opening import open_store
    from tenure.columns.owned_rows import OwnedRow, OwnedRows
    from tenure.columns.paths import DELETE
    from tenure.columns.results import Column, Page, Row, SuperColumn
    from tenure.columns.tables import Family, Table
    from tenure.entities.entities import Entities
    from tenure.entities.entity import Alarm, Entity, Socket
    from tenure.entities.mapping import Mapping
    from tenure.entities.methods import reading
    from tenure.entities.series import Series
    from tenure.entities.state_versions import upgrade
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
        NewerState,
        NoManager,
        NoOwner,
        NoQuorum,
        NotOwner,
        OutcomeUnknown,
        Overloaded,
        PoolError,
        ProtocolError,
        SchemaError,
        ServiceRefusal,
        StoreAway,
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
    from tenure.member.aiohttp.relay import AiohttpRelay
    from tenure.member.dependency import owned
    from tenure.member.member import Member
    from tenure.member.relay import Relay
    from tenure.observe.json_log import JsonFormatter
    from tenure.owned_state.state import OwnedState
    from tenure.owned_state.turn import Turn
    from tenure.routing.aiohttp_middleware import route
    from tenure.routing.derived_keys import blocking_quorum, derived_keys, quorum
    from tenure.routing.httpx_transport import RoutingTransport
    from tenure.transport.credentials import Credentials

__version__ = "0.1.0"

_WHERE = {
    "AiohttpRelay": "tenure.member.aiohttp.relay",
    "Alarm": "tenure.entities.entity",
    "BlockingCache": "tenure.cache.cache",
    "BlockingOwnedRows": "tenure.columns.blocking",
    "Busy": "tenure.errors",
    "Cache": "tenure.cache.cache",
    "CacheServer": "tenure.cache.cache_server",
    "ClosedError": "tenure.errors",
    "Column": "tenure.columns.results",
    "ConfigurationError": "tenure.errors",
    "Credentials": "tenure.transport.credentials",
    "DELETE": "tenure.columns.paths",
    "EngineOptions": "tenure.columns.engines.rocksdb",
    "Entities": "tenure.entities.entities",
    "Entity": "tenure.entities.entity",
    "EntityError": "tenure.errors",
    "Family": "tenure.columns.tables",
    "Fence": "tenure.fencing.fence",
    "Fenced": "tenure.errors",
    "ForkedError": "tenure.errors",
    "Full": "tenure.errors",
    "Granted": "tenure.client.hand_off.handler",
    "HandOffHandler": "tenure.client.hand_off.handler",
    "HttpAnswer": "tenure.client.refusals",
    "JsonFormatter": "tenure.observe.json_log",
    "KeyChange": "tenure.client.watching",
    "KeyRange": "tenure.base.ranges",
    "KeyStanding": "tenure.base.standing",
    "KeyTypeError": "tenure.errors",
    "KeyedState": "tenure.client.hand_off.keyed_state",
    "LastKnown": "tenure.cache.hit",
    "Lease": "tenure.client.lease",
    "LeaseLost": "tenure.errors",
    "LoadFailed": "tenure.errors",
    "Lookup": "tenure.client.lookup",
    "MISSING": "tenure.cache.hit",
    "Mapping": "tenure.entities.mapping",
    "Member": "tenure.member.member",
    "MetricsCollector": "tenure.client.collector",
    "Missing": "tenure.cache.hit",
    "NameHeld": "tenure.errors",
    "NewerState": "tenure.errors",
    "NoManager": "tenure.errors",
    "NoOwner": "tenure.errors",
    "NoQuorum": "tenure.errors",
    "NotOwner": "tenure.errors",
    "OutcomeUnknown": "tenure.errors",
    "Overloaded": "tenure.errors",
    "OwnedRow": "tenure.columns.owned_rows",
    "OwnedRows": "tenure.columns.owned_rows",
    "OwnedState": "tenure.owned_state.state",
    "Owner": "tenure.client.owner",
    "Page": "tenure.columns.results",
    "PoolError": "tenure.errors",
    "PostgresFence": "tenure.fencing.postgres_fence",
    "Proof": "tenure.cache.hit",
    "ProtocolError": "tenure.errors",
    "Relay": "tenure.member.relay",
    "RoutingTransport": "tenure.routing.httpx_transport",
    "Row": "tenure.columns.results",
    "SchemaError": "tenure.errors",
    "Series": "tenure.entities.series",
    "ServiceRefusal": "tenure.errors",
    "Socket": "tenure.entities.entity",
    "SqliteFence": "tenure.fencing.sqlite_fence",
    "StoreDamaged": "tenure.errors",
    "StoreError": "tenure.errors",
    "StoreAway": "tenure.errors",
    "StoreFailed": "tenure.errors",
    "StoreInUse": "tenure.errors",
    "StoreTooNew": "tenure.errors",
    "StoreUnwritable": "tenure.errors",
    "SuperColumn": "tenure.columns.results",
    "Table": "tenure.columns.tables",
    "TenureError": "tenure.errors",
    "TooLate": "tenure.errors",
    "Turn": "tenure.owned_state.turn",
    "TurnTooLong": "tenure.errors",
    "Unreachable": "tenure.errors",
    "Unsupported": "tenure.errors",
    "UsageError": "tenure.errors",
    "UserKey": "tenure.base.keys",
    "ValueTypeError": "tenure.errors",
    "Volume": "tenure.cache.volume",
    "VolumeWrite": "tenure.cache.volume_write",
    "Watch": "tenure.client.watching",
    "WriteUnknown": "tenure.errors",
    "upgrade": "tenure.entities.state_versions",
    "was": "tenure.client.hand_off.state_fields",
    "blocking_quorum": "tenure.routing.derived_keys",
    "derived_keys": "tenure.routing.derived_keys",
    "open_store": "tenure.columns.opening",
    "owned": "tenure.member.dependency",
    "quorum": "tenure.routing.derived_keys",
    "reading": "tenure.entities.methods",
    "refusal": "tenure.client.refusals",
    "route": "tenure.routing.aiohttp_middleware",
}
"""Each name is loaded when it is asked for: pytest imports this package, for its plugin, in every
project that has it, and a process needs few of these.
"""


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return found


def __dir__() -> list[str]:
    return [*globals(), *_WHERE]


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
    "JsonFormatter",
    "KeyChange",
    "KeyRange",
    "KeyStanding",
    "KeyTypeError",
    "KeyedState",
    "LastKnown",
    "Lease",
    "LeaseLost",
    "LoadFailed",
    "Lookup",
    "Mapping",
    "Member",
    "MetricsCollector",
    "Missing",
    "NameHeld",
    "NewerState",
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
    "Series",
    "ServiceRefusal",
    "Socket",
    "SqliteFence",
    "StoreAway",
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
    "upgrade",
    "was",
]
