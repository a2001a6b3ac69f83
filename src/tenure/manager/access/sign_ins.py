"""Sign-ins of pages: a cookie instead of a token, valid at the manager that issued it.

A page shows its token once. Scripts cannot read the cookie, other sites' pages cannot have it sent
(SameSite), and it ends with the manager.
"""

import secrets
from collections.abc import Callable

from tenure.base.instants import Instant, seconds
from tenure.manager.access.roles import Permit

COOKIE = "tenure_sign_in"
SIGN_IN_NS = seconds(12 * 3600)
"""A working day, and some of the evening."""
MOST_SIGN_INS = 1000
"""Beyond them the oldest ends: whoever signs in has a token."""


class SignIns:
    """The sign-ins of one manager."""

    def __init__(self, clock: Callable[[], Instant]) -> None:
        self._clock = clock
        self._permits: dict[str, tuple[Instant, Permit]] = {}

    def begin(self, permit: Permit) -> str:
        """Begin one; the value of its cookie."""
        if len(self._permits) >= MOST_SIGN_INS:
            del self._permits[next(iter(self._permits))]
        which = secrets.token_urlsafe(32)
        self._permits[which] = (Instant(self._clock() + SIGN_IN_NS), permit)
        return which

    def permit(self, which: str) -> Permit | None:
        """The rights of the bearer of this cookie; None if the sign-in has ended."""
        until, permit = self._permits.get(which, (Instant(0), None))
        if permit is not None and self._clock() >= until:
            self.end(which)
            return None
        return permit

    def end(self, which: str) -> None:
        """End one; nothing happens if it has ended already."""
        self._permits.pop(which, None)
