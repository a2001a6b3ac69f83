"""`python -m tests.integration.looking`: look at a process from elsewhere, and print what was seen.

The arguments are the process as JSON, or nothing, to print one's own; and the user to look as. All
modules are loaded before the user is changed, who may not be able to read them.
"""

import os
import sys

import msgspec

from tenure.client.attestation import look, own_process
from tenure.protocol.lease.messages import Process


def main() -> None:
    suspect = msgspec.json.decode(sys.argv[1], type=Process | None)
    if len(sys.argv) > 2:
        user = int(sys.argv[2])
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    seen = own_process() if suspect is None else look(suspect)
    print(msgspec.json.encode(seen).decode())


if __name__ == "__main__":
    main()
