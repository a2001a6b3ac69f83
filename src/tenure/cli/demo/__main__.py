"""A process of the demo: `python -m tenure.cli.demo ROLE NAME PARENT [ARGUMENTS]`.

Not to be started by hand: it wants its orders on standard input. The manager is the ordinary
`tenure manager`, on a leash.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from tenure.cli.demo.leash import Leash, die_with, listen


def main(role: str, parent: int, arguments: list[str]) -> int:
    """Be what is wanted, until told to stop."""
    die_with(parent)
    match role:
        case "manager":
            from tenure.cli.app import run

            listen(lambda _: None)
            return run(["manager", *arguments])
        case "etcd":
            os.execv(arguments[0], arguments)  # noqa: S606  # whose death with its parent goes on
        case "owner":
            from tenure.cli.demo.owner import be_owner

            asyncio.run(_on_leash(be_owner))
        case "frontend":
            from tenure.cli.demo.frontend import be_frontend

            asyncio.run(_on_leash(be_frontend))
        case _:
            raise AssertionError(role)
    return 0


async def _on_leash(be: Callable[[Leash], Awaitable[None]]) -> None:
    await be(Leash())


if __name__ == "__main__":
    _, role, _name, parent, *arguments = sys.argv
    sys.exit(main(role, int(parent), arguments))
