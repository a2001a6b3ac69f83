"""A whole system on this host: a manager, the nodes of a store, services, a gateway and commands.

It is the cluster of `tenure run --store`, with more processes beside it, all of which are started
again when they end. When the file is read again, only what has changed is.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tenure.cli.gateway_options import words_of
from tenure.cli.home_cluster import HomeCluster
from tenure.cli.host_file import HostPlan
from tenure.cli.output import remark
from tenure.client.managers import VARIABLE
from tenure.stores.opening import STORE_VARIABLE

CLUSTER = "home"
END_SECONDS = 30.0
"""A web server, or a service, first hands its keys over."""


class HostSystem(HomeCluster):
    """The processes."""

    end_seconds = END_SECONDS

    def __init__(self, plan: HostPlan) -> None:
        settings = plan.settings
        data = Path(settings.data).expanduser().resolve()
        managing = ["--preset", settings.preset]
        if settings.manager:
            managing += ["--config", settings.manager]
        if not (data / "journal.sqlite").exists():
            managing.append("--first-start")  # so nobody can hold anything
        super().__init__(data, CLUSTER, settings.nodes, settings.port, managing=managing)
        self._plan = plan
        self._keeping: dict[str, asyncio.Task[None]] = {}

    # --- what each process is ---

    def programs(self) -> list[str]:
        """The names of the processes beside the cluster, in the order in which they start."""
        plan = self._plan
        return [*plan.services, *(["gateway"] if plan.gateway else []), *plan.commands]

    def command(self, name: str) -> list[str]:
        plan, tenure = self._plan, [sys.executable, "-m", "tenure"]
        if name in plan.commands:
            return plan.commands[name].words
        if name in plan.services:
            service = plan.services[name]
            return [*tenure, "serve", service.service, *words_of(service.options)]
        if name == "gateway" and plan.gateway is not None:
            return [*tenure, "gateway", *words_of(plan.gateway)]
        return super().command(name)

    def environment(self, name: str) -> Mapping[str, str] | None:
        told = {VARIABLE: self.manager}
        if self.nodes:
            told[STORE_VARIABLE] = self.url
        command = self._plan.commands.get(name)
        own = command.environment if command else {}
        return {**os.environ, **told, **own}

    def directory(self, name: str) -> str | None:
        command = self._plan.commands.get(name)
        return command.directory or None if command else None

    def _of(self, name: str) -> tuple[object, ...]:
        return self.command(name), self.environment(name), self.directory(name)

    # --- running ---

    async def start(self) -> None:
        """Start all, and start again what ends. Raises TenureError."""
        await super().start()
        for name in self.pids():
            self._keep(name)
        for name in self.programs():
            await self._begin(name)

    async def _begin(self, name: str) -> None:
        try:
            await self.launch(name)
        except OSError as error:  # what can be started runs on
            remark(f"{name} cannot be started: {error.strerror}: {self.command(name)[0]}")
            return
        self._keep(name)

    def _keep(self, name: str) -> None:
        self._keeping[name] = asyncio.create_task(self.keep_one(name, _nobody))

    async def _stop(self, name: str) -> None:
        keeping = self._keeping.pop(name, None)
        if keeping is not None:
            keeping.cancel()
            await asyncio.wait([keeping])
            await self.end_one(name)

    async def change_to(self, plan: HostPlan) -> None:
        """Run this from now on: what is the same in both plans runs on."""
        if plan.settings != self._plan.settings:
            remark(
                "nothing was changed: data, port, nodes, preset and manager are read when tenure "
                "up starts; end it, and start it again"
            )
            return
        before = {name: self._of(name) for name in self.programs()}
        for name in [*before]:
            if name not in self._keeping:
                del before[name]  # it could not be started, and may be now
        self._plan = plan
        wanted = self.programs()
        same = {name for name in wanted if before.get(name) == self._of(name)}
        for name in reversed(before):
            if name not in same:
                await self._stop(name)
        for name in wanted:
            if name not in same:
                await self._begin(name)
        changed = [name for name in [*before, *wanted] if name not in same]
        remark(f"read again; changed: {', '.join(dict.fromkeys(changed)) or 'nothing'}")

    async def end(self) -> None:
        """End all: commands first, then the gateway, services, nodes, and the manager."""
        for each in self._keeping.values():
            each.cancel()
        if self._keeping:
            await asyncio.wait(self._keeping.values())
        await super().end()


def _nobody(_: int) -> None:
    """Nobody asks which processes there are."""
