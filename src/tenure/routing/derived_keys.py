"""Several keys made of one, to keep state in memory several times (PRS 2.4).

A client writes the value at each derived key and is content when a quorum has answered; it reads
from all of them, and is content with as many answers. This does not make the state durable, because
all owners may lose it, but makes a loss less likely. Nor does it order concurrent writes: store a
version with the value, and take the highest version that a quorum returns.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Generic, TypeVar

from xxhash import xxh3_64_intdigest

from tenure.base.keys import UserKey
from tenure.base.names import shown
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
        raise ConfigurationError(f"copies is from 1 to {MOST_COPIES}, not {shown(copies)}")
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
            raise KeyTypeError(f"a key is a str, bytes or an int, not {shown(key)}")
    return derived  # type: ignore[return-value]  # of the key's own type


async def quorum(calls: Iterable[Awaitable[T]], *, of: int | None = None) -> list[T]:
    """The results of the first `of` calls that succeed, in the order in which they end.

    By default more than half of them. The other calls are cancelled then: those that write may have
    been carried out, or not. Raises NoQuorum, with what was raised, as soon as so many have failed
    that too few are left; and ConfigurationError if `of` is more than there are calls.
    """
    tasks = [asyncio.ensure_future(each) for each in calls]
    try:
        votes: _Votes[T] = _Votes(len(tasks), of)
        for ended in asyncio.as_completed(tasks):
            try:
                votes.done.append(await ended)
            except Exception as error:  # noqa: BLE001  # whatever it is, it counts as a failure
                votes.failed.append(error)
            if votes.are_enough():
                break
        return votes.done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def blocking_quorum(calls: Iterable[Callable[[], T]], *, of: int | None = None) -> list[T]:
    """As `quorum`, for programs without an event loop: functions, each called in a thread.

    Threads cannot be cancelled. So the other calls go on when this returns, or raises; give them a
    timeout, since the program does not end before they have.
    """
    called = list(calls)
    votes: _Votes[T] = _Votes(len(called), of)
    threads = ThreadPoolExecutor(len(called), "quorum")
    try:
        for ended in as_completed([threads.submit(each) for each in called]):
            error = ended.exception()
            if error is None:
                votes.done.append(ended.result())
            elif isinstance(error, Exception):
                votes.failed.append(error)
            else:
                raise error
            if votes.are_enough():
                break
        return votes.done
    finally:
        threads.shutdown(wait=False)


class _Votes(Generic[T]):
    """The results of the calls so far."""

    def __init__(self, calls: int, of: int | None) -> None:
        self._calls = calls
        self._needed = calls // 2 + 1 if of is None else of
        self.done: list[T] = []
        self.failed: list[Exception] = []
        is_count = type(self._needed) is int
        if not (is_count and 1 <= self._needed <= calls):
            raise ConfigurationError(
                f"of={shown(of)} must be between 1 and {calls}, the number of calls"
            )

    def are_enough(self) -> bool:
        """Whether enough calls have succeeded. Raises NoQuorum once that is no longer possible."""
        if len(self.failed) > self._calls - self._needed:
            raise NoQuorum(
                f"{len(self.failed)} of {self._calls} calls failed, where {self._needed} must "
                f"succeed; the first raised {self.failed[0]!r}",
                tuple(self.failed),
            )
        return len(self.done) == self._needed
