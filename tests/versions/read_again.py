"""A program that an older release than the one beside it runs, to show what that release makes of
bytes.

It takes lines of JSON, [reader, bytes in hexadecimal], and answers each with the `repr` of what was
read, or with the error.
"""

import json
import sys
from importlib import import_module
from typing import Any

codec: Any = import_module("leasehold.wire.codec")
journal_codec: Any = import_module("leasehold.wire.journal_codec")

READERS: dict[str, Any] = {
    "manager": codec.decode_to_manager,
    "owner": codec.decode_to_owner,
    "lookup": codec.decode_to_lookup,
    "records": lambda data: journal_codec.decode_record(data, "there"),
    "states": lambda data: journal_codec.decode_state(data, "there"),
}

if __name__ == "__main__":
    for line in sys.stdin:
        reader, written = json.loads(line)
        try:
            said = repr(READERS[reader](bytes.fromhex(written)))
        except Exception as error:  # noqa: BLE001 - it is told, whatever it is
            said = repr(error)
        print(json.dumps(said))
