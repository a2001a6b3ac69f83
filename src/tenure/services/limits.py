"""Limits of a service: each has a name and a reason, and a refusal names the limit.

Nothing that a service keeps grows without a bound. `GET /limits` lists them, and so does the page
of each service.
"""

from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from tenure.errors import ServiceRefusal

NONE_REFUSED = 0
"""The status of limits that refuse nothing: beyond them, the oldest goes."""
TOO_LARGE = 413
TOO_MANY = 429
OVERLOADED = 503


class ServiceLimit(NamedTuple):
    name: str
    most: int
    status: int
    """The status of the refusal; 0 if the limit refuses nothing, and the oldest goes instead."""
    why: str

    def check(self, value: int) -> None:
        """Raise ServiceRefusal if there is more."""
        if value > self.most:
            raise self.exceeded(value)

    def exceeded(self, value: int) -> ServiceRefusal:
        """The refusal of this amount."""
        detail = f"{value} is beyond the limit {self.name!r}, which is {self.most}: {self.why}"
        return ServiceRefusal(self.status, "limit", detail, limit=self.name, most=self.most)


KEY_BYTES = ServiceLimit(
    "key_bytes", 512, TOO_LARGE, "keys are kept with all that belongs to them, so they are short"
)
BODY_BYTES = ServiceLimit(
    "body_bytes",
    768 * 1024,
    TOO_LARGE,
    "all that is kept of a key moves as one, and one key may keep 1 MiB",
)
JSON_DEPTH = ServiceLimit(
    "json_depth", 100, TOO_LARGE, "a reader may run out of stack if JSON is nested deeper"
)
REQUESTS = ServiceLimit(
    "requests",
    10_000,
    OVERLOADED,
    "requests that a process has not answered, waiting ones included, take memory",
)
TTL_SECONDS = ServiceLimit(
    "ttl_seconds", 366 * 86_400, TOO_LARGE, "nobody needs a key that nobody refreshes for a year"
)
ID_BYTES = ServiceLimit(
    "id_bytes", 200, TOO_LARGE, "ids of requests are kept, so that a repeat is known"
)
ShortText: TypeAlias = Annotated[str, msgspec.Meta(max_length=4096)]
"""A text in a body, so that nothing longer is decoded. The limits are lower, and name themselves.
"""
OF_PARTS = msgspec.Meta(max_length=1000)
"""Of the parts of a body, as for a `ShortText`."""
OF_ALL = (KEY_BYTES, BODY_BYTES, JSON_DEPTH, REQUESTS)
"""The limits that every service has."""
OF_ENTITIES = (TTL_SECONDS, ID_BYTES)
"""The limits of services whose keys are entities."""
