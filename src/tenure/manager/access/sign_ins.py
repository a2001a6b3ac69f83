"""Sign-ins of pages: a cookie and a key instead of a token, valid at the manager that issued them.

A page shows its token once. Scripts cannot read the cookie, other sites' pages cannot have it sent
(SameSite), and it ends with the manager. But a browser sends it to every port of this host, whoever
listens there. So it counts only together with the key, which the page keeps in the storage of its
origin, of which the port is a part, and sends in a header.
"""

import secrets
from collections.abc import Callable
from hmac import compare_digest
from typing import NamedTuple

from tenure.base.instants import Instant, seconds
from tenure.manager.access.roles import Permit

COOKIE = "tenure_sign_in"
TLS_COOKIE = f"__Host-{COOKIE}"
"""Its name over TLS: so named, browsers take it over TLS only, and for this very host."""
KEY_HEADER = "Tenure-Sign-In"
SIGN_IN_NS = seconds(12 * 3600)
"""A working day, and some of the evening."""
MOST_SIGN_INS = 1000
"""The most in all. Beyond them the oldest of the same role ends, if there is one."""
SIGN_INS_OF_A_TOKEN = 20
"""The most of one token: beyond them its own oldest ends, and nobody else's."""


class SignIn(NamedTuple):
    """What a page shows for one sign-in."""

    cookie: str
    key: str


class SignIns:
    """The sign-ins of one manager."""

    def __init__(self, clock: Callable[[], Instant]) -> None:
        self._clock = clock
        self._permits: dict[str, tuple[Instant, str, Permit]] = {}
        """Until when, the key, and the rights, by cookie."""

    def begin(self, permit: Permit) -> SignIn:
        self._make_room(permit)
        begun = SignIn(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        self._permits[begun.cookie] = (Instant(self._clock() + SIGN_IN_NS), begun.key, permit)
        return begun

    def _make_room(self, permit: Permit) -> None:
        """End the oldest that this sign-in costs its place: whoever signs in often, with however
        many tokens of a role, signs out nobody of another.
        """
        own = [cookie for cookie, (_, _, whose) in self._permits.items() if whose == permit]
        if len(own) >= SIGN_INS_OF_A_TOKEN:
            self.end(own[0])
        elif len(self._permits) >= MOST_SIGN_INS:
            of_role = (
                at for at, (_, _, whose) in self._permits.items() if whose.role is permit.role
            )
            self.end(next(of_role, next(iter(self._permits))))

    def permit(self, shown: SignIn) -> Permit | None:
        """The rights of whoever shows both; None if the sign-in has ended, or they are of two."""
        until, key, permit = self._permits.get(shown.cookie, (Instant(0), "", None))
        if permit is not None and self._clock() >= until:
            self.end(shown.cookie)
            return None
        is_ours = compare_digest(key.encode(), shown.key.encode("utf-8", "replace"))
        return permit if is_ours else None

    def end(self, cookie: str) -> None:
        """End one; nothing happens if it has ended already."""
        self._permits.pop(cookie, None)


def cookie_name(*, is_secure: bool) -> str:
    """The name of the cookie, over TLS and otherwise."""
    return TLS_COOKIE if is_secure else COOKIE
