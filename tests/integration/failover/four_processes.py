"""Four processes of one service, of which tests kill and stop some."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from lab.demo.mesh.service_processes import ServiceProcess
from tenure import Lookup
from tenure.cli.demo.ports import free_ports
from tests.patience import until


class FourProcesses(NamedTuple):
    """Four processes of one service, by the port at which the others reach each; and which one has
    which key.
    """

    processes: dict[int, ServiceProcess]
    lookup: Lookup

    def owner(self, key: str) -> int:
        return int((self.lookup.find(key) or ":0").rpartition(":")[2])

    async def each_has_ranges(self) -> None:
        await until(lambda: {self.owner(f"any-{n}") for n in range(1000)} == set(self.processes))

    def others(self, key: str) -> list[ServiceProcess]:
        """Return the processes that do not have this key."""
        return [each for members, each in self.processes.items() if members != self.owner(key)]


@asynccontextmanager
async def four_processes(
    name: str,
    *options: str,
    preset: str = "default",
    env: Mapping[str, str] | None = None,
    each: Callable[[int], tuple[str, ...]] = lambda _: (),
) -> AsyncIterator[FourProcesses]:
    async with AsyncExitStack() as stack:
        said = ("--port", "0", "--journal", "memory", "--first-start", "--preset", preset)
        manager = ServiceProcess("manager", ("manager", *said, "--log-level", "error"))
        stack.push_async_callback(manager.end)
        serve = ("serve", name, "--manager", await manager.start(), *options)
        ports = free_ports(8)
        processes = {
            members: ServiceProcess(
                name,
                (
                    *(*serve, "--log-level", "error", *each(number)),
                    *("--listen", f"127.0.0.1:{port}", "--members", f"127.0.0.1:{members}"),
                ),
                env,
            )
            for number, (port, members) in enumerate(zip(ports[:4], ports[4:], strict=True))
        }
        for process in processes.values():
            stack.push_async_callback(process.end)
        await asyncio.gather(*(process.start() for process in processes.values()))
        lookup = await stack.enter_async_context(Lookup(manager.url, pool=name))
        found = FourProcesses(processes, lookup)
        await found.each_has_ranges()
        yield found
