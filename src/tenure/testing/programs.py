"""A user's application in a simulated process: imported anew in each, and served in memory."""

import asyncio
import importlib
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from tenure.errors import ConfigurationError
from tenure.member.asgi import App
from tenure.member.environment import MEMBERS
from tenure.member.listener import MemberListener
from tenure.sim.app.processes import AppProcess
from tenure.testing.asgi_channel import Lifespan, MemoryServer
from tenure.testing.judge import Judge
from tenure.testing.relays import MemoryListener, MemoryMembers
from tenure.transport.channels import Channel

AppSource: TypeAlias = str | Callable[[], App]
"""The place of an application, as "module:name"; or a function that makes it anew each time."""

REQUESTS_SECONDS = 10.0
"""How long requests may take that were begun when a process is asked to end."""
FIRST_PORT = 10_000
INSTALLED = tuple(
    f"{place}/"
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    for place in {sysconfig.get_path(name), str(Path(sysconfig.get_path(name)).resolve())}
)


class Program:
    """The program of each process: the application, behind a shared port and the member's own."""

    def __init__(self, source: AppSource, judge: Judge) -> None:
        self.source = source
        self.name = source if isinstance(source, str) else source.__qualname__
        self._judge = judge
        self.public: dict[AppProcess, str] = {}
        """The processes that listen on the shared port."""

    async def run(self, process: AppProcess) -> None:
        """Serve until the process is asked to leave."""
        watch, links = self._judge.watch(process), process.site.links
        left = asyncio.Event()
        process.leave = left.set

        def listener(app: App) -> MemberListener:
            return MemoryListener(
                app,
                f"http://127.0.0.1:{FIRST_PORT + process.uid}",
                lambda serve, url: links.listen(serve, process, url),
                links.fall_silent,
                watch,
            )

        async def connect(url: str) -> Channel:
            return await links.connect(url, process)

        MEMBERS.set(MemoryMembers(listener, connect))
        app = self.load()
        self._judge.know(app)
        if "aiohttp.web" in sys.modules:
            app = _as_asgi(app)
        lifespan = Lifespan(app, self.name)
        await lifespan.start()

        async def with_state(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
            scope["state"] = dict(lifespan.state)
            await app(scope, receive, send)

        server = MemoryServer(with_state, watch)
        url = links.listen(server.serve, process, f"http://public-{process.uid}.test")
        self.public[process] = url
        try:
            await left.wait()
        finally:
            self.public.pop(process, None)
            links.fall_silent(url)
        await server.shut(REQUESTS_SECONDS)
        await lifespan.stop()

    def load(self) -> App:
        """The application, as a new process would have it. Raises ConfigurationError."""
        if not isinstance(self.source, str):
            return self.source()
        module_name, _, app_name = self.source.partition(":")
        if not (module_name and app_name):
            raise ConfigurationError(
                f'the application is given as "module:name", not {self.source!r}; write it like '
                '"chat:app"'
            )
        module = imported_anew(module_name)
        app = getattr(module, app_name, None)
        if not callable(app):
            there = ", ".join(name for name, each in vars(module).items() if _is_app(name, each))
            raise ConfigurationError(
                f"{module_name} has no application {app_name!r}"
                + (f"; it has {there}" if there else "")
            )
        return app  # type: ignore[no-any-return]


def warm_up(source: AppSource) -> None:
    """Import once what the application imports that is installed, outside of the simulation.

    What it draws or reads there happens once for all processes; within the simulation it would be
    the first process that draws it, and the first seed would not repeat.
    """
    if isinstance(source, str) and source not in _WARM:
        _WARM.add(source)
        with suppress(Exception):  # the first simulated process says what is wrong with it
            imported_anew(source.partition(":")[0])


_WARM: set[str] = set()


def _as_asgi(app: App) -> App:
    from aiohttp import web  # noqa: PLC0415  # it was loaded

    from tenure.testing.aiohttp_app import AiohttpApp  # noqa: PLC0415  # loads a server

    return AiohttpApp(app) if isinstance(app, web.Application) else app


def _is_app(name: str, found: object) -> bool:
    is_named = not (name.startswith("_") or isinstance(found, type | ModuleType))
    return is_named and callable(found) and not hasattr(found, "__code__")


def imported_anew(name: str) -> ModuleType:
    """The module, and all of the user's own that it imports, as a new process would have them.

    What is installed is shared. Raises ConfigurationError if there is no such module.
    """
    with _without_own_modules():
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            raise ConfigurationError(
                f"there is no module {error.name!r} to simulate: it is looked for in sys.path, to "
                'which pytest adds what `pythonpath` names in its configuration ("." for the '
                "folder in which pytest runs)"
            ) from None


@contextmanager
def _without_own_modules() -> Iterator[None]:
    """While this lasts, no module is imported yet but those that are installed."""
    own = {name: module for name, module in sys.modules.items() if _is_own(name, module)}
    for name in own:
        del sys.modules[name]
    try:
        yield
    finally:
        for name in [name for name, module in sys.modules.items() if _is_own(name, module)]:
            del sys.modules[name]
        sys.modules.update(own)


def _is_own(name: str, module: object) -> bool:
    """Whether a module is a user's, and not tenure's or an installed one."""
    if name.partition(".")[0] in ("tenure", "__main__"):
        return False
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return isinstance(file, str) and not any(file.startswith(place) for place in INSTALLED)
