"""The files of the dashboard, on a manager's port.

Nothing is built, and nothing is loaded from elsewhere. The policy that goes with each file lets a
page run only our scripts, and talk only to this manager. Names of pools and owners are only ever
text on a page.
"""

from importlib import resources

from aiohttp import web

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
INDEX = "index.html"


class Pages:
    """The dashboard's files, read once."""

    def __init__(self) -> None:
        folder = resources.files("tenure.dashboard") / "static"
        self._files = {
            file.name: file.read_bytes()
            for file in folder.iterdir()
            if file.name.rpartition(".")[2] in TYPES
        }

    def add_routes(self, app: web.Application) -> None:
        """Put them under /dashboard."""
        app.router.add_get("/dashboard", self._to_index)
        app.router.add_get("/dashboard/{name:[a-z_.]*}", self._file)

    async def _to_index(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound("/dashboard/")

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"] or INDEX
        body = self._files.get(name)
        if body is None:
            raise web.HTTPNotFound
        content_type = TYPES[name.rpartition(".")[2]]
        return web.Response(body=body, content_type=content_type, charset="utf-8", headers=HEADERS)


def add_pages(app: web.Application) -> None:
    """Show the dashboard on a manager's port."""
    Pages().add_routes(app)
