"""Decides how to ask the owner of a key, again and again, until the request is done or it is too
late.

What a lookup finds may be out of date, and an owner may be gone. So a client tries again. The
outcome of an attempt says whether that is safe:

- 421: the owner refuses, and has not begun. Any request may go to the next owner.
- Nothing was sent, since no connection was made: likewise.
- The connection broke, or no answer came, or the owner says that the outcome is unknown: it may
  have acted. Only what may be done twice is sent again. For the rest the caller is told.

The next attempt goes at once to the owner that the refusal names, or to the key's present owner in
the table; to each of them once. Then it waits until the table changes, or for a short and growing
pause, because no client is told when a grant arrives (PRS 2.1).

Nothing here waits, sends or reads a clock: `Trying` is told what happened, and says what to do. The
clients for aiohttp and httpx, blocking or not, and the relay all use it.
"""

from collections.abc import Callable
from http import HTTPStatus
from random import Random
from typing import NamedTuple, TypeAlias

from tenure.base.keys import UserKey
from tenure.client.refusals import OUTCOME_HEADER, OWNER_HEADER, UNKNOWN
from tenure.errors import NoOwner, OutcomeUnknown, Overloaded, TenureError

SHORTEST_PAUSE = 0.01
LONGEST_PAUSE = 0.5
"""Seconds between attempts while the table does not change: an owner that has just been granted the
key answers after the first of them, and one that is gone costs two connections a second."""

MOST_TRIED = 4
"""How many addresses are tried between two pauses: where the lookup has the key, where the owner
there believes it to be, and so on. One that lies could name another with each refusal.
"""

DRAIN_SECONDS = 1.0
"""How long the rest of a refusal is read, so that its connection can be used again."""

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
REPEATABLE_METHODS = SAFE_METHODS | {"PUT", "DELETE"}
"""The methods of which RFC 9110 (9.2.2) says that twice has the same effect as once."""
# As numbers, which cost less to compare than members of an enumeration, for every answer.
MISDIRECTED = HTTPStatus.MISDIRECTED_REQUEST.value
UNAVAILABLE = HTTPStatus.SERVICE_UNAVAILABLE.value
IDEMPOTENCY_KEY = "Idempotency-Key"


