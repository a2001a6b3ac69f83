"""A world of caches with owners: managers, lookups and owners of leases, whose ranges caches read.

All of the core runs as in a world of leases, with its faults and its checkers. Beside each lookup
there is a cache, which learns from it where to ask.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar

import msgspec

from lab.worlds.lease.processes import LookupProcess, OwnerProcess
from lab.worlds.lease.trial import Trial
from lab.worlds.lease.world import LeaseWorld
from lab.worlds.volume.checkers import VolumeCheckers, initial
from lab.worlds.volume.codec import VolumeCodec
from lab.worlds.volume.owned_strikes import OWNED, OwnedStrikes
from lab.worlds.volume.owners import OwnedSite, OwnerAndServer, VolumeOwner
from lab.worlds.volume.processes import STOPPED_READER, AnyServer, CacheProcess
from lab.worlds.volume.store import FencedStore
from lab.worlds.volume.trial import VolumeTrial
from lab.worlds.volume.workload import CacheWorkload
from lab.worlds.volume.world import drawn_terms
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.owner.events import OwnerConfig
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.volume.client.events import CacheConfig, RoutesChanged
from tenure.protocol.volume.client.machine import CacheMachine
from tenure.protocol.volume.messages import VolumeMessage
from tenure.protocol.volume.server.events import ServerConfig
from tenure.protocol.volume.server.machine import VolumeServer
from tenure.sim.kernel.faults import FaultTable
from tenure.sim.kernel.hosts import HostProcess
from tenure.sim.kernel.network import Codec
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.scene import random_for
from tenure.sim.lease.managed_world import LeaseCodec

CACHES = 2
KEYS = 4
OF_CACHES, OF_LEASES = b"v", b"l"


class BothCodecs:
    """Messages of leases, and of caches."""

    def __init__(self) -> None:
        self._leases, self._caches = LeaseCodec(), VolumeCodec()

    def encode(self, message: Any) -> bytes:
        """Encode a message of either kind."""
        if isinstance(message, VolumeMessage):
            return OF_CACHES + self._caches.encode(message)
        return OF_LEASES + self._leases.encode(message)

    def decode(self, data: bytes, receiver: SimProcess) -> Any:
        """Decode a message as its receiver reads it."""
        if data[:1] == OF_CACHES:
            return self._caches.decode(data[1:], receiver)
        return self._leases.decode(data[1:], receiver)


class OwnedCachesWorld(LeaseWorld, OwnedSite):
    """Everything that there is in one run."""

    faults_there_are: ClassVar[FaultTable] = OWNED
    codec: ClassVar[type[Codec]] = BothCodecs
    applications: CacheWorkload
    judge: VolumeCheckers

    def __init__(self, trial: VolumeTrial) -> None:
        self._of_caches = trial
        self.nonces = {}
        self._ranks: dict[int, int] = {}
        self._reader_is_stopped = False
        self.earlier = []
        super().__init__(
            Trial(
                seed=trial.seed,
                hours=trial.hours,
                faults=trial.faults,
                fault_rate=trial.fault_rate,
                owners=2,
                spare_owners=1,
                pools=1,
            )
        )
        self._draw_caches()
        keys: list[Key] = self.watched_keys[:KEYS]
        self.store = FencedStore()
        for key in keys:
            self.store.values[key] = initial(key)
        self.judge = VolumeCheckers(self, self.terms, keys)
        self.applications = CacheWorkload(self, self.judge, keys, trial)

    def _draw_caches(self) -> None:
        """Draw what this seed's volumes are like."""
        random, drawn = self.random, self._of_caches.drawn
        term_ns = self.timing.term_ns // drawn("terms_in_a_term", random.choice((1, 2, 4)))
        lease_terms = drawn("lease_terms", random.choice((0.5, 2, 20)))
        self.terms = drawn_terms(self._of_caches, random, term_ns, lease_terms)
        self.known_writes = drawn("known_writes", random.choice((1, 2, 1_000)))
        self.most_leases = drawn("most_leases", random.choice((3, 1_000, 1_000)))
        self.retry_ns = term_ns // drawn("retries", random.choice((6, 30)))
        apart = Random(f"stores of {self._of_caches.seed}")
        self.is_durable = drawn("durable", apart.random() < 0.5)
        """Whether the state outlives its owner. Drawn from apart, so that worlds in which it does
        stay what they were.
        """

    # --- what came of it ---

    def run(self, tell: Callable[[int], None] = lambda _: None) -> None:
        """Run to the end, and judge what was done since the healing."""
        super().run(tell)
        self.judge.check_histories()

    def seen_by_clients(self) -> Mapping[str, int]:
        """How often applications saw each outcome."""
        return {**self.workload.counts, **self.applications.counts}

    # --- healing ---

    @property
    def healing_bound_ns(self) -> int:
        """The healing bound of leases; then a quiet, a reader's muteness, and the patience of
        whoever asks.
        """
        return super().healing_bound_ns + 10 * self.terms.held_ns(self.terms.term_ns)

    def end_faults(self) -> None:
        super().end_faults()
        self.applications.begin_healing()

    def not_well(self) -> str | None:
        """The reason why not every key has an owner yet, or not every cache can read."""
        return super().not_well() or self.applications.missing()

    def when_well(self, left_ns: int) -> None:
        """Judge all that was done."""
        self.judge.check_histories()
        super().when_well(left_ns)

    # --- processes ---

    def first_slots(self) -> Iterable[str]:
        """The slots of the lease world, and one for the cache beside each lookup."""
        return (*super().first_slots(), *(f"c{i}" for i in range(CACHES)))

    def make(self, slot: str) -> SimProcess:
        """Make a process for a slot."""
        return self._make_cache(slot) if slot[0] == "c" else super().make(slot)

    def make_strikes(self) -> OwnedStrikes:
        """Make the faults that strike at times of their own."""
        return OwnedStrikes(self, self.clocks, self.operator, self.spare_slots(), self.policy_watch)

    def begin_owner(self, slot: str, config: OwnerConfig, on_host: HostProcess) -> OwnerProcess:
        """Make an owner with a volume."""
        terms = self.terms
        config = msgspec.structs.replace(config, reads_ns=terms.term_ns, cache=config.address)
        of_server = ServerConfig(
            terms=terms,
            alone=False,
            durable=self.is_durable,
            known_writes=self.known_writes,
            most_leases=self.most_leases,
        )
        owner = OwnerMachine(config, random_for(self.random))
        server = VolumeServer(of_server, random_for(self.random))
        machine = OwnerAndServer(owner, server)
        return VolumeOwner(self, slot, self.clock_at(slot), machine, on_host)

    def _make_cache(self, slot: str) -> CacheProcess:
        config = CacheConfig(
            retry_ns=self.retry_ns,
            patience_ns=self.terms.term_ns,
            write_patience_ns=2 * self.terms.term_ns,
        )
        machine = CacheMachine(config, random_for(self.random))
        return CacheProcess(self, slot, self.clock_at(slot), machine)

    def on_started(self, process: SimProcess) -> None:
        """A process has started. A cache asks the lookup beside it where to ask."""
        super().on_started(process)
        if isinstance(process, CacheProcess | AnyServer):
            self.applications.start(process)
        if isinstance(process, CacheProcess):
            lookup = self.slots.get(f"l{process.slot[1:]}")
            if isinstance(lookup, LookupProcess):
                self._tell_routes(lookup, process)

    def on_routes(self, lookup: LookupProcess) -> None:
        """A lookup has new routes: tell the cache beside it."""
        cache = self.slots.get(f"c{lookup.slot[1:]}")
        if isinstance(cache, CacheProcess):
            self._tell_routes(lookup, cache)

    def _tell_routes(self, lookup: LookupProcess, cache: CacheProcess) -> None:
        routes = lookup.routes
        if routes is None:
            return
        ends: list[Key | None] = [*routes.starts[1:], None]
        ranges = map(KeyRange, routes.starts, ends)
        cache.post(RoutesChanged(tuple(zip(ranges, routes.addresses, strict=True))))

    def name_of(self, server: SimProcess) -> str:
        """The server's address, as lookups tell it."""
        assert isinstance(server, OwnerProcess)
        return server.machine.view().config.address

    def slot_of(self, server: str) -> str:
        """The slot of the owner that serves at an address."""
        return server.partition("/")[0]

    def rank(self, history: int) -> int:
        """The rank of a history, in the order in which histories began."""
        return self._ranks.setdefault(history, len(self._ranks) + 1)

    def clients(self) -> list[SimProcess]:
        """The clients of managers: owners and lookups."""
        return [*self.owners(), *self.lookups()]

    def groups(self) -> Sequence[Sequence[SimProcess]]:
        """The managers, the owners, the lookups and the caches."""
        return self.managers(), self.owners(), self.lookups(), self.caches()

    def on_step(self, process: SimProcess) -> None:
        """A process's machine has taken an event."""
        if isinstance(process, CacheProcess):
            self.judge.on_step(process)
            return
        super().on_step(process)
        if isinstance(process, AnyServer):
            self.judge.check_records(process)

    def stop_a_reader(self) -> None:
        """Perhaps let time go on before a reader takes its next step."""
        if self._reader_is_stopped or not self.faults.strikes(STOPPED_READER):
            return
        self._reader_is_stopped = True
        short = self.random.random() < 0.5
        self.run_until(self.now + self.faults.span(0.0001, 0.01 if short else 1.5))
        self._reader_is_stopped = False
