"""A service in this process, with a manager, and a session to ask it with."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import msgspec

from tenure.cli.service_gate import service_port
from tenure.services.catalogue import service_type
from tenure.services.service import Service, ServiceSettings
from tenure.services.serving import RequestCheck, served
from tests.unit.manager.serving import serving


class Replied(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def tag(self) -> str:
        return self.headers["ETag"]


class ServiceStage:
    """One process of a service; `other` asks another."""

    def __init__(
        self, service: Service[Any], url: str, manager: str, session: aiohttp.ClientSession
    ) -> None:
        self.service = service
        self.url = url
        self.manager = manager
        self.session = session
        self.wall = 1_000_000.0

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Replied:
        data = (
            None if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        )
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(
            method, self.url + path, data=data, headers={"Content-Type": "application/json", **said}
        ) as response:
            found = await response.read()
            return Replied(
                response.status, msgspec.json.decode(found) if found else None, response.headers
            )

    def turn_wall(self, seconds: float) -> None:
        """The clock on the wall, which entities see, is set."""
        self.wall += seconds
        self.service.entities.station.host.gate.wall = lambda: self.wall


@asynccontextmanager
async def on_service_stage(
    name: str,
    *,
    manager: str | None = None,
    check: RequestCheck | None = None,
    tls: ssl.SSLContext | None = None,
    **settings: Any,  # noqa: ANN401
) -> AsyncIterator[ServiceStage]:
    """A service called `name`, over the manager at that URL or one of its own."""
    if manager is None:
        async with (
            serving(preset="default") as serves,
            on_service_stage(
                name, manager=serves.service.url, check=check, tls=tls, **settings
            ) as stage,
        ):
            yield stage
        return
    of = ServiceSettings(**{"pool": name, "managers": manager, "deadline": 20.0, **settings})
    service = service_type(name)(of, watchdog=None)
    async with (
        served(service, "127.0.0.1", 0, service_port, tls=tls, check=check) as url,
        aiohttp.ClientSession() as session,
    ):
        yield ServiceStage(service, url, manager, session)


def set_wall(stage: ServiceStage, ahead: float) -> None:
    """Have the clock on the wall of this process be so far ahead."""
    station = stage.service.entities.station
    wall = station.host.gate.wall
    station.host.gate.wall = station._alarms.agenda._wall = lambda: wall() + ahead
