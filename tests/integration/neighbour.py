"""An owner as a process, for tests that kill it: `python -m tests.integration.neighbour`.

The arguments are the manager's URL, a name, and what is odd about it: `plain`; `forked`, whose
child keeps its sockets; or `headless`, whose first thread ends while the others go on.
"""

import ctypes
import os
import sys
import threading
import time

from tenure import Owner

POOL = "rooms"


def wait_for_ever() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    url, name, oddity = sys.argv[1:]
    owner = Owner(url, pool=POOL, address=f"http://{name}", name=name)
    owner.__enter__()
    child = 0
    if oddity == "forked":
        child = os.fork()
        if child == 0:
            wait_for_ever()
    print(child, flush=True)
    if oddity == "headless":
        threading.Thread(target=wait_for_ever).start()
        ctypes.CDLL(None).pthread_exit(None)
    wait_for_ever()


if __name__ == "__main__":
    main()
