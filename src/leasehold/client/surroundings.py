"""What a library's engine has around it: a clock, a network, randomness, a host, a place to run.

In production these are always the same. The test kit puts others in their place, and everything
else, threads included, is what it is in production.
"""

from random import Random, SystemRandom
from typing import Protocol, TypeVar

from leasehold.client.attestation import look, own_process
from leasehold.client.home import Home, ThreadHome
from leasehold.protocol.lease.attestation import Sight
from leasehold.protocol.lease.messages import Process
from leasehold.runtime.clock import Clock, LoopTimers, Timers, boot_clock
from leasehold.transport.channels import Channels
from leasehold.transport.contract import Role, Transport
from leasehold.transport.websocket import WebSocketTransport

M = TypeVar("M")


class Surroundings(Protocol):
    """Where an engine runs, and by which clock."""

    @property
    def clock(self) -> Clock: ...
    @property
    def home(self) -> Home: ...
    def timers(self) -> Timers:
        """Alarms on `clock`, for the loop of the engine."""
        ...

    def random(self) -> Random:
        """A source of names and nonces."""
        ...

    def transport(self, role: Role[M]) -> Transport[M]:
        """A way to the managers."""
        ...

    def own_process(self) -> Process | None:
        """This process, where its neighbours can be looked at; None where they cannot."""
        ...

    def look(self, suspect: Process) -> Sight:
        """What there is to be seen of a neighbour. May take a while, and from any thread."""
        ...

    def channels(self) -> Channels:
        """A way to other owners."""
        ...


class World:
    """The real one."""

    clock = staticmethod(boot_clock)  # a partial in a class is to become a method one day
    home: Home = ThreadHome()

    def timers(self) -> Timers:
        """See `Surroundings`."""
        return LoopTimers(boot_clock)

    def random(self) -> Random:
        """See `Surroundings`. The system's: nonces must differ where states were copied."""
        return SystemRandom()

    def transport(self, role: Role[M]) -> Transport[M]:
        """See `Surroundings`."""
        return WebSocketTransport(role)

    def own_process(self) -> Process | None:
        """See `Surroundings`."""
        return own_process()

    def look(self, suspect: Process) -> Sight:
        """See `Surroundings`."""
        return look(suspect)

    def channels(self) -> Channels:
        """See `Surroundings`. Only who hands state over needs aiohttp's server, which is slow to
        load.
        """
        from leasehold.transport.websocket_channels import WebSocketChannels  # noqa: PLC0415

        return WebSocketChannels()
