"""What a gateway answers when an owner does not: whether the request was begun, and what to do."""

import re

from tenure.client.refusals import NOT_BEGUN, OUTCOME_HEADER, UNKNOWN, HttpAnswer, refusal
from tenure.errors import KeyTypeError, NoOwner, OutcomeUnknown, TenureError
from tenure.member.asgi import RawHeaders

WAIT = re.compile(rb"(?:^|[,;\s])wait\s*=\s*(\d{1,4})(?:$|[,;\s])")
NO_ROUTE = HttpAnswer(
    404, {OUTCOME_HEADER: NOT_BEGUN}, "no route of this gateway leads from that path\n"
)
FORGED = HttpAnswer(
    502,
    {OUTCOME_HEADER: UNKNOWN},
    "the server behind the gateway gave the socket over, but not to an offer of this handshake\n",
)


def gateway_refusal(error: TenureError, *, is_plain: bool, is_late: bool) -> HttpAnswer | None:
    """The answer to a request that ended with `error`; None if that does not say what became of it.
    `is_late` says that the owner had all its time.
    """
    match error:
        case OutcomeUnknown() if is_late:
            text = "the owner of the key has not answered in time; it may carry the request out yet"
            return HttpAnswer(504, {OUTCOME_HEADER: UNKNOWN}, f"{text}\n")
        case OutcomeUnknown():
            text = "the owner of the key has gone; it may have carried the request out, or not"
            return HttpAnswer(502, {OUTCOME_HEADER: UNKNOWN}, f"{text}\n")
        case NoOwner() if is_plain:
            text = "the server cannot be reached; the request was not begun"
            return HttpAnswer(502, {OUTCOME_HEADER: NOT_BEGUN, "Retry-After": "1"}, f"{text}\n")
        case KeyTypeError():
            text = "the key in the request is none of the pool"
            return HttpAnswer(400, {OUTCOME_HEADER: NOT_BEGUN}, f"{text}\n")
        case _:
            return refusal(error)


def patience(headers: RawHeaders, most: float) -> float:
    """For how many seconds a request is tried: what it prefers (RFC 7240, 4.3), up to `most`."""
    for name, value in headers:
        if name == b"prefer" and (found := WAIT.search(value)):
            return min(most, float(found[1]))
    return most
