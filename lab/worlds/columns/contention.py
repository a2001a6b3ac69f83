"""Contention: now and then all clients read and write the same few columns of one row at once.

Two writes of a column, and a read of it in between, rarely meet by themselves: most rules about
concurrent writes are broken only where they do. So in some worlds there are many clients, who do
little until a *rush*: then each of them reads and writes four columns of two families, one
operation after the other.
"""

from collections.abc import Callable
from random import Random

from lab.worlds.columns.client import ClientProcess
from lab.worlds.columns.processes import StoreSite
from lab.worlds.columns.registers import RegisterName
from tenure.base.instants import SECOND_NS
from tenure.protocol.replication.row.edits import Edit

HOT: tuple[RegisterName, ...] = (
    ("names", None, b"a"),
    ("names", None, b"b"),
    ("supers", b"x", b"a"),
    ("supers", b"x", b"b"),
)
WRITERS = (8, 12, 16, 24)
PAUSES_NS = (SECOND_NS // 200, SECOND_NS // 10, 2 * SECOND_NS)
"""How long a client waits between two operations of a rush, on average."""
OPERATIONS = (3, 6, 12)
LEAST = min(WRITERS) * min(OPERATIONS)
EACH_HOUR = 250
"""How many operations all rushes of an hour have: many more would make a simulated hour dear."""
Done = Callable[[ClientProcess], None]


class Contention:
    """The rushes of one world. `operate` does one operation with a client and then calls back."""

    def __init__(
        self, site: StoreSite, random: Random, operate: Callable[[ClientProcess, Done], None]
    ) -> None:
        self._site = site
        self._random = random
        self._operate = operate

    def begin(self) -> None:
        """Rush again and again."""
        self._again(0)

    def _rush(self, _: int) -> None:
        clients = [each for each in self._site.clients() if isinstance(each, ClientProcess)]
        operations = self._random.choice(OPERATIONS)
        pause_ns = self._random.choice(PAUSES_NS)
        for client in clients:
            self._later(client, operations, pause_ns)
        self._again(len(clients) * operations)

    def _again(self, done: int) -> None:
        """Rush later, the more so the more was done."""
        apart_ns = 3600 * SECOND_NS * (done or LEAST) / EACH_HOUR
        self._site.at(self._site.now + round(apart_ns * 2 * self._random.random()), self._rush, 0)

    def _later(self, client: ClientProcess, left: int, pause_ns: int) -> None:
        wait_ns = round(self._random.expovariate(1.0) * pause_ns)
        self._site.at(self._site.now + wait_ns, self._act, (client, left, pause_ns))

    def _act(self, rushing: tuple[ClientProcess, int, int]) -> None:
        client, left, pause_ns = rushing
        if client.alive and not client.is_frozen and left:
            self._operate(client, lambda again: self._later(again, left - 1, pause_ns))


def hot_edits(random: Random, value: Callable[[], bytes]) -> tuple[Edit, ...]:
    """A write of one to four of the columns, rarely a delete."""
    chosen = random.sample(HOT, random.choice((1, 2, 2, 4)))
    return tuple(
        Edit(family, inner, name, None if random.random() < 0.1 else value())
        for family, inner, name in chosen
    )
