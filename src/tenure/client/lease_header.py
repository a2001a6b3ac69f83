"""The lease as an HTTP header, so that a store can fence what comes with it.

    Tenure-Lease: carts;journal=0c9e6679a1b24d3f;number=17;key=cm9vbS00Mg

The pool is percent-encoded, and the key is base64 for URLs without padding: so the header has only
plain characters, whatever the names contain. The key is the one in the pool's key space, as
everywhere beyond the owner.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from tenure.base.keys import KEY_BYTES, Key
from tenure.base.names import wrong_with_name
from tenure.errors import RemoteProtocolError, UsageError

LEASE_HEADER = "Tenure-Lease"
HEADER_CHARACTERS = 8_000
"""Servers refuse longer headers. A pool's name fits, with any key that may bound a range."""
MOST_NUMBER = (1 << 63) - 1
"""Journals and databases have no larger numbers."""

_FORM = re.compile(
    r"(?P<pool>[^;\s]+);journal=(?P<journal>[0-9a-f]{1,16});number=(?P<number>[0-9]{1,19});"
    r"key=(?P<key>[A-Za-z0-9_-]*)"
)


class LeaseParts(NamedTuple):
    """The parts of a header."""

    key: Key
    number: int
    journal: int
    pool: str


def encoded(parts: LeaseParts) -> str:
    """The value of the header."""
    if not parts.pool:
        raise UsageError("this Lease names no pool: send the headers of one that check() returned")
    if len(parts.key) > KEY_BYTES:
        raise UsageError(
            f"a key of {len(parts.key)} bytes does not fit into a header; at most {KEY_BYTES} "
            "are allowed: name things by shorter keys, such as a hash of their names"
        )
    key = urlsafe_b64encode(parts.key).decode().rstrip("=")
    pool = quote(parts.pool, safe="")
    return f"{pool};journal={parts.journal:016x};number={parts.number};key={key}"


def decoded(text: str) -> LeaseParts:
    """The parts in the value of a header. Raises RemoteProtocolError for any other text."""
    if len(text) > HEADER_CHARACTERS:
        raise _malformed(text, f"it has {len(text)} characters; the limit is {HEADER_CHARACTERS}")
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise _malformed(text, "it is not POOL;journal=HEX;number=N;key=BASE64")
    try:
        pool = unquote(found["pool"], errors="strict")
        key = urlsafe_b64decode(found["key"] + "=" * (-len(found["key"]) % 4))
    except ValueError as error:
        raise _malformed(text, str(error)) from None
    number = int(found["number"])
    why = wrong_with_name(pool)
    if why is not None:
        raise _malformed(text, f"its pool: {why}")
    if not 1 <= number <= MOST_NUMBER:
        raise _malformed(text, f"its number is not from 1 to {MOST_NUMBER}")
    return LeaseParts(key, number, int(found["journal"], 16), pool)


def found_in(headers: Mapping[str, str]) -> LeaseParts:
    """The parts in the headers of a request. Raises RemoteProtocolError if there are none."""
    text = headers.get(LEASE_HEADER)
    if text is None:  # a plain dict may have it in other cases
        wanted = LEASE_HEADER.lower()
        text = next((each for name, each in headers.items() if name.lower() == wanted), None)
    if text is None:
        raise RemoteProtocolError(
            f"the request has no header {LEASE_HEADER}: send lease.headers() along with it"
        )
    return decoded(text)


def _malformed(text: str, why: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"the header {LEASE_HEADER}: {text[:200]!r} cannot be read: {why}")
