"""A world of caches: one server after another, its clients, and all draws about them."""

from collections.abc import Callable, Iterable, Mapping
from random import Random

import msgspec

from lab.worlds.volume.checkers import VolumeCheckers, initial
from lab.worlds.volume.codec import VolumeCodec
from lab.worlds.volume.processes import (
    SERVER,
    STOPPED_READER,
    CacheProcess,
    ServerProcess,
    VolumeSite,
)
from lab.worlds.volume.store import FencedStore
from lab.worlds.volume.strikes import ALONE, VolumeStrikes
from lab.worlds.volume.trial import SKEW_AT_THE_BOUND, VolumeTrial
from lab.worlds.volume.workload import CacheWorkload
from tenure.base.instants import SECOND_NS
from tenure.base.keys import Key
from tenure.protocol.volume.client.events import CacheConfig
from tenure.protocol.volume.client.machine import CacheMachine
from tenure.protocol.volume.server.events import Remembers, ServerConfig, VolumeMemory
from tenure.protocol.volume.server.machine import VolumeServer
from tenure.protocol.volume.server.terms import Terms
from tenure.sim.kernel.checkers import Violation
from tenure.sim.kernel.clocks import SimClock
from tenure.sim.kernel.faults import FaultDice
from tenure.sim.kernel.network import Network
from tenure.sim.kernel.process import SimProcess
from tenure.sim.kernel.scene import random_for
from tenure.sim.kernel.story import Story
from tenure.sim.kernel.world import World

STEADY_TERMS = 4
"""How many terms a cache is watched that is in use while nothing goes wrong (C7)."""
WARM_TURNS = 10
"""One term: until the first renewal since it was in use, which lists what ends soon."""


def drawn_terms(trial: VolumeTrial, random: Random, term_ns: int, lease_terms: float) -> Terms:
    """Draw the terms of a seed's volumes."""
    return msgspec.structs.replace(
        trial.terms,
        term_ns=term_ns,
        lease_ns=round(lease_terms * term_ns),
        keep_ns=round(trial.drawn("keep_terms", random.choice((0, 0.5, 2))) * term_ns),
        mute_ns=2 * term_ns,
        mode=trial.drawn("mode", random.choice((*("strong",) * 7, "best effort"))),
        invalidate=trial.drawn("invalidate", random.choice(("delayed", "delayed", "at once"))),
    )


