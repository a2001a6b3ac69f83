"""The bytes that the last release with version 2 writes, and its reading of bytes, by itself.

    PYTHONPATH=tests/versions/tenure-2.zip python tests/versions/version_2.py write
    PYTHONPATH=tests/versions/tenure-2.zip python tests/versions/version_2.py read

The first prints `golden-2.json`. The second takes lines of JSON, [reader, bytes in hexadecimal],
and answers each with the `repr` of what was read, or with the error.
"""

import json
import sys
from typing import Any

from tenure.protocol.lease import messages as m
from tenure.wire import lease as codec
from tenure.wire.versions import NEWEST

PROCESS = m.Process(boot_id="host", pid_namespace=1, time_namespace=2, pid=10, start_time=100)
HELD = (m.Held(start=b"a", end=b"b", number=5), m.Held(start=b"b", end=None, number=7))
LEASED = (m.Leased(start=b"a", end=b"b", number=5, since=4, mark="renewed"),)

MESSAGES = (
    m.Attest(pool="rooms", incarnation=1, process=PROCESS, manager_nonce=4),
    m.Attested(
        pool="rooms",
        incarnation=1,
        process=PROCESS,
        witness=PROCESS,
        owner_nonce=3,
        manager_nonce=4,
    ),
    m.LeaseRequest(
        pool="rooms",
        incarnation=1,
        owner_nonce=2,
        manager_nonce=3,
        sequence=4,
        journal=5,
        leadership=6,
        held=HELD,
        load=m.LoadReport(span_ns=5, ranges=(m.RangeLoad(start=b"a", end=b"b", rate=0.0),)),  # type: ignore[attr-defined]  # they were there
        receipt=b"sealed",
        knows_former=True,
    ),
    m.LeaseResponse(
        incarnation=1,
        owner_nonce=2,
        sequence=3,
        manager_nonce=4,
        journal=5,
        leadership=6,
        term_ns=7,
        renew_ns=8,
        leases=LEASED,
        receipt=b"sealed",
        cause="3.1",
        reads_ns=9,
    ),
)
READERS: dict[str, Any] = {
    "manager": codec.decode_to_manager,
    "owner": codec.decode_to_owner,
    "lookup": codec.decode_to_lookup,
}


def read(line: str) -> str:
    """Return what becomes of one line."""
    reader, written = json.loads(line)
    try:
        return repr(READERS[reader](bytes.fromhex(written), NEWEST))
    except Exception as error:  # noqa: BLE001 - it is told, whatever it is
        return repr(error)


if __name__ == "__main__":
    if sys.argv[1:] == ["write"]:
        golden = [{"is": repr(each), "hex": codec.encode(each, NEWEST).hex()} for each in MESSAGES]
        json.dump(golden, sys.stdout, indent=1)
        print()
    else:
        for line in sys.stdin:
            print(json.dumps(read(line)))
