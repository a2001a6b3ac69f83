"""A periodic task that several processes share: each works on the keys that its grants name.

    tenure run -- sh -c 'python examples/periodic.py & python examples/periodic.py; wait'

There are owners only. Nobody looks a key up and nobody sends a request, so there is no address to
find: the manager deals the keys out, and tells each process which ones are its own (PRS 3.4).
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from tenure import KeyRange, Lease, Owner

SITES = [f"site-{number}" for number in range(100)]
EVERY_SECONDS = 2.0

Check = Callable[[str, Lease], Awaitable[None]]


class Rounds:
    """The work of one process: it checks its sites, one after another, again and again."""

    owner: Owner

    def __init__(self, check: Check) -> None:
        self.mine: set[str] = set()
        self._check = check

    async def on_grant(self, ranges: Iterable[KeyRange]) -> None:
        """These sites are ours from now on."""
        self.mine |= self._sites(ranges)

    async def on_revoke(self, ranges: Iterable[KeyRange]) -> None:
        """These sites are no longer ours."""
        self.mine -= self._sites(ranges)

    def _sites(self, ranges: Iterable[KeyRange]) -> set[str]:
        ranges = list(ranges)
        return {site for site in SITES if any(self.owner.key(site) in each for each in ranges)}

    async def go_round(self) -> int:
        """Check every site that is ours, and return how many there were."""
        done = 0
        for site in sorted(self.mine):
            lease = self.owner.check(site)  # it may be lost, and `on_revoke` not called yet
            if lease is not None:
                await self._check(site, lease)
                done += 1
        return done


async def look_at(site: str, lease: Lease) -> None:
    """Do the work that there is. Whatever it writes elsewhere goes with the lease number, as a
    fence.
    """
    del site, lease


async def main() -> None:
    """Go round until a signal says to leave; then others have our sites at once."""
    rounds = Rounds(look_at)
    rounds.owner = Owner(
        pool="site-checks",
        address="http://nobody.invalid",  # it must be given, and nobody connects to it
        on_grant=rounds.on_grant,
        on_revoke=rounds.on_revoke,
    )
    leaving = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, leaving.set)
    async with rounds.owner:
        while not leaving.is_set():
            print(f"checked {await rounds.go_round()} of {len(SITES)} sites", flush=True)
            with suppress(TimeoutError):
                await asyncio.wait_for(leaving.wait(), EVERY_SECONDS)


if __name__ == "__main__":
    asyncio.run(main())
