"""Subscription lists in memory, one owner for every topic: Subscribe() of Centrifuge, figure 10.

    python examples/subscribe.py                                  # a whole cluster in this process
    python examples/subscribe.py --manager http://127.0.0.1:7400  # with a manager that runs already

`Topics.subscribe` is the four steps that every operation of an owner has. The rest shows what they
are for: a second process joins while subscriptions are under way, takes some topics over, and
leaves again. No subscriber is ever told that it is on a list and is not: what was lost is either
refused at once, or told afterwards, and then the subscribers subscribe again.
"""

import asyncio
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from tenure import KeyRange, Lease, Lookup, Owner
from tenure.protocol.lease.timing import DEFAULT
from tenure.testing.cluster import InProcessCluster

POOL = "topics"
TOPICS = [f"topic-{i}" for i in range(30)]
PAUSE_SECONDS = 0.05

Greet = Callable[[str], Awaitable[None]]


async def say_nothing(subscriber: str) -> None:
    """Greet nobody."""


class Topics:
    """The subscription lists of the topics that one process owns."""

    def __init__(self, owner: Owner, greet: Greet = say_nothing) -> None:
        self.owner = owner
        self.greet = greet
        """Welcomes a subscriber, which may take a while; meanwhile the lease may be lost."""
        self.lists: dict[str, tuple[Lease, list[str]]] = {}

    async def subscribe(self, topic: str, subscriber: str) -> bool:
        """Put `subscriber` on the topic's list; False if this is not the process to ask."""
        # (1) Has the request come to the right process?
        lease = self.owner.check(topic)
        if lease is None:
            return False

        # (2) Is what we have of the topic stale, from a time before the lease? Then discard it.
        stored, subscribers = self.lists.get(topic, (lease, []))
        if stored.number != lease.number:
            subscribers = []

        # (3) Do the work, and keep the lease with its result. Nothing is awaited from the check to
        # here: another operation on the topic must not come in between.
        if subscriber not in subscribers:
            subscribers.append(subscriber)
        self.lists[topic] = (lease, subscribers)
        await self.greet(subscriber)

        # (4) Was the lease held all the while? If not, nothing needs to be cleaned up: what was
        # stored is stored under an old number, and step 2 of the next one will discard it.
        return self.owner.holds(lease)

    def subscribers(self, topic: str) -> list[str]:
        """Return the subscribers, as far as the list is not stale."""
        stored, subscribers = self.lists.get(topic, (None, []))
        return subscribers if stored is not None and self.owner.holds(stored) else []


class Subscriber:
    """A process that wants to be on lists: it finds the owner, tries again, and hears of losses."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lookup: Lookup
        self.servers: dict[str, Topics] = {}
        """The servers by address. This stands for the requests that a real one would send there."""
        self.lost: set[str] = set()

    async def subscribe(self, topic: str) -> int:
        """Subscribe, however often that must be tried; how often it was."""
        tries = 0
        while True:
            tries += 1
            server = self.servers.get(self.lookup.find(topic) or "")
            if server is not None and await server.subscribe(topic, self.name):
                return tries
            await asyncio.sleep(PAUSE_SECONDS)  # refused, or nobody there: the table is out of date

    def on_loss(self, ranges: tuple[KeyRange, ...]) -> None:
        """Lists are gone: those that we were on are to be made again."""
        keys = {topic: self.lookup.key(topic) for topic in TOPICS}
        self.lost |= {topic for topic in TOPICS if any(keys[topic] in lost for lost in ranges)}

    async def subscribe_again(self) -> int:
        """Subscribe to all whose loss was told; how many these were."""
        lost, self.lost = self.lost, set()
        for topic in lost:
            await self.subscribe(topic)
        return len(lost)


async def show(make_owner: Callable[..., Owner], make_lookup: Callable[..., Lookup]) -> None:
    """A second process comes and goes."""
    ann = Subscriber("ann")
    async with make_owner(address="http://one") as first:
        await first.ready()
        one = Topics(first)
        ann.servers["http://one"] = one
        async with make_lookup(on_loss=ann.on_loss) as ann.lookup:
            for topic in TOPICS:
                await ann.subscribe(topic)
            print(f"one process: ann is on {_lists(one, 'ann')} lists")
            await _join_in_between(ann, one, make_owner)
            await until(lambda: all(map(first.check, TOPICS)))
            print("the second process has left, and the first has all topics again.")
            had = [topic for topic in TOPICS if topic in one.lists and not one.subscribers(topic)]
            print(f"  in its memory are stale lists of {len(had)} topics; nobody is told of them")
            await until(lambda: bool(ann.lost))
            again = await ann.subscribe_again()
            print(f"  ann is told, and subscribes {again} times: on {_lists(one, 'ann')} lists")


async def _join_in_between(ann: Subscriber, one: Topics, make_owner: Callable[..., Owner]) -> None:
    """Bob's subscriptions are under way at the first process when a second one joins."""
    go_on = asyncio.Event()

    async def greet(_: str) -> None:
        await go_on.wait()

    one.greet = greet
    under_way = [asyncio.create_task(one.subscribe(topic, "bob")) for topic in TOPICS]
    await asyncio.sleep(0)  # all of them have begun
    async with make_owner(address="http://two") as second:
        await second.ready()
        await until(lambda: all(one.owner.check(t) or second.check(t) for t in TOPICS))
        two = Topics(second)
        ann.servers["http://two"] = two
        moved = [topic for topic in TOPICS if second.check(topic)]
        print(f"a second process joins and takes {len(moved)} of {len(TOPICS)} topics over,")
        go_on.set()
        done = await asyncio.gather(*under_way)
        went, failed = done.count(True), done.count(False)
        print(f"  while {len(TOPICS)} operations run: {went} go through, {failed} fail")
        one.greet = say_nothing
        await until(lambda: ann.lost >= set(moved))
        print(f"  ann is told what was lost, and subscribes {await ann.subscribe_again()} times")
        print(f"  now on {_lists(one, 'ann')} lists at one and {_lists(two, 'ann')} at two")
    del ann.servers["http://two"]


def _lists(topics: Topics, subscriber: str) -> int:
    return sum(subscriber in topics.subscribers(topic) for topic in TOPICS)


async def until(condition: Callable[[], bool]) -> None:
    """Look until it is so."""
    while not condition():  # noqa: ASYNC110  # it asks what several processes believe
        await asyncio.sleep(PAUSE_SECONDS)


@asynccontextmanager
async def cluster(
    manager: str | None,
) -> AsyncIterator[tuple[Callable[..., Owner], Callable[..., Lookup]]]:
    """How to make owners and lookups: with the manager that is given, or one in this process."""
    if manager is not None:
        yield partial(Owner, manager, pool=POOL), partial(Lookup, manager, pool=POOL)
        return
    # The leases are those of production: nothing here waits for one to run out, and none may run
    # out because this machine is busy.
    async with InProcessCluster([POOL], timing=DEFAULT) as here:
        yield here.owner, here.lookup


async def main(manager: str | None) -> None:
    """Run the show."""
    async with cluster(manager) as (make_owner, make_lookup):
        await show(make_owner, make_lookup)


if __name__ == "__main__":
    parser = ArgumentParser(description="Subscription lists, one owner for every topic.")
    parser.add_argument("--manager", help="URL of a manager; by default a cluster in this process")
    asyncio.run(main(parser.parse_args().manager))
