"""Several keys made of one, so that what is kept in memory is kept several times (PRS 2.4).

A client puts the value at each derived key and is content when a quorum has answered; it asks them
all, and is content with as many. This does not make the state durable: the owners may all lose it.
It makes that less likely. Nor does it order concurrent writes: put a version into what you store,
and take the highest that a quorum tells.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from xxhash import xxh3_64_intdigest

from tenure.base.keys import UserKey
from tenure.errors import ConfigurationError, KeyTypeError, NoQuorum

T = TypeVar("T")
K = TypeVar("K", bound=UserKey)

MOST_COPIES = 100


def derived_keys(key: K, copies: int) -> tuple[K, ...]:
    """`copies` keys made of `key`, the first of them the key itself, always the same.

    In a hashed pool they lie anywhere; with few owners two may have the same one. In an ordered
    pool they are neighbours, which one owner usually has: do not use them there. Raises
    ConfigurationError if `copies` is not from 1 to 100, KeyTypeError if `key` is not a key.
    """
    if isinstance(copies, bool) or not isinstance(copies, int) or not 1 <= copies <= MOST_COPIES:
        raise ConfigurationError(f"copies is from 1 to {MOST_COPIES}, not {copies!r}")
    return (key, *(_derived(key, i) for i in range(1, copies)))


def _derived(key: K, i: int) -> K:
    derived: object
    match key:
        case str():
            derived = f"{key}~{i}"
        case bytes():
            derived = b"%b~%d" % (key, i)
        case int() if not isinstance(key, bool):
            derived = xxh3_64_intdigest(b"%d~%d" % (key, i))
        case _:
            raise KeyTypeError(f"a key is a str, bytes or an int, not {key!r}")
    return derived  # type: ignore[return-value]  # of the key's own type


async def quorum(calls: Iterable[Awaitable[T]], *, of: int | None = None) -> list[T]:
    """What the first `of` calls that succeed return, in the order in which they end.

    By default more than half of them. The other calls are cancelled then: those that write may have
    been carried out, or not. Raises NoQuorum, with what was raised, as soon as so many have failed
    that too few are left; and ConfigurationError if `of` is more than there are calls.
    """
    tasks = [asyncio.ensure_future(each) for each in calls]
    needed = len(tasks) // 2 + 1 if of is None else of
    done: list[T] = []
    failed: list[BaseException] = []
    try:
        if not 1 <= needed <= len(tasks):
            raise ConfigurationError(f"of is from 1 to the number of calls, {len(tasks)}: {of!r}")
        for ended in asyncio.as_completed(tasks):
            try:
                done.append(await ended)
            except Exception as error:  # noqa: BLE001  # whatever it is, it counts as a failure
                failed.append(error)
            if len(done) == needed:
                return done
            if len(failed) > len(tasks) - needed:
                break
        raise NoQuorum(
            f"{len(failed)} of {len(tasks)} calls failed, where {needed} must succeed; the first "
            f"raised {failed[0]!r}",
            tuple(failed),
        )
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