class Wanted(NamedTuple):
    """The parts of a request that matter here."""

    key: UserKey
    method: str
    path: str
    has_idempotency_key: bool

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be carried out twice."""
        return self.has_idempotency_key or self.method in REPEATABLE_METHODS

    def attributes(self) -> dict[str, str]:
        """The request as attributes of a span."""
        return {
            "tenure.key": str(self.key),
            "http.request.method": self.method,
            "url.path": self.path,
        }

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Refused(NamedTuple):
    """421: the request was not begun. The refusal may say where it believes the key to be."""

    owner: str | None


class Unsent(NamedTuple):
    """No connection was made."""

    why: str


class InDoubt(NamedTuple):
    """The request may have been carried out: the connection broke, no answer came, or the owner
    says so.
    """

    why: str


Attempted: TypeAlias = Refused | Unsent | InDoubt


def judge(status: int, told: Callable[[str], str | None]) -> Refused | InDoubt | None:
    """The meaning of an answer; None if it is for the caller. `told` returns a header of the
    answer.
    """
    if status == MISDIRECTED:
        return Refused(told(OWNER_HEADER))
    if status == UNAVAILABLE and told(OUTCOME_HEADER) == UNKNOWN:
        return InDoubt("it answered 503 with the outcome unknown")
    return None


class Send(NamedTuple):
    """Send the request to this address."""

    address: str


class Pause(NamedTuple):
    """Wait that long, or until the lookup finds another address than this."""

    seconds: float
    not_at: str | None


class Fail(NamedTuple):
    """Give up."""

    error: TenureError


Step: TypeAlias = Send | Pause | Fail


class Trying:
    """All attempts of one request, until `deadline`. Times are seconds on any clock."""

    __slots__ = (
        "_address",
        "_in_doubt",
        "_longest_pause",
        "_pause",
        "_random",
        "_tried",
        "_wanted",
        "_why",
        "deadline",
    )

    def __init__(
        self,
        wanted: Wanted,
        deadline: float,
        random: Random,
        *,
        longest_pause: float = LONGEST_PAUSE,
    ) -> None:
        self._wanted = wanted
        self.deadline = deadline
        self._random = random
        self._address: str | None = None
        """The address to which the request was sent, or that was found before the pause."""
        self._tried: tuple[str, ...] = ()
        """The addresses that were tried since the last pause."""
        self._pause = SHORTEST_PAUSE
        self._longest_pause = longest_pause
        self._in_doubt = False
        """Whether an attempt may have carried it out."""
        self._why = "the lookup found no owner of it"

    @property
    def is_in_doubt(self) -> bool:
        """Whether an attempt may have carried it out."""
        return self._in_doubt

    def begin(self, found: str | None) -> Step:
        """The first step; `found` is where the lookup has the key."""
        return self._wait(None) if found is None else self._send(found)

    def after(
        self, attempted: Attempted, now: float, found: str | None, *, has_body: bool = True
    ) -> Step:
        """The step after an attempt without an answer. `has_body` says whether the request's body
        is still there to be sent again.
        """
        assert self._address is not None
        self._remember(attempted, self._address)
        if isinstance(attempted, InDoubt):
            self._in_doubt = True
            if not (self._wanted.is_repeatable and has_body):
                return Fail(self._unknown())
        elif not has_body:
            return Fail(self._too_large())
        if now >= self.deadline:
            return Fail(self._too_late())
        hint = attempted.owner if isinstance(attempted, Refused) else None
        for better in (hint, found) if len(self._tried) < MOST_TRIED else ():
            if better is not None and better not in self._tried:
                return self._send(better)
        return self._wait(found)

    def resume(self, now: float, found: str | None) -> Step:
        """The step after a pause."""
        if now >= self.deadline:
            return Fail(self._too_late())
        if found != self._address:
            self._pause = SHORTEST_PAUSE
        self._tried = ()
        return self._wait(None) if found is None else self._send(found)

    def _send(self, address: str) -> Send:
        self._tried = (*self._tried, address)
        self._address = address
        return Send(address)

    def _wait(self, found: str | None) -> Pause:
        self._address = found
        seconds = self._pause * self._random.uniform(0.5, 1)
        self._pause = min(2 * self._pause, self._longest_pause)
        return Pause(seconds, found)

    # --- errors ---

    def on_overloaded(self, error: Overloaded) -> None:
        """The next attempt was not sent. Raises OutcomeUnknown if an earlier one may have carried
        the request out.
        """
        if self._in_doubt and self._wanted.method not in SAFE_METHODS:
            raise OutcomeUnknown(
                f"{self._wanted} may have been carried out, or not ({self._why}), and could not be "
                f"repeated: {error}"
            ) from error

    def _remember(self, attempted: Attempted, address: str) -> None:
        if isinstance(attempted, Refused):
            self._why = f"{address} answered 421, it is not the owner"
        else:
            self._why = f"{address}: {attempted.why}"

    def _unknown(self) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{self._wanted} may have been carried out, or not ({self._why}), and is not sent "
            "again because it might be carried out twice. If the service recognises a repetition, "
            f"send the request with the header {IDEMPOTENCY_KEY}, and it is sent again"
        )

    def _too_large(self) -> NoOwner:
        return NoOwner(
            f"{self._wanted} was not carried out ({self._why}), and cannot be sent again: its body "
            "is a stream, and was read. Send it again yourself, or pass the body as bytes"
        )

    def _too_late(self) -> TenureError:
        if self._in_doubt and self._wanted.method not in SAFE_METHODS:
            return OutcomeUnknown(
                f"{self._wanted} was not answered before the deadline, but may have been carried "
                f"out; the last attempt: {self._why}"
            )
        return NoOwner(
            f"no owner of {self._wanted.key!r} took {self._wanted} before the deadline; the last "
            f"attempt: {self._why}"
        )
