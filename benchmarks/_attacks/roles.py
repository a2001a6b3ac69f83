"""The roles of attackers: what each does, and from which addresses of this host."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from benchmarks._attacks import (
    feeders,
    liars,
    neighbours,
    other_owners,
    store_clients,
    strangers,
    viewers,
    visitors,
    withdrawn,
)
from benchmarks._attacks.attempt import Family


class Role(NamedTuple):
    """A role of attackers."""

    families: tuple[Family, ...]
    net: str
    """The first three numbers of its addresses."""
    addresses: int
    prepare: Callable[[], object] = list
    """What is done before the attack begins."""

    def peer(self, number: int) -> str:
        return f"{self.net}.{number % self.addresses + 1}"


RIVAL = "a rival manager"
"""It attacks nobody: it waits to be asked."""
ROLES: Mapping[str, Role] = {
    "a stranger": Role(strangers.FAMILIES, "127.0.1", 200),
    "an owner of another pool": Role(other_owners.FAMILIES, "127.0.2", 2, other_owners.prepare),
    "a viewer": Role(viewers.FAMILIES, "127.0.3", 1),
    "a store client": Role(store_clients.FAMILIES, "127.0.4", 1),
    "a neighbour on the host": Role(neighbours.FAMILIES, "127.0.0", 1),
    RIVAL: Role((), "127.0.0", 1),
    "a lying member": Role(liars.FAMILIES, "127.0.0", 1),
    "a visitor": Role(visitors.FAMILIES, "127.0.5", 4),
    "a writer of feeds": Role(feeders.FAMILIES, "127.0.6", 1),
    "one whose authority is withdrawn": Role(withdrawn.FAMILIES, "127.0.7", 1),
}
