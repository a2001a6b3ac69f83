"""Simulated hosts: reused pids, namespaces, and what processes can see of each other.

Each owner has a place, which it shares with others or not. Namespaces have the same numbers on
every host, as the first ones do on Linux, so that only the boot id tells two hosts apart; pids are
few, so that a successor often has its predecessor's; the dead stay zombies until they are reaped. A
container has a pid namespace for each of its lives, whose number may be an earlier one's.
"""

from itertools import count, islice
from random import Random
from typing import NamedTuple

from tenure.base.instants import MILLISECOND_NS

TICK_NS = 10 * MILLISECOND_NS
NUMBERS_TRIED = 2
"""How many of the lowest free numbers a draw chooses from. So it soon gives one that was in use
before.
"""
SHARED_PID_NAMESPACE = 4_026_531_836
FIRST_CONTAINER = 4_026_532_200
FIRST_PID = 2
"""The first pid in a namespace that many processes share. In a container the only process has pid
1.
"""
TIME_NAMESPACE = 4_026_531_834
TIME_OFFSET_TICKS = 12_345
"""How far apart the clocks of two time namespaces of one host are."""


class Place(NamedTuple):
    """The place in which the processes of a slot live."""

    host: int = 0
    is_container: bool = False
    """Whether its processes share no pids with others, nor with their predecessors."""
    time_offset: int = 0
    hides_pids: bool = False
    """Whether a process can read only those of its own user there (`hidepid`)."""
    is_told: bool = True
    """Whether its processes can state their identity: some hosts lack some namespaces."""


class Identity(NamedTuple):
    """The identity that distinguishes a process from every other."""

    boot_id: str
    pid_namespace: int
    time_namespace: int
    pid: int
    start_time: int


class Glimpse(NamedTuple):
    """The view that a process has of a pid. None if the pid cannot be read."""

    is_there: bool
    start_time: int | None = None
    first_thread_ended: bool = False
    has_other_threads: bool | None = None


class HostProcess:
    """A process as its host knows it: a pid in use."""

    def __init__(self, place: Place, namespace: int, pid: int, started: int) -> None:
        self.place = place
        self.namespace = namespace
        self.pid = pid
        self.started = started
        """When the process began, in ticks of the host's first time namespace."""
        self.first_thread_ended = False
        self.has_ended = False

    @property
    def key(self) -> tuple[int, int, int]:
        """The namespace and the pid under which the kernel keeps the process."""
        return self.place.host, self.namespace, self.pid

    @property
    def identity(self) -> Identity:
        """The identity of the process as it sees itself."""
        place = self.place
        return Identity(
            f"host-{place.host}",
            self.namespace,
            TIME_NAMESPACE + place.time_offset,
            self.pid,
            self.started + place.time_offset,
        )


class Hosts:
    """Every host, and the processes on it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.hosts = random.choice((1, 1, 1, 2))
        self.containers = random.choice((0.0, 0.0, 0.3, 1.0))
        self.time_offsets = random.choice(((0,), (0,), (0, TIME_OFFSET_TICKS)))
        self.hiding = random.choice((0.0, 0.0, 0.5))
        self._places: dict[str, Place] = {}
        self._by_pid: dict[tuple[int, int, int], HostProcess] = {}

    def place_of(self, slot: str) -> Place:
        """The place of the slot's processes, which outlives them."""
        if slot not in self._places:
            random = self.random
            self._places[slot] = Place(
                random.randrange(self.hosts),
                random.random() < self.containers,
                random.choice(self.time_offsets),
                random.random() < self.hiding,
                random.random() < 0.9,
            )
        return self._places[slot]

    def begin(self, place: Place, now: int) -> HostProcess:
        """A process begins, and the kernel chooses its pid."""
        drawn = self.random.randrange(NUMBERS_TRIED)
        if place.is_container:
            keys = ((place.host, namespace, 1) for namespace in count(FIRST_CONTAINER))
        else:
            keys = ((place.host, SHARED_PID_NAMESPACE, pid) for pid in count(FIRST_PID))
        free = (key for key in keys if key not in self._by_pid)
        _, namespace, pid = next(islice(free, drawn, None))
        return self.put(HostProcess(place, namespace, pid, now // TICK_NS))

    def put(self, process: HostProcess) -> HostProcess:
        """A process begins under a given pid."""
        assert process.key not in self._by_pid, process.key
        self._by_pid[process.key] = process
        return process

    def reap(self, process: HostProcess) -> None:
        """Free the pid: the process's parent has noticed its end."""
        del self._by_pid[process.key]

    def look(self, witness: HostProcess, pid: int) -> Glimpse:
        """The view that a living process has of a pid, in its own namespaces."""
        process = self._by_pid.get((witness.place.host, witness.namespace, pid))
        if process is None:
            return Glimpse(is_there=False)
        if witness.place.hides_pids and process is not witness:
            return Glimpse(is_there=True)
        return Glimpse(
            is_there=True,
            start_time=process.started + witness.place.time_offset,
            first_thread_ended=process.first_thread_ended or process.has_ended,
            has_other_threads=not process.has_ended,
        )
