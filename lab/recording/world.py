"""The world that is recorded: one manager, four owners on one host, and a client.

Nothing is left to the dice that a viewer could notice, and nothing goes wrong but what the script
does.
"""

from collections.abc import Iterable, Sequence

from lab.worlds.lease.processes import LookupProcess
from lab.worlds.lease.strikes import FAULTS
from lab.worlds.lease.trial import Trial
from lab.worlds.lease.workload import Workload
from lab.worlds.lease.world import LeaseWorld
from tenure.base.keys import Key
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.timing import DEFAULT
from tenure.sim.kernel.checkers import Violation
from tenure.sim.lease.beliefs import number_of
from tenure.sim.lease.processes import POOL

MANAGER, CLIENT = "m0", "l0"
OWNERS = {"o0": "ann", "o1": "bob", "o2": "cleo", "o3": "dan"}
"""The name of each owner, by its place."""
SLICES = 96
"""How many parts of the key space are looked at, one key in the middle of each."""
KEYS: tuple[Key, ...] = tuple(
    ((2 * part + 1) * 2**63 // SLICES).to_bytes(8, "big") for part in range(SLICES)
)
NOBODY = "."
RANGES = 6
"""How many ranges an owner is given: few enough to be told apart."""


class Client(Workload):
    """The client, which says what its lookup tells it."""

    def __init__(self, site: "RecordedWorld") -> None:
        super().__init__(site, site.checkers.losses)
        self.lost: list[KeyRange] = []
        """What was told as lost, and not yet written down."""

    def on_loss(self, lookup: LookupProcess, ranges: Sequence[KeyRange]) -> None:
        """A loss is told."""
        super().on_loss(lookup, ranges)
        self.lost += ranges


class RecordedWorld(LeaseWorld):
    """A world of leases in which only the script draws."""

    is_first_start = True

    def __init__(self, seed: int) -> None:
        super().__init__(
            Trial(seed=seed, faults=FAULTS.chosen("none"), timing=DEFAULT, pools=1, lookups=1)
        )
        self.draw_users()
        self.client_there = self.workload = Client(self)

    def _draw(self) -> None:
        super()._draw()
        self.journal_kind, self.manager_slots = "durable", (MANAGER,)
        self.virtual_nodes = self.fragments = RANGES
        self.first_policy, self.kinds = "weighted", {POOL: "hashed"}
        self.hand_off, self.fixed_names = 1.0, True
        self.hosts.hosts, self.hosts.containers, self.hosts.hiding = 1, 0.0, 0.0

    def first_slots(self) -> Iterable[str]:
        """Dan comes later."""
        return (MANAGER, *list(OWNERS)[:3], CLIENT)

    def held(self) -> str:
        """The owner that has each part of the key space now: its place in `OWNERS`, or nobody."""
        return "".join(map(self._holder, KEYS))

    def _holder(self, key: Key) -> str:
        holders = [owner.slot for owner in self.owners() if number_of(owner, key) is not None]
        if len(holders) > 1:
            raise Violation("S1", f"{' and '.join(holders)} have {key.hex()}")
        return str(list(OWNERS).index(holders[0])) if holders else NOBODY

    def asked(self) -> str:
        """The owner that the client asks for each part, or nobody while it has to wait."""
        (lookup,) = self.lookups()
        found = (lookup.find(key) for key in KEYS)
        places = list(OWNERS)
        return "".join(
            str(places.index(each.partition("/")[0])) if each else NOBODY for each in found
        )
