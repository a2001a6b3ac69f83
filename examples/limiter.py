"""A limit for each user, exact though several processes serve them: owned state.

    python examples/limiter.py

Each user is counted by one process at a time, in its memory. A count ends by itself a minute after
the user's first request.
"""

import asyncio

from tenure import OwnedState
from tenure.testing.clock import TurnedClock
from tenure.testing.cluster import InProcessCluster

ALLOWED = 5
WINDOW_SECONDS = 60.0

counts: OwnedState[int] = OwnedState(value_type=int, ttl=WINDOW_SECONDS)


async def allows(user: str) -> float:
    """0 where a request may be served, otherwise in how many seconds the next one may."""
    async with counts.at(user) as count:
        if count.value is None:
            count.value = 1
            return 0
        if count.value >= ALLOWED:
            return count.ttl or 0
        ends = count.ttl  # the minute began with the first request
        count.value += 1
        count.ttl = ends
        return 0


async def main() -> None:
    """Show it, by a clock that is turned by hand."""
    async with InProcessCluster(["limits"], clock=TurnedClock()) as cluster:
        owner = cluster.owner(hand_off=counts)
        entering = asyncio.create_task(owner.__aenter__())
        await cluster.turn(1)
        await entering
        waits = await asyncio.gather(*(allows("ann") for _ in range(8)))
        print(f"of 8 requests of ann at once, {waits.count(0)} are served")
        await cluster.turn(30)
        print(f"after 30 s the next one may come in {await allows('ann'):.0f} s")
        await cluster.turn(30)
        print(f"after 60 s it is {'served' if await allows('ann') == 0 else 'refused'}")
        leaving = asyncio.ensure_future(owner.close(drain=0))
        await cluster.turn(1)
        await leaving


if __name__ == "__main__":
    asyncio.run(main())