class VolumeWorld(World, VolumeSite):
    """Everything there is in one run."""

    judge: VolumeCheckers
    applications: CacheWorkload

    def __init__(self, trial: VolumeTrial) -> None:
        super().__init__(trial, ALONE, Story())
        self.trial = trial
        self.disk = None
        self.earlier: list[VolumeMemory] = []
        self.keys: list[Key] = [b"k%d" % i for i in range(trial.keys)]
        self.nonces = {}
        self._reader_is_stopped = False
        self._hosts = Random(f"hosts of {trial.seed}")
        """Drawn from apart, so that worlds whose hosts never restart stay what they were."""
        self._boots = 1
        self._draw()
        self.heals_every_ns = self.terms.term_ns // 4
        self.phase_ns = self.terms.term_ns
        self.faults: FaultDice = self.dice(self.terms.term_ns)
        self.network = Network(self, VolumeCodec())
        self.store = FencedStore()
        for key in self.keys:
            self.store.values[key] = initial(key)
        self.judge = VolumeCheckers(self, self.terms, self.keys)
        self.applications = CacheWorkload(self, self.judge, self.keys, trial)
        self.strikes = VolumeStrikes(self, self.network, self.clocks)

    def _draw(self) -> None:
        """Draw what this seed's world is like."""
        random, drawn, term = self.random, self.trial.drawn, self.trial.terms.term_ns
        lease_terms = drawn("lease_terms", random.choice((0.5, 2, 20, 20)))
        self.terms = drawn_terms(self.trial, random, term, lease_terms)
        ways: tuple[Remembers, ...] = ("longest", "longest", "latest end", "nothing")
        self.remembers = drawn("remembers", random.choice(ways))
        kinds = ("one boot", "one boot", "told", "untold")
        self.boots = drawn("boots", self._hosts.choice(kinds))
        """Whether the server's host ever restarts, and whether it tells which boot this is."""
        self.known_writes = drawn("known_writes", random.choice((1, 2, 1_000)))
        self.most_leases = drawn("most_leases", random.choice((3, 1_000, 1_000)))
        self.retry_ns = term // drawn("retries", random.choice((6, 30)))
        self.patience_ns = term

    def run(self, tell: Callable[[int], None] = lambda _: None) -> None:
        """Run to the end, and judge what was done since all was well."""
        super().run(tell)
        self.judge.check_histories()

    def seen_by_clients(self) -> Mapping[str, int]:
        """How often applications saw what."""
        return self.applications.counts

    # --- healing ---

    @property
    def healing_bound_ns(self) -> int:
        """A server's quiet, a reader's muteness, and the patience of whoever asks."""
        return 10 * self.terms.held_ns(self.terms.term_ns)

    def end_faults(self) -> None:
        """Let nothing more go wrong."""
        super().end_faults()
        self.applications.begin_healing()

    def not_well(self) -> str | None:
        """The reason why not everybody can read and write yet (C7)."""
        for server in self.servers():
            view = server.volume.view()
            if not view.is_open:
                return f"{server.slot} is not open"
            if server.now() < server.volume.context.opening.quiet_until:
                return f"{server.slot} is quiet"
        return self.applications.missing()

    def when_well(self, left_ns: int) -> None:
        """Judge what was done; then see that a cache in use needs to wait for nothing."""
        self.judge.check_histories()
        term = self.terms.term_ns
        has_room = self.most_leases > self.trial.clients * self.trial.keys
        if left_ns > 3 * STEADY_TERMS * term and has_room and self.terms.lease_ns >= 2 * term:
            self._watch_steady_use()

    def _watch_steady_use(self) -> None:
        """One client reads what nobody writes: from the second time on it hits (C7). Others may be
        written all the while, so that the server forgets writes, and floors rise.
        """
        self.applications.is_quiet = True
        term = self.terms.term_ns
        self.run_until(self.now + 3 * self.terms.held_ns(term))  # what is under way ends
        cache = self.random.choice(self.caches())
        written = self.keys[: self.random.choice((0, len(self.keys) - 1))]
        step = min(term, self.terms.lease_ns) // 10
        for turn in range(STEADY_TERMS * 10):
            for key in self.keys[len(written) :]:
                if cache.hit(key) is None:
                    if turn >= WARM_TURNS:
                        raise Violation("C7: a cache in use waits", f"{cache.slot} for {key!r}")
                    self.applications.read_now(cache, key)
            for server in self.servers() if written else ():
                self.applications.write_now(server, (written[turn % len(written)],))
            self.run_until(self.now + step)
        self.applications.is_quiet = False

    # --- processes ---

    def first_slots(self) -> Iterable[str]:
        """The server, and its clients."""
        return (SERVER, *(f"c{i}" for i in range(self.trial.clients)))

    def make(self, slot: str) -> SimProcess:
        """A new life at a slot."""
        clock = self.clock_of(slot, SKEW_AT_THE_BOUND)
        if slot == SERVER:
            clock = self._restart_host(clock)
            if self.disk is not None and self.disk not in self.earlier:
                self.earlier.append(self.disk)
            config = ServerConfig(
                terms=self.terms,
                remembers=self.remembers,
                memory=self.disk if self.remembers != "nothing" else None,
                boot_id="" if self.boots == "untold" else f"boot {self._boots}",
                known_writes=self.known_writes,
                most_leases=self.most_leases,
            )
            server = VolumeServer(config, random_for(self.random))
            return ServerProcess(self, slot, clock, server)
        cache = CacheMachine(
            CacheConfig(
                server=SERVER,
                retry_ns=self.retry_ns,
                patience_ns=self.patience_ns,
                write_patience_ns=2 * self.patience_ns,
            ),
            random_for(self.random),
        )
        return CacheProcess(self, slot, clock, cache)

    def _restart_host(self, clock: SimClock) -> SimClock:
        """Perhaps let the server's host restart first: then its clock begins at another time."""
        if self.boots == "one boot" or self._hosts.random() < 0.5:
            return clock
        self._boots += 1
        restarted = SimClock(self._hosts.randrange(1, 1_000_000 * SECOND_NS), clock.rate)
        self.clocks[SERVER] = restarted
        self.tell(SERVER, "is on a host that has restarted")
        return restarted

    def on_started(self, process: SimProcess) -> None:
        """Let a new process have an application."""
        assert isinstance(process, CacheProcess | ServerProcess)
        self.applications.start(process)

    def on_step(self, process: SimProcess) -> None:
        """A process's machine has taken an event."""
        self.judge.on_step(process)

    def stop_a_reader(self) -> None:
        """Perhaps let time go on before a reader takes its next step."""
        if self._reader_is_stopped or not self.faults.strikes(STOPPED_READER):
            return
        self._reader_is_stopped = True
        short = self.random.random() < 0.5
        self.run_until(self.now + self.faults.span(0.0001, 0.01 if short else 1.5))
        self._reader_is_stopped = False
