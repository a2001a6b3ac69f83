"""The presence service, run by the demo: its processes, and the lease table as a lookup sees it."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tenure import Lookup
from tenure.cli.demo.children import Child, Children
from tenure.cli.demo.managers import ETCD_MEMBERS, ManagerProcesses
from tenure.cli.demo.operations import HOLDS_IN_A_DEADLINE
from tenure.cli.demo.owner import DRAIN_SECONDS
from tenure.cli.demo.places import Frontends, OwnerPlace
from tenure.cli.demo.reports import POOL, Crowd, FrontendOrders, OwnerOrders
from tenure.protocol.balance.load import SPACE, share_of
from tenure.protocol.lease.timing import PRESETS, Timing

CLIENTS_OF_A_FRONTEND = 80
LOOK_SECONDS = 0.02
"""How often the table is looked at where something is waited for: it is how exact a time is."""


ScenarioName: TypeAlias = Literal[
    "owner-faults", "break-owner", "kill-leader", "rolling-restart", "crash", "hot-keys"
]


class DemoSettings(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    owners: int
    frontends: int
    preset: str
    managers: int = 1
    journal: str = "sqlite"
    scenario: ScenarioName = "owner-faults"

    @property
    def timing(self) -> Timing:
        """The durations of the preset."""
        return PRESETS[self.preset]

    @property
    def users(self) -> tuple[str, ...]:
        """All users there are."""
        return tuple(f"user-{n}" for n in range(CLIENTS_OF_A_FRONTEND * self.frontends))


class PresenceService:
    """Managers, owners and frontends. Start it, make trouble, finish it."""

    owner_role = "owner"
    module = "tenure.cli.demo"

    def __init__(
        self, settings: DemoSettings, directory: Path, tell: Callable[[str], None]
    ) -> None:
        self.settings = settings
        self.owners = [OwnerPlace(n + 1) for n in range(settings.owners)]
        self.frontends = Frontends()
        self.children = Children(directory, self.module)
        self.managers = ManagerProcesses(
            settings.managers, settings.preset, directory, self.children
        )
        self.lookup: Lookup | None = None
        self.directory = directory
        self.tell = tell

    # --- starting ---

    async def start(self) -> None:
        """Start everything; done when all clients have published."""
        settings = self.settings
        self.tell(
            f"starting {_managers_of(settings)}, {settings.owners} owners and "
            f"{settings.frontends} frontends"
        )
        if settings.journal == "etcd":
            await self.managers.start_etcd()
        await self.managers.start()
        await asyncio.gather(*map(self.start_owner, self.owners))
        for number in range(settings.frontends):
            on_line = partial(self.frontends.on_line, number)
            child = await self.children.start("frontend", f"frontend-{number + 1}", on_line)
            self.frontends.children.append(child)
        await self.managers.are_ready()
        self.tell(f"manager at {self.managers.shown}, preset {settings.preset}")
        for place in self.owners:
            self.order(place)
        await asyncio.gather(*(place.is_serving() for place in self.owners))
        self.lookup = await Lookup(self.managers.urls, pool=POOL).__aenter__()
        self.tell(f"{settings.owners} owners share the keys; the clients are coming")
        for number, child in enumerate(self.frontends.children):
            child.tell(self._orders_of_frontend(number))
        await self.frontends.have_published()
        self.tell(f"{len(settings.users)} clients have published their presence")

    async def start_owner(self, place: OwnerPlace) -> None:
        """Start the process of an owner; it waits for orders."""
        name = place.begin_life()
        place.child = await self.children.start(self.owner_role, name, place.on_line)

    def order(self, place: OwnerPlace) -> None:
        """Tell the process of an owner what it is to be."""
        assert place.child is not None
        is_broken = self.settings.scenario == "break-owner" and place is self.owners[0]
        orders = OwnerOrders(self.managers.urls, place.child.name, str(self.directory), is_broken)
        place.child.tell(orders)

    def _orders_of_frontend(self, number: int) -> FrontendOrders:
        users = self.settings.users
        clients = users[number :: self.settings.frontends]
        return FrontendOrders(self.managers.urls, clients, users, self.settings.timing.hold_ns)

    # --- trouble ---

    def kill(self, place: OwnerPlace) -> None:
        """End an owner without a warning."""
        assert place.child is not None
        place.become("killed")
        place.child.send(signal.SIGKILL)

    async def restart(self, place: OwnerPlace) -> None:
        """Start an owner that is gone; done when it serves."""
        await self.replace(place)
        await place.is_serving()

    async def replace(self, place: OwnerPlace) -> None:
        """Start an owner that is gone; done when it has joined, and can be given something."""
        await self.start_owner(place)
        self.order(place)
        await place.has_joined()

    async def drain(self, place: OwnerPlace) -> None:
        """Ask an owner to leave (SIGTERM); done when it has handed everything over, and is gone.

        Raises TenureError where it does not end by itself.
        """
        assert place.child is not None
        place.become("draining")
        place.child.send(signal.SIGTERM)
        await place.child.end(DRAIN_SECONDS)
        if place.child.code != 0:
            raise place.child.died()

    def stop(self, place: OwnerPlace) -> None:
        """Have an owner stand still. It does not know."""
        assert place.child is not None
        place.become("stopped")
        place.child.send(signal.SIGSTOP)

    def wake(self, place: OwnerPlace) -> None:
        """Have an owner go on that stands still."""
        assert place.child is not None
        place.become("serving")
        place.child.send(signal.SIGCONT)

    def crowd(self, users: tuple[str, ...]) -> None:
        """Have nearly everybody look these users up, from now on."""
        for child in self.frontends.children:
            child.tell(Crowd(users))

    # --- the table ---

    def shares(self) -> dict[str | None, float]:
        """How much of the key space is at each address, from 0 to 1."""
        shares: dict[str | None, float] = {}
        for each, address in self.lookup.table() if self.lookup else ():
            shares[address] = shares.get(address, 0.0) + share_of(each)
        return shares

    def strip(self, slices: int) -> tuple[int | None, ...]:
        """The key space in slices of equal size: the number of each one's owner."""
        if self.lookup is None:
            return (None,) * slices
        number_of = {place.address: place.number for place in self.owners if place.address}
        keys = ((2 * n + 1) * SPACE // (2 * slices) for n in range(slices))
        return tuple(number_of.get(self.lookup.find(key) or "") for key in keys)

    async def taken_over(self, address: str | None) -> None:
        """Wait until nothing is at `address` any more."""
        while address in self.shares():  # noqa: ASYNC110  # nothing tells of every change
            await asyncio.sleep(LOOK_SECONDS)

    # --- finishing ---

    async def finish(self) -> None:
        """End it in order: what is under way at the frontends is brought to its end."""
        for place in self.owners:
            if place.state == "stopped":
                self.wake(place)
        deadline = HOLDS_IN_A_DEADLINE * self.settings.timing.hold_ns / 1e9
        await self._stop_all(self.frontends.children, 2 * deadline)  # the last, and the look after
        await self._stop_all([place.child for place in self.owners if place.child], 0)
        await self.managers.end()

    async def close(self) -> None:
        """End whatever there still is."""
        if self.lookup is not None:
            await self.lookup.close()
        await self.children.kill_all()

    async def _stop_all(self, children: list[Child], seconds: float) -> None:
        for child in children:
            child.tell()
        await asyncio.gather(*(child.end(seconds) for child in children))


def _managers_of(settings: DemoSettings) -> str:
    count = settings.managers
    what = "a manager" if count == 1 else f"{count} managers"
    return what if settings.journal == "sqlite" else f"an etcd of {ETCD_MEMBERS} members, {what}"
