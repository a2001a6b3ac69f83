"""How long tests wait for what should happen at once, one figure for all of them, and how they wait
for what has no event.

The figure says when to give up, not how fast anything is: a wait ends as soon as the event is
there. Real processes on a busy machine with two slow cores take ten times what they take at home,
and a test that gives up too early proves nothing.

For the same reason a test by the real clock, which is not about a term that runs out, takes the
preset `default`: a stall of 1.2 s loses every lease of the preset `test`.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")

DEADLINE_SECONDS = 60.0
LOOK_SECONDS = 0.01
"""The pause between two looks at a condition."""


@overload
async def until(
    condition: Callable[[], Awaitable[T]], what: str = ..., seconds: float = ...
) -> T: ...
@overload
async def until(condition: Callable[[], T], what: str = ..., seconds: float = ...) -> T: ...
async def until(
    condition: Callable[[], object], what: str = "", seconds: float = DEADLINE_SECONDS
) -> object:
    """Look at what tells nobody when it changes, until it holds; return what was found.

    Other processes, ports, files and the threads of a library are like that. What a test can
    subscribe to, it waits for. An AssertionError says what did not come about in time.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what or condition}"
        await asyncio.sleep(LOOK_SECONDS)


def blocking_until(
    condition: Callable[[], T], what: str = "", seconds: float = DEADLINE_SECONDS
) -> T:
    """Do the same without an event loop."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what or condition}"
        time.sleep(LOOK_SECONDS)
    return found
