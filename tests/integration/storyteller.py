"""An owner or a lookup in a process of its own, whose log is JSON.

`python -m tests.integration.storyteller owner URL NAME`, or `lookup`. The log goes to standard
error; a line on standard output says that it is ready.
"""

import logging
import sys
import time

from tenure import Lookup, Owner
from tenure.observe.json_log import JsonFormatter

POOL = "rooms"


def main() -> None:
    what, url, name = sys.argv[1:]
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.DEBUG)
    if what == "owner":
        owner = Owner(url, pool=POOL, address=f"http://{name}", name=name)
        owner.__enter__()
        _ = owner.ready()
    else:
        Lookup(url, pool=POOL).__enter__()
    print("ready", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
