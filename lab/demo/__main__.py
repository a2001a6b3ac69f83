"""A process of a demo: `python -m lab.demo ROLE NAME PARENT [ARGUMENTS]`, on a leash."""

import asyncio
import sys

from lab.demo.caches.cache_frontend import be_cache_frontend
from lab.demo.caches.cache_owner import be_cache_owner
from tenure.cli.demo import __main__ as presence
from tenure.cli.demo.leash import Leash, die_with

ROLES = {"cache-owner": be_cache_owner, "cache-frontend": be_cache_frontend}


def main(role: str, parent: int, arguments: list[str]) -> int:
    """Be what is wanted, until told to stop."""
    if role not in ROLES:
        return presence.main(role, parent, arguments)
    die_with(parent)
    asyncio.run(_on_leash(role))
    return 0


async def _on_leash(role: str) -> None:
    await ROLES[role](Leash())


if __name__ == "__main__":
    _, role, _name, parent, *arguments = sys.argv
    sys.exit(main(role, int(parent), arguments))
