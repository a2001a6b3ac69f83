"""An owner or a lookup as a process of its own: `python -m tests.integration.failover.client`.

    owner URL NAME HOST SECONDS
    lookup URL

HOST stands in the identity of its process, so owners of another HOST cannot see it. SECONDS is how
long it tries to enter.

It answers each line of its input with a line of JSON: what an owner holds of KEYS, with the lease
numbers; or where a lookup finds them, and how many ranges it was told are lost.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from tenure import KeyRange, Lookup, NameHeld, Owner
from tenure.client.environment import RealEnvironment
from tenure.protocol.lease.messages import Process
from tests.integration.failover.traffic import KEYS, POOL

Answer = Callable[[], object]


class OnHost(RealEnvironment):
    """A process of another host than the machine's."""

    def __init__(self, host: str) -> None:
        super().__init__()
        self._host = host

    def own_process(self) -> Process | None:
        found = super().own_process()
        assert found is not None
        return msgspec.structs.replace(found, boot_id=self._host)


@contextmanager
def owner(url: str, name: str, host: str, patience: str) -> Iterator[Answer]:
    made = Owner(
        url,
        pool=POOL,
        address=f"http://{name}.{host}",
        name=name,
        enter_timeout=float(patience),
        _environment=OnHost(host),
    )
    with made:
        yield lambda: {key: lease.number for key in KEYS if (lease := made.check(key))}


@contextmanager
def lookup(url: str) -> Iterator[Answer]:
    lost: list[KeyRange] = []
    with Lookup(url, pool=POOL, on_loss=lost.extend) as made:
        yield lambda: {"found": {key: made.find(key) for key in KEYS}, "lost": len(lost)}


def main() -> None:
    role, *arguments = sys.argv[1:]
    try:
        with (owner if role == "owner" else lookup)(*arguments) as answer:
            print(json.dumps("ready"), flush=True)
            for _ in sys.stdin:
                print(json.dumps(answer()), flush=True)
    except NameHeld as error:
        print(json.dumps(f"held: {error}"), flush=True)


if __name__ == "__main__":
    main()
