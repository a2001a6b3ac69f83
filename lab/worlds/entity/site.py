"""A world of entities, and a process in it, as everything there sees them."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from lab.worlds.entity.checkers import EntityCheckers, ToldLoss
from lab.worlds.entity.entries import PlacedOp, Point, Shown
from lab.worlds.entity.used_world import UsedProcess
from tenure.base.instants import SECOND_NS
from tenure.base.ranges import KeyRange
from tenure.entities.entities import Entities
from tenure.sim.app.clients import LibraryLookup
from tenure.sim.app.processes import Main
from tenure.sim.app.site import AppSite
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.hosts import HostProcess


class EntitySite(AppSite):
    """A world of entities."""

    keys: list[str]
    term: float
    """A lease's term, in seconds."""
    calls_apart: float
    """The pause of each user between two calls, in terms."""
    is_quiet = False
    """Whether users wait."""
    reads: str
    """Where entities are read."""
    judge: EntityCheckers
    journals_there_were: tuple[int, ...]
    """The journals that managers have led, each later than those before it."""

    @abstractmethod
    def count(self, what: str) -> None:
        """Count what users saw."""


class Open(Protocol):
    """A socket's client."""

    key: str
    code: int
    last: PlacedOp | None
    is_over: bool


class UsersHere(Protocol):
    """The users of entities in one process."""

    @property
    def clients(self) -> Sequence[Open]: ...

    async def look(self, key: str) -> Shown | None:
        """Read a ledger."""
        ...

    async def glance(self, key: str, *, waits: bool) -> PlacedOp | None:
        """Read its last operation only, or wait for a later one."""
        ...


class LedgerProcess(UsedProcess):
    """One life of one program."""

    site: "EntitySite"
    entities: Entities[Any]

    def __init__(
        self, site: AppSite, slot: str, clock: SimClock, on_host: HostProcess, main: Main
    ) -> None:
        super().__init__(site, slot, clock, on_host, main)
        self._inside: set[Any] = set()
        self.users: UsersHere | None = None

    @asynccontextmanager
    async def turn_of(self, key: Any) -> AsyncIterator[None]:
        """Let one task after another work on a key."""
        if key in self._inside:
            self.wrong("one at a time", f"two turns of {key} in {self.slot}")
        self._inside.add(key)
        try:
            yield
        finally:
            self._inside.discard(key)

    def hears_of(self, lost: tuple[KeyRange, ...]) -> None:
        """Its lookup tells of a loss."""
        [lookup] = [each for each in self.clients if isinstance(each, LibraryLookup)]
        journals, followed = self.site.journals_there_were, lookup.engine.machine.journal
        later_than = journals[: journals.index(followed)] if followed in journals else ()
        self.told.tellings.append(ToldLoss(self.site.now, lost, frozenset(later_than)))

    def wrong(self, promise: str, detail: str) -> None:
        """End the run: an entity has seen that a promise is broken."""
        self.site.fail(Violation(promise, detail))

    def see(self, key: str, entry: PlacedOp) -> None:
        """Note an entry that has left the entity, as a frame or as an answer to another entity."""
        site = self.site
        try:
            asked_at = site.now - round(site.term * SECOND_NS)
            site.judge.see(key, entry, Point(), asked_at, self.told.name)
        except Violation as error:
            site.fail(error)
