"""The environment of a library's engine: a clock, a network, randomness, a host, a place to run.

In production these are always the same. The test kit replaces them; everything beyond them, threads
included, is the same as in production.
"""

from collections.abc import Callable
from contextvars import ContextVar
from random import Random, SystemRandom
from time import time
from typing import Protocol, TypeVar

from tenure.client.attestation import look, own_process
from tenure.client.succession import has_successor
from tenure.errors import ConfigurationError
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.messages import Process
from tenure.runtime.clock import Clock, LoopTimers, Timers, boot_clock
from tenure.runtime.loops import OwnThread, Runner
from tenure.transport.channels import Channels
from tenure.transport.contract import Role, Transport
from tenure.transport.credentials import Credentials
from tenure.transport.doors import Door
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.websocket import WebSocketTransport

M = TypeVar("M")


class Environment(Protocol):
    """The surroundings in which an engine runs: its transport, its clock and its process."""

    @property
    def clock(self) -> Clock: ...
    @property
    def runner(self) -> Runner: ...
    @property
    def managers(self) -> tuple[str, ...]:
        """The managers that exist, whatever the application names; empty if the application names
        them.
        """
        ...

    @property
    def credentials(self) -> Credentials:
        """The credentials of the clients in this environment."""
        ...

    secret: PoolSecret
    """What managers tell of the pool's secret, and what the ports in this environment ask for."""

    def begins(self, engine: object) -> None:
        """The engine of a client is about to run here; an environment may watch it."""
        ...

    def timers(self) -> Timers:
        """Alarms on `clock`, for the loop of the engine."""
        ...

    def wall(self) -> float:
        """Wall time, in seconds as `time.time` has them."""
        ...

    def random(self) -> Random:
        """A source of names and nonces."""
        ...

    def transport(self, role: Role[M]) -> Transport[M]:
        """A way to the managers."""
        ...

    def own_process(self) -> Process | None:
        """This process, if its neighbours can be looked at; None otherwise."""
        ...

    def has_successor(self, waited: float) -> bool:
        """Whether another process is about to take the place of this one, which has waited for it
        for so many seconds.
        """
        ...

    def look(self, suspect: Process) -> Sight:
        """Return what can be seen of a neighbour. May take a while. From any thread."""
        ...

    def channels(self) -> Channels:
        """A way to other owners."""
        ...

    def door(self, path: str) -> Door:
        """Return the door at which our clients come in, at `path`."""
        ...


class RealEnvironment:
    """The clocks, the network, the host and the threads of this process."""

    clock = staticmethod(boot_clock)  # a future Python makes a method of a partial in a class
    wall = staticmethod(time)
    runner: Runner = OwnThread()
    managers: tuple[str, ...] = ()

    def __init__(self, credentials: Credentials | None = None) -> None:
        self.credentials = credentials or Credentials.from_environment()
        self.secret = PoolSecret()

    def begins(self, engine: object) -> None:
        """See `Environment`. Nobody watches."""

    def timers(self) -> Timers:
        return LoopTimers(boot_clock)

    def random(self) -> Random:
        """See `Environment`. The system's randomness: nonces must differ even if a state was
        copied.
        """
        return SystemRandom()

    def transport(self, role: Role[M]) -> Transport[M]:
        return WebSocketTransport(role, self.credentials, self.secret)

    def own_process(self) -> Process | None:
        return own_process()

    def has_successor(self, waited: float) -> bool:
        return has_successor(waited)

    def look(self, suspect: Process) -> Sight:
        return look(suspect)

    def channels(self) -> Channels:
        """See `Environment`. aiohttp's server is slow to load, and only owners that hand over state
        need it.
        """
        from tenure.transport.websocket_channels import WebSocketChannels  # noqa: PLC0415

        return WebSocketChannels(self.credentials, secret=self.secret)

    def door(self, path: str) -> Door:
        """See `Environment`. aiohttp's server is slow to load, and clients need none."""
        from tenure.transport.websocket_door import WebSocketDoor  # noqa: PLC0415
        from tenure.wire.volume import is_list  # noqa: PLC0415

        return WebSocketDoor(path, self.credentials, secret=self.secret, is_list=is_list)


SURROUNDING: ContextVar[Callable[[], Environment] | None] = ContextVar("tenure", default=None)
"""Makes the environment of each Owner and Lookup that is made in this context. Applications name no
environment, so the test kit can run them unchanged.
"""


def environment_here(credentials: Credentials | None = None) -> Environment:
    """Return the environment of a client that is made here, with `credentials`. Raises
    ConfigurationError if they are not Credentials.
    """
    if credentials is not None and not isinstance(credentials, Credentials):
        raise ConfigurationError(
            "credentials are Credentials(token=..., ca=..., cert=..., key=...), or None for those "
            f"of the environment, not {type(credentials).__name__}"
        )
    make = SURROUNDING.get()
    return RealEnvironment(credentials) if make is None else make()
