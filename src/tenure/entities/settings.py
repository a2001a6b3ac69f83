"""What `Entities` was given, checked; and the Owner, the Lookup and the store that come of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenure.base.keys import PoolKind
from tenure.client.arguments import checked_address, checked_drain, checked_name, checked_seconds
from tenure.client.environment import Environment, environment_here
from tenure.client.hand_off.handler import HandOffHandler
from tenure.client.lookup import Lookup
from tenure.client.owner import OnRanges, Owner
from tenure.entities.options import EntityOptions
from tenure.entities.stores import EntityStore, store_for
from tenure.member.listener import checked_listen

if TYPE_CHECKING:
    from tenure.client.owner import Probe


class EntitySettings:
    """Of one `Entities`; it is made anew for a blocking one."""

    def __init__(  # noqa: PLR0913  # one for each that users give
        self,
        pool: str,
        managers: str | Sequence[str] | None,
        options: EntityOptions,
        *,
        store: str | None,
        settle: float,
        drain: float,
        listen: str,
        address: str | None,
        insecure: bool,
        on_loss: OnRanges | None,
        environment: Environment | None,
        of_owner: Mapping[str, Any],
    ) -> None:
        self.pool = checked_name("pool", pool)
        self._managers = managers
        self.options = options.checked()
        self._make_store = None if store is None else store_for(store)
        self.settle = checked_seconds("settle", settle)
        self.drain = checked_drain(drain)
        is_safe = insecure or (environment or environment_here()).credentials.mutual
        self.listen = checked_listen(listen, address, insecure=is_safe)
        self.address = None if address is None else checked_address(address)
        self._insecure = insecure
        self._on_loss = on_loss
        self._environment = environment
        self._of_owner = of_owner
        self.in_threads = False
        """Whether `def` methods are called, each in a thread."""

    @property
    def environment(self) -> Environment:
        """Of the Owner, of the Lookup, and of what runs between them: each has one of its own."""
        return self._environment or environment_here()

    @property
    def kind(self) -> PoolKind:
        """Of the pool."""
        found: PoolKind = self._of_owner.get("kind", "hashed")
        return found

    async def open_store(self) -> EntityStore | None:
        """The store, if there is to be one. Raises StoreFailed, and ConfigurationError."""
        return None if self._make_store is None else await self._make_store(self.pool, self.kind)

    def lookup(self) -> Lookup:
        """A Lookup, to be entered."""
        return Lookup(
            self._managers,
            pool=self.pool,
            on_loss=self._on_loss,
            _environment=self.environment,
        )

    def owner(
        self,
        *,
        address: str,
        hand_off: HandOffHandler,
        on_grant: Callable[[Any], Awaitable[None]],
        lookup: Lookup,
        probe: "Probe",
    ) -> Owner:
        """An Owner, to be entered."""
        host = self.listen.rpartition(":")[0]
        return Owner(
            self._managers,
            pool=self.pool,
            address=address,
            hand_off=hand_off,
            hand_off_listen=f"{host}:0",
            hand_off_insecure=self._insecure,
            on_grant=on_grant,
            lookup=lookup,
            probe=probe if self._of_owner.get("watchdog") else None,
            _environment=self.environment,
            **self._of_owner,
        )
