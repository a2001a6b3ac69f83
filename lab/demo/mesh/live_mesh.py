"""The processes of the scenario: a manager, and two of each service.

Devices' addresses are documents in the pool `devices`, under the device. Topics have the same keys.
What a user has done is a document in the pool `activities`, under the user. Each device has a
queue, which watches the keys of these pools that it relies on.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal, TypeAlias

from lab.demo.mesh.service_processes import ServiceProcess
from tenure.cli.demo.ports import free_ports

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


class LiveMesh:
    """The manager and the services of the scenario, as processes."""

    def __init__(self, preset: str) -> None:
        self.preset = preset
        options = ("--port", "0", "--journal", "memory", "--first-start", "--preset", preset)
        self.manager = ServiceProcess("manager", ("manager", *options, "--log-level", "error"))
        self.services: dict[ServiceName, list[ServiceProcess]] = {}
        self.members: dict[str, str] = {}
        """The address at which members reach each process, the same in all its lives."""
        self._ports = free_ports(2 * len(SERVICES) * OF_EACH)

    def urls(self, name: ServiceName) -> list[str]:
        """Return the URLs of a service. They stay the same through all lives of its processes."""
        first = list(SERVICES).index(name) * OF_EACH
        return [f"http://127.0.0.1:{port}" for port in self._ports[first : first + OF_EACH]]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run them all until the block ends."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.manager.end)
            manager = await self.manager.start()
            for name, service in SERVICES.items():
                options = ["serve", service, "--pool", name, "--manager", manager]
                options += ["--log-level", "error"]  # trouble is what this is about
                if name == "queues":
                    options += [part for pool in WATCHED for part in ("--watch", pool)]
                if name == "topics":
                    for url in self.urls("queues"):
                        options += ["--queues", url]
                self.services[name] = []
                for number, url in enumerate(self.urls(name), 1):
                    members = f"127.0.0.1:{self._ports.pop()}"
                    listen = ("--listen", url.removeprefix("http://"), "--members", members)
                    each = ServiceProcess(f"{name}-{number}", (*options, *listen))
                    self.members[each.name] = f"http://{members}"
                    self.services[name].append(each)
                    stack.push_async_callback(each.end)
            # All at once: queues wait until there are the pools that they watch.
            everyone = [each for those in self.services.values() for each in those]
            await asyncio.gather(*(each.start() for each in everyone))
            yield
