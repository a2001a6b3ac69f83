"""The bytes that a release writes, by that release itself: a program for `golden-1.json`.

    PYTHONPATH=tests/versions/leasehold-1.zip python tests/versions/write_golden.py

It is run by an older release than that beside it, so it knows that one's modules by name only.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, get_args

messages: Any = import_module("leasehold.protocol.lease.messages")
records: Any = import_module("leasehold.protocol.lease.records")
contract: Any = import_module("leasehold.testing.contracts.journal")
codec: Any = import_module("leasehold.wire.codec")
journal_codec: Any = import_module("leasehold.wire.journal_codec")

m, r = messages, records
MOST = (1 << 63) - 1
ENTRIES = (m.Entry(b"", b"m", 1, 5, 5), m.Entry(b"m", None, 0, 6, 6))
OWNERS = (m.OwnerInfo(1, "a", "http://10.0.0.7"),)
LEASED = (
    m.Leased(b"a", b"b", 2, 1, "granted"),
    m.Leased(b"b", b"c", 3, 3, "renewed"),
    m.Leased(b"c", None, 4, 4, "recalled"),
)
HELD = (m.Held(b"", b"a", 1), m.Held(b"b", None, MOST))

MESSAGES = (
    m.Hello("rooms", MOST),
    m.Join("rooms", None, "a", "http://10.0.0.7", 1, 2, 3),
    m.Join("rooms", "ordered", "a", "http://10.0.0.7", 1, 2, 3, 0.5, {"zone": "östlich"}),
    m.LeaseRequest("rooms", 1, 2, 3, 4, 5, 6, ()),
    m.LeaseRequest("rooms", 1, 2, 3, 4, 5, 6, HELD, True),
    m.Sync("rooms", 1, 2, 3, 4, 5),
    m.Introduction(1, 2, 3),
    m.Introduction(1, 2, 3, 4, 5, 6),
    m.LeaseResponse(1, 2, 3, 4, 5, 6, 7, 8, LEASED),
    m.Refusal(1, 2, 3, 4, 5, "name_held", "another is alive", 6),
    m.Refusal(1, 2, 3, 4, 5, "past", ""),
    m.Refusal(1, 2, 3, 4, 5, "no_pool", "create it"),
    m.Refusal(1, 2, 3, 4, 5, "pool_kind", "it is ordered"),
    m.Poke(),
    m.Standby(None),
    m.Standby("http://10.0.0.9:7400"),
    m.SyncResponse(1, 2, 3, 4, 5, "hashed", True, ENTRIES, OWNERS, 6, 7),
    m.SyncResponse(1, 2, 3, 4, 5, "ordered", False, ENTRIES[::-1], OWNERS, 6, 7),
    m.SyncRefusal(1, 2, "no such pool"),
    m.Changes("rooms", 1, 2, 3, 4, ENTRIES, OWNERS),
)
RECORDS = (
    *contract.EVERY_RECORD,
    r.PoolCreated("p", "hashed"),
    r.Joined("p", 1, "a", 7, "http://a"),
)
STATES = (r.State(), contract.A_STATE)
WORDS = ("Mark", "RefusalReason", "PoolKind")


def samples(things: tuple[object, ...], encode: Callable[[object], bytes]) -> list[dict[str, str]]:
    return [{"is": repr(each), "hex": encode(each).hex()} for each in things]


def fields() -> dict[str, list[str]]:
    """Return everything that is written, in its order."""
    modules = (*vars(messages).items(), *vars(records).items())
    found = {name: getattr(thing, "__struct_fields__", None) for name, thing in modules}
    return {name: list(each) for name, each in sorted(found.items()) if each is not None}


def main() -> None:
    golden = {
        "messages": samples(MESSAGES, codec.encode),
        "records": samples(RECORDS, journal_codec.encode_record),
        "states": samples(STATES, journal_codec.encode_state),
        "fields": fields(),
        "words": {name: list(get_args(getattr(messages, name))) for name in WORDS},
    }
    json.dump(golden, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
