"""The processes of the scenario: a manager, two of each service, and two frontends.

Devices' addresses are documents in the pool `devices`, under the device, and each change of one is
published to the topic of that name. What a user has done is a document in the pool `activities`,
under the user. Each device has a queue, which watches the keys of these pools that it relies on.
A frontend is a gateway, which leads to one process of each service.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from lab.demo.mesh.mesh_clients import POOL_HEADER
from lab.demo.mesh.service_processes import ServiceProcess
from tenure.cli.demo.ports import HOST, free_ports

ServiceName: TypeAlias = Literal["devices", "activities", "topics", "queues"]
SERVICES: dict[ServiceName, str] = {
    "devices": "documents",
    "activities": "documents",
    "topics": "pubsub",
    "queues": "queues",
}
"""The service that serves each pool."""
WATCHED: tuple[ServiceName, ...] = ("devices", "activities", "topics")
OF_EACH = 2
MANAGER = "the manager"
QUIET = ("--log-level", "error")
"""Trouble is what this is about."""
ANSWER_SECONDS = 5
"""How long a frontend waits for a process that may be stopped; longer than a device's poll."""


class LiveMesh:
    """The manager, the services and the frontends of the scenario, as processes."""

    def __init__(self, preset: str, directory: Path, *, is_kept: bool) -> None:
        self.preset = preset
        self.is_kept = is_kept
        """Whether the services keep everything in stores."""
        self.services: dict[ServiceName, list[ServiceProcess]] = {}
        self.frontends: list[ServiceProcess] = []
        self.members: dict[str, str] = {}
        """The address at which members reach each process, the same in all its lives."""
        self._directory = directory
        self._ports = free_ports(1 + (2 * len(SERVICES) + 1) * OF_EACH)
        at = ("--port", str(self._ports.pop()), "--journal", f"sqlite:{directory / 'journal'}")
        self.manager = ServiceProcess(
            MANAGER, ("manager", *at, "--first-start", "--preset", preset, *QUIET)
        )

    def urls(self, name: ServiceName) -> list[str]:
        """Return the URLs of a service. They stay the same through all lives of its processes."""
        first = list(SERVICES).index(name) * OF_EACH
        return [f"http://{HOST}:{port}" for port in self._ports[first : first + OF_EACH]]

    @property
    def processes(self) -> dict[str, ServiceProcess]:
        """All of them, by name."""
        services = [each for those in self.services.values() for each in those]
        return {each.name: each for each in (self.manager, *services, *self.frontends)}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run them all until the block ends."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.manager.end)
            manager = await self.manager.start()
            for name in SERVICES:
                self.services[name] = self._of_service(name, manager)
            self.frontends = [self._frontend(number) for number in range(OF_EACH)]
            others = [each for each in self.processes.values() if each is not self.manager]
            for each in others:
                stack.push_async_callback(each.end)
            # All at once: queues wait until there are the pools that they watch.
            await asyncio.gather(*(each.start() for each in others))
            yield

    def _of_service(self, name: ServiceName, manager: str) -> list[ServiceProcess]:
        options = ["serve", SERVICES[name], "--pool", name, "--manager", manager, *QUIET]
        if name == "queues":
            options += [part for pool in WATCHED for part in ("--watch", pool)]
        if name == "topics":
            options += [part for url in self.urls("queues") for part in ("--queues", url)]
        if name == "devices":
            options += [part for url in self.urls("topics") for part in ("--publish-to", url)]
        if self.is_kept:
            options += ["--store", f"sqlite:{self._directory / name}"]
        made = []
        for number, url in enumerate(self.urls(name), 1):
            members = f"{HOST}:{self._ports.pop()}"
            listen = ("--listen", url.removeprefix("http://"), "--members", members)
            made.append(ServiceProcess(f"{name}-{number}", (*options, *listen)))
            self.members[made[-1].name] = f"http://{members}"
        return made

    def _frontend(self, number: int) -> ServiceProcess:
        paths: dict[ServiceName, str] = {
            "devices": f"/documents {POOL_HEADER}:devices",
            "activities": f"/documents {POOL_HEADER}:activities",
            "topics": "/topics",
            "queues": "/queues",
        }
        options = ["gateway", "--listen", f"{HOST}:{self._ports.pop()}", *QUIET]
        options += ["--deadline", "1", "--answer-seconds", str(ANSWER_SECONDS)]
        for name, path in paths.items():
            options += ["--route", f"{path}={self.urls(name)[number]}"]
        return ServiceProcess(f"frontend-{number + 1}", options)
