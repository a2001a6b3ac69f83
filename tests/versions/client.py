"""An owner and a lookup of one pool, as a program: whichever release runs it.

Takes the package to import, the address at which it is to serve, and the managers. Each line on
standard input is answered with how things are, as JSON; at the end of input it leaves.
"""

import asyncio
import json
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

POOL = "mixed"
KEYS = tuple(f"room-{n}" for n in range(40))


async def lines() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def machine(of: Any) -> Any:  # noqa: ANN401 - of either release
    """Return what the first release called `_machine`; there, `machine` is a method
    that makes one.
    """
    engine = of._engine
    return engine._machine if hasattr(engine, "_machine") else engine.machine


def in_hex(ranges: Iterable[Any]) -> list[tuple[str, str | None]]:
    return [(each.start.hex(), each.end and each.end.hex()) for each in ranges]


def state(owner: Any, lookup: Any, told: dict[str, list[Any]]) -> dict[str, Any]:  # noqa: ANN401 - of either release
    leases = {key: owner.check(key) for key in KEYS}
    return {
        "leases": {key: lease.number for key, lease in leases.items() if lease},
        "found": {key: lookup.find(key) for key in KEYS},
        "seen": min(machine(owner).leadership, machine(lookup).leadership),
        "ranges": in_hex(owner.ranges),
        **{what: in_hex(ranges) for what, ranges in told.items()},
    }


async def main(package: str, address: str, *managers: str) -> None:
    tenure: Any = import_module(package)
    told: dict[str, list[Any]] = {"revoked": [], "lost": []}
    asked = await lines()
    async with (
        tenure.Owner(
            managers, pool=POOL, address=address, on_revoke=told["revoked"].extend
        ) as owner,
        tenure.Lookup(managers, pool=POOL, on_loss=told["lost"].extend) as lookup,
    ):
        while await asked.readline():
            print(json.dumps(state(owner, lookup, told)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
