"""The parts that all routing clients share: checked options, and the loop that carries out what
`Trying` decides, once for event loops and once for threads.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import SystemRandom
from time import monotonic
from typing import TypeVar

from tenure.base.keys import UserKey
from tenure.base.names import shown
from tenure.base.origin import Origin, parse
from tenure.client.arguments import checked_seconds
from tenure.errors import ConfigurationError, Overloaded, UsageError
from tenure.routing.attempt_limit import AttemptLimit, Lookout
from tenure.routing.finder import Finder
from tenure.routing.outstanding import Outstanding
from tenure.routing.template import PathKey, Templates
from tenure.routing.trying import Attempted, Fail, Pause, Send, Step, Trying, Wanted
from tenure.runtime.loops import take, wait_for

HOLDS_IN_A_DEADLINE = 2
"""The keys of an owner that crashed are served again two seconds after the first of them."""
Answer = TypeVar("Answer")

MOST_ORIGINS = 10_000
"""How many parsed addresses are kept: more than a pool has owners at a time."""


class Router:
    """Decides where requests go, and how long they are tried."""

    def __init__(
        self,
        lookup: Finder,
        key: PathKey,
        *,
        deadline: float | None,
        outstanding: int,
        origin: str | None,
    ) -> None:
        self.lookup = _checked(lookup)
        self.templates = Templates(key)
        self._deadline = None if deadline is None else checked_seconds("deadline", deadline)
        self._seconds = None if self._deadline is not None else self._by_hold
        self.outstanding = Outstanding(outstanding)
        self.only = None if origin is None else parse(origin, "origin")
        """The origin for which requests are routed; None for all."""
        self._origins: dict[str, Origin] = {}
        self._random = SystemRandom()
        self._lookout: Lookout | None = None

    def limit_of(self, wanted: Wanted, address: str, deadline: float | None) -> AttemptLimit:
        """The limit of one attempt in the running event loop."""
        return AttemptLimit(self._lookout_here(), wanted, address, deadline)

    def limit_of_first(self, wanted: Wanted, address: str) -> AttemptLimit:
        """The limit of the first attempt, with which a request's time begins. Finding the hold
        takes a dozen calls, and most requests are answered before it matters.
        """
        lookout, given = self._lookout_here(), self._deadline
        deadline = None if given is None else lookout.loop.time() + given
        return AttemptLimit(lookout, wanted, address, deadline, self._seconds)

    def _lookout_here(self) -> Lookout:
        loop = asyncio.get_running_loop()
        lookout = self._lookout
        if lookout is None or lookout.loop is not loop:
            lookout = self._lookout = Lookout(loop, self.lookup, self.outstanding)
        return lookout

    def routes(self, scheme: str, host: str | None, port: int | None) -> bool:
        """Whether a request to this address must go to an owner."""
        only = self.only
        return only is None or (scheme, host, port) == (only.scheme, only.host, only.port)

    async def ask(
        self,
        wanted: Wanted,
        attempt: Callable[[str, float], Awaitable[Answer | Attempted]],
        has_body: Callable[[Attempted], bool],
        *,
        deadline: float | None = None,
        first: tuple[str, Attempted] | None = None,
    ) -> Answer:
        """Return the answer of the owner. `attempt` sends the request once, to an address, until a
        time of the running loop at most; `has_body` says whether it could be sent again after that.
        `first` is where it was sent already, with the outcome.
        """
        loop = asyncio.get_running_loop()
        trying = Trying(wanted, deadline or loop.time() + self.limit, self._random)
        found = self.lookup.find(wanted.key)
        if first is None:
            step = trying.begin(found)
        else:
            trying.begin(first[0])
            step = trying.after(first[1], loop.time(), found, has_body=has_body(first[1]))
        try:
            return await pursued(self.lookup, wanted.key, trying, step, attempt, has_body)
        except Overloaded as error:
            trying.on_overloaded(error)
            raise

    def ask_blocking(
        self,
        wanted: Wanted,
        attempt: Callable[[str, float], Answer | Attempted],
        has_body: Callable[[Attempted], bool],
    ) -> Answer:
        """The same in a thread; times are those of `time.monotonic`."""
        trying = Trying(wanted, monotonic() + self.limit, self._random)
        step: Step = trying.begin(self.lookup.find(wanted.key))
        while True:
            match step:
                case Send(address):
                    try:
                        self.outstanding.begin(address)
                    except Overloaded as error:
                        trying.on_overloaded(error)
                        raise
                    try:
                        came = attempt(address, trying.deadline)
                    finally:
                        self.outstanding.end(address)
                    if not isinstance(came, Attempted):
                        return came
                    found = self.lookup.find(wanted.key)
                    step = trying.after(came, monotonic(), found, has_body=has_body(came))
                case Pause(seconds, not_at):
                    take(self.lookup.moved(wanted.key, not_at, seconds))
                    step = trying.resume(monotonic(), self.lookup.find(wanted.key))
                case Fail(error):
                    raise error

    @property
    def limit(self) -> float:
        """How many seconds a request is tried."""
        return self._by_hold() if self._deadline is None else self._deadline

    def _by_hold(self) -> float:
        return HOLDS_IN_A_DEADLINE * self.lookup.hold

    def origin(self, address: str) -> Origin:
        """The parts of an owner's address. Raises UsageError if it is not a URL."""
        found = self._origins.get(address)
        if found is None:
            if len(self._origins) >= MOST_ORIGINS:
                self._origins.clear()
            try:
                found = self._origins[address] = parse(address, "address")
            except ConfigurationError as error:
                raise UsageError(f"an owner cannot be reached by routing: {error}") from None
        return found


async def pursued(
    lookup: Finder,
    key: UserKey,
    trying: Trying,
    step: Step,
    attempt: Callable[[str, float], Awaitable[Answer | Attempted]],
    has_body: Callable[[Attempted], bool] = lambda _: True,
) -> Answer:
    """Carry out steps from `step` on, until one has the answer of the owner of `key`."""
    loop = asyncio.get_running_loop()
    while True:
        match step:
            case Send(address):
                came = await attempt(address, trying.deadline)
                if not isinstance(came, Attempted):
                    return came
                found = lookup.find(key)
                step = trying.after(came, loop.time(), found, has_body=has_body(came))
            case Pause(seconds, not_at):
                await wait_for(lookup.moved(key, not_at, seconds))
                step = trying.resume(loop.time(), lookup.find(key))
            case Fail(error):
                raise error


def _checked(lookup: Finder) -> Finder:
    needed = (getattr(lookup, name, None) for name in ("find", "watch", "moved"))
    if isinstance(lookup, type) or not all(map(callable, needed)):
        raise ConfigurationError(
            f"lookup is a Lookup, by which the owner of a key is found, not {shown(lookup)}; make "
            'one with Lookup(pool="...")'
        )
    return lookup
