"""The gate: every request to a manager's port is asked for its token, once, here.

Without a file of tokens everybody who reaches the port may do anything; then the manager listens
for this machine's processes only, or was told to trust everybody. With such a file, this machine's
processes need a token like all others: a request from loopback may be a proxy's.
"""

from aiohttp import hdrs, web

from tenure.base.noted import Noted
from tenure.manager.access.roles import ANYBODY, Permit
from tenure.manager.access.sign_ins import KEY_HEADER, SignIn, SignIns, cookie_name
from tenure.manager.access.tokens import TokenFile
from tenure.manager.http_errors import HttpRefusal, cut
from tenure.manager.noted import ServiceKind
from tenure.manager.strangers import StrangerNotes

OWNER_PATH, LOOKUP_PATH, NODE_PATH = "/v1/owner", "/v1/lookup", "/v1/node"
OPEN_PATHS = ("/healthz", "/readyz")
"""The paths for watching processes: they tell whether it is up, and nothing else."""
PAGES = "/dashboard"
"""The pages are the same for all; what they show, they ask for."""
SIGN_IN_PATH = "/v1/sign-in"
TABLES_PATH = "/v1/clusters/{cluster}/tables"
"""The path at which tables are made."""
STRANGERS_BYTES = 8192
"""The most in the body of a request that needs no token: one token has 60, as text."""
READS = (hdrs.METH_GET, hdrs.METH_HEAD)


class Gate:
    """Decides what the bearer of a request may do."""

    def __init__(self, tokens: TokenFile | None, notes: StrangerNotes, sign_ins: SignIns) -> None:
        self.tokens = tokens
        self.sign_ins = sign_ins
        self._known = () if tokens is None else tokens.entries
        self.notes = notes

    def let_in(self, request: web.Request) -> Permit:
        """The permit of a request. Raises HttpRefusal if it may not come in."""
        permit = self._shown(request)
        if _is_open(request):
            _check_is_small(request)
            return permit or ANYBODY
        if permit is None:
            self.turned_away(request, "it shows no token that counts")
            raise HttpRefusal(
                401,
                "this manager wants a token, and the one shown does not count"
                if hdrs.AUTHORIZATION in request.headers
                else "this manager wants a token",
                "send Authorization: Bearer TOKEN; clients and commands of tenure take it from "
                "TENURE_TOKEN or TENURE_TOKEN_FILE, and `tenure token new` makes one",
            )
        if not _allows(permit, request):
            self.turned_away(request, str(permit))
            raise HttpRefusal(
                403,
                f"the {permit} does not allow {request.method} {request.path}",
                "use a token of another role, which `tenure token new` makes",
            )
        return permit

    @staticmethod
    def proves(request: web.Request, permit: Permit) -> bool:
        """Whether a request that was let in shows more than anybody can."""
        return permit is not ANYBODY or not _is_open(request)

    def still_takes(self, permit: Permit) -> bool:
        """Whether a connection that was made under `permit` may go on."""
        return self.tokens is None or self.tokens.has(permit)

    def changed(self) -> bool:
        """Whether there may be tokens that were valid once and no longer are."""
        if self.tokens is None:
            return False
        self.tokens.load_if_changed()
        changed, self._known = self._known != self.tokens.entries, self.tokens.entries
        return changed

    def _shown(self, request: web.Request) -> Permit | None:
        if self.tokens is None:
            return ANYBODY
        said = request.headers.get(hdrs.AUTHORIZATION)
        return self.tokens.shown(said) if said else self._signed_in(request, self.tokens)

    def _signed_in(self, request: web.Request, tokens: TokenFile) -> Permit | None:
        """The permit of the request's sign-in. Browsers name the origin of whatever asks for a
        change, and nobody else's page gets here; a request that names none was made by no page of
        ours.
        """
        tokens.load_if_changed()
        cookie = request.cookies.get(cookie_name(is_secure=request.secure), "")
        permit = self.sign_ins.permit(SignIn(cookie, request.headers.get(KEY_HEADER, "")))
        if permit is None or not tokens.has(permit):
            return None
        is_from_page = request.method in READS or hdrs.ORIGIN in request.headers
        return permit if is_from_page else None

    def turned_away(self, request: web.Request, why: str) -> None:
        """Note that a request was refused."""
        peer = request.remote or ""
        what = f"{cut(request.method)} {cut(request.path)} from {peer}: {why}"
        self.notes.note(Noted(ServiceKind.NOT_ALLOWED, detail=what), peer)


def _check_is_small(request: web.Request) -> None:
    """A body is kept until it is complete, and anybody may send one here."""
    length = request.content_length
    if request.can_read_body and (length is None or length > STRANGERS_BYTES):
        raise HttpRefusal(
            413,
            f"a body here has at most {STRANGERS_BYTES} bytes, and says in Content-Length how many",
            "send less in one request",
        )


def wants_page(request: web.Request) -> bool:
    """Whether a browser asks, to show the answer to somebody."""
    return "text/html" in request.headers.get(hdrs.ACCEPT, "")


def _is_open(request: web.Request) -> bool:
    path = request.path
    if path == SIGN_IN_PATH:
        return request.method == hdrs.METH_POST  # it shows its token in the body
    if request.method not in READS:
        return False
    if path == "/" and wants_page(request):
        return True  # it is sent to the pages
    return path in OPEN_PATHS or path == PAGES or path.startswith(PAGES + "/")


def _allows(permit: Permit, request: web.Request) -> bool:
    if request.path == SIGN_IN_PATH:
        return True
    if request.path == OWNER_PATH:
        return permit.may_own
    if request.path == LOOKUP_PATH:
        return permit.may_look_up
    if request.path == NODE_PATH:
        return permit.may_be_node
    if request.match_info.get("cluster") and permit.may_be_node:
        # A node passes on what its clients say of tables; the ring is for who may change anything.
        resource = request.match_info.route.resource  # a cluster may have any name, `tables` too
        makes_table = resource is not None and resource.canonical == TABLES_PATH
        return request.method in READS or makes_table or permit.may_change
    if request.method in READS:
        return request.path == "/" or permit.may_read(request.match_info.get("pool"))
    return permit.may_change
