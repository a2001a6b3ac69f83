"""Carts that move with their keys: owned state, and refusals that are true.

    python examples/moving_carts.py

A cluster runs in this process. A second owner joins while articles are put into carts. The carts
move to it, and no article is in a cart twice.
"""

import asyncio
from collections import Counter

from tenure import LeaseLost, Lookup, NotOwner, OwnedState
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.cluster import InProcessCluster

USERS = [f"user-{i}" for i in range(100)]
PAUSE_SECONDS = 0.01


class Shop:
    """The shop in one process."""

    def __init__(self) -> None:
        self.carts: OwnedState[list[str]] = OwnedState(
            value_type=list[str], ttl=3600, limit=100_000
        )

    async def add(self, user: str, article: str) -> int:
        """Put an article into a cart, and return how many are in it then."""
        async with self.carts.at(user) as cart:  # NotOwner: nothing was done
            before = cart.value or []
            await asyncio.sleep(PAUSE_SECONDS)  # is it in stock?
            cart.value = [*before, article]  # stored at the end, in one go
            return len(cart.value)  # LeaseLost: it may have been done


class Customers:
    """Find the owner of a cart, and ask again if nothing was begun."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.shops: dict[str, Shop] = {}
        """The shops by address. This stands for the requests that would be sent there."""
        self.said: Counter[str] = Counter()

    async def add(self, user: str, article: str) -> None:
        """Put an article into a cart: once or, if that is not certain, perhaps."""
        while True:
            shop = self.shops.get(self.lookup.find(user) or "")
            try:
                if shop is not None:
                    await shop.add(user, article)
                    self.said["done"] += 1
                    return
            except NotOwner:  # over HTTP 421: ask the owner
                self.said["refused, and asked again"] += 1
            except LeaseLost:  # over HTTP 503: adding an article twice would show
                self.said["unknown"] += 1
                return
            await asyncio.sleep(PAUSE_SECONDS)


async def main() -> None:
    """Two shops, and their customers."""
    one, two = Shop(), Shop()
    async with (
        InProcessCluster(["carts"], timing=DEFAULT) as cluster,
        cluster.owner("http://one", hand_off=one.carts) as first,
        cluster.lookup() as lookup,
    ):
        await first.ready()
        customers = Customers(lookup)
        customers.shops["http://one"] = one
        customers.shops["http://two"] = two
        for user in USERS:
            await customers.add(user, "tea")
        async with cluster.owner("http://two", hand_off=two.carts) as second:
            for round_number in range(500):
                async with asyncio.TaskGroup() as tasks:
                    for user in USERS:
                        tasks.create_task(customers.add(user, f"article {round_number}"))
                if second.ranges:
                    break
            carts = [await value(customers, user) for user in USERS]
            print(f"{len(two.carts)} of {len(USERS)} carts have moved, with what was in them")
            print(f"{sum('tea' in each for each in carts)} carts still have the tea")
            twice = sum(len(each) != len(set(each)) for each in carts)
            print(f"{twice} carts have an article twice")


async def value(customers: Customers, user: str) -> list[str]:
    """Return what is in a cart, wherever it is."""
    while True:
        shop = customers.shops.get(customers.lookup.find(user) or "")
        try:
            if shop is not None:
                async with shop.carts.at(user) as cart:
                    return cart.value or []
        except (NotOwner, LeaseLost):
            pass
        await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    asyncio.run(main())
