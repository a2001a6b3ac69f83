"""The faults of a world of caches without owners, and those that strike at times of their own."""

from lab.worlds.volume.processes import (
    BODY_RAISES,
    LOAD_FAILS,
    SLOW_STORE,
    STOPPED_READER,
    VolumeSite,
)
from tenure.protocol.volume.server.events import StopAsked
from tenure.sim.kernel.faults import (
    LATE_TIMER,
    MESSAGE_FAULTS,
    POINT_FAULTS,
    SKEW,
    Fault,
    FaultTable,
    terms_apart,
)
from tenure.sim.kernel.strikes import PAUSE_PAST_THE_TERM, SHORT_PAUSE, SUSPEND, Strikes


class ReaderStrikes(Strikes):
    """The faults of clients, with any kind of server."""

    site: VolumeSite

    def crash_of_a_client(self) -> None:
        """A client crashes, and another starts in its place."""
        self.crash(self.site.caches())

    def cut_one_way_from_a_client(self) -> None:
        """Cut the way from a client to a server, or back."""
        self.cut_between(self.site.caches(), self.site.servers(), both_ways=False)

    def cut_from_a_client(self) -> None:
        """Cut both ways between a client and a server."""
        self.cut_between(self.site.caches(), self.site.servers(), both_ways=True)

    def eviction(self) -> None:
        """A client evicts entries."""
        cache = self.any_of(self.site.caches())
        if cache is not None:
            cache.evict()

    def word_of_mouth(self) -> None:
        """One client's application is told what another's has seen."""
        caches = [cache for cache in self.site.caches() if cache.alive]
        if len(caches) > 1:
            one, other = self.random.sample(caches, 2)
            one.tell_what_it_saw(other)


class VolumeStrikes(ReaderStrikes):
    """The faults of servers, stores and memories as well."""

    site: VolumeSite

    def crash_of_a_server(self) -> None:
        """The server crashes, and another starts with its memory."""
        self.crash(self.site.servers())

    def quick_restart(self) -> None:
        """The next server starts at once, while leases of its readers still run."""
        server = self.any_of(self.site.servers())
        if server is not None:
            server.kill()
            self.site.restart_later(server.slot, self.random.randrange(1, 1_000_000))

    def graceful_stop(self) -> None:
        """The server takes back every lease, and closes; the next need not wait."""
        server = self.any_of(self.site.servers())
        if server is not None:
            server.post(StopAsked())

    def memory_put_back(self) -> None:
        """The server ends; the next one finds a copy of an earlier life's memory."""
        server = self.any_of(self.site.servers())
        if server is not None and self.site.earlier:
            self.site.bring_down(server)
            self.site.disk = self.random.choice(self.site.earlier)
            self.site.tell("disk", "put back", self.site.disk)

    def memory_lost(self) -> None:
        """The server ends; the next one finds nothing."""
        server = self.any_of(self.site.servers())
        if server is not None:
            self.site.bring_down(server)
            self.site.disk = None


def rarely(strength: float) -> float:
    """How often in a term all knowledge is lost."""
    return float(0.02 * 10**strength)


CRASHES = (
    Fault("crash of a server", terms_apart, VolumeStrikes.crash_of_a_server),
    Fault("quick restart", terms_apart, VolumeStrikes.quick_restart),
    Fault("graceful stop", terms_apart, VolumeStrikes.graceful_stop),
    Fault("crash of a client", terms_apart, VolumeStrikes.crash_of_a_client),
)
PAUSES = (SHORT_PAUSE, PAUSE_PAST_THE_TERM, SUSPEND)
CUTS = (
    Fault("one-way cut", terms_apart, VolumeStrikes.cut_one_way_from_a_client),
    Fault("two-way cut", terms_apart, VolumeStrikes.cut_from_a_client),
)
MEMORIES = (
    Fault("memory put back", rarely, VolumeStrikes.memory_put_back),
    Fault("memory lost", rarely, VolumeStrikes.memory_lost),
)
STORES = (SLOW_STORE, LOAD_FAILS, BODY_RAISES)
READING = (
    STOPPED_READER,
    Fault("eviction", terms_apart, VolumeStrikes.eviction),
    Fault("word of mouth", terms_apart, VolumeStrikes.word_of_mouth),
)
ALONE = FaultTable(
    (
        *CRASHES,
        *PAUSES,
        *CUTS,
        *MEMORIES,
        *STORES,
        *READING,
        *MESSAGE_FAULTS,
        *POINT_FAULTS,
        LATE_TIMER,
        SKEW,
    ),
    {
        "crash": CRASHES,
        "pause": PAUSES,
        "cut": CUTS,
        "memory": MEMORIES,
        "store": STORES,
        "reader": READING,
        "message": MESSAGE_FAULTS,
        "point": POINT_FAULTS,
    },
)
