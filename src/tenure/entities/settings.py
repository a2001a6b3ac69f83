"""Checks the arguments of `Entities`, and makes the Owner, the Lookup and the store from them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tenure.base.keys import PoolKind
from tenure.base.names import shown
from tenure.client.arguments import (
    checked_drain,
    checked_flag,
    checked_labels,
    checked_name,
    checked_seconds,
)
from tenure.client.environment import Environment, environment_here
from tenure.client.hand_off.handler import HandOffHandler
from tenure.client.lookup import Lookup
from tenure.client.options import OnRanges
from tenure.client.owner import DRAIN_SECONDS, Owner
from tenure.client.read_leases import GivesReadsOf
from tenure.errors import ConfigurationError
from tenure.member.listener import checked_listen, checked_member_address
from tenure.protocol.lease.limits import CLASS_LABEL, CLASS_VERSION_LABEL, LABEL_CHARACTERS
from tenure.routing.trying import LONGEST_PAUSE
from tenure.stores.opening import EntityStore, MakeStore, store_for
from tenure.transport.pool_secret import PoolSecret

if TYPE_CHECKING:
    from tenure.client.options import Probe

Reads: TypeAlias = Literal["owner", "everywhere"]
SETTLE_SECONDS = 10.0
READ_TERM_SECONDS = 1.0
"""How long a process reads copies without hearing from their owner, and so how long a change waits
for one that is silent. It is shorter than the term of any preset, and long enough for a pause of a
busy process.
"""
TELL_SECONDS = 1.0
"""Seconds between two updates of the report that the owner sends to the managers; it renews less
often.
"""


@dataclass(kw_only=True)
class EntitySettings:
    """The settings of one `Entities`. Raises ConfigurationError if one cannot be used."""

    pool: str
    managers: str | Sequence[str] | None
    store: str | None
    idle: float = 300.0
    """Seconds after which an instance that nobody uses is dropped."""
    limit: int = 100_000
    """How many instances exist at a time, apart from those in use."""
    turn: float = 30.0
    """How many seconds a call may run."""
    wait: float = 10.0
    """How many seconds a call waits for its turn."""
    most_waiting: int = 1000
    """How many calls wait for one key."""
    deadline: float | None = None
    """Seconds for all attempts of a call; by default two holds and a turn."""
    settle: float = SETTLE_SECONDS
    reads: Reads = "owner"
    """Where readings run: at the owner, or in any process, on copies of the state."""
    read_term: float = READ_TERM_SECONDS
    stale_after: float | None = None
    """How old, in seconds, a copy may be that a reading takes while the owner does not answer."""
    drain: float = DRAIN_SECONDS
    listen: str = "127.0.0.1:0"
    address: str | None = None
    insecure: bool = False
    on_loss: OnRanges | None = None
    environment_given: Environment | None
    of_owner: Mapping[str, Any]
    make_store: MakeStore | None = None
    longest_pause: float = LONGEST_PAUSE
    """The most seconds between two attempts of a call while the table does not change."""
    tell: float = TELL_SECONDS
    secret: PoolSecret = field(default_factory=PoolSecret)
    """What managers tell its Owner and its Lookup of the pool's secret."""

    def __post_init__(self) -> None:
        checked_name("pool", self.pool)
        for name in ("idle", "turn", "wait", "settle"):
            setattr(self, name, checked_seconds(name, getattr(self, name)))
        if self.deadline is not None:
            self.deadline = checked_seconds("deadline", self.deadline)
        if self.reads not in ("owner", "everywhere"):
            raise ConfigurationError(f'reads is "owner" or "everywhere", not {shown(self.reads)}')
        if self.stale_after is not None:
            self.stale_after = checked_seconds("stale_after", self.stale_after)
            if self.reads == "owner":
                raise ConfigurationError(
                    'stale_after is for reads="everywhere": an owner\'s state is never stale'
                )
        for name in ("limit", "most_waiting"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigurationError(f"{name} is a number from 1 on, not {shown(value)}")
        self.make_store = None if self.store is None else store_for(self.store)
        self.drain = checked_drain(self.drain)
        is_safe = checked_flag("insecure", self.insecure) or self.environment.credentials.mutual
        self.listen = checked_listen(self.listen, self.address, insecure=is_safe)
        self.address = checked_member_address(self.address)

    @property
    def environment(self) -> Environment:
        """An environment, for the Owner, the Lookup, or what runs between them: each has its
        own.
        """
        made = self.environment_given or environment_here()
        made.secret = self.secret
        return made

    def call_seconds(self, hold: float) -> float:
        """The time for all attempts of a call, where a crashed owner's keys are back after `hold`
        seconds.
        """
        return 2 * hold + self.turn + self.wait if self.deadline is None else self.deadline

    async def open_store(self) -> EntityStore | None:
        """Open the store, if one is configured. Raises StoreFailed, and ConfigurationError."""
        kind: PoolKind = self.of_owner.get("kind", "hashed")
        return None if self.make_store is None else await self.make_store(self.pool, kind)

    def lookup(self) -> Lookup:
        """A Lookup, to be entered."""
        return Lookup(
            self.managers, pool=self.pool, on_loss=self.on_loss, _environment=self.environment
        )

    def owner(
        self,
        *,
        address: str,
        hand_off: HandOffHandler,
        on_grant: Callable[[Any], Awaitable[None]],
        lookup: Lookup,
        probe: "Probe",
        of_class: tuple[str, int],
        volume: GivesReadsOf | None = None,
    ) -> Owner:
        """An Owner, to be entered, of entities of the class of this name and version."""
        name, version = of_class
        labels = {
            **checked_labels(self.of_owner.get("labels")),
            CLASS_LABEL: name[:LABEL_CHARACTERS],
            CLASS_VERSION_LABEL: str(version),
        }
        host = self.listen.rpartition(":")[0]
        return Owner(
            self.managers,
            pool=self.pool,
            address=address,
            hand_off=hand_off,
            hand_off_listen=f"{host}:0",
            hand_off_insecure=self.insecure,
            on_grant=on_grant,
            lookup=lookup,
            volume=volume,
            probe=probe if self.of_owner.get("watchdog") else None,
            _environment=self.environment,
            **{**self.of_owner, "labels": labels},
        )
