"""Sign-ins over HTTP: a page shows its token once, and has a cookie and a key from then on."""

import msgspec
from aiohttp import web

from tenure.manager.access.gate import SIGN_IN_PATH, Gate
from tenure.manager.access.roles import ANYBODY, Permit
from tenure.manager.access.sign_ins import cookie_name
from tenure.manager.http_errors import HttpRefusal, Short, as_json, check_is_json, decoded_body

WAY_OUT = "paste what `tenure token new` printed, for the role viewer or admin"


class ShownToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /v1/sign-in."""

    token: Short


class SignInAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The role in which a page is signed in."""

    who: str
    role: str
    pool: str
    may_change: bool
    key: str = ""
    """Told once, to whoever signs in: the cookie counts only with it, in the header
    `Tenure-Sign-In`.
    """


class SignInApi:
    """The handlers."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Put them under their path."""
        router.add_get(SIGN_IN_PATH, self.show)
        router.add_post(SIGN_IN_PATH, self.begin)
        router.add_delete(SIGN_IN_PATH, self.end)

    async def show(self, request: web.Request) -> web.Response:
        """Show who the page is signed in as."""
        return as_json(_answer(self._gate.let_in(request)))

    async def begin(self, request: web.Request) -> web.Response:
        """Take a token, and give a cookie and a key for it."""
        check_is_json(request)
        way_out = 'the body is {"token": ...}'
        shown = decoded_body(await request.read(), ShownToken, way_out)
        if self._gate.tokens is None:
            return as_json(_answer(ANYBODY))
        self._gate.tokens.load_if_changed()
        permit = self._gate.tokens.permit(shown.token.strip())
        if permit is None:
            self._gate.turned_away(request, "the token in it does not count")
            raise HttpRefusal(401, "this is not a token that counts here", WAY_OUT)
        begun = self._gate.sign_ins.begin(permit)
        response = as_json(msgspec.structs.replace(_answer(permit), key=begun.key))
        response.set_cookie(
            cookie_name(is_secure=request.secure),
            begun.cookie,
            httponly=True,
            samesite="Strict",
            secure=request.secure,
            path="/",
        )
        return response

    async def end(self, request: web.Request) -> web.Response:
        """Forget the cookie."""
        name = cookie_name(is_secure=request.secure)
        self._gate.sign_ins.end(request.cookies.get(name, ""))
        response = as_json({})
        response.del_cookie(name, path="/", secure=request.secure)
        return response


def _answer(permit: Permit) -> SignInAnswer:
    return SignInAnswer(permit.who, permit.role, permit.pool, permit.may_change)
