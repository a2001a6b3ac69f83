"""An owner's watchdog: if the application does not show that it is alive, its leases run out."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from tenure.base.instants import SECOND_NS
from tenure.client.hand_off.handler import result_of
from tenure.client.shell import Shell
from tenure.protocol.lease.owner.events import Alive


class Watchdog:
    """Tells an owner's machine that the application is alive."""

    def __init__(
        self, shell: Shell[Any, Any, Any], watchdog_ns: int | None, log: logging.Logger
    ) -> None:
        self._shell = shell
        self._watchdog_ns = watchdog_ns
        self._log = log
        self._failed_probe = ""
        """The error of the last probe, which is logged as a warning only once."""

    def alive(self) -> None:
        """The application shows that it is not hung. From any thread."""
        self._shell.counts["alive"] += 1
        self._shell.post(Alive())

    async def keep_alive(self, probe: Callable[[], object] | None) -> None:
        """Show that the application is not hung, from within its event loop, as long as `probe`
        does not fail.
        """
        assert self._watchdog_ns is not None
        watchdog = self._watchdog_ns / SECOND_NS
        while True:
            await self.show_life(probe, watchdog / 2)
            await asyncio.sleep(watchdog / 4)

    async def show_life(self, probe: Callable[[], object] | None, patience: float) -> None:
        """Show it once, if `probe` returns in time."""
        try:
            if probe is not None:
                async with asyncio.timeout(patience):
                    await result_of(probe())
        except Exception as error:  # noqa: BLE001  # whatever it is, the application is not well
            self._shell.counts["probes failed"] += 1
            before, self._failed_probe = self._failed_probe, repr(error)
            self._log.log(
                logging.DEBUG if before == self._failed_probe else logging.WARNING,
                "%s does not pass its own probe: %r. Its leases are not renewed, and run out, "
                "until it passes",
                self._shell.name,
                error,
            )
            return
        if self._failed_probe:
            self._log.warning("%s passes its own probe again", self._shell.name)
        self._failed_probe = ""
        self.alive()
