"""Simulated managers, what the world sees of owners, and their needs of the world."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from tenure.base.instants import Instant
from tenure.base.keys import Key, PoolKind
from tenure.base.noted import Noted
from tenure.base.rangemap import RangeMap
from tenure.protocol.balance.planning import Planning
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.leader.manager import Manager
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.owner.events import Holdings
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.records import JournalAction
from tenure.protocol.lease.timing import Timing
from tenure.protocol.log.journal import LOG_ACTIONS
from tenure.protocol.log.noted import LogKind
from tenure.sim.journal import LeaseContents
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.hosts import HostProcess, Hosts
from tenure.sim.kernel.network import Network
from tenure.sim.kernel.process import SimProcess, Site
from tenure.sim.lease.faults import LeaseFaults

POOL = "pool"

# --- what they need of their world ----------------------------------------------------------------


class Watcher(Protocol):
    """Judges the actions of processes."""

    holders: "dict[str, RangeMap[OwnerParty | None]]"
    """By pool: the owner that was last seen to begin to believe in each range."""
    committed: LeaseHistory

    def on_hold(self, owner: "OwnerParty", holdings: Holdings) -> None:
        """An owner's readers see new holdings."""
        ...

    def on_leading(self, manager: "ManagerProcess") -> None:
        """A manager has begun to lead."""
        ...


class LeaseSite(Site):
    """A world of leases, as everything in it sees it."""

    faults: LeaseFaults
    timing: Timing
    pools: tuple[str, ...]
    kinds: dict[str, PoolKind]
    """The kind of each pool."""
    watched_keys: list[Key]
    """The keys that are looked at one by one."""
    hosts: Hosts
    network: Network
    checkers: Watcher
    journal: LeaseContents
    taken_over_at = 0
    """When a manager last began to lead."""
    is_first_start = False
    """Whether managers begin now as if there had been no journal before."""

    @abstractmethod
    def call_journal(self, manager: "ManagerProcess", action: JournalAction) -> None:
        """Carry out a journal action, and take time for it."""

    @abstractmethod
    def ask_policy(self, manager: "ManagerProcess", work: Planning) -> None:
        """Ask a policy, and take time for it."""

    @abstractmethod
    def restore_journal(self, at: int, copy: LeaseHistory) -> None:
        """Put a journal restored from the copy in the place of the present one, at that instant."""

    @abstractmethod
    def copied_journal(self) -> LeaseHistory:
        """Return a copy of the journal as it is now."""

    @abstractmethod
    def begin_journal(self, copy: "LeaseHistory | None") -> None:
        """Put another journal in the place of the present one: empty, or restored from a copy."""

    def on_gave_up(self) -> None:
        """A manager will not go on: its operator looks why."""

    @abstractmethod
    def client(self, uid: int) -> SimProcess | None:
        """The client process behind a connection."""

    @abstractmethod
    def on_takeover(self) -> None:
        """A manager has begun to lead."""

    @abstractmethod
    def owner_at(self, address: str) -> "OwnerParty | None":
        """The owner that serves at an address, if that very process is still there."""

    def managers(self) -> "list[ManagerProcess]":
        return [p for p in self.slots.values() if isinstance(p, ManagerProcess)]

    @abstractmethod
    def owners(self) -> "Sequence[OwnerParty]":
        """The owners that there are."""

    @abstractmethod
    def clients(self) -> list[SimProcess]:
        """Owners and lookups."""

    def peers(self, process: SimProcess) -> Sequence[SimProcess]:
        """The peers of a process: clients are connected to managers."""
        return self.clients() if isinstance(process, ManagerProcess) else self.managers()


class LeaseProcess(SimProcess):
    """A process in a world of leases."""

    site: LeaseSite

    def note(self, noted: Noted) -> None:
        """The process's machine noted something."""
        self.site.tell(self.slot, noted.kind.phrase, noted.detail)
        self.site.count_note(noted.kind.phrase)


# --- managers and owners --------------------------------------------------------------------------


class ManagerProcess(LeaseProcess):
    """A manager. Its journal is the world's, or its own if that is `memory`."""

    machine: Manager
    stops_before = (manager_events.TellClient, manager_events.TellClients, *LOG_ACTIONS)

    def __init__(self, site: LeaseSite, slot: str, clock: SimClock, machine: Manager) -> None:
        super().__init__(site, slot, clock, machine)
        self.journal = site.journal.journal
        """The journal that the manager has opened: a journal takes nothing from a manager that
        opened another.
        """

    def perform(self, action: Any) -> None:
        """Carry out one action."""
        match action:
            case manager_events.TellClient(connection=connection, message=message):
                self._send(connection, message)
            case manager_events.TellClients(connections=connections, message=message):
                for connection in connections:
                    self._send(connection, message)
            case Noted():
                assert action.kind is not LeaderKind.QUESTION_FAILED, action.detail
                self.note(action)
                if action.kind is LogKind.LEADING:
                    self.site.checkers.on_leading(self)
            case manager_events.AnswerQuestion():
                pass
            case manager_events.MakePlan(work=work):
                self.site.ask_policy(self, work)
            case manager_events.GiveUp(why=why):
                self.give_up(why)
            case _:
                assert isinstance(action, LOG_ACTIONS), action
                self.site.call_journal(self, action)

    def give_up(self, why: str) -> None:
        """End, until the operator starts the manager again."""
        self.site.tell(self.slot, "gives up", why)
        self.site.on_gave_up()
        self.kill()
        self.site.restart_later(self.slot, self.site.timing.renew_ns)

    def _send(self, connection: int, message: Any) -> None:
        client = self.site.client(connection)
        if client is not None:
            self.site.network.to_process(self, client, message)

    def on_message(self, sender: SimProcess, message: Any) -> None:
        """A client's message has arrived."""
        self.post(manager_events.ClientSaid(sender.uid, message))

    def on_disconnected(self, peer: tuple[str, int]) -> None:
        """A client's connection is broken."""
        self.post(manager_events.ClientLost(peer[1]))


class OwnerParty(LeaseProcess):
    """An owner, and what its readers see."""

    machine: OwnerMachine

    def __init__(
        self,
        site: LeaseSite,
        slot: str,
        clock: SimClock,
        machine: OwnerMachine,
        on_host: HostProcess,
    ) -> None:
        super().__init__(site, slot, clock, machine)
        self.pool = machine.view().config.pool
        self.on_host = on_host
        self.holdings = Holdings(0, 0, (), Instant(0))
        self.believes_until = 0
        """When the owner's belief ends, in real time."""

    def end_belief(self) -> None:
        """The owner's belief ended with its process."""
        self.holdings = Holdings(0, 0, (), self.holdings.expires_at)
        self.believes_until = 0
