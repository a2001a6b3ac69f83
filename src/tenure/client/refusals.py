"""The answers of a service over HTTP if an operation could not be carried out.

Two answers must not be confused. 421 says that nothing was begun: the client may send the very
request to another owner. Once the operation has acted, that is no longer true: its effect may have
moved along in a hand-off, and the request would be carried out twice. So a service that loses the
lease in the middle answers 503 with `Tenure-Outcome: unknown`, and clients repeat only requests
that may be carried out twice.
"""

from math import ceil
from typing import NamedTuple

from tenure.errors import (
    Busy,
    EntityError,
    Fenced,
    Full,
    LeaseLost,
    NewerState,
    NoOwner,
    NotOwner,
    OutcomeUnknown,
    Overloaded,
    StoreAway,
    TurnTooLong,
    Unreachable,
)

OUTCOME_HEADER = "Tenure-Outcome"
UNKNOWN = "unknown"
"""The request may have been carried out, or not."""
NOT_BEGUN = "not-begun"
"""The outcome if nothing was done: any request may be repeated."""
OWNER_HEADER = "Tenure-Owner"
"""The header of a 421 with the address where the key is believed to live."""
RETRY_HEADER = "Retry-After"


class HttpAnswer(NamedTuple):
    """An answer over HTTP, for any web framework."""

    status: int
    headers: dict[str, str]
    text: str
    """A text for people; it reveals nothing of the service's inside."""


def refusal(error: BaseException) -> HttpAnswer | None:
    """The answer to a request that ended with `error`; None if the error does not say what became
    of the request. It is then a bug, or the client's mistake, and yours to answer.
    """
    match error:
        case NotOwner():
            headers = _not_begun()
            if error.address is not None and _fits_a_header(error.address):
                headers[OWNER_HEADER] = error.address
            return HttpAnswer(421, headers, "this process does not own the key")
        case LeaseLost() | OutcomeUnknown():
            text = "the request may have been carried out, or not"
            return HttpAnswer(503, {OUTCOME_HEADER: UNKNOWN}, text)
        case TurnTooLong():  # it may have committed a part, or have acted elsewhere
            return HttpAnswer(503, {OUTCOME_HEADER: UNKNOWN}, "the request took too long")
        case EntityError():  # as if its class had raised here
            return HttpAnswer(500, {}, "the request failed")
        case Busy():
            return HttpAnswer(503, _not_begun(error.retry_after), "too many wait for the key")
        case NoOwner():
            return HttpAnswer(503, _not_begun(1.0), "no owner of the key took the request")
        case Unreachable():
            return HttpAnswer(503, _not_begun(1.0), "the owner of the key does not answer")
        case StoreAway():
            return HttpAnswer(503, _not_begun(1.0), "the store of the key cannot be asked")
        case NewerState():
            return HttpAnswer(503, _not_begun(1.0), "a newer release serves the key")
        case Overloaded():
            return HttpAnswer(503, _not_begun(1.0), "the owner of the key is overloaded")
        case Fenced():
            return HttpAnswer(412, _not_begun(), "a newer owner of the key has written")
        case Full():
            return HttpAnswer(507, {}, "there is no room for the state of another key")
        case _:
            return None


def _not_begun(retry_after: float | None = None) -> dict[str, str]:
    headers = {OUTCOME_HEADER: NOT_BEGUN}
    if retry_after is not None:
        headers[RETRY_HEADER] = str(max(ceil(retry_after), 1))
    return headers


def _fits_a_header(text: str) -> bool:
    return text.isascii() and text.isprintable()
